// The picture of a graph: boxes for nodes and groups, drawn by cytoscape where layout.js puts them.
// Gradients flow up, from the loss at the bottom to the leaves, as in `to_dot`.

import { bytes, counted, h, shape } from "./elements.js";
import { grouped } from "./groups.js";
import { HEAD, layout } from "./layout.js";

const READABLE = 0.8; // the least zoom at which labels are read without effort
const READ = 0.7; // and at which they are read, at nine pixels
const LEGIBLE = 0.45; // and at which they are guessed
const SMALL = 6; // children of a group that need no parts
const FEW_NAMED = 70; // edges that are labelled
const FEW = 1000; // and that are drawn with bends

// `tools` are those of tools.js. `chosen(item)` is called when an item is chosen. Where nodes have
// states, `says` has three functions: `node(node)` gives {state, line}, a class of the style and the
// second line of the label; `group(nodes)` and `groupState(nodes)` give both for a group, and
// `sends(id)` says whether a node sends its gradients now. `hidden` are the layers that are not drawn at first.
export function picture(tools, { label, chosen, says = null, hidden = new Set() }) {
  const data = tools.data;
  let { nodes } = data;
  let { top, items, divide, gather } = grouped(data);
  const open = new Set();
  let seen = new Set();
  const canvas = h("div", { class: "canvas" });
  const element = h("div", { class: "picture", role: "application", tabindex: 0, "aria-label": label,
    "aria-roledescription": "graph" }, canvas);
  let cy = null;
  let at = null;
  let boxes = new Map();
  let whole = { width: 0, height: 0 };

  // ---- what is drawn

  const drawn = (item) => (item.node ? seen.has(item.node.id) : item.children.some(drawn));

  // Nodes of layers that are shown. One that leads to hidden ones alone is hidden with them, as is a leaf that
  // hidden ones alone lead to.
  function seenNodes() {
    const result = new Set();
    for (const node of nodes.toSorted((a, b) => a.sequence_nr - b.sequence_nr)) {
      const leads = !node.edges.length || node.edges.some(({ to }) => result.has(to));
      if (!hidden.has(node.layer) && leads) result.add(node.id);
    }
    const uses = (shown) => new Set(nodes.filter(({ id }) => result.has(id) === shown).flatMap(({ edges }) => edges.map(({ to }) => to)));
    const [used, unused] = [uses(true), uses(false)];
    for (const { id, edges } of nodes) if (!edges.length && unused.has(id) && !used.has(id)) result.delete(id);
    return result;
  }

  // The box that stands for an item: the outermost closed group that it is in, or itself.
  function standing(item) {
    let result = item;
    for (let group = item.parent; group !== top; group = group.parent) if (!open.has(group)) result = group;
    return result;
  }

  function shownEdges() {
    const edges = new Map();
    const stands = new Map();
    for (const item of items.values()) if (drawn(item)) stands.set(item, standing(item));
    for (const [item, from] of stands)
      for (const edge of item.node.edges) {
        const to = stands.get(items.get(edge.to));
        if (!to || to === from) continue;
        const id = `${from.id}>${to.id}`;
        if (!edges.has(id)) edges.set(id, { id, from, to, all: [] });
        edges.get(id).all.push({ ...edge, node: item.node.id });
      }
    return [...edges.values()];
  }

  function lines(item) {
    if (!item.node) {
      const sign = open.has(item) ? "▾" : "▸";
      return [`${sign} ${item.label}`, says ? says.group(members(item)) : `${item.note ? `${item.note} · ` : ""}${
        counted(item.size, "node")}`];
    }
    const { node } = item;
    const title = `${node.layer > 0 ? "²".repeat(node.layer) : ""}${node.label}`;
    if (says) return [title, says.node(node).line];
    const held = node.saved.reduce((sum, each) => sum + each.bytes, 0);
    return [title, `${shape(node.shape)}${held ? ` · saves ${bytes(held)}` : ""}`];
  }

  function sizeOf(item) {
    const texts = title(item).split("\n");
    if (says) texts.push("waits for 10"); // the line changes, the size does not
    const wide = Math.max(...texts.map((text) => measured(text, !item.node)));
    return [Math.max(84, Math.ceil((wide + 24) / 8) * 8), 44];
  }

  function members(item) {
    if (item.node) return [item.node];
    item.members ??= item.children.flatMap(members);
    return item.members;
  }

  function elements() {
    const edges = shownEdges();
    const { bends, said, ...made } = arranged(edges);
    boxes = made.boxes;
    whole = made;
    return [
      ...[...boxes].map(([item, box]) => ({
        group: "nodes",
        data: { id: item.id, label: title(item), width: box.width, height: box.height,
          inside: box.height - HEAD / 2, depth: depth(item) },
        position: { x: box.x, y: box.y },
        classes: classes(item),
        grabbable: false,
      })),
      ...edges.map((edge) => ({
        group: "edges",
        data: { id: edge.id, source: edge.from.id, target: edge.to.id,
          label: shapes([edge]), line: shapes(said.get(edge) ?? []), all: edge.all,
          ...segments(boxes.get(edge.from), boxes.get(edge.to), bends.get(edge)) },
        classes: [edges.length <= FEW && "bent", said.has(edge) && "named"].filter(Boolean).join(" "),
      })),
    ];
  }

  const title = (item) => (open.has(item) ? lines(item).join("   ") : lines(item).join("\n"));

  function shapes(edges) {
    const all = edges.flatMap((edge) => edge.all);
    return all.length === 1 ? shape(all[0].shape) : `${all.length} edges`;
  }

  function arranged(edges) {
    // The box of a leaf says the shape.
    const wide = (line) => (says || edges.length > FEW_NAMED || line.every(({ to }) => to.node?.kind === "leaf") ? 0
      : Math.ceil(measured(shapes(line), false, 11) / 8) * 8);
    return layout(top, open, edges, { sizeOf, wide, drawn, room: [canvas.clientWidth, canvas.clientHeight] });
  }

  function depth(item) {
    let count = 0;
    for (let group = item.parent; group; group = group.parent) count++;
    return count;
  }

  function classes(item) {
    const state = says && (item.node ? says.node(item.node).state : says.groupState(members(item)));
    if (!item.node) return ["group", item.kind, open.has(item) && "open", state].filter(Boolean).join(" ");
    return [item.node.kind, item.node.layer > 0 && "second", state].filter(Boolean).join(" ");
  }

  // Bends as cytoscape takes them: how far along the line between the centres, and how far beside it.
  function segments(from, to, bends) {
    const [dx, dy] = [to.x - from.x, to.y - from.y];
    const length = Math.hypot(dx, dy) || 1;
    const weights = bends.map(({ x, y }) => ((x - from.x) * dx + (y - from.y) * dy) / length ** 2);
    const distances = bends.map(({ x, y }) => ((y - from.y) * dx - (x - from.x) * dy) / length);
    const way = [{ x: from.x, y: from.y - from.height / 2 }, ...bends];
    const written = bends.findIndex((point) => point.written) + 1;
    const along = way.slice(1, written + 1).reduce((sum, { x, y }, k) => sum + Math.hypot(x - way[k].x, y - way[k].y), 0);
    return { weights: weights.join(" "), distances: distances.join(" "), along: along || 19 };
  }

  // ---- drawing

  function style() {
    const c = tools.colour;
    const box = (name, line) => ({ "background-color": c(name), "border-color": c(line) });
    const sans = getComputedStyle(document.body).fontFamily;
    return [
      { selector: "node", style: {
        shape: "round-rectangle", width: "data(width)", height: "data(height)", label: "data(label)",
        "font-family": sans, "font-size": 13, "line-height": 1.3, color: c("ink"), "text-wrap": "wrap",
        "text-valign": "center", "text-halign": "center", "border-width": 1.5, "z-index": 30,
        "z-index-compare": "manual", "min-zoomed-font-size": 6, "overlay-opacity": 0, ...box("op", "op-line") } },
      { selector: ".leaf", style: { "corner-radius": 22, ...box("leaf", "leaf-line") } },
      { selector: ".root", style: { shape: "ellipse", ...box("root", "dim") } },
      { selector: ".function", style: box("function", "function-line") },
      { selector: ".second", style: { "border-style": "double", "border-width": 5, "border-color": c("second") } },
      { selector: ".group", style: { shape: "cut-rectangle", "font-weight": 600, ...box("group", "group-line") } },
      // Titles of open groups lie above edges, and hide them.
      { selector: ".open", style: { shape: "round-rectangle", "background-opacity": 0.15, "border-style": "dashed",
        "text-valign": "top", "text-margin-y": HEAD - 8, "border-width": 1, "z-index": "data(depth)",
        "text-background-color": c("paper"), "text-background-opacity": 1, "text-background-padding": 2 } },
      { selector: ".made", style: { "background-color": c("function"), "border-color": c("second") } },
      { selector: ".done", style: { "background-color": c("done") } },
      { selector: ".waits", style: { "background-color": c("waits") } },
      { selector: ".ready", style: { "background-color": c("ready"), "border-width": 3 } },
      { selector: ".open", style: { "background-color": c("group"), "border-width": 1.5,
        "border-style": "dashed" } },
      { selector: ".runs", style: { "background-color": c("runs"), "border-width": 4, "border-color": c("ink") } },
      { selector: ".open.runs", style: { "background-color": c("group"), "border-width": 3 } },
      { selector: ".pruned", style: { "background-color": c("pruned"), "border-color": c("dim"),
        "border-style": "dotted", color: c("dim") } },
      { selector: ".outside", style: { opacity: 0.4 } },
      { selector: "edge", style: {
        width: 1.5, "line-color": c("edge"), "target-arrow-color": c("edge"), "target-arrow-shape": "triangle",
        "curve-style": "straight", "arrow-scale": 0.9, "font-size": 11, "font-family": sans,
        color: c("dim"), "text-background-color": c("paper"), "text-background-opacity": 0.85,
        "text-background-padding": 2, "min-zoomed-font-size": 6, "overlay-opacity": 0, "z-index": 0,
        "z-index-compare": "manual" } },
      { selector: "edge.named", style: { "source-label": "data(line)", "source-text-offset": "data(along)" } },
      { selector: "edge.near", style: { "source-label": "data(label)", "source-text-offset": "data(along)" } },
      { selector: ".bent", style: { "curve-style": "round-segments", "segment-weights": "data(weights)",
        "segment-distances": "data(distances)", "segment-radii": 14, "edge-distances": "node-position",
        "source-endpoint": "0% -50%", "target-endpoint": "0% 50%" } },
      { selector: "edge.near, edge.sent", style: { width: 3, "line-color": c("accent"),
        "target-arrow-color": c("accent") } },
      { selector: ".chosen", style: { "border-width": 4, "border-color": c("accent"), "border-style": "solid" } },
    ];
  }

  function start() {
    seen = seenNodes();
    openFirst();
    cy = cytoscape({ container: canvas, elements: elements(), style: style(), layout: { name: "preset" },
      minZoom: 0.005, maxZoom: 3, boxSelectionEnabled: false, autounselectify: true,
      hideEdgesOnViewport: data.nodes.length > 1500 });
    cy.on("tap", "node", ({ target }) => {
      const item = itemOf(target);
      choose(item);
      if (!item.node && !open.has(item)) toggle(item);
    });
    cy.on("dbltap", "node.open", ({ target }) => toggle(itemOf(target)));
    cy.on("mouseover", "node", ({ target }) => hover(itemOf(target)));
    cy.on("mouseout pan zoom", () => tools.hideTip());
    tools.onTheme(() => cy.style(style()));
    new ResizeObserver(() => canvas.clientWidth && cy.resize()).observe(canvas);
    overview();
    return cy;
  }

  const ids = new Map();
  function itemOf(target) {
    if (!ids.size) (function walk(item) {
      ids.set(item.id, item);
      item.children?.forEach(walk);
    })(top);
    return ids.get(target.id());
  }

  function hover(item) {
    const box = cy.$id(item.id).renderedBoundingBox({ includeLabels: false });
    const by = canvas.getBoundingClientRect();
    // An open group is large: its tip would hide what is in it.
    if (open.has(item)) return;
    tools.tipAt(item.node ? nodeTip(item.node) : [h("p", {}, h("b", {}, item.label)),
      h("p", { class: "dim" }, `${lines(item)[1]} · press to open`)],
    { left: by.left + box.x1, right: by.left + box.x2, top: by.top + box.y1, bottom: by.top + box.y2 });
  }

  function nodeTip(node) {
    return [
      h("p", {}, h("b", {}, node.label), ` ${shape(node.shape)} ${node.dtype}`),
      h("p", { class: "dim" }, `topological ${node.topological_nr} · sequence ${node.sequence_nr}`),
      node.saved.length > 0 && h("p", { class: "dim" }, `saves ${node.saved.map(({ name }) => name).join(", ")}`),
      node.tensor !== null && tools.value(data.tensors[node.tensor].value),
    ];
  }

  // Opens groups from the outside as long as all of it can be read; one that is too large shows its parts.
  function openFirst() {
    const fits = () => fitting(arranged(shownEdges())) > READ;
    if (!fits()) gather(top, 2);
    while (!fits() && top.children.length > SMALL) divide(top);
    let tries = 0;
    for (let waiting = [top]; waiting.length; ) {
      const inner = waiting.shift().children.filter((child) => !child.node && drawn(child)
        && !["leaves", "rounds", "part", "rest"].includes(child.kind));
      for (const group of inner.sort((a, b) => a.children.length - b.children.length)) {
        if (++tries > 12) return;
        if (boxCount() + group.children.length > 60) continue;
        open.add(group);
        if (fits()) waiting.push(group);
        else if (group.children.length < SMALL || !fitsInParts(group, fits)) open.delete(group);
      }
    }
  }

  function fitsInParts(group, fits) {
    const whole = group.children;
    divide(group);
    if (fits()) return true;
    group.children = whole;
    for (const child of whole) child.parent = group;
    return false;
  }

  function boxCount() {
    const count = (item) => 1 + (item === top || open.has(item)
      ? item.children.reduce((sum, child) => sum + count(child), 0) : 0);
    return count(top);
  }

  // Draws again, and keeps `anchor` where it was.
  function redraw(anchor = null) {
    if (!cy) return;
    const before = anchor && cy.$id(anchor.id).nonempty() && cy.$id(anchor.id).renderedPosition();
    seen = seenNodes();
    cy.batch(() => {
      cy.elements().remove();
      cy.add(elements());
    });
    if (before) {
      const after = cy.$id(anchor.id).renderedPosition();
      cy.panBy({ x: before.x - after.x, y: before.y - after.y });
    }
    mark();
  }

  function toggle(item) {
    if (item.node) return;
    if (open.has(item)) close(item);
    else open.add(item);
    redraw(item);
    choose(at && boxes.has(at) && at !== item ? at : item);
    tools.say(`${item.label}: ${open.has(item) ? counted(item.children.length, "box", "boxes") : "closed"}`);
    if (isCut(item)) show(item); // what was opened should be seen
  }

  function close(item) {
    open.delete(item);
    item.children?.forEach(close);
  }

  // Whether a box is in part outside of the picture.
  function isCut(item) {
    const { x1, x2, y1, y2 } = cy.$id(item.id).renderedBoundingBox();
    return x1 < 0 || y1 < 0 || x2 > cy.width() || y2 > cy.height();
  }

  function show(item) {
    const target = cy.$id(item.id);
    const zoom = Math.min(cy.zoom(), Math.max(READABLE, 0.9 * Math.min(cy.width() / target.width(),
      cy.height() / target.height())));
    cy.zoom(zoom);
    cy.center(target);
  }

  // ---- choosing

  function mark() {
    cy.edges(".near").removeClass("near");
    cy.nodes(".chosen").removeClass("chosen");
    const target = at && cy.$id(at.id);
    if (!target?.nonempty()) return;
    target.addClass("chosen");
    target.connectedEdges().addClass("near");
  }

  function choose(item) {
    at = item;
    mark();
    if (item) {
      tools.say(lines(item).join(", "));
      chosen?.(item);
    }
  }

  function reveal(item) {
    const closed = [];
    for (let group = item.parent; group !== top; group = group.parent) if (!open.has(group)) closed.push(group);
    let changed = closed.length > 0;
    if (item.node && hidden.delete(item.node.layer)) {
      changed = true;
      element.dispatchEvent(new Event("layers"));
    }
    for (const group of closed) open.add(group);
    if (changed) redraw();
    if (cy.zoom() < READABLE) cy.zoom({ level: 0.8, position: cy.$id(item.id).position() });
    if (changed || isCut(item)) cy.center(cy.$id(item.id));
  }

  function goTo(item) {
    if (!item) return; // it is not drawn here
    reveal(item);
    choose(item);
  }

  // Goes from the chosen box to the nearest one in a direction.
  function move(dx, dy) {
    const from = at && boxes.get(at);
    if (!from) return go(boxes.size ? lowest() : null);
    let best = null;
    let least = Infinity;
    for (const [item, box] of boxes) {
      const [x, y] = [box.x - from.x, box.y - from.y];
      const along = x * dx + y * dy;
      if (item === at || along <= 1) continue;
      const beside = Math.abs(x * dy) + Math.abs(y * dx);
      const far = along + 2.5 * beside;
      if (far < least) [least, best] = [far, item];
    }
    go(best);
  }

  // Goes to the box before or after the chosen one, in the order of making.
  function along(by) {
    const all = [...boxes.keys()].sort((a, b) => a.order - b.order || b.size - a.size);
    const k = all.indexOf(at);
    go(all.at(k < 0 ? (by > 0 ? 0 : -1) : (k + by) % all.length));
  }

  function lowest() {
    return [...boxes].filter(([item]) => !open.has(item)).reduce((a, b) => (b[1].y > a[1].y ? b : a))[0];
  }

  function go(item) {
    if (!item) return;
    choose(item);
    if (isCut(item)) cy.center(cy.$id(item.id));
  }

  // ---- looking

  const fitting = ({ width, height }) => Math.min((canvas.clientWidth - 40) / width, (canvas.clientHeight - 40) / height);

  function fit(most = 1.6) {
    const zoom = Math.min(most, fitting(whole));
    const middle = (room, size) => (room - zoom * size) / 2;
    cy.viewport({ zoom, pan: { x: middle(cy.width(), whole.width), y: middle(cy.height(), whole.height) } });
  }

  function overview() {
    fit(1.15);
    if (cy.zoom() >= LEGIBLE || !boxes.size) return;
    // Too small to read: begin at the loss.
    const low = lowest();
    cy.zoom(Math.max(READABLE, cy.zoom()));
    cy.center(cy.$id(low.id));
    cy.panBy({ x: 0, y: cy.height() / 2 - 60 });
  }

  return {
    element,
    get items() { return items; },
    get top() { return top; },
    get cy() { return cy; },
    get at() { return at; },
    isOpen: (item) => open.has(item),
    choose,
    move,
    along,
    toggle,
    // Called when the element is on the page and has a size.
    shown() {
      if (cy) cy.resize();
      else start();
    },
    // Draws nodes and edges anew where states have changed; `which` are nodes, all if it is left out.
    restate() {
      if (!cy) return;
      cy.batch(() => {
        for (const item of boxes.keys()) {
          const target = cy.$id(item.id);
          const label = title(item);
          if (target.data("label") !== label) target.data("label", label);
          const wanted = `${classes(item)}${item === at ? " chosen" : ""}`;
          if (target.scratch("classes") !== wanted) target.classes(wanted).scratch("classes", wanted);
        }
        cy.edges(".sent").removeClass("sent");
        cy.edges().filter((edge) => edge.data("all").some(({ node }) => says.sends(node))).addClass("sent");
      });
    },
    // Goes to a node, opening what it is in.
    open: (node) => goTo(items.get(node)),
    goTo,
    openAll() {
      // Thousands of boxes take seconds: say so first.
      element.setAttribute("aria-busy", "true");
      tools.say(`laying out ${counted(seen.size, "node")}`);
      setTimeout(() => {
        (function walk(item) {
          if (item.node) return;
          if (item !== top) open.add(item);
          item.children.forEach(walk);
        })(top);
        redraw();
        fit();
        element.removeAttribute("aria-busy");
        tools.say(`all ${counted(seen.size, "node")} are open`);
      }, 30);
    },
    closeAll() {
      open.clear();
      at = null;
      redraw();
      overview();
    },
    isHidden: (layer) => hidden.has(layer),
    // From now on draws only these nodes, a set of ids, less those of hidden layers.
    showOnly(only, layers) {
      nodes = data.nodes.filter(({ id }) => only.has(id));
      ({ top, items, divide, gather } = grouped({ ...data, nodes }));
      hidden = layers;
      at = null;
      open.clear();
      ids.clear();
      element.dispatchEvent(new Event("layers"));
      if (!cy) return;
      seen = seenNodes();
      openFirst();
      redraw();
      overview();
    },
    showLayer(layer, on) {
      if (on) hidden.delete(layer);
      else hidden.add(layer);
      if (!on && at?.node?.layer === layer) at = null;
      redraw();
      overview();
    },
    fit: () => fit(),
    zoom: (by) => cy.zoom({ level: cy.zoom() * by, renderedPosition: { x: cy.width() / 2, y: cy.height() / 2 } }),
    get boxes() { return boxes; },
    shownNodes: () => [...seen],
  };
}

