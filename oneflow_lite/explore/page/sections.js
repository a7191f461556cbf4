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

const MANY = 300;

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

// Boxes over a line of time. `rows` is how many rows high it is, each `size` pixels; `boxes` are
// [{from, to, top, height, label, kind, tip, chosen}, …] in units of time and pixels; `ticks` are
// [{at, label}, …]. `mark(from, to)` draws a stripe over a stretch of time.
export function chart(tools, { label, length, height, boxes, ticks, went = null }) {
  const stripe = h("div", { class: "stripe", hidden: true });
  const inner = h("div", { class: "boxes", style: `height: ${height + 24}px` }, stripe,
    ticks.map(({ at, label: text }) => h("span", { class: "tick", style: `left: ${percent(at)}` }, text)),
    boxes.map((box) => {
      const made = h("div", { class: `box ${box.kind}`, "data-box": box.id, onclick: box.chosen,
        style: `left: ${percent(box.from)}; width: ${percent(box.to - box.from)}; top: ${box.top + 22}px; height: ${box.height}px` },
      box.height >= 12 && box.label);
      return box.tip ? tools.tip(made, box.tip) : made;
    }));
  const element = h("div", { class: "chart", tabindex: 0, role: "region", "aria-label": label }, inner);
  if (went) inner.addEventListener("click", (event) => {
    if (event.target.closest(".box")) return;
    const { left, width } = inner.getBoundingClientRect();
    went(((event.clientX - left) / width) * length);
  });

  function percent(time) {
    return `${(100 * time) / (length || 1)}%`;
  }

  return {
    element,
    zoom(times) {
      inner.style.width = `${100 * times}%`;
    },
    mark(from, to) {
      stripe.hidden = false;
      stripe.style.left = percent(from);
      stripe.style.width = percent(to - from);
    },
  };
}

// A slider that zooms a chart.
export function zoomer(drawn, times = 1, most = 40) {
  const slider = h("input", { type: "range", min: 0, max: 100, value: (100 * Math.log(times)) / Math.log(most),
    oninput: () => drawn.zoom(most ** (slider.value / 100)) });
  drawn.zoom(times);
  return h("label", { class: "bar dim" }, "Zoom", slider);
}

// "1.5 µs" from microseconds.
export function time(microseconds) {
  const [unit, size] = microseconds >= 1e6 ? ["s", 1e6] : microseconds >= 1e3 ? ["ms", 1e3] : ["µs", 1];
  return `${Number((microseconds / size).toPrecision(3))} ${unit}`;
}
