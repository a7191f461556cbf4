// Graph: the nodes that were recorded, as a picture and one by one.

import { counted, facts, fill, h, list, section, shape, table } from "./elements.js";
import { savedTable } from "./forward.js";
import { controls, picture } from "./picture.js";

export const title = "Graph";

export function has(data) {
  return data.nodes.length > 0;
}

export function texts(data) {
  return data.nodes.map((node) => ({ where: { node: node.id }, text: [
    node.label, node.name, shape(node.shape), node.module, node.rule, node.source?.join(":"), ...node.hooks,
    ...node.saved.map(({ name, why }) => `saves ${name}: ${why}`),
  ].filter(Boolean).join("  ") }));
}

export function view(data, element, tools) {
  const detail = h("article", { class: "card stack" });
  const pic = picture(tools, {
    label: "Graph of the backward pass: arrow keys go from box to box, Enter opens a group",
    chosen: show, hidden: new Set(data.nodes.map(({ layer }) => layer).filter((layer) => layer > 0)) });
  const { bar, keys } = controls(pic, data);
  const nodes = data.nodes.toSorted((a, b) => b.sequence_nr - a.sequence_nr);
  const all = list("All nodes, the latest made first", (node) => [
    h("span", { class: "mono" }, node.label), h("span", { class: "dim" }, ` ${shape(node.shape)}`),
    node.layer > 0 && h("span", { class: "badge" }, `layer ${node.layer}`)], (node) => pic.open(node.id));
  all.show(nodes);

  const users = new Map(data.nodes.map(({ id }) => [id, []]));
  for (const node of data.nodes) for (const edge of node.edges) users.get(edge.to)?.push([node, edge]);

  element.append(h("div", { class: "columns" },
    h("div", { class: "stack" }, bar, pic.element, legend(data)),
    h("div", { class: "stack" }, detail,
      h("div", {}, h("h3", {}, `${counted(nodes.length, "node")}, the latest made first`), all.element))));
  fill(detail, h("p", { class: "dim" },
    "Choose a box to see what it is. Press a group to open it; press it twice to close it."));

  function show(item) {
    if (item.node) {
      all.choose(nodes.indexOf(item.node));
      fill(detail, about(item.node));
    } else fill(detail, aboutGroup(item));
  }

  const dim = (text) => h("span", { class: "dim" }, text);

  function about(node) {
    return [
      h("h2", {}, node.label),
      facts([
        ["name", h("span", { class: "mono" }, node.name)],
        ["topological number", [String(node.topological_nr), dim(" longest way to a leaf")]],
        ["sequence number", [String(node.sequence_nr), dim(" order of making")]],
        ["gradient", node.shapes.map((each) => shape(each)).join(", ") + ` ${node.dtype}`],
        ["tensor", node.tensor !== null && tools.tensor(node.tensor)],
        ["op", node.op !== null && tools.op(node.op)],
        ["called at", node.source && tools.source(node.source)],
        ["module", node.module && h("span", { class: "mono" }, node.module)],
        ["rule", node.rule && h("span", { class: "mono" }, node.rule)],
        ["layer", node.layer > 0 && `${node.layer}: made in a backward call`],
        ["made by", node.made_by !== null && tools.node(node.made_by)],
      ]),
      node.saved.length > 0 && savedTable(node.saved, tools),
      section("Hooks", node.hooks.length > 0 && h("ul", {}, node.hooks.map((hook) => h("li", {}, hook)))),
      node.edges.length > 0 && table("Sends gradients to", ["#input", "node", "#output", "shape", "dtype"],
        node.edges.map((edge) =>
          [String(edge.input), tools.node(edge.to), String(edge.output), shape(edge.shape), edge.dtype])),
      users.get(node.id).length > 0 && table("Gets gradients from", ["node", "#its input", "shape"],
        users.get(node.id).map(([user, edge]) => [tools.node(user.id), String(edge.input), shape(edge.shape)])),
    ];
  }

  function aboutGroup(item) {
    const first = item.children.slice(0, 40);
    return [
      h("h2", {}, item.label),
      facts([["what", { module: "module", loop: "loop", round: "one round of a loop", rounds: "rounds of a loop", leaves: "leaves", layer: "layer", call: "backward call", rest: "the rest",
        part: "part" }[item.kind]], [item.kind === "module" ? "class" : "made", item.note],
      ["nodes", String(item.size)]]),
      h("div", {}, h("button", { type: "button", onclick: () => pic.toggle(item) },
        pic.isOpen(item) ? "Close it" : "Open it")),
      section("Holds", h("ul", { class: "chips" }, first.map((child) => h("li", {}, child.node
        ? tools.node(child.node.id)
        : h("button", { type: "button", class: "link", onclick: () => pic.goTo(child) }, child.label))),
      item.children.length > first.length && h("li", {}, dim(`and ${item.children.length - first.length} more`)))),
    ];
  }

  return {
    picture: pic,
    keys,
    shown: () => pic.shown(),
    open: ({ node }) => data.nodes[node] && pic.open(node),
  };
}

function legend(data) {
  const kinds = new Set(data.nodes.map(({ kind }) => kind));
  const entry = (kind, text) => h("li", {}, h("span", { class: `key ${kind}` }), text);
  return h("ul", { class: "legend" },
    entry("op", "op"), kinds.has("leaf") && entry("leaf", "leaf: its gradient is kept"),
    kinds.has("function") && entry("function", "Function of the user"),
    kinds.has("root") && entry("root", "above several roots"),
    entry("group", "group"), data.nodes.some(({ layer }) => layer > 0) && entry("second", "double backward (²)"),
    h("li", {}, "gradients flow up"));
}
