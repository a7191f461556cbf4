// A backward call as it stood after each step, from the changes that the document has.

export class Film {
  constructor(data, run) {
    this.data = data;
    this.run = run;
    this.pruned = new Set(run.pruned);
    this.takesPart = new Set(run.order);
    this.start();
  }

  get length() {
    return this.run.steps.length;
  }

  start() {
    const { start } = this.run;
    this.k = 0;
    this.dependencies = new Map(numbers(start.dependencies));
    this.notReady = new Map(numbers(start.not_ready));
    this.queue = new Set(start.ready);
    this.done = new Set();
    this.step = null;
    this.alive = start.alive;
    this.held = start.held;
  }

  // The ready queue: the latest made node is next.
  get ready() {
    const { nodes } = this.data;
    return [...this.queue].sort((a, b) => nodes[b].sequence_nr - nodes[a].sequence_nr);
  }

  // Goes to how it stood after step k; 0 is before any node ran.
  go(k) {
    if (k < this.k) this.start();
    while (this.k < Math.min(k, this.length)) this.advance();
  }

  advance() {
    const step = this.run.steps[this.k++];
    this.step = step;
    this.done.add(step.node);
    this.dependencies.delete(step.node);
    this.notReady.delete(step.node);
    for (const [node, count] of numbers(step.dependencies)) this.dependencies.set(node, count);
    for (const [node, sums] of numbers(step.not_ready)) this.notReady.set(node, sums);
    for (const node of step.ready.removed) this.queue.delete(node);
    for (const node of step.ready.added) this.queue.add(node);
    this.alive = step.alive;
    this.held = step.held;
  }

  // The nodes that the call is about: those that it runs, prunes and makes.
  get nodes() {
    const { order, pruned, create_graph, layer } = this.run;
    const made = create_graph
      ? this.data.nodes.filter((node) => node.layer === layer && this.takesPart.has(node.made_by)) : [];
    return new Set([...order, ...pruned, ...made.map(({ id }) => id)]);
  }

  // What a node is at: one of pruned, outside, made, runs, done, ready, waits.
  state(node) {
    if (this.pruned.has(node)) return "pruned";
    if (!this.takesPart.has(node)) return this.done.has(this.data.nodes[node].made_by) ? "made" : "outside";
    if (this.step?.node === node) return "runs";
    if (this.done.has(node)) return "done";
    return this.dependencies.get(node) ? "waits" : "ready";
  }
}

const numbers = (object) => Object.entries(object).map(([id, value]) => [Number(id), value]);
