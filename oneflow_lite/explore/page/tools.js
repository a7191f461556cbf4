// What every view needs: links between the tabs, tensors with their values, colours, the picture of
// a graph and curves. The top of page.js says how views use them.

import { bytes, h, shape } from "./elements.js";
import { tips } from "./tips.js";

export function tools(data, go) {
  const theme = new EventTarget();
  const probe = h("span", { hidden: true });
  document.body.append(probe);
  const { tip, tipAt, hideTip } = tips(document.getElementById("tip"));

  const all = {
    data,
    go,

    // A tensor's name, as the user has it, or its number.
    tensorName: (id) => data.tensors[id].name || `t${id}`,

    // A tensor as a button: hover, focus or press it to see what it holds. `value` takes the place
    // of what it held when it was first seen.
    tensor(id, value) {
      if (id === null) return h("span", { class: "dim" }, "none");
      const { name, shape: sizes } = data.tensors[id];
      return tip(h("button", { type: "button", class: "tensor", "data-tensor": id },
        h("b", {}, name || `t${id}`), " ", h("span", { class: "dim" }, shape(sizes))),
        () => all.tensorTip(id, value));
    },

    tensorTip(id, value) {
      const tensor = data.tensors[id];
      const notes = [
        tensor.level,
        tensor.leaf && "leaf",
        tensor.requires_grad && "requires a gradient",
        tensor.view_of !== null && `view of ${all.tensorName(tensor.view_of)}`,
      ].filter(Boolean);
      return [
        h("p", {}, h("b", {}, all.tensorName(id)), ` ${shape(tensor.shape)} ${tensor.dtype}`),
        h("p", { class: "dim" }, [tensor.device, bytes(tensor.bytes), ...notes].join(" · ")),
        all.value(value ?? tensor.value),
      ];
    },

    // A gradient of a run as a button, likewise.
    gradient(gradient) {
      const text = gradient.value?.text;
      const short = text && text.length <= 24 ? text : null;
      return tip(h("button", { type: "button", class: "tensor" }, short
        ? h("b", {}, short) : [h("span", { class: "dim" }, "gradient "), shape(gradient.shape)]), () => [
        h("p", {}, h("b", {}, "gradient"), ` ${shape(gradient.shape)} ${gradient.dtype}`),
        h("p", { class: "dim" }, [bytes(gradient.bytes),
          gradient.output ? `of output ${gradient.output}` : ""].filter(Boolean).join(" · ")),
        all.value(gradient.value),
      ]);
    },

    // What a tensor held: its text, and an image where it is a matrix.
    value(value) {
      if (!value) return h("p", { class: "dim" }, data.values ? "Its value was not kept."
        : "Values were left out.");
      return [value.rows && image(value), h("pre", { class: "value" }, value.text)];
    },

    // Links to an op, a node, a backward call and a line of source.
    op(id) {
      return h("button", { type: "button", class: "link", "data-op": id,
        onclick: () => go("forward", { op: id }) }, `${data.ops[id].op} (op ${id})`);
    },

    node(id, text) {
      if (id === null) return h("span", { class: "dim" }, "none");
      const node = data.nodes[id];
      return h("button", { type: "button", class: "link node-link", "data-node": id,
        onclick: () => go("graph", { node: id }) }, text ?? node.label);
    },

    run(number) {
      return h("button", { type: "button", class: "link", "data-run": number,
        onclick: () => go("backward", { run: number, step: 0 }) }, runName(data.runs[number]));
    },

    source(place) {
      if (!place) return h("span", { class: "dim" }, "unknown");
      const [name, line] = place;
      return h("button", { type: "button", class: "link",
        onclick: () => go("forward", { source: place }) }, `${name}:${line}`);
    },

    runName,

    // The lines of a place in the sources around `around` lines of it; null where they are left out.
    lines(place, around = 3) {
      const source = place && data.sources.find((each) => each.name === place[0]);
      if (!source) return null;
      const lines = source.text.split("\n");
      const from = Math.max(0, place[1] - source.first - around);
      return { first: source.first + from, marks: [place[1]],
        text: lines.slice(from, place[1] - source.first + around + 1).join("\n") };
    },

    // A colour of page.css, as "rgb(…)", in the theme of now. For canvases; CSS has var(--name).
    colour(name) {
      probe.style.color = `var(--${name})`;
      return getComputedStyle(probe).color;
    },

    // Calls `draw` whenever the theme changes.
    onTheme: (draw) => theme.addEventListener("change", draw),
    themeChanged: () => theme.dispatchEvent(new Event("change")),

    // Tells readers of the screen.
    say(text) {
      document.getElementById("said").textContent = text;
    },

    // tip(element, content) shows `content()` on hover and focus; tipAt and hideTip see tips.js.
    tip,
    tipAt,
    hideTip,
  };

  function runName(run) {
    const inside = run.parent === null ? "" : `, inside call ${run.parent}`;
    return `call ${run.number}: ${run.kind}${run.rehearsal ? " (rehearsed)" : ""}${inside}`;
  }

  // A matrix as an image with its legend. Below and above zero it has two hues, which meet in the
  // middle; else one ramp, dark to light, that grey eyes see as well.
  function image(value) {
    const { rows, low, high } = value;
    const scale = Math.max(1, Math.floor(160 / Math.max(rows.length, rows[0].length)));
    const canvas = h("canvas", { width: rows[0].length, height: rows.length, class: "pixels",
      role: "img", "aria-label": `matrix from ${low} to ${high}`,
      style: `width: ${rows[0].length * scale}px; height: ${Math.max(12, rows.length * scale)}px` });
    const context = canvas.getContext("2d");
    const [from, to, ramp] = low < 0 && high > 0
      ? [-Math.max(-low, high), Math.max(-low, high), TWO_HUES] : [low, high, ONE_HUE];
    rows.forEach((row, i) => row.forEach((number, j) => {
      if (number === null) return; // between filters
      context.fillStyle = colourOf(number, from, to, ramp);
      context.fillRect(j, i, 1, 1);
    }));
    const odd = rows.some((row) => row.some((number) => typeof number === "string"));
    return h("figure", { class: "image" }, canvas, h("figcaption", {},
      h("span", {}, short(from)),
      h("span", { class: "ramp",
        style: `background: linear-gradient(to right, ${ramp.map(css).join(", ")})` }),
      h("span", {}, short(to)),
      odd && h("span", {}, h("span", { class: "swatch", style: `background: ${ODD}` }), "not finite")));
  }

  return all;
}

// Anchors of ramps: cividis from dark to light, and Okabe and Ito's blue and vermilion about white.
const ONE_HUE = [[0, 34, 78], [61, 78, 107], [124, 123, 120], [188, 174, 108], [254, 232, 56]];
const TWO_HUES = [[0, 84, 140], [86, 160, 210], [245, 245, 245], [235, 140, 80], [172, 66, 0]];
const ODD = "#cc79a7";

const css = ([r, g, b]) => `rgb(${r}, ${g}, ${b})`;
const short = (number) => String(Number(number.toPrecision(3)));

function colourOf(number, from, to, ramp) {
  if (typeof number === "string") return ODD;
  const place = to > from ? Math.min(1, Math.max(0, (number - from) / (to - from))) : 0.5;
  const left = Math.min(ramp.length - 2, Math.floor(place * (ramp.length - 1)));
  const part = place * (ramp.length - 1) - left;
  return css(ramp[left].map((low, k) => Math.round(low + part * (ramp[left + 1][k] - low))));
}

