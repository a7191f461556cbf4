// A view with several sections, of which one is open, and charts of boxes over time.

import { h } from "./elements.js";

// `sections` are [{name, title, key, draw}, …]; `draw()` gives the content. Returns {element, open(name),
// draw(), at, keys}: a row of buttons, and below it the open section, drawn anew by `draw`.
export function sections(label, all) {
  const body = h("div", { class: "stack" });
  const buttons = new Map(all.map(({ name, title, key }) => [name,
    h("button", { type: "button", "data-section": name, "aria-keyshortcuts": key, onclick: () => open(name) },
      title, " ", h("kbd", {}, key))]));
  const element = h("div", { class: "stack" },
    h("div", { class: "bar", role: "group", "aria-label": label }, [...buttons.values()]), body);
  let at = all[0].name;

  function open(name) {
    at = name;
    draw();
  }

  function draw() {
    for (const [name, button] of buttons) button.setAttribute("aria-pressed", String(name === at));
    body.replaceChildren(...[all.find(({ name }) => name === at).draw()].flat(Infinity).filter(Boolean));
  }

  return { element, open, draw, body, get at() { return at; },
    keys: all.map(({ name, title, key }) => ({ key, does: title.toLowerCase(), run: () => open(name) })) };
}

const MANY = 200;

// Code that is listed when it is opened, for it may be long.
export function folded(title, make) {
  const details = h("details", { ontoggle: () => details.open && details.childElementCount === 1 && details.append(make()) },
    h("summary", {}, title));
  return details;
}

// A table that may be long: the first rows, and a button for all of them.
export function long(make, items, row) {
  const holder = h("div", { class: "stack" });
  const show = (count) => {
    const rest = items.length - count;
    holder.replaceChildren(make(items.slice(0, count).map(row)), ...(rest > 0
      ? [h("p", {}, h("button", { type: "button", onclick: () => show(items.length) }, `Show ${rest} more rows`))] : []));
  };
  show(MANY);
  return holder;
}

// Boxes over a line of time, of which those in sight are drawn. `boxes` are [{id, from, to, top, height,
// label, kind, tip, chosen}, …]: `from` and `to` in units of time, of which there are `length`, `top` and
// `height` in pixels; `id` becomes data-box. `tick(time)` is the text at a place of the line, `round`
// brings places to where there may be one. `mark(from, to)` draws a stripe over a stretch of time,
// `reveal(time)` scrolls there, `zoom(times)` stretches.
export function chart(tools, { label, length, height, boxes, tick, round = (time) => time, went = null }) {
  const stripe = h("div", { class: "stripe", hidden: true });
  const drawn = h("div", {});
  const inner = h("div", { class: "boxes", style: `height: ${height + TOP}px` }, stripe, drawn);
  const element = h("div", { class: "chart", tabindex: 0, role: "region", "aria-label": label }, inner);
  const whole = length || 1;
  let times = 1;
  let asked = 0;

  function draw() {
    const width = inner.clientWidth || 1000;
    const [left, right] = [element.scrollLeft - 400, element.scrollLeft + (element.clientWidth || 1000) + 400];
    const x = (time) => (time / whole) * width;
    const made = [];
    const count = Math.max(1, Math.round(width / 150));
    for (let k = Math.max(0, Math.ceil((left / width) * count)); k < count && (k / count) * width < right; k++)
      made.push(h("span", { class: "tick", style: `left: ${x(round((k / count) * whole))}px` }, tick(round((k / count) * whole))));
    for (const box of boxes) {
      const [from, to] = [x(box.from), x(box.to)];
      if (to < left || from > right) continue;
      const one = h("div", { class: `box ${box.kind}`, "data-box": box.id, onclick: box.chosen,
        style: `left: ${from}px; width: ${Math.max(2, to - from)}px; top: ${box.top + TOP}px; height: ${box.height}px` },
      box.height >= 12 && to - from > 16 && box.label);
      made.push(box.tip ? tools.tip(one, box.tip) : one);
    }
    drawn.replaceChildren(...made);
  }

  const soon = () => {
    cancelAnimationFrame(asked);
    asked = requestAnimationFrame(draw);
  };
  element.addEventListener("scroll", soon);
  new ResizeObserver(soon).observe(element);
  if (went) inner.addEventListener("click", (event) => {
    if (event.target.closest(".box")) return;
    const { left, width } = inner.getBoundingClientRect();
    went(((event.clientX - left) / width) * whole);
  });

  return {
    element,
    zoom(by) {
      const middle = (element.scrollLeft + element.clientWidth / 2) / times;
      times = by;
      inner.style.width = `${100 * times}%`;
      element.scrollLeft = middle * times - element.clientWidth / 2;
      soon();
    },
    mark(from, to) {
      stripe.hidden = false;
      stripe.style.left = `${(100 * from) / whole}%`;
      stripe.style.width = `${(100 * (to - from)) / whole}%`;
    },
    reveal(time) {
      const x = (time / whole) * inner.clientWidth;
      if (x < element.scrollLeft || x > element.scrollLeft + element.clientWidth)
        element.scrollLeft = x - element.clientWidth / 2;
    },
  };
}

const TOP = 22; // pixels for the texts of the line of time

// A slider that zooms a chart, which begins at so many times its width.
export function zoomer(drawn, times = 1) {
  const most = Math.max(40, 4 * times);
  const slider = h("input", { type: "range", min: 0, max: 100, value: (100 * Math.log(times)) / Math.log(most),
    "data-control": "zoom", oninput: () => drawn.zoom(most ** (slider.value / 100)) });
  drawn.zoom(times);
  return h("label", { class: "bar dim" }, "Zoom", slider);
}

// A line of source: a link to where the tab Forward shows it, or its name where there is no such tab.
export function place(tools, at) {
  return tools.data.ops.length ? tools.source(at) : h("span", { class: "mono" }, at.join(":"));
}

// "1.5 µs" from microseconds.
export function time(microseconds) {
  const [unit, size] = microseconds >= 1e6 ? ["s", 1e6] : microseconds >= 1e3 ? ["ms", 1e3] : ["µs", 1];
  return `${Number((microseconds / size).toPrecision(3))} ${unit}`;
}
