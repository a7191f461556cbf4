// Backward.

import { h } from "./elements.js";

export const title = "Backward";

export function has(data) {
  return data.runs.length > 0;
}

export function texts(data) {
  return data.runs.map((run) => ({ text: run.kind, where: { run: run.number, step: 0 } }));
}

export function view(data, element) {
  element.append(h("p", {}, `${data.runs.length} backward calls`));
}