const pen = document.createElement("canvas").getContext("2d");
const widths = new Map();

// How wide a label is drawn.
function measured(text, bold, size = 13) {
  const key = `${bold} ${size} ${text}`;
  if (!widths.has(key)) {
    pen.font = `${bold ? "600 " : ""}${size}px ${getComputedStyle(document.body).fontFamily}`;
    widths.set(key, pen.measureText(text).width);
  }
  return widths.get(key);
}

// The bar of buttons that goes with a picture, and its keys.
export function controls(pic, data) {
  const button = (text, key, does, run) => h("button", { type: "button", title: `${does} (${key})`,
    "aria-label": does, "aria-keyshortcuts": key, onclick: run }, text);
  const layers = [...new Set(data.nodes.map(({ layer }) => layer))].filter((layer) => layer > 0).sort();
  const boxes = layers.map((layer) => {
    const count = data.nodes.filter((node) => node.layer === layer).length;
    const box = h("input", { type: "checkbox", checked: !pic.isHidden(layer),
      onchange: () => pic.showLayer(layer, box.checked) });
    pic.element.addEventListener("layers", () => { box.checked = !pic.isHidden(layer); });
    return h("label", { class: "layer" }, box, " ", layer === 1 ? "double backward" : `layer ${layer}`,
      h("span", { class: "dim" }, ` ${counted(count, "node")}`));
  });
  const layerKey = boxes.length > 0 && { key: "d", does: "shows or hides double backward",
    run: () => boxes[0].querySelector("input").click() };
  const keys = [
    { key: "ArrowUp", shown: "↑ ↓ ← →", does: "to the box that is next in this direction",
      run: () => pic.move(0, -1) },
    { key: "ArrowDown", run: () => pic.move(0, 1) },
    { key: "ArrowLeft", run: () => pic.move(-1, 0) },
    { key: "ArrowRight", run: () => pic.move(1, 0) },
    { key: "n", does: "to the next box, in the order of making", run: () => pic.along(1) },
    { key: "p", does: "to the box before", run: () => pic.along(-1) },
    { key: "Enter", does: "opens or closes the chosen group", run: () => pic.at && pic.toggle(pic.at) },
    { key: "e", does: "opens all groups", run: () => pic.openAll() },
    { key: "c", does: "closes all groups", run: () => pic.closeAll() },
    { key: "+", does: "larger", run: () => pic.zoom(1.25) },
    { key: "-", does: "smaller", run: () => pic.zoom(0.8) },
    { key: "0", does: "the whole graph", run: () => pic.fit() },
    layerKey,
  ].filter(Boolean);
  const bar = h("div", { class: "bar", role: "toolbar", "aria-label": "The picture" },
    button("Open all", "e", "Open all groups", () => pic.openAll()),
    button("Close all", "c", "Close all groups", () => pic.closeAll()),
    button("+", "+", "Larger", () => pic.zoom(1.25)),
    button("−", "-", "Smaller", () => pic.zoom(0.8)),
    button("Fit", "0", "Show the whole graph", () => pic.fit()),
    boxes);
  return { bar, keys };
}
