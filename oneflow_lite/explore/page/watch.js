// Watch: one tensor over the whole film, its value, version and gradient at each op and step that changed them.

import { h, fill, shape, table } from "./elements.js";
import { long } from "./sections.js";

export const title = "Watch";

const watched = (data) => {
  const written = new Set(data.ops.flatMap((op) => op.writes));
  return data.tensors.filter(({ id, name, leaf }) => name && (leaf || written.has(id)));
};

export function has(data) {
  return watched(data).length > 0;
}

export function texts(data) {
  return watched(data).map(({ id, name }) => ({ where: { tensor: id }, text: `watch ${name}` }));
}

export function view(data, element, tools) {
  const all = watched(data);
  const names = h("datalist", { id: "watched" }, all.map(({ name }) => h("option", { value: name })));
  const field = h("input", { type: "text", list: "watched", "aria-label": "Name of a tensor", autocomplete: "off",
    onchange: () => show(all.find(({ name }) => name === field.value)) });
  const detail = h("div", { class: "stack" });
  element.append(h("div", { class: "stack" },
    h("label", { class: "bar" }, h("span", { class: "dim" }, "Tensor"), field, names), detail));

  // All that happened to a tensor, in the order in which it ran; `op` is the first op after it.
  function history({ id, value }) {
    const first = data.ops.find((op) => op.inputs.includes(id) || op.outputs.includes(id));
    const events = [{ op: first?.id ?? 0, what: "first seen", value }];
    for (const op of data.ops)
      if (op.writes.includes(id))
        events.push({ op: op.id, what: tools.op(op.id), value: op.written[id], version: op.versions[id]?.[1] });
    for (const run of data.runs)
      run.steps.forEach((step, k) => {
        if (data.nodes[step.node].tensor !== id || !step.acc_grad.length) return;
        const link = h("button", { type: "button", class: "link",
          onclick: () => tools.go("backward", { run: run.number, step: k + 1 }) }, `step ${k + 1} of ${tools.runName(run)}`);
        events.push({ op: step.ops[1] - 0.5, what: link, gradient: step.acc_grad[0] });
      });
    return events.sort((a, b) => a.op - b.op);
  }

  function show(tensor) {
    if (!tensor) {
      fill(detail, h("p", { class: "dim" }, "There is no tensor of this name: choose one of the list."));
      return;
    }
    field.value = tensor.name;
    fill(detail, long((made) => table(`${tensor.name} ${shape(tensor.shape)} ${tensor.dtype}`,
      ["when", "value", "#version", "gradient"], made), history(tensor), ({ what, value, version, gradient }) => [
      what, value ? tools.value(value) : "", version === undefined ? "" : String(version),
      gradient ? (gradient.value ? tools.value(gradient.value) : tools.gradient(gradient)) : ""]));
  }

  show(all[0]);
  return { keys: [], open: ({ tensor }) => show(all.find(({ id }) => id === tensor)) };
}
