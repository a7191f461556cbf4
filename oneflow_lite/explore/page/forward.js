// Forward: the ops in the order in which they ran, and what happened in each.

import { bytes, code, counted, facts, fill, h, list, section, shape, table } from "./elements.js";

export const title = "Forward";

export function has(data) {
  return data.ops.length > 0;
}

export function texts(data, tools) {
  const ops = data.ops.map((op) => ({ where: { op: op.id }, text: [
    `${op.op} (op ${op.id})`, op.module, ...op.functors, op.functor, ...op.interpreters, op.kernel,
    op.source?.join(":"), ...Object.entries(op.attrs).map((pair) => pair.join("=")),
    ...op.outputs.map((id) => `→ ${tools.tensorName(id)}`), ...op.saved.map(({ name, why }) => `${name}: ${why}`),
    op.error,
  ].filter(Boolean).join("  ") }));
  const tensors = data.tensors.filter(({ name }) => name).map((tensor) => ({
    where: { tensor: tensor.id },
    text: `${tensor.name} ${shape(tensor.shape)} ${tensor.dtype} ${tensor.level} ${tensor.value?.text ?? ""}` }));
  const lines = data.sources.flatMap(({ name, first, text }) => text.split("\n").map((line, k) => ({
    where: { source: [name, first + k] }, text: `${name}:${first + k}  ${line.trim()}` })));
  return [...ops, ...tensors, ...lines.filter(({ text }) => !text.endsWith("  "))];
}

