// Groups of nodes, so that a large graph is drawn as a few boxes: a module is one, the repeats of a
// loop are one, and where there is neither, nodes that were made one after the other.
//
// Everything here is an item: a node is {id, node}, a group {id, kind, label, note, children}; both
// have `parent`, `size` (how many nodes) and `order` (their place in the order of making).

const FEW = 24; // children that all may have without a group for each backward call
const MANY = 40; // children that a group may have without parts
const MANY_LEAVES = 5; // from which they are one box

export function grouped(data) {
  const items = new Map();
  const kinds = new Map(data.modules.map(({ path, kind }) => [path, kind]));
  const keys = new Map();
  let count = 0;

  const number = (text) => keys.get(text) ?? (keys.set(text, keys.size), keys.size - 1);
  const group = (kind, label, note, children) => {
    const made = { id: `g${count++}`, kind, label, note, children, key: 0 };
    for (const child of children) child.parent = made;
    made.key = number(`${kind} ${note} ${children.map((child) => child.key)}`);
    return made;
  };

  const leaves = data.nodes.filter((node) => node.kind === "leaf");
  const layers = new Map();
  for (const node of data.nodes) {
    const item = { id: `n${node.id}`, node, order: node.sequence_nr, size: 1,
      key: number(`${node.name} ${node.source}`) };
    items.set(node.id, item);
    if (node.kind === "leaf") continue;
    if (!layers.has(node.layer)) layers.set(node.layer, []);
    layers.get(node.layer).push(item);
  }

  const top = group("all", "", "", []);
  for (const [layer, all] of [...layers].sort((a, b) => a[0] - b[0])) {
    all.sort((a, b) => a.order - b.order);
    let children = withLoops(inModules(all, 0));
    if (children.length > FEW) children = withLoops(inCalls(all));
    const inside = layer === 0 ? children
      : [group("layer", layer === 1 ? "double backward" : `layer ${layer}`, "made by a backward call", children)];
    for (const child of inside) child.parent = top;
    top.children.push(...inside);
  }
  placeLeaves();
  finish(top);
  return { top, items, divide, gather };

  // Nodes that a backward call runs, the last one if there are several, become a group.
  function inCalls(all) {
    const calls = new Map();
    for (const run of data.runs) if (run.parent === null) for (const node of run.order) calls.set(node, run);
    const parts = new Map(all.map((item) => [calls.get(item.node.id), []]));
    if (parts.size === 1) return inModules(all, 0);
    for (const item of all) parts.get(calls.get(item.node.id)).push(item);
    return [...parts].flatMap(([run, part]) => {
      const inside = withLoops(inModules(part, 0));
      if (part.length === 1) return inside;
      return [run ? group("call", `call ${run.number}`, run.kind, inside) : group("rest", "no backward call", "nothing ran them", inside)];
    });
  }

  // Nodes of one call of a module stand together, and become a group.
  function inModules(all, depth) {
    const result = [];
    for (let k = 0; k < all.length;) {
      const path = all[k].node.module.split(".");
      if (path.length <= depth || !path[0]) {
        result.push(all[k++]);
        continue;
      }
      const prefix = path.slice(0, depth + 1).join(".");
      let end = k;
      while (end < all.length && `${all[end].node.module}.`.startsWith(`${prefix}.`)) end++;
      result.push(module(prefix, withLoops(inModules(all.slice(k, end), depth + 1))));
      k = end;
    }
    return result;
  }

  // A module that holds but one other is drawn as that one.
  function module(path, children) {
    if (children.length === 1 && children[0].kind === "module") return children[0];
    return group("module", path, kinds.get(path) ?? "", children);
  }

  // Finds stretches that repeat at least three times, the longest first, until there are no more.
  function withLoops(all) {
    for (let found = true; found;) {
      found = false;
      const result = [];
      for (let k = 0; k < all.length;) {
        const [period, times] = repeats(all, k);
        if (times < 3) {
          result.push(all[k++]);
          continue;
        }
        found = true;
        const rounds = Array.from({ length: times }, (_, i) => {
          const part = all.slice(k + i * period, k + (i + 1) * period);
          return period === 1 ? part[0] : group("round", `round ${i + 1}`, "", withLoops(part));
        });
        const name = `${content(all.slice(k, k + period))} × ${times}`;
        // The first round shows what each does; the others are a counter.
        const [first, ...others] = rounds;
        result.push(group("loop", name, "repeats", period === 1 && all[k].kind !== "call" ? rounds
          : [first, group("rounds", `${others.length} more rounds`, "like the first", others)]));
        k += period * times;
      }
      all = result;
    }
    return all;
  }

  function repeats(all, start) {
    let best = [0, 0];
    let tried = 0;
    for (let next = start + 1; next < all.length && tried < 16; next++) {
      if (all[next].key !== all[start].key) continue;
      tried++;
      const period = next - start;
      if (start + 3 * period > all.length) break;
      let end = next;
      while (end < all.length && all[end].key === all[end - period].key) end++;
      const times = Math.floor((end - start) / period);
      if (times >= 3 && times * period > best[0] * best[1]) best = [period, times];
    }
    return best;
  }

  function content(all) {
    const names = all.slice(0, 3).map((item) =>
      item.node?.name.replace(/_backward$/, "") ?? (item.note || item.label));
    return names.join(", ") + (all.length > 3 ? ", …" : "");
  }

  // A leaf stands in the smallest group that has all that use it, but not in a loop whose rounds share
  // it. One that no module owns, like the input of a network, stands outside of modules.
  function placeLeaves() {
    const users = new Map(leaves.map((leaf) => [leaf.id, []]));
    for (const node of data.nodes)
      for (const { to } of node.edges) users.get(to)?.push(items.get(node.id));
    for (const leaf of leaves) {
      const item = items.get(leaf.id);
      const all = users.get(leaf.id);
      let place = all.length ? all.map((user) => user.parent).reduce(common) : top;
      while (place.kind === "loop" || (place.kind === "module" && !owned(leaf))) place = place.parent;
      item.order = Math.min(Infinity, ...all.map((user) => user.order)) - 0.5;
      item.parent = place;
      place.children.push(item);
    }
  }

  // Whether a leaf is a parameter: its name begins with the path of a module, or nobody holds it any more.
  function owned({ label, module, tensor }) {
    return module || !data.tensors[tensor]?.name || kinds.has(label.slice(0, Math.max(0, label.lastIndexOf("."))));
  }

  function common(a, b) {
    const above = new Set();
    for (let group = a; group; group = group.parent) above.add(group);
    while (!above.has(b)) b = b.parent;
    return b;
  }

  // Leaves that stand beside each other would make a row that runs off both sides: many are one box.
  function gather(item, many = MANY_LEAVES) {
    const inside = item.children.filter(({ node }) => node?.kind === "leaf");
    if (inside.length < many || inside.length === item.children.length) return;
    const made = group("leaves", `${inside.length} leaves`, "their gradients are kept", inside);
    Object.assign(made, { parent: item, size: inside.length, order: inside[0].order });
    item.children = [...item.children.filter((child) => !inside.includes(child)), made];
  }

  // Sizes and places, and parts where a group has too many children to be laid out at once.
  function finish(item) {
    if (item.node) return;
    gather(item);
    item.children.forEach(finish);
    item.children.sort((a, b) => a.order - b.order);
    item.order = item.children[0]?.order ?? 0;
    while (item.children.length > MANY) divide(item);
    item.size = item.children.reduce((sum, child) => sum + child.size, 0);
  }

  // Makes parts of a group's children, about as many as there are children in each.
  function divide(item) {
    const length = Math.min(MANY, Math.ceil(Math.sqrt(item.children.length)));
    const parts = [];
    for (let k = 0; k < item.children.length; k += length) {
      const inside = item.children.slice(k, k + length);
      const part = group("part", `${name(inside[0])} … ${name(inside.at(-1))}`, stretch(inside), inside);
      part.size = inside.reduce((sum, child) => sum + child.size, 0);
      part.order = inside[0].order;
      part.parent = item;
      parts.push(part);
    }
    item.children = parts;
  }

  // The lines of the source that made items, if they stand in one file.
  function stretch(all) {
    const places = all.flatMap(function places(item) {
      return item.node ? (item.node.source ? [item.node.source] : []) : item.children.flatMap(places);
    });
    const lines = places.map(([, line]) => line);
    if (!places.length || places.some(([file]) => file !== places[0][0])) return "made one after the other";
    const [first, last] = [Math.min(...lines), Math.max(...lines)];
    return `${places[0][0]}:${first}${last > first ? `–${last}` : ""}`;
  }

  function name(item) {
    if (item.kind === "part") return item.label.split(" … ")[0];
    return item.node?.label ?? item.label;
  }
}
