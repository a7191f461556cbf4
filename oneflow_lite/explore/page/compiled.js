// Compiled functions.

import { h } from "./elements.js";

export const title = "Compiled";

export function has(data) {
  return data.compiled.length > 0;
}

export function texts(data) {
  return data.compiled.map((part, k) => ({ text: JSON.stringify(part), where: k }));
}

export function view(data, element) {
  element.append(...data.compiled.map((part) => h("pre", {}, JSON.stringify(part, null, 1))));
}
