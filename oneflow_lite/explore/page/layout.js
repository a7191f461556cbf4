// Where each box of a graph stands. dagre lays out one group at a time, the inner ones first; then a
// group is a box of its own. So the cost is that of many small graphs, and groups that look alike, as
// the rounds of a loop do, are laid out once.

const kept = new Map();

// `top` is a group of groups.js, `open` the set of groups whose content is drawn, `edges` are
// [{from, to}] between items that are drawn, `sizeOf(item)` gives [width, height]. Returns boxes,
// a map of items to {x, y, width, height} about their centres, and bends, a map of edges to points.
export function layout(top, open, edges, sizeOf, drawn) {
  const inside = new Map(); // group → the edges between its children
  const way = new Map(); // edge → [group, child, child]
  for (const edge of edges) {
    const [group, from, to] = meeting(edge.from, edge.to);
    if (!inside.has(group)) inside.set(group, new Map());
    inside.get(group).set(`${from.id}>${to.id}`, [from, to]);
    way.set(edge, [group, from, to]);
  }

  const plans = new Map();
  const [width, height] = plan(top);
  const boxes = new Map();
  const bends = new Map();
  put(top, 0, 0);
  for (const [edge, [group, from, to]] of way) bends.set(edge, bends.get(`${group.id}:${from.id}>${to.id}`) ?? []);
  return { boxes, bends, width, height };

  function plan(item) {
    if (item.node || (item !== top && !open.has(item))) return sizeOf(item);
    const children = item.children.filter(drawn);
    const sizes = children.map(plan);
    const place = new Map(children.map((child, k) => [child, k]));
    const lines = [...(inside.get(item)?.values() ?? [])].map(([from, to]) => [place.get(from), place.get(to)]);
    const made = arranged(sizes, lines);
    plans.set(item, { ...made, children });
    const margin = item === top ? [0, 0] : [2 * SIDE, HEAD + SIDE];
    const least = item === top ? 0 : sizeOf(item)[0];
    return [Math.max(least, made.width + margin[0]), made.height + margin[1]];
  }

  // Places a group whose content has its left upper corner at (x, y).
  function put(group, x, y) {
    const { spots, points, lines, children } = plans.get(group);
    children.forEach((child, k) => {
      const spot = spots[k];
      const box = { x: x + spot.x, y: y + spot.y, width: spot.width, height: spot.height };
      boxes.set(child, box);
      if (!plans.has(child)) return;
      const content = plans.get(child);
      put(child, box.x - content.width / 2, box.y - box.height / 2 + HEAD);
    });
    lines.forEach(([from, to], k) => bends.set(`${group.id}:${children[from].id}>${children[to].id}`,
      points[k].map((point) => ({ x: x + point.x, y: y + point.y }))));
  }
}

export const HEAD = 34; // the height of a group's name, above its content
const SIDE = 16;
const TALL = 800;

function arranged(sizes, lines) {
  const key = JSON.stringify([sizes, lines]);
  if (!kept.has(key)) kept.set(key, arrangedAnew(sizes, lines));
  return kept.get(key);
}

function arrangedAnew(sizes, lines) {
  if (!lines.length && sizes.length > 3) return inRows(sizes);
  const graph = new dagre.graphlib.Graph();
  graph.setGraph({ rankdir: "BT", nodesep: 24, ranksep: 38, edgesep: 14 });
  sizes.forEach(([width, height], k) => graph.setNode(String(k), { width, height }));
  for (const [from, to] of lines) graph.setEdge(String(from), String(to), {});
  dagre.layout(graph);
  const spots = sizes.map((_, k) => graph.node(String(k)));
  const points = lines.map(([from, to]) => graph.edge(String(from), String(to)).points.slice(1, -1));
  inColumns(spots, points, lines, graph.graph());
  // Bends may stand outside of the boxes.
  const all = [...spots.flatMap(({ x, y, width, height }) =>
    [{ x: x - width / 2, y: y - height / 2 }, { x: x + width / 2, y: y + height / 2 }]), ...points.flat()];
  const [left, upper] = [Math.min(...all.map(({ x }) => x)), Math.min(...all.map(({ y }) => y))];
  const moved = (each) => ({ ...each, x: each.x - left, y: each.y - upper });
  return {
    spots: spots.map(moved),
    points: points.map((each) => each.map(moved)),
    lines,
    width: Math.max(0, ...all.map(({ x }) => x - left)),
    height: Math.max(0, ...all.map(({ y }) => y - upper)),
  };
}

// Boxes without an edge between them stand in rows, as words do.
function inRows(sizes) {
  const area = sizes.reduce((sum, [width, height]) => sum + (width + 24) * (height + 20), 0);
  const room = Math.max(1.6 * Math.sqrt(area), ...sizes.map(([width]) => width));
  let [x, y, high, widest] = [0, 0, 0, 0];
  const spots = sizes.map(([width, height]) => {
    if (x && x + width > room) [x, y, high] = [0, y + high + 20, 0];
    const spot = { x: x + width / 2, y: y + height / 2, width, height };
    x += width + 24;
    [high, widest] = [Math.max(high, height), Math.max(widest, x - 24)];
    return spot;
  });
  return { spots, points: [], lines: [], width: widest, height: y + high };
}

// A long chain is broken into columns, as text is; what was done first stands on the left.
function inColumns(spots, points, lines, { width, height }) {
  const count = Math.round(Math.sqrt((1.4 * height) / width));
  if (height < TALL || count < 2) return;
  const column = ({ y }) => Math.min(count - 1, Math.floor((y * count) / height));
  const columns = spots.map(column);
  const upper = Array.from({ length: count }, (_, k) => Math.min(
    ...spots.filter((_, i) => columns[i] === k).map((spot) => spot.y - spot.height / 2)));
  const moved = (each, k) => {
    each.x += k * (width + 60);
    each.y -= upper[k];
  };
  lines.forEach(([from, to], i) => {
    if (columns[from] === columns[to]) points[i].forEach((point) => moved(point, columns[from]));
    else points[i] = [];
  });
  spots.forEach((spot, i) => moved(spot, columns[i]));
}

// The smallest group that has both items, and the children of it that lead to them.
function meeting(a, b) {
  const above = new Map();
  for (let child = a; child.parent; child = child.parent) above.set(child.parent, child);
  for (let child = b; child.parent; child = child.parent)
    if (above.has(child.parent)) return [child.parent, above.get(child.parent), child];
  throw new Error("two items of different trees");
}
