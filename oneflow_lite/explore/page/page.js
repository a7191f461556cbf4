// The page: tabs, search, theme, keys. What a tab shows is made by a view, a module of its own:
//
//   export const title = "Program";            // the tab's
//   export function has(data)                  // whether there is anything to show
//   export function texts(data)                // for the search: [{text, where}, …], all there is to find
//   export function view(data, element, tools) // fills `element`, when the tab is opened first
//
// `data` is the document. `view` returns an object with, all optional:
//
//   open(where)     shows a place: one of `texts`, or what another view gave `tools.go(tab, where)`
//   keys            [{key: "ArrowRight", shown: "→", does: "one step forward", run() {…}}, …] while the tab
//                   is open; `key` is KeyboardEvent.key, the help shows `shown`, and those that do `does`
//   shown()         called each time the tab is opened, when the element has a size
//
// Where there is nothing (`has`), there is no tab. `tools` are those of tools.js; elements.js has `h`,
// `table`, `list`, `code` and so on. A tab's name, for `tools.go`, is the name of its module. Styles of
// a view stand in a file of its name, such as program.css. Names in a document may be anything: they
// become text through `h`, never markup.

import * as backward from "./backward.js";
import * as compiled from "./compiled.js";
import { counted, fill, h, list, table } from "./elements.js";
import * as forward from "./forward.js";
import * as graph from "./graph.js";
import * as programs from "./programs.js";
import * as watch from "./watch.js";
import { tools as makeTools } from "./tools.js";

const data = JSON.parse(document.getElementById("document").textContent);
const views = new Map(Object.entries({ forward, graph, backward, watch, programs, compiled })
  .filter(([, view]) => view.has(data)));
const $ = (id) => document.getElementById(id);
const tools = makeTools(data, go);
const opened = new Map();
let current = null;

// ---- tabs

function makeTabs() {
  for (const [name, { title }] of views) {
    const k = $("tabs").childElementCount + 1;
    $("tabs").append(h("button", { type: "button", role: "tab", id: `tab-${name}`, "aria-controls": `panel-${name}`,
      "aria-keyshortcuts": k, onclick: (event) => {
        openTab(name);
        // The mouse leaves the tabs, so that arrow keys are those of the view.
        if (event.detail) $("panels").focus({ preventScroll: true });
      } }, title, " ", h("kbd", {}, k)));
    $("panels").append(h("div", { role: "tabpanel", id: `panel-${name}`, class: `panel ${name}`,
      "aria-labelledby": `tab-${name}`, hidden: true }));
  }
  $("tabs").addEventListener("keydown", (event) => {
    const names = [...views.keys()];
    const at = names.indexOf(current);
    const to = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: names.length - 1 }[event.key];
    if (to === undefined) return;
    event.preventDefault();
    event.stopPropagation();
    openTab(names.at(to % names.length));
    $(`tab-${current}`).focus();
  });
}

function openTab(name) {
  current = name;
  for (const each of views.keys()) {
    const chosen = each === name;
    $(`tab-${each}`).setAttribute("aria-selected", String(chosen));
    $(`tab-${each}`).tabIndex = chosen ? 0 : -1;
    $(`panel-${each}`).hidden = !chosen;
  }
  if (!opened.has(name)) opened.set(name, views.get(name).view(data, $(`panel-${name}`), tools) ?? {});
  opened.get(name).shown?.();
  return opened.get(name);
}

// Opens a tab at a place of it. Returns false where the document has no such tab.
function go(name, where) {
  if (!views.has(name)) return false;
  const view = openTab(name);
  if (where !== undefined) view.open?.(where);
  return true;
}

// Opens a place that is written as "backward?run=0&step=3", or "graph": in page.html#graph, and in data-at of a frame,
// which has no address.
function goAt(place) {
  const [name, query] = place.split("?");
  const words = [...new URLSearchParams(query)].map(([key, value]) => [key, Number(value)]);
  return go(name, query && Object.fromEntries(words));
}

// Where the block ended with an exception: the op that raised it, or the line.
function atTheError() {
  const op = data.error && data.ops.findLast((each) => each.error !== null);
  if (op) return go("forward", { op: op.id });
  return Boolean(data.error?.source) && go("forward", { source: data.error.source });
}

