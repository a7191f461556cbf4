// Where each box of a graph stands. dagre lays out one group at a time, the inner ones first; then a
// group is a box of its own. So the cost is that of many small graphs, and groups that look alike, as
// the rounds of a loop do, are laid out once.

const kept = new Map();

// `top` is a group of groups.js, `open` the set of groups whose content is drawn, `edges` are
// [{from, to}] between items that are drawn, `sizeOf(item)` gives [width, height], `wide(edges)` the width
// of what is written on the line that edges have in common, and `room` is [width, height]. Returns
//
//   boxes   a map of items to {x, y, width, height} about their centres
//   bends   a map of edges to points; an edge leaves a box at its top, arrives at the bottom of the other,
//           and passes beside all boxes
//   said    a map of edges to all edges of their line, where something is written on it: at the bend
//           that is `written`
//
// and the width and height of all.
export function layout(top, open, edges, { sizeOf, wide, drawn, room }) {
  const inside = new Map(); // group → the lines between its children, each of many edges
  for (const edge of edges) {
    const [group, from, to] = meeting(edge.from, edge.to);
    if (!inside.has(group)) inside.set(group, new Map());
    const all = inside.get(group);
    const key = `${from.id}>${to.id}`;
    if (!all.has(key)) all.set(key, { from, to, edges: [], points: [] });
    all.get(key).edges.push(edge);
  }

  const plans = new Map();
  const [width, height] = plan(top);
  const boxes = new Map();
  put(top, 0, 0);
  const bends = new Map();
  const said = new Map();
  for (const { from, to, edges: all, points } of [...inside.values()].flatMap((lines) => [...lines.values()])) {
    for (const edge of all)
      bends.set(edge, [...wayOut(edge.from, from, -1), ...points, ...wayOut(edge.to, to, 1).reverse()]);
    if (points.some(({ written }) => written)) said.set(all[0], all);
  }
  return { boxes, bends, said, width, height };

  // The bends from an item out of the groups that it is in: past `outer`, up (-1) or down (1).
  function wayOut(item, outer, side) {
    const points = [];
    let { x } = boxes.get(item);
    for (let child = item; child !== outer; child = child.parent) {
      const beside = plans.get(child.parent).children.map((each) => boxes.get(each));
      points.push(...past(beside, x, end(boxes.get(child), side), side));
      x = points.at(-1)?.x ?? x;
    }
    return [...points, { x, y: end(boxes.get(outer), side) }];
  }

  function plan(item) {
    if (item.node || (item !== top && !open.has(item))) return sizeOf(item);
    const children = item.children.filter(drawn);
    const sizes = children.map(plan);
    const place = new Map(children.map((child, k) => [child, k]));
    const lines = [...(inside.get(item)?.values() ?? [])];
    const made = arranged(sizes, lines.map(({ from, to, edges: all }) => [place.get(from), place.get(to), wide(all)]), room);
    plans.set(item, { ...made, children, lines });
    const margin = item === top ? [0, 0] : [2 * SIDE, HEAD + SIDE];
    const least = item === top ? 0 : sizeOf(item)[0];
    return [Math.max(least, made.width + margin[0]), made.height + margin[1]];
  }

  // Places a group whose content has its left upper corner at (x, y).
  function put(group, x, y) {
    const { spots, points, lines, children } = plans.get(group);
    children.forEach((child, k) => {
      const spot = spots[k];
      const box = { ...spot, x: x + spot.x, y: y + spot.y };
      boxes.set(child, box);
      if (!plans.has(child)) return;
      const content = plans.get(child);
      put(child, box.x - content.width / 2, box.y - box.height / 2 + HEAD);
    });
    lines.forEach((line, k) => { line.points = (points[k] ?? []).map((point) => ({ ...point, x: x + point.x, y: y + point.y })); });
  }
}

export const HEAD = 34; // the height of a group's name, above its content
const SIDE = 16;
const LINE = 12; // the height of what is written on an edge
const BETWEEN = 60; // columns
const GAP = 9; // between an edge and the boxes that it passes

function arranged(...asked) {
  const key = JSON.stringify(asked);
  if (!kept.has(key)) kept.set(key, arrangedAnew(...asked));
  return kept.get(key);
}

function arrangedAnew(sizes, lines, room) {
  if (!lines.length && sizes.length > 1) return inRows(sizes, room);
  let made = byDagre(sizes, lines, 1);
  const wider = (made.width / made.height) / (room[0] / room[1]);
  const rows = Math.min(4, Math.round(Math.sqrt(wider)));
  if (made.width > room[0] && rows > 1) made = byDagre(sizes, lines, rows);
  const { spots, points } = made;
  const columns = Math.round(Math.sqrt(1 / wider));
  if (made.height > room[1] && columns > 1) inColumns(spots, points, lines, made, columns);
  // Bends may stand outside of the boxes.
  const all = [...spots.flatMap(({ x, y, width, height }) =>
    [{ x: x - width / 2, y: y - height / 2 }, { x: x + width / 2, y: y + height / 2 }]), ...points.flat()];
  const [left, upper] = [Math.min(...all.map(({ x }) => x)), Math.min(...all.map(({ y }) => y))];
  const moved = (each) => ({ ...each, x: each.x - left, y: each.y - upper });
  return {
    spots: spots.map(moved),
    points: points.map((each) => each.map(moved)),
    width: Math.max(0, ...all.map(({ x }) => x - left)),
    height: Math.max(0, ...all.map(({ y }) => y - upper)),
  };
}

