// Programs.

import { h } from "./elements.js";

export const title = "Program";

export function has(data) {
  return data.programs.length > 0;
}

export function texts(data) {
  return data.programs.map((program, k) => ({ text: JSON.stringify(program), where: k }));
}

export function view(data, element) {
  element.append(...data.programs.map((program) => h("pre", {}, JSON.stringify(program, null, 1))));
}