// The first op that made a NaN of numbers, and the first gradient that holds one.
function aboutNaN() {
  const had = new Set();
  const holds = (op) => op.outputs.some((id) => (op.written[id] ?? data.tensors[id].value)?.nan);
  let first = null;
  for (const op of data.ops) {
    if (!holds(op)) continue;
    if (!first && !op.inputs.some((id) => had.has(id) || data.tensors[id]?.value?.nan)) first = op;
    op.outputs.forEach((id) => had.add(id));
  }
  const steps = data.runs.flatMap((run) => run.steps.map((step, k) => ({ run, step, k: k + 1 })));
  const gradient = steps.find(({ step }) => [...Object.values(step.not_ready).flat(), ...Object.values(step.captured)].some(({ value }) => value?.nan));
  if (!first && !gradient) return;
  fill($("nan"), h("b", {}, "NaN. "),
    first && ["It began in ", tools.op(first.id), first.source && [" at ", tools.source(first.source)], ". "],
    gradient && ["The first gradient that holds it was sent in ", h("button", { type: "button", class: "link",
      onclick: () => go("backward", { run: gradient.run.number, step: gradient.k }) },
    `step ${gradient.k} of ${tools.runName(gradient.run)}`), ", by ", tools.node(gradient.step.node), "."]);
  $("nan").hidden = false;
}

// ---- search

let everything = null;
const found = list("Places found", (item) => item.none ? [item.none] : [
  h("span", { class: "where" }, views.get(item.tab).title), " ", marked(item),
], (item) => item.none || leaveSearch(item), { follow: false });

// The text around the first word that was looked for, with all of them marked.
function marked({ text, words }) {
  const from = Math.max(0, text.toLowerCase().indexOf(words[0]) - 30);
  const piece = (from ? "…" : "") + text.slice(from, from + 160);
  const parts = piece.split(new RegExp(`(${words.map(RegExp.escape ?? escaped).join("|")})`, "i"));
  return parts.map((part, k) => (k % 2 ? h("mark", {}, part) : part));
}

const escaped = (word) => word.replace(/[\\^$.*+?()[\]{}|/-]/g, "\\$&");

function search() {
  const words = $("search").value.toLowerCase().split(/\s+/).filter(Boolean);
  $("found").hidden = !words.length;
  $("search").setAttribute("aria-expanded", String(words.length > 0));
  if (!words.length) return;
  everything ??= [...views].flatMap(([tab, view]) => view.texts(data, tools)
    .map((each) => ({ ...each, tab, lower: each.text.toLowerCase() })));
  const hits = everything.filter(({ lower }) => words.every((word) => lower.includes(word)));
  fill($("found"), h("p", { class: "dim", id: "count" }, counted(hits.length, "place")), found.element);
  found.show(hits.length ? hits.map((hit) => ({ ...hit, words })) : [{ none: "Nothing has these words." }]);
  tools.say(counted(hits.length, "place"));
}

function leaveSearch(item) {
  $("found").hidden = true;
  $("search").setAttribute("aria-expanded", "false");
  if (!item) return;
  go(item.tab, item.where);
  $("panels").focus({ preventScroll: true });
}

function startSearch() {
  $("search").addEventListener("input", search);
  $("search").addEventListener("focus", search);
  $("search").addEventListener("keydown", (event) => {
    if (event.key === "Escape") {
      $("search").value = "";
      leaveSearch();
      $("panels").focus({ preventScroll: true });
    } else if (event.key === "ArrowDown" && !$("found").hidden) {
      found.element.focus();
      if (found.at < 0) found.choose(0);
    } else if (event.key === "Enter" && !$("found").hidden) found.go(Math.max(0, found.at));
    else return;
    event.preventDefault();
  });
  $("found").addEventListener("keydown", (event) => {
    if (event.key !== "Escape") return;
    $("search").focus();
    event.stopPropagation();
  });
  document.addEventListener("pointerdown", (event) => {
    if (!event.target.closest(".search")) leaveSearch();
  });
}

// ---- theme

