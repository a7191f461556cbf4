// Curves over steps, drawn by uPlot.

import { bytes, h } from "./elements.js";

const POWERS = Array.from({ length: 46 }, (_, k) => 2 ** k);

// `series` are [{label, values, colour, dash}, …], with one value for each step from 0; `went(k)` is
// called when the user presses at step k. Returns {element, go(k)}, where `go` moves the mark of now.
export function curve(tools, { label, series, went, height = 170 }) {
  const element = h("div", { class: "curve", role: "img", "aria-label": label });
  let plot = null;
  let now = 0;

  function make() {
    plot?.destroy();
    const c = tools.colour;
    const axis = { stroke: c("dim"), grid: { stroke: c("line"), width: 1 }, ticks: { stroke: c("line") },
      font: `12px ${getComputedStyle(document.body).fontFamily}` };
    const count = series[0].values.length;
    plot = new uPlot({
      width: Math.max(200, element.clientWidth), height,
      scales: { x: { time: false }, y: { range: (_, low, high) => [0, high || 1] } },
      axes: [{ ...axis, incrs: [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000] },
        { ...axis, size: 76, incrs: POWERS, values: (_, all) => all.map(bytes) }],
      series: [{ label: "step" }, ...series.map((each) => ({
        label: each.label, stroke: c(each.colour), width: 2, dash: each.dash, points: { show: count < 60 },
        paths: uPlot.paths.stepped({ align: 1 }), value: (_, value) => (value === null ? "" : bytes(value)) }))],
      cursor: { drag: { x: false, y: false }, y: false },
      hooks: { draw: [mark], ready: [(made) => made.setLegend({ idx: now })] },
    }, [series[0].values.map((_, k) => k), ...series.map(({ values }) => values)], element);
    plot.over.addEventListener("click", () => plot.cursor.idx !== null && went(plot.cursor.idx));
    plot.over.addEventListener("pointerleave", () => plot.setLegend({ idx: now }));
  }

  function mark({ ctx, bbox }) {
    const x = plot ? plot.valToPos(now, "x", true) : bbox.left;
    ctx.save();
    ctx.strokeStyle = tools.colour("ink");
    ctx.lineWidth = 2 * devicePixelRatio;
    ctx.setLineDash([]);
    ctx.beginPath();
    ctx.moveTo(x, bbox.top);
    ctx.lineTo(x, bbox.top + bbox.height);
    ctx.stroke();
    ctx.restore();
  }

  tools.onTheme(() => element.clientWidth && make());
  new ResizeObserver(() => {
    if (!element.clientWidth) return;
    if (plot) plot.setSize({ width: element.clientWidth, height });
    else make();
  }).observe(element);
  return {
    element,
    go(k) {
      now = k;
      if (!plot) return;
      plot.redraw(false);
      plot.setLegend({ idx: now });
    },
  };
}