export function view(data, element, tools) {
  const byLine = new Map();
  for (const op of data.ops) {
    if (!op.source) continue;
    const place = op.source.join(":");
    if (!byLine.has(place)) byLine.set(place, []);
    byLine.get(place).push(op);
  }
  const maker = new Map();
  for (const op of data.ops) for (const id of op.outputs) if (!maker.has(id)) maker.set(id, op.id);

  let shown = [];
  let now = null;
  let file = data.sources[0]?.name ?? null;

  const ops = list("Ops, in the order in which they ran", row, (op) => show(op));
  const detail = h("article", { class: "stack" });
  const beside = h("div", { class: "stack beside" });
  const which = h("select", { onchange: () => filter() },
    h("option", { value: "" }, "all ops"),
    data.runs.length > 0 && h("option", { value: "forward", selected: true }, "outside of backward calls"),
    data.runs.filter((run) => data.ops.some((op) => op.run === run.number)).map((run) =>
      h("option", { value: run.number }, `in ${tools.runName(run)}`)));

  element.append(h("div", { class: "columns" },
    h("div", { class: "ops stack" },
      h("label", { class: "bar" }, h("span", { class: "dim" }, "Show"), which), ops.element),
    h("div", { class: "card" }, detail), beside));

  function row(op) {
    return [h("span", { class: "dim" }, `${op.id} `), h("span", { class: "op" }, op.op),
      h("span", { class: "dim" }, ` ${op.outputs.map((id) => shape(data.tensors[id].shape)).join(" ")}`),
      op.error !== null && h("span", { class: "badge" }, "failed"),
      op.writes.length > 0 && h("span", { class: "badge" }, "writes"),
      op.node !== null && h("span", { class: "badge" }, "recorded"),
      op.run !== null && h("span", { class: "badge" }, `call ${op.run}`)];
  }

  function filter() {
    shown = data.ops.filter((op) => which.value === "" ||
      (which.value === "forward" ? op.run === null : op.run === Number(which.value)));
    ops.show(shown);
    if (shown.length) show(shown.includes(now) ? now : shown[0]);
    else fill(detail, h("p", { class: "dim" }, "No op ran here."));
  }

  function show(op) {
    now = op;
    if (!shown.includes(op)) {
      which.value = "";
      filter();
    }
    ops.choose(shown.indexOf(op));
    fill(detail, head(op), way(op), operands(op), attrs(op), saved(op), memory(op));
    if (op.source) file = op.source[0];
    showSource(op.source);
  }

  function head(op) {
    return h("div", {},
      h("h2", {}, op.op, " ", h("span", { class: "dim" }, `op ${op.id}`)),
      h("div", { class: "bar dim" },
        op.source && h("span", {}, "called at ", tools.source(op.source)),
        op.module && h("span", {}, "in module ", h("span", { class: "mono" }, op.module)),
        op.run !== null && h("span", {}, "during ", tools.run(op.run),
          op.by !== null && [", when it was the turn of ", tools.node(op.by)]),
        op.thread > 0 && h("span", {}, `on thread ${op.thread}`)),
      op.error !== null && h("p", { class: "error" }, op.error));
  }

  // Functor → interpreters → kernel → node.
  function way(op) {
    const step = (what, name, place) => h("li", {}, h("span", { class: "what" }, what),
      h("b", {}, name), place && h("span", { class: "dim" }, place));
    return section("The way of the call", h("ol", { class: "way" },
      op.functor && step("1 · functor: checks, promotes dtypes", op.functors.join(" → "), op.functor),
      step("2 · interpreters: compute, and record", op.interpreters.join(" → "), ""),
      step("3 · kernel: the arithmetic", op.op, op.kernel),
      op.node !== null
        ? step("4 · node: how to take the gradient", tools.node(op.node),
          op.saved.length ? `saves ${bytes(op.saved.reduce((sum, each) => sum + each.bytes, 0))}` : "saves nothing")
        : step("4 · no node", "not recorded", "no input requires a gradient, or recording was off")));
  }

  function operands(op) {
    const origin = (id) => (maker.has(id) && maker.get(id) < op.id ? tools.op(maker.get(id))
      : h("span", { class: "dim" }, data.tensors[id].leaf ? "a leaf" : "from before"));
    const kind = (id) => [data.tensors[id].level && [h("span", { class: "badge" }, data.tensors[id].level), " "],
      data.tensors[id].view_of !== null && ["view of ", tools.tensor(data.tensors[id].view_of)],
      op.writes.includes(id) && [" ", h("span", { class: "badge" }, "written")]];
    return [
      op.inputs.length > 0 && table("Inputs", ["parameter", "tensor", "dtype", "made by", ""],
        op.inputs.map((id, k) => [h("span", { class: "mono" }, op.parameters[k] ?? String(k)), tools.tensor(id),
          ...(id === null ? ["", "", ""] : [data.tensors[id].dtype, origin(id), kind(id)])])),
      op.outputs.length > 0 && table("Outputs", ["tensor", "dtype", "#size", ""], op.outputs.map((id) =>
        [tools.tensor(id, op.written[id]), data.tensors[id].dtype, bytes(data.tensors[id].bytes), kind(id)])),
    ];
  }

  function attrs(op) {
    const all = Object.entries(op.attrs);
    return all.length > 0 && section("Attributes",
      facts(all.map(([name, text]) => [h("span", { class: "mono" }, name), h("span", { class: "mono" }, text)])));
  }

  function saved(op) {
    return op.saved.length > 0 && savedTable(op.saved, tools);
  }

  function memory(op) {
    const versions = Object.entries(op.versions);
    return [
      versions.length > 0 && table("Versions of the memory", ["tensor", "#before", "#after"],
        versions.map(([id, [before, after]]) => [tools.tensor(Number(id)), String(before), String(after)])),
      op.writes.length > 0 && h("p", {}, "It writes to ", op.writes.map((id, k) =>
        [k > 0 && ", ", tools.tensor(id, op.written[id])]), ". A tensor shows what it holds now."),
      op.rebased.length > 0 && table("History that the write changed", ["tensor", "came from", "comes from now"],
        op.rebased.map((each) => [tools.tensor(each.tensor), tools.node(each.old), tools.node(each.new)])),
      h("p", { class: "dim" }, `${bytes(op.alive)} of the memory seen so far exist after the op.`),
    ];
  }

  function showSource(place) {
    const source = data.sources.find(({ name }) => name === file);
    if (!source) {
      fill(beside, h("p", { class: "dim" }, place ? `The call is at ${place.join(":")}. ` : "",
        data.values ? "There is no text of this source." : "The text of sources was left out."));
      return;
    }
    const buttons = new Map();
    for (const [where, all] of byLine) {
      const line = all[0].source[1];
      if (where !== `${file}:${line}`) continue;
      buttons.set(line, h("button", { type: "button",
        "aria-label": `line ${line}: ${counted(all.length, "op")}, go to the next`,
        onclick: () => show(all[(all.indexOf(now) + 1) % all.length]) }, String(all.length)));
    }
    const chooser = data.sources.length > 1 && h("select", { "aria-label": "Source file",
      onchange: (event) => {
        file = event.target.value;
        showSource(now?.source ?? null);
      } }, data.sources.map(({ name }) => h("option", { value: name, selected: name === file }, name)));
    fill(beside, h("div", { class: "bar" }, chooser || h("h3", {}, file),
      h("span", { class: "dim" }, "the number of ops beside each line")),
    code(source.text, { first: source.first, marks: place?.[0] === file ? [place[1]] : [], buttons,
      label: `Source ${file}` }));
    const pane = beside.querySelector(".code");
    const marked = pane.querySelector(".marked");
    if (marked) pane.scrollTop = marked.offsetTop - pane.offsetTop - pane.clientHeight / 2;
  }

  const step = (by) => () => ops.go(ops.at + by);
  filter();

  return {
    keys: [
      { key: "ArrowDown", shown: "↓", does: "the next op", run: step(1) },
      { key: "ArrowUp", shown: "↑", does: "the op before", run: step(-1) },
      { key: "Home", does: "the first op", run: () => ops.go(0) },
      { key: "End", does: "the last op", run: () => ops.go(shown.length - 1) },
      { key: "g", does: "the node of the op, in the graph",
        run: () => now?.node !== null && tools.go("graph", { node: now.node }) },
    ],
    open(where) {
      if (where.op !== undefined) return data.ops[where.op] && show(data.ops[where.op]);
      if (where.tensor !== undefined) {
        const uses = data.ops.find((op) => op.outputs.includes(where.tensor) || op.inputs.includes(where.tensor));
        return uses && show(uses);
      }
      const [name, line] = where.source;
      const on = byLine.get(`${name}:${line}`);
      if (on) return show(on.includes(now) ? now : on[0]);
      file = name;
      return showSource([name, line]);
    },
  };
}

// What a node saved, and why.
export function savedTable(saved, tools) {
  return table("Saved for the gradient", ["name", "tensor", "#bytes", "#version", "why"], saved.map((each) => [
    h("span", { class: "mono" }, each.name),
    each.tensor !== null ? tools.tensor(each.tensor)
      : h("span", { class: "mono" }, shape(each.shape), " ", each.dtype),
    bytes(each.bytes), String(each.version),
    [each.why, each.packed && h("span", { class: "badge" }, "packed by a hook")]]));
}
