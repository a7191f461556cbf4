// Graph.

import { h } from "./elements.js";

export const title = "Graph";

export function has(data) {
  return data.nodes.length > 0;
}

export function texts(data) {
  return data.nodes.map((node) => ({ text: node.label, where: { node: node.id } }));
}

export function view(data, element) {
  element.append(h("p", {}, `${data.nodes.length} nodes`));
}
