// Backward: each backward call as a film.

import { bytes, counted, facts, fill, h, section, shape, table } from "./elements.js";
import { Film } from "./film.js";
import { controls, picture } from "./picture.js";
import { curve } from "./curve.js";

export const title = "Backward";

const ROWS = 200; // of a table; what is beyond is counted
const SIGNS = { runs: "▶ runs now", done: "✓ ran", ready: "● ready", pruned: "✕ pruned",
  made: "+ made by this call", outside: "not yet made" };

export function has(data) {
  return data.runs.length > 0;
}

export function texts(data, tools) {
  return data.runs.flatMap((run) => [
    { where: { run: run.number, step: 0 }, text: [tools.runName(run), run.source?.join(":"), run.error]
      .filter(Boolean).join("  ") },
    ...run.steps.map((step, k) => ({ where: { run: run.number, step: k + 1 },
      text: [`${tools.runName(run)}, step ${k + 1}: ${data.nodes[step.node].label}`,
        ...[...step.current_grad, ...step.acc_grad].map(({ value }) => value?.text)].filter(Boolean).join("  ") })),
  ]);
}

export function view(data, element, tools) {
  let film = null;
  let takesPart = new Set();
  let playing = 0;
  const curves = new Map(); // of each run

  const pic = picture(tools, { label: "Graph of the backward call: n and p go from box to box",
    says: { node: says, group: groupSays, groupState, sends: (node) => film.step?.node === node } });
  const { bar, keys } = controls(pic, data);

  // ---- controls
  const which = h("select", { "aria-label": "Backward call", onchange: () => goTo(Number(which.value), 0) },
    data.runs.map((run) => h("option", { value: run.number }, tools.runName(run))));
  const button = (text, key, does, run) => h("button", { type: "button", title: `${does} (${key})`,
    "aria-label": does, onclick: run }, text);
  const first = button("|◀", "Home", "First step", () => step(-Infinity));
  const back = button("◀", "←", "Step back", () => step(-1));
  const play = button("▶ Play", "Space", "Play", () => toggle());
  const forth = button("▶", "→", "Step forward", () => step(1));
  const last = button("▶|", "End", "Last step", () => step(Infinity));
  const slider = h("input", { type: "range", min: 0, max: 0, value: 0, "aria-label": "Step",
    oninput: () => goTo(film.run.number, Number(slider.value)) });
  const speed = h("select", { "aria-label": "Speed" },
    [["2000", "slow"], ["1000", "normal"], ["300", "fast"], ["60", "very fast"]].map(([ms, text]) =>
      h("option", { value: ms, selected: ms === "1000" }, text)));
  const count = h("output", { class: "count" });
  const now = h("div", { class: "card stack now" });
  const waiting = h("div", { class: "stack" });
  const below = h("div", {});

  element.append(h("div", { class: "stack" },
    h("div", { class: "bar film", role: "toolbar", "aria-label": "The film" }, data.runs.length > 1 && which,
      first, back, play, forth, last, slider, count, h("label", { class: "dim" }, "Speed ", speed)),
    h("div", { class: "columns" },
      h("div", { class: "stack" }, bar, pic.element, legend(data), below),
      h("div", { class: "stack beside", tabindex: 0, role: "region", "aria-label": "This step" }, now, waiting))));

  // ---- what a node is at

  function says(node) {
    const state = film.state(node.id);
    if (state !== "waits") return { state, line: SIGNS[state] };
    return { state, line: `waits for ${film.dependencies.get(node.id)}` };
  }

  function groupSays(nodes) {
    const states = nodes.filter(({ id }) => takesPart.has(id)).map(({ id }) => film.state(id));
    const made = states.filter((state) => state === "made").length;
    if (states.every((state) => state === "made" || state === "outside"))
      return `${made} of ${states.length} made`;
    if (states.every((state) => state === "pruned")) return SIGNS.pruned;
    const done = states.filter((state) => state === "done" || state === "runs").length;
    const cut = states.filter((state) => state === "pruned").length;
    const now = states.includes("runs") ? "▶ " : "";
    return `${now}${done} of ${states.length - cut} ran${cut ? `, ${cut} pruned` : ""}`;
  }

  function groupState(nodes) {
    const states = new Set(nodes.filter(({ id }) => takesPart.has(id)).map(({ id }) => film.state(id)));
    for (const state of ["runs", "ready", "waits", "done", "made", "pruned"]) if (states.has(state)) return state;
    return "outside";
  }

  // ---- going

  function goTo(number, k) {
    if (film?.run.number !== number) {
      film = new Film(data, data.runs[number]);
      which.value = String(number);
      slider.max = String(film.length);
      if (!curves.has(number)) curves.set(number, memory(film.run));
      fill(below, curves.get(number).element);
      takesPart = film.nodes;
      const layers = new Set(data.nodes.map(({ layer }) => layer));
      layers.delete(0);
      for (const node of film.run.order) layers.delete(data.nodes[node].layer);
      pic.showOnly(takesPart, layers);
    }
    film.go(k);
    slider.value = String(film.k);
    const node = film.step && data.nodes[film.step.node];
    slider.setAttribute("aria-valuetext", node ? `step ${film.k}: ${node.label}` : "before the first step");
    count.textContent = `step ${film.k} of ${film.length}`;
    first.disabled = back.disabled = film.k === 0;
    forth.disabled = last.disabled = film.k === film.length;
    curves.get(number).go(film.k);
    if (!playing) tools.say(slider.getAttribute("aria-valuetext"));
    pic.restate();
    fill(now, about());
    fill(waiting, queue(), sums(), cut());
  }

  function step(by) {
    goTo(film.run.number, Math.max(0, Math.min(film.length, film.k + by)));
  }

  function toggle(on = !playing) {
    clearTimeout(playing);
    playing = 0;
    if (on) {
      if (film.k === film.length) goTo(film.run.number, 0);
      playing = setTimeout(tick, Number(speed.value));
    }
    play.textContent = on ? "⏸ Pause" : "▶ Play";
    play.setAttribute("aria-label", on ? "Pause" : "Play");
  }

  function tick() {
    if (!element.hidden) step(1);
    if (film.k === film.length || element.hidden) toggle(false);
    else playing = setTimeout(tick, Number(speed.value));
  }

  // ---- beside the picture

  const gradients = (all) => all.map((each) => [tools.gradient(each), " "]);

  function about() {
    const { run } = film;
    if (!film.step) return [
      h("h2", {}, "Before the first step"),
      facts([
        ["call", run.kind],
        ["rehearsed", run.rehearsal && "nothing is written to .grad, nothing is released"],
        ["called at", run.source && tools.source(run.source)],
        ["inside", run.parent !== null && tools.run(run.parent)],
        ["from", run.roots.map((node) => [tools.node(node), " "])],
        ["inputs", run.inputs && run.inputs.map((node) => [tools.node(node), " "])],
        ["options", ["retain_graph", "create_graph"].filter((name) => run[name]).join(", ")],
        ["nodes", `${run.order.length} run${run.pruned.length ? `, ${run.pruned.length} are pruned` : ""}`],
        ["alive", bytes(film.alive)],
      ]),
      run.error && film.length === 0 && h("p", { class: "error" }, run.error),
    ];
    const { step } = film;
    const node = data.nodes[step.node];
    const leaf = node.kind === "leaf";
    const [from, to] = step.ops;
    return [
      h("h2", {}, node.label, h("span", { class: "dim" }, leaf ? " receives its gradient" : " ran")),
      facts([
        ["current_grad", step.current_grad.length > 0 && gradients(step.current_grad)],
        ["acc_grad", step.acc_grad.length > 0 &&
          [gradients(step.acc_grad), h("span", { class: "dim" }, " now in .grad")]],
        ["captured", Object.keys(step.captured).length > 0 && [Object.entries(step.captured).map(([place, each]) =>
          [`${place}: `, tools.gradient(each), " "]), h("span", { class: "dim" }, "for the caller of grad")]],
        ["released", step.released > 0 && `${bytes(step.released)} that it alone had saved`],
        ["freed", step.freed > 0 && bytes(step.freed)],
        ["held, alive", `${bytes(step.held)}, ${bytes(step.alive)}`],
        ["its ops", to > from && [counted(to - from, "op"), ": ", data.ops.slice(from, Math.min(to, from + 6))
          .map(({ id }) => [tools.op(id), " "]), to - from > 6 && "…"]],
        ["node", tools.node(node.id, `${node.name}, sequence ${node.sequence_nr}`)],
      ]),
      [["current_grad", step.current_grad], ["acc_grad", step.acc_grad]].flatMap(([name, all]) => all
        .filter(({ value }) => value && value.text.length > 24)
        .map((each) => section(`${name} ${shape(each.shape)}`, tools.value(each.value)))),
      run.error && film.k === film.length && h("p", { class: "error" }, run.error),
    ];
  }

  function queue() {
    const { ready } = film;
    return section("Ready queue, the next to run first", ready.length > 0
      ? h("ol", { class: "chips queue" }, ready.slice(0, ROWS).map((node) =>
        h("li", { "data-queued": node }, tools.node(node))),
      ready.length > ROWS && h("li", { class: "dim" }, `and ${ready.length - ROWS} more`))
      : h("p", { class: "dim" }, film.k === film.length ? "Empty: the call has ended." : "Empty."));
  }

  function sums() {
    const rest = film.run.order.filter((node) => film.dependencies.has(node));
    const rows = rest.slice(0, ROWS).map((node) => h("tr", { "data-waiting": node },
      h("td", {}, tools.node(node)),
      h("td", { class: "number" }, String(film.dependencies.get(node))),
      h("td", {}, film.notReady.has(node)
        ? gradients(film.notReady.get(node)) : h("span", { class: "dim" }, "nothing yet"))));
    return rest.length > 0 && [
      table("Nodes that have not run", ["node", "#waits for", "sum so far (not_ready)"], rows),
      rest.length > ROWS && h("p", { class: "dim" }, `and ${counted(rest.length - ROWS, "node")} more`)];
  }

  function cut() {
    const { pruned, unvisited } = film.run;
    return pruned.length > 0 && section(`Pruned: ${counted(pruned.length, "node")} that lead to no input`,
      h("ul", { class: "chips" },
        pruned.slice(0, ROWS).map((node) => h("li", { "data-pruned": node }, tools.node(node))),
        pruned.length > ROWS && h("li", { class: "dim" }, `and ${pruned.length - ROWS} more`)),
      unvisited.length > 0 && h("p", { class: "dim" }, `The walk did not even reach ${unvisited.length} of them: `,
        "their topological numbers are below those of all inputs."));
  }

  function memory(run) {
    const states = [run.start, ...run.steps];
    const made = curve(tools, { label: "Bytes alive, and held by the call, after each step", series: [
      { label: "alive", colour: "accent", values: states.map(({ alive }) => alive) },
      { label: "held by the call", colour: "bad", dash: [6, 4], values: states.map(({ held }) => held) },
    ], went: (k) => goTo(run.number, k) });
    return { go: made.go, element: section("Memory after each step; press to go there", made.element) };
  }

  goTo(data.runs[0].number, 0);

  // Arrows step here; with Shift they go from box to box.
  const inPicture = keys.filter(({ key }) => !key.startsWith("Arrow"));
  return {
    picture: pic,
    get film() { return film; },
    keys: [
      { key: " ", shown: "Space", does: "plays and pauses", run: () => toggle() },
      { key: "ArrowRight", shown: "→", does: "one step forward", run: () => step(1) },
      { key: "ArrowLeft", shown: "←", does: "one step back", run: () => step(-1) },
      { key: "Home", does: "before the first step", run: () => step(-Infinity) },
      { key: "End", does: "the last step", run: () => step(Infinity) },
      { key: "r", does: "the next backward call",
        run: () => goTo((film.run.number + 1) % data.runs.length, 0) },
      { key: "f", does: "to the box of the node that runs", run: () => film.step && pic.open(film.step.node) },
      ...inPicture,
    ],
    shown() {
      pic.shown();
      pic.restate();
    },
    open({ run, step: k }) {
      if (!data.runs[run]) return; // an address may name a call of another document
      toggle(false);
      goTo(run, k);
    },
  };
}

function legend(data) {
  const entry = (state, text) => h("li", {}, h("span", { class: `key ${state}` }), text);
  return h("ul", { class: "legend" }, Object.entries({ ...SIGNS, waits: "waits for n gradients" })
    .filter(([state]) => state !== "outside" && (state !== "made" || data.runs.some((run) => run.create_graph)))
    .map(([state, text]) => entry(state, text)));
}