function setTheme(theme) {
  document.documentElement.dataset.theme = theme;
  $("theme").value = theme;
  try {
    localStorage.setItem("oneflow_lite theme", theme);
  } catch {
    // Pages inside of others may have no storage. Then the choice is not kept.
  }
  tools.themeChanged();
}

function startTheme() {
  let kept = "";
  try {
    kept = localStorage.getItem("oneflow_lite theme") ?? "";
  } catch {
    // As above.
  }
  $("theme").addEventListener("change", () => setTheme($("theme").value));
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", tools.themeChanged);
  setTheme(kept);
}

// ---- keys

const keys = [
  ...[...views].map(([name, { title }], k) => ({ key: String(k + 1), does: `the tab ${title}`,
    run: () => openTab(name) })),
  { key: "/", does: "search", run: () => $("search").focus() },
  { key: "t", does: "the next theme: as system, light, dark",
    run: () => setTheme({ "": "light", light: "dark", dark: "" }[$("theme").value]) },
  { key: "?", does: "this help", run: help },
];

const everywhere = [
  ["Tab", "to the next control"],
  ["Enter", "presses a button; in a list, opens the row"],
  ["↑ ↓", "in a list: to the row before or after"],
  ["Esc", "closes the help, a tip, the search"],
];

function help() {
  const view = opened.get(current)?.keys ?? [];
  const row = ({ key, shown, does }) => [h("kbd", {}, shown ?? key), does];
  fill($("keys"),
    view.length && table(`In the tab ${views.get(current).title}`, ["key", "what it does"],
      view.filter(({ does }) => does).map(row)),
    table("Everywhere", ["key", "what it does"],
      [...keys.map(row), ...everywhere.map(([key, does]) => [h("kbd", {}, key), does])]));
  $("help").showModal();
}

function startKeys() {
  $("help-button").addEventListener("click", help);
  $("help").addEventListener("keydown", (event) => event.key === "Escape" && $("help").close());
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || $("help").open) return;
    const target = event.target;
    if (target.matches("input:not([type=range], [type=checkbox]), select, textarea")) return;
    if (target.matches("button, summary, [type=checkbox]") && [" ", "Enter"].includes(event.key)) return;
    const all = [...(opened.get(current)?.keys ?? []), ...keys];
    const key = all.find((each) => each.key === event.key);
    if (!key) return;
    event.preventDefault();
    key.run();
  });
}

// ---- the start

function about() {
  $("title").textContent = data.title;
  const backwards = data.runs.length ? [counted(data.runs.length, "backward call")] : [];
  const leftOut = data.left_out?.ops ? [`${counted(data.left_out.ops, "later op")} not recorded (limit)`] : [];
  const above = [[data.programs, "Program"], [data.compiled, "compiled function"]]
    .filter(([all]) => all.length).map(([all, what]) => counted(all.length, what));
  const counts = data.ops.length || !above.length
    ? [counted(data.ops.length, "op"), counted(data.nodes.length, "node")] : [];
  $("summary").textContent = [`oneflow_lite ${data.version}`, ...counts, ...backwards, ...above, ...leftOut].join(" · ");
  $("embeds").textContent = data.values
    ? "This file embeds the text of your sources and values of your tensors: who has the file can read them."
    : "Source text and values were left out of this file (values=False): it has names, shapes and line numbers.";
  if (data.error) {
    fill($("error"), h("b", {}, `The code ended with ${data.error.kind}. `), data.error.text,
      data.error.source && [" ", tools.source(data.error.source)]);
    $("error").hidden = false;
  }
}

about();
aboutNaN();
makeTabs();
startSearch();
startTheme();
startKeys();
addEventListener("hashchange", () => goAt(location.hash.slice(1)));
if (views.size)
  goAt(location.hash.slice(1) || document.documentElement.dataset.at) || atTheError() || openTab([...views.keys()][0]);
else fill($("panels"), h("p", { class: "empty" }, "Nothing ran: there is no op, no graph and no program to show."));
document.documentElement.dataset.ready = "";

// For the console: explorer.data, explorer.views.graph.picture.cy and so on.
globalThis.explorer = { data, get views() { return Object.fromEntries(opened); } };