// Boxes that no line leads to stand in so many rows by turns.
function byDagre(sizes, lines, rows) {
  const graph = new dagre.graphlib.Graph();
  graph.setGraph({ rankdir: "BT", nodesep: 24, ranksep: 38 - LINE, edgesep: 14 });
  sizes.forEach(([width, height], k) => graph.setNode(String(k), { width, height }));
  const reached = new Set(lines.map(([, to]) => to));
  const first = [...sizes.keys()].filter((k) => !reached.has(k));
  for (const [from, to, wide] of lines) graph.setEdge(String(from), String(to), { width: wide, height: LINE,
    labelpos: "c", minlen: 1 + (Math.max(0, first.indexOf(from)) % rows) });
  dagre.layout(graph);
  const nodes = sizes.map((_, k) => graph.node(String(k)));
  const spots = nodes.map(({ x, y, width, height }) => ({ x, y, width, height,
    row: Math.max(...nodes.filter((each) => each.y === y).map((each) => each.height)) }));
  const points = lines.map(([from, to, wide]) => {
    const edge = graph.edge(String(from), String(to));
    return edge.points.slice(1, -1).map((point) => ({ ...point, written: wide > 0 && point.x === edge.x && point.y === edge.y }));
  });
  const { width, height } = graph.graph();
  return { spots, points, width, height };
}

// Where the row of a box ends, above it (-1) or below it (1).
const end = (box, side) => box.y + (side * box.row) / 2;

// The bends of a way from (x, y) up (-1) or down (1), so that it passes beside the boxes.
function past(boxes, x, y, side) {
  const beyond = boxes.filter((box) => side * (box.y - y) > 0);
  const isFree = (place) => beyond.every((box) => Math.abs(place - box.x) >= box.width / 2 + GAP);
  if (isFree(x)) return [];
  const free = beyond.flatMap((box) => [-1, 1].map((sign) => box.x + sign * (box.width / 2 + GAP))).filter(isFree);
  const to = free.reduce((a, b) => (Math.abs(b - x) < Math.abs(a - x) ? b : a));
  return [x, to].map((place) => ({ x: place, y: y + side * GAP }));
}

// Boxes without an edge between them stand in rows, as words do: in as many as make them largest in the room.
function inRows(sizes, room) {
  const widest = Math.max(...sizes.map(([width]) => width));
  const all = sizes.reduce((sum, [width]) => sum + width + 24, 0);
  const ways = sizes.map((_, k) => filled(sizes, Math.max(widest, all / (k + 1))));
  const zoom = ({ width, height }) => Math.min(room[0] / width, room[1] / height);
  return ways.reduce((a, b) => (zoom(b) > zoom(a) ? b : a));
}

function filled(sizes, most) {
  const rows = [];
  let x = Infinity;
  const spots = sizes.map(([width, height]) => {
    if (x + width > most) {
      const above = rows.at(-1);
      rows.push({ y: above ? above.y + above.height + 20 : 0, height: 0 });
      x = 0;
    }
    const row = rows.at(-1);
    row.height = Math.max(row.height, height);
    x += width + 24;
    return { x: x - 24 - width / 2, width, height, line: row };
  });
  const last = rows.at(-1);
  return {
    spots: spots.map(({ line, ...spot }) => ({ ...spot, y: line.y + line.height / 2, row: line.height })),
    points: [],
    width: Math.max(...spots.map((spot) => spot.x + spot.width / 2)),
    height: last.y + last.height,
  };
}

// A long chain is broken into columns, as text is; what was done first stands on the left.
function inColumns(spots, points, lines, { width, height }, count) {
  const column = ({ y }) => Math.min(count - 1, Math.floor((y * count) / height));
  const columns = spots.map(column);
  const upper = Array.from({ length: count }, (_, k) => Math.min(
    ...spots.filter((_, i) => columns[i] === k).map((spot) => spot.y - spot.height / 2)));
  const moved = (each, k) => {
    each.x += k * (width + BETWEEN);
    each.y -= upper[k];
  };
  lines.forEach(([from, to], i) => {
    if (columns[from] === columns[to]) points[i].forEach((point) => moved(point, columns[from]));
  });
  spots.forEach((spot, i) => moved(spot, columns[i]));
  // An edge to another column goes over the top of the one, between both, and under the bottom of the other.
  lines.forEach(([from, to], i) => {
    if (columns[from] === columns[to]) return;
    const [out, into] = [[from, -1], [to, 1]].map(([k, side]) => {
      const column = spots.filter((_, j) => columns[j] === columns[k]);
      const way = past(column, spots[k].x, end(spots[k], side), side);
      const ends = column.map((spot) => side * end(spot, side));
      return [...way, { x: way.at(-1)?.x ?? spots[k].x, y: side * (Math.max(...ends) + GAP) }];
    });
    const x = columns[to] * (width + BETWEEN) + width + BETWEEN / 2;
    points[i] = [...out, { x, y: out.at(-1).y }, { x, y: into.at(-1).y }, ...into.reverse()];
  });
}

// The smallest group that has both items, and the children of it that lead to them.
function meeting(a, b) {
  const above = new Map();
  for (let child = a; child.parent; child = child.parent) above.set(child.parent, child);
  for (let child = b; child.parent; child = child.parent)
    if (above.has(child.parent)) return [child.parent, above.get(child.parent), child];
  throw new Error("two items of different trees");
}
