// Elements from plain calls. What a document says only ever becomes text, never markup.

// h("p", {class: "dim", onclick: f}, "text", element, [more]): functions become listeners, true
// an empty attribute; null, undefined and false are left out, among the children as well.
export function h(tag, properties, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(properties ?? {})) {
    if (typeof value === "function") element.addEventListener(name.replace(/^on/, ""), value);
    else if (value !== null && value !== undefined && value !== false)
      element.setAttribute(name, value === true ? "" : value);
  }
  add(element, children);
  return element;
}

function add(element, children) {
  for (const child of children.flat(Infinity))
    if (child !== null && child !== undefined && child !== false) element.append(child);
}

// Replaces what an element holds.
export function fill(element, ...children) {
  element.replaceChildren();
  add(element, children);
  return element;
}

// A table: `head` are titles, `rows` are lists of cells, each text, an element or a list of these.
// A column whose title starts with "#" is one of numbers, and is aligned so.
export function table(caption, head, rows) {
  const number = head.map((title) => title.startsWith("#"));
  const cell = (tag) => (content, k) => h(tag, { class: number[k] && "number" }, content);
  return h("div", { class: "table", tabindex: 0, role: "region", "aria-label": caption },
    h("table", {},
      h("caption", {}, caption),
      h("thead", {}, h("tr", {}, head.map((title) => title.replace("#", "")).map(cell("th")))),
      h("tbody", {}, rows.map((row) =>
        row instanceof Element ? row : h("tr", {}, row.map(cell("td")))))));
}

// Names and what they stand for, one pair a line; pairs without content are left out.
export function facts(pairs) {
  const said = pairs.filter(([, content]) => content !== null && content !== "" && content !== false);
  return h("dl", { class: "facts" },
    said.map(([name, content]) => [h("dt", {}, name), h("dd", {}, content)]));
}

// A part of a panel under a heading; without children there is none.
export function section(title, ...children) {
  const all = children.flat(Infinity).filter((child) => child || child === 0);
  return all.length ? h("section", {}, h("h3", {}, title), all) : null;
}

const ROW = 32;

// A listbox that draws only the rows in sight, so that it may have thousands. `row(item)` gives a
// row's content; `chosen(item, k)` is called when the user goes to one: with `follow` by arrows as well,
// else by Enter and the mouse alone. The object that comes back has `show(items)`, `choose(k)`, which
// calls nobody, `go(k)`, which does, and `element`.
export function list(label, row, chosen, { follow = true } = {}) {
  let items = [];
  let at = -1;
  const inner = h("div", { class: "rows", role: "presentation" });
  const element = h("div", { class: "list", role: "listbox", tabindex: 0, "aria-label": label }, inner);
  const id = `list${++list.count}-`;

  function draw() {
    const first = Math.max(0, Math.floor(element.scrollTop / ROW) - 5);
    const last = Math.min(items.length, first + Math.ceil((element.clientHeight || 600) / ROW) + 10);
    const shown = [];
    for (let k = first; k < last; k++)
      shown.push(h("div", {
        id: id + k, class: "row", role: "option", style: `top: ${k * ROW}px`, "data-row": k,
        "aria-selected": String(k === at), "aria-setsize": items.length, "aria-posinset": k + 1,
      }, row(items[k], k)));
    inner.style.height = `${items.length * ROW}px`;
    inner.replaceChildren(...shown);
    if (at >= first && at < last) element.setAttribute("aria-activedescendant", id + at);
    else element.removeAttribute("aria-activedescendant");
  }

  function choose(k) {
    at = k;
    const top = k * ROW;
    if (k >= 0 && top < element.scrollTop) element.scrollTop = top;
    else if (top + ROW > element.scrollTop + element.clientHeight)
      element.scrollTop = top + ROW - element.clientHeight;
    draw();
  }

  function go(k) {
    const to = Math.max(0, Math.min(items.length - 1, k));
    if (to < 0 || !items.length) return;
    choose(to);
    chosen(items[to], to);
  }

  element.addEventListener("scroll", draw);
  element.addEventListener("click", (event) => {
    const clicked = event.target.closest("[data-row]");
    if (clicked) go(Number(clicked.dataset.row));
  });
  element.addEventListener("keydown", (event) => {
    const page = Math.floor(element.clientHeight / ROW) - 1;
    const to = { ArrowDown: at + 1, ArrowUp: at - 1, PageDown: at + page, PageUp: at - page,
      Home: 0, End: items.length - 1, Enter: at }[event.key];
    if (to === undefined || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    event.stopPropagation();
    if (follow || event.key === "Enter") go(to);
    else choose(Math.max(0, Math.min(items.length - 1, to)));
  });
  new ResizeObserver(draw).observe(element);
  return {
    element,
    choose,
    go,
    get at() { return at; },
    show(all) {
      items = all;
      at = -1;
      element.scrollTop = 0;
      draw();
    },
  };
}
list.count = 0;

// Text with line numbers. `marks` are lines that stand out, `buttons` a map of lines to elements
// that stand beside them.
export function code(text, { first = 1, marks = [], buttons = new Map(), label = "Source" } = {}) {
  const lines = text.replace(/\n$/, "").split("\n").map((line, k) => {
    const number = first + k;
    const marked = marks.includes(number);
    return h("div", { class: marked ? "line marked" : "line", "data-line": number,
      "aria-current": marked && "true" },
      h("span", { class: "line-number" }, String(number)),
      h("span", { class: "line-mark" }, buttons.get(number), marked && !buttons.has(number) && "▸"),
      h("code", {}, line || " "));
  });
  return h("div", { class: "code", tabindex: 0, role: "region", "aria-label": label }, lines);
}

// 1536 → "1.5 KiB"
export function bytes(count) {
  const sign = count < 0 ? "−" : "";
  let rest = Math.abs(count);
  if (rest < 1024) return `${sign}${rest} B`;
  let unit = -1;
  while (rest >= 1024 && unit < 3) [rest, unit] = [rest / 1024, unit + 1];
  return `${sign}${Number(rest.toPrecision(3))} ${["KiB", "MiB", "GiB", "TiB"][unit]}`;
}

// [2, 3] → "(2, 3)", as Python writes it
export function shape(sizes) {
  return sizes === null ? "none" : `(${sizes.join(", ")}${sizes.length === 1 ? "," : ""})`;
}

// counted(1, "node") → "1 node", counted(2, "node") → "2 nodes"
export function counted(count, what, many = `${what}s`) {
  return `${count.toLocaleString("en")} ${count === 1 ? what : many}`;
}
