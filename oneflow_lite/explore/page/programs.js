// Programs: the analysis of each as tables and pictures. Those of compiled functions are here as well.

import { bytes, code, counted, facts, fill, h, list, section, shape, table } from "./elements.js";
import { chart, folded, long, place, sections, time, zoomer } from "./sections.js";

export const title = "Program";

export function has(data) {
  return everyProgram(data).length > 0;
}

// All Programs that do anything, and where each is from: {part, compiled, recording, backward}.
function everyProgram(data) {
  const found = data.programs.map((part) => ({ part, name: part.title }));
  for (const { id, recordings } of data.compiled)
    for (const { number, program, backward } of recordings) {
      const from = { compiled: id, recording: number };
      found.push({ part: program, name: program.title, ...from, backward: null });
      backward.forEach((part, k) => found.push({ part, name: part.title, ...from, backward: k }));
    }
  return found.filter(({ part }) => part.instructions.length > 0);
}

export function texts(data) {
  return everyProgram(data).flatMap(({ part, name }, k) => {
    const names = (ids) => ids.map((id) => (id === null ? "" : part.variables[id].name)).join(" ");
    const where = (more) => ({ program: k, ...more });
    return [
      ...part.instructions.map((each, i) => ({ where: where({ instruction: i }), text: [
        `${name}: ${i} ${each.name}`, each.kind, each.role, each.stream, `${names(each.inputs)} → ${names(each.outputs)}`,
        each.attrs, each.source?.join(":"), ...each.blocks.flat()].filter(Boolean).join("  ") })),
      ...part.variables.map((each, i) => ({ where: where({ variable: i }),
        text: `${name}: ${each.kind} ${each.name} ${shape(each.shape)} ${each.dtype} ${each.value ?? ""}` })),
      ...part.machine_code.groups.flatMap((group, i) => [group.text, ...group.source.split("\n")].map((line) => ({
        where: where({ group: i }), text: `${name}: ${line.trim()}` }))),
    ];
  });
}

const KINDS = { forward: "F", backward: "B", optimize: "O", feed: "in", fetch: "out", transfer: "copy" };
const kindOf = (each) => (each.kind === "op" ? each.role : each.kind);

export function view(data, element, tools) {
  const all = everyProgram(data);
  let now = null;
  let part = null;
  let at = 0; // the chosen instruction
  let step = 0; // of the queue
  let group = 0; // of the machine code
  let around = 2; // steps around the chosen instruction that the graph shows; Infinity for all
  let shrunk = true;
  let cuda = false;
  let into = []; // by instruction its edges, of all conflicts
  let outOf = [];
  let memory = null; // the open chart, whose mark follows the chosen instruction
  let graph = null;

  const which = h("select", { "aria-label": "Program", onchange: () => show(Number(which.value)) },
    all.map(({ name }, k) => h("option", { value: k }, name)));
  const head = h("div", { class: "stack" });
  const rows = list("Instructions, in the order of the Program", row, (_, k) => choose(k, false));
  const parts = sections("What to see of the Program", [
    { name: "instruction", title: "Instruction", key: "i", draw: drawInstruction },
    { name: "dependencies", title: "Dependencies", key: "d", draw: drawDependencies },
    { name: "lives", title: "Last uses", key: "l", draw: drawLives },
    { name: "memory", title: "Memory", key: "m", draw: drawMemory },
    { name: "queue", title: "Queue", key: "q", draw: drawQueue },
    { name: "code", title: "Machine code", key: "c", draw: drawCode },
    { name: "times", title: "Times", key: "r", draw: drawTimes },
    { name: "passes", title: "Passes", key: "p", draw: drawPasses },
  ]);
  element.append(h("div", { class: "columns" },
    h("div", { class: "stack ops" }, all.length > 1 && which, head, rows.element),
    h("div", { class: "card" }, parts.element)));

  // ---- names

  const nameOf = (i) => part.instructions[i].name;
  const variable = (id) => part.variables[id];

  function row(each, k) {
    return [h("span", { class: "dim" }, `${k} `), badge(each), " ", h("span", { class: "op" }, each.name),
      h("span", { class: "dim" }, ` ${each.outputs.map((id) => shape(variable(id).shape)).join(" ")}`)];
  }

  function badge(each) {
    return h("span", { class: `sign ${kindOf(each)}`, title: kindOf(each) }, KINDS[kindOf(each)]);
  }

  function instruction(i) {
    return h("button", { type: "button", class: "link mono", "data-instruction": i, onclick: () => choose(i) },
      `${i} ${nameOf(i)}`);
  }

  const instructions = (ids) => ids.map((i, k) => [k > 0 && ", ", instruction(i)]);

  function aVariable(id) {
    if (id === null) return h("span", { class: "dim" }, "only its shape, or left out");
    const { name, shape: sizes } = variable(id);
    return tools.tip(h("button", { type: "button", class: "tensor", "data-variable": id,
      onclick: () => showVariable(id) }, h("b", {}, name), " ", h("span", { class: "dim" }, shape(sizes))), () => tipOf(id));
  }

  function tipOf(id) {
    const { name, kind, shape: sizes, dtype, device, bytes: size, view_of: base, value } = variable(id);
    return [h("p", {}, h("b", {}, name), ` ${shape(sizes)} ${dtype}`),
      h("p", { class: "dim" }, [kind, device, bytes(size), base !== null && `in the memory of ${variable(base).name}`]
        .filter(Boolean).join(" · ")),
      value && h("pre", { class: "value" }, value)];
  }

  function showVariable(id) {
    const made = part.instructions.findIndex(({ outputs }) => outputs.includes(id));
    const used = part.instructions.findIndex(({ inputs }) => inputs.includes(id));
    choose(made >= 0 ? made : used);
  }

  // ---- going about

  function show(k) {
    now = all[k];
    part = now.part;
    [into, outOf] = [part.instructions.map(() => []), part.instructions.map(() => [])];
    for (const edge of part.edges) {
      outOf[edge[0]].push(edge);
      into[edge[1]].push(edge);
    }
    which.value = k;
    [at, step, group, around] = [0, 0, 0, part.instructions.length > 120 ? 2 : Infinity];
    const { memory: plan, instructions: every } = part;
    fill(head,
      h("div", { class: "dim" }, [counted(every.length, "instruction"), part.place, `mode ${part.mode}`].join(" · ")),
      h("div", { class: "dim" }, `memory of temporaries: ${bytes(plan.arena)}, with a buffer each ${bytes(plan.unshared)}`),
      now.compiled !== undefined && h("div", {}, h("button", { type: "button", class: "link",
        onclick: () => tools.go("compiled", { compiled: now.compiled, recording: now.recording }) },
      "the recording that it belongs to")));
    rows.show(every);
    choose(0);
  }

  function choose(i, scroll = true) {
    at = Math.max(0, Math.min(part.instructions.length - 1, i));
    if (scroll) rows.choose(at);
    if (parts.at === "memory" && memory) {
      memory.mark(at, at + 1);
      memory.reveal(at);
    }
    if (parts.at === "dependencies" && graph && around === Infinity) {
      graph.choose(at);
      graph.fit();
    } else if (!["memory", "queue", "code", "lives", "passes"].includes(parts.at)) parts.draw();
    if (parts.at === "memory") fillAt();
  }

  // ---- an instruction

  function drawInstruction() {
    const each = part.instructions[at];
    const [before, after] = [into[at], outOf[at]];
    const kept = (edges) => edges.filter(([, , kind]) => kind);
    const implied = (edges) => edges.filter(([, , kind]) => !kind);
    const longer = () => h("span", { class: "dim" }, ", as longer ways imply");
    const lines = tools.lines(each.source);
    const uses = (ids) => [...new Set(ids)].map((id) => [aVariable(id), ...(id === null ? ["", "", "", ""] : [
      variable(id).kind, variable(id).dtype, bytes(variable(id).bytes),
      part.last_live[id].after.includes(at) ? "dropped after this" : instructions(part.last_live[id].after)])]);
    return [
      h("h2", {}, `${at} ${each.name} `, badge(each)),
      facts([
        ["kind", each.kind === "op" ? `op of the ${each.role} pass` : each.kind],
        ["attributes", each.attrs && h("span", { class: "mono" }, each.attrs)],
        ["runs on", each.stream ? `${each.device}, stream ${each.stream}` : `${each.device}, queue ${each.queue}`],
        ["called at", each.source && place(tools, each.source)],
        ["waits for", [counted(each.waits_for, "instruction"), each.waits_for > 0 && ": ", instructions(kept(before).map(([from]) => from))]],
        ["then", kept(after).map(([, to, kind], k) => [k > 0 && ", ", instruction(to), h("span", { class: "dim" }, ` (${kind})`)])],
        ["comes after", implied(before).length > 0 && [instructions(implied(before).map(([from]) => from)), longer()]],
        ["comes before", implied(after).length > 0 && [instructions(implied(after).map(([, to]) => to)), longer()]],
      ]),
      each.inputs.length > 0 && table("Reads", ["variable", "kind", "dtype", "#bytes", "dropped after"], uses(each.inputs)),
      each.outputs.length > 0 && table("Makes or writes", ["variable", "kind", "dtype", "#bytes", "dropped after"], uses(each.outputs)),
      each.blocks.map((block, k) => section(`Sub-block ${k + 1} of ${each.blocks.length}`,
        code(block.join("\n"), { label: `Sub-block ${k + 1}` }))),
      lines && code(lines.text, { first: lines.first, marks: lines.marks, label: `Source ${each.source[0]}` }),
    ];
  }

  // ---- dependencies

  // The instructions at most `around` edges away from the chosen one.
  function near() {
    if (around === Infinity) return new Set(part.instructions.keys());
    const found = new Set([at]);
    let last = [at];
    for (let k = 0; k < around; k++) {
      last = last.flatMap((i) => [...into[i], ...outOf[i]]).filter(([, , kind]) => kind || !shrunk)
        .flatMap(([from, to]) => [from, to]).filter((i) => !found.has(i));
      for (const i of last) found.add(i);
    }
    return found;
  }

  function drawDependencies() {
    const kept = part.edges.filter(([, , kind]) => kind);
    const edges = shrunk ? kept : part.edges;
    const shown = near();
    const holder = h("div", { class: "picture", role: "img", tabindex: 0, "aria-label":
      `Graph of ${counted(shown.size, "instruction")}; the table below says the same` });
    const inside = edges.filter(([from, to]) => shown.has(from) && shown.has(to));
    queueMicrotask(() => { graph = pictureOf(tools, holder, part, shown, inside, at, choose); });
    const toggle = h("label", {}, h("input", { type: "checkbox", checked: !shrunk, "data-control": "before",
      onchange: (event) => setShrunk(!event.target.checked) }), " before shrinking: all conflicts ", h("kbd", {}, "b"));
    const far = h("select", { "aria-label": "How much of the graph", onchange: () => {
      around = Number(far.value);
      parts.draw();
    } }, [1, 2, 3, 5, ...(part.instructions.length > MOST ? [] : [Infinity])].map((k) => h("option", { value: k, selected: k === around },
      k === Infinity ? "all instructions" : `${counted(k, "edge")} around the chosen one`)));
    return [
      h("p", { "data-count": inside.length }, shrunk
        ? `${counted(kept.length, "edge")} left of ${part.edges.length}: those that longer ways imply are taken out.`
        : `${counted(part.edges.length, "conflict")}: one writes what the other reads or writes. Dashed ones are implied by longer ways.`),
      h("div", { class: "bar" }, toggle, far),
      holder,
      legend(),
      long((made) => table("Who waits for whom", ["#", "instruction", "#waits for", "before: all conflicts", "after: those left"], made),
        [...part.instructions.keys()], (i) => {
          const mine = outOf[i];
          return [String(i), instruction(i), String(part.instructions[i].waits_for), instructions(mine.map(([, to]) => to)),
            mine.filter(([, , kind]) => kind).map(([, to, kind], k) => [k > 0 && ", ", instruction(to),
              h("span", { class: "dim" }, ` ${kind}`)])];
        }),
    ];
  }

  function setShrunk(value) {
    shrunk = value;
    tools.say(shrunk ? "after shrinking" : "before shrinking");
    if (parts.at === "dependencies") parts.draw();
  }

  function legend() {
    const there = new Set(part.instructions.map(kindOf));
    return h("ul", { class: "chips" }, Object.keys(KINDS).filter((kind) => there.has(kind)).map((kind) =>
      h("li", {}, h("span", { class: `sign ${kind}` }, KINDS[kind]), ` ${kind}`)));
  }

  // ---- last uses

  function drawLives() {
    return [
      h("p", {}, "A variable is dropped after the instructions that use it last: those of its users that come before no other one."),
      long((made) => table("Variables", ["variable", "kind", "#bytes", "used by", "dropped after"], made),
        part.variables, (each, id) => [aVariable(id), each.kind, bytes(each.bytes),
          instructions(part.last_live[id].before), instructions(part.last_live[id].after)]),
    ];
  }

  // ---- memory

  const atLine = h("div", { class: "stack" });

  function drawMemory() {
    const { arena, unshared, buffers } = part.memory;
    const [planned, own] = [buffers.filter(({ offset }) => offset !== null), buffers.filter(({ offset }) => offset === null)];
    const high = arena ? Math.min(420, Math.max(120, planned.length * 16)) : 0;
    const boxes = planned.flatMap((buffer) => pieces(buffer, (buffer.offset / arena) * high,
      Math.max(4, (buffer.bytes / arena) * high - 1)));
    const lanes = [];
    for (const buffer of own) {
      let lane = lanes.findIndex((end) => end < buffer.from);
      if (lane < 0) lane = lanes.push(-1) - 1;
      lanes[lane] = buffer.until;
      boxes.push(...pieces(buffer, high + 30 + lane * 20, 17));
    }
    const count = part.instructions.length;
    memory = chart(tools, {
      label: `Buffers over time: ${counted(buffers.length, "buffer")} in ${bytes(arena)}`, length: count,
      height: high + 30 + lanes.length * 20, boxes, went: (i) => choose(Math.floor(i)),
      tick: String, round: Math.round,
    });
    memory.mark(at, at + 1);
    fillAt();
    return [
      h("p", {}, arena
        ? `Temporaries share ${bytes(arena)}; with a buffer each they would take ${bytes(unshared)}. From left to right: the
           instructions; from top to bottom: the place in memory. Below: what each run allocates.`
        : "This Program has no memory that is planned: each run allocates what it makes. From left to right: the instructions."),
      zoomer(memory, Math.max(1, count / 80)),
      memory.element,
      atLine,
      long((made) => table("Buffers", ["#place", "#bytes", "variables, one after the other", "from", "until"], made), buffers,
        (buffer) => [
          buffer.offset === null ? (buffer.given === null ? "allocated" : ["in ", aVariable(buffer.given)]) : String(buffer.offset),
          bytes(buffer.bytes), buffer.variables.map(({ variable: id }, k) => [k > 0 && " → ", aVariable(id)]),
          instruction(buffer.from), instruction(buffer.until)]),
    ];
  }

  // The variables of a buffer, each as long as it has it.
  function pieces(buffer, top, height) {
    return buffer.variables.map((each, k) => {
      const next = buffer.variables[k + 1];
      return { id: each.variable, from: each.from, to: next ? next.from : buffer.until + 1, top, height,
        kind: `piece ${k % 2 ? "odd" : "even"}${buffer.offset === null ? " own" : ""}`, label: variable(each.variable).name,
        tip: () => [...tipOf(each.variable), h("p", {}, buffer.offset === null ? "allocated by each run"
          : `bytes ${buffer.offset} to ${buffer.offset + each.bytes}`, `, from ${each.from} ${nameOf(each.from)} to ${each.until} ${nameOf(each.until)}`),
        each.views.length > 0 && h("p", {}, `views: ${each.views.map((id) => variable(id).name).join(", ")}`)],
        chosen: () => choose(each.from) };
    });
  }

  function fillAt() {
    const alive = part.memory.buffers.filter(({ from, until }) => from <= at && at <= until);
    const inside = alive.filter(({ offset }) => offset !== null).reduce((sum, each) => sum + each.bytes, 0);
    fill(atLine, h("p", { "data-alive": inside }, `At ${at} ${nameOf(at)}: ${counted(alive.length, "buffer")} in use, ${bytes(inside)} of the shared memory.`));
  }

  // ---- the queue

  // The queues, the counts and the variables before step `k`; steps are changes only.
  function queueAt(k) {
    const { start, steps } = part.queue;
    const ready = new Set(start);
    const waits = new Map(part.instructions.map(({ waits_for: count }, i) => [i, count]));
    const dropped = [];
    for (let j = 0; j < k; j++) {
      const each = steps[j];
      ready.delete(each.instruction);
      waits.delete(each.instruction);
      for (const [i, count] of each.waits) waits.set(i, count);
      for (const i of each.ready) ready.add(i);
      dropped.push(...each.dropped);
    }
    return { ready: [...ready], waits, dropped, last: steps[k - 1] };
  }

  function drawQueue() {
    const { steps } = part.queue;
    const { ready, waits, dropped, last } = queueAt(step);
    const of = (queue) => ready.filter((i) => part.instructions[i].queue === queue);
    const slider = h("input", { type: "range", min: 0, max: steps.length, value: step, "aria-label": "Step of the queue",
      "aria-valuetext": said(), "data-control": "step", oninput: () => goStep(Number(slider.value)) });
    const chips = (ids, empty) => (ids.length ? h("ol", { class: "chips" }, ids.slice(0, 60).map((i) =>
      h("li", {}, badge(part.instructions[i]), " ", instruction(i))), ids.length > 60 && h("li", {}, `and ${ids.length - 60} more`))
      : h("p", { class: "dim" }, empty));
    const waiting = [...waits].filter(([i, count]) => count > 0 && !ready.includes(i) && last?.next !== i);
    const devices = part.instructions.some(({ queue }) => queue === "device");
    return [
      h("p", {}, "The scheduler of the work queue, on one thread: an instruction whose count is at zero gets into a queue, or is the next one over a direct edge."),
      h("div", { class: "bar" },
        h("button", { type: "button", "data-control": "back", disabled: step === 0, onclick: () => goStep(step - 1) }, "Back ", h("kbd", {}, "←")),
        h("button", { type: "button", "data-control": "forth", disabled: step === steps.length, onclick: () => goStep(step + 1) }, "Forth ", h("kbd", {}, "→")),
        h("label", { class: "wide" }, slider), h("span", { class: "dim" }, `step ${step} of ${steps.length}`)),
      section("Just ran", last ? [h("p", { "data-ran": last.instruction }, badge(part.instructions[last.instruction]), " ", instruction(last.instruction),
        last.direct && h("span", { class: "dim" }, " over a direct edge, without a queue")),
      last.next !== null && h("p", {}, "next, over a direct edge: ", instruction(last.next)),
      last.dropped.length > 0 && h("p", {}, "dropped: ", last.dropped.map((id) => [aVariable(id), " "]))]
        : h("p", { class: "dim" }, "nothing so far")),
      section(devices ? "Queue of the host" : "Ready queue", h("div", { "data-queue": of("host").join(" ") }, chips(of("host"), "empty"))),
      devices && section("Queue of the device", chips(of("device"), "empty")),
      waiting.length > 0 && long((made) => table("Instructions that wait for others", ["instruction", "#waits for"], made), waiting,
        ([i, count]) => [instruction(i), String(count)]),
      h("p", { class: "dim" }, `${counted(dropped.length, "variable")} of ${part.variables.length} dropped so far.`),
    ];

    function said() {
      return last ? `after ${nameOf(last.instruction)}` : "before the first instruction";
    }
  }

  function goStep(to) {
    step = Math.max(0, Math.min(part.queue.steps.length, to));
    const control = document.activeElement?.dataset?.control;
    parts.draw();
    const again = control && parts.body.querySelector(`[data-control="${control}"]`);
    if (again) (again.disabled ? parts.body.querySelector("[data-control=step]") : again).focus();
    const last = part.queue.steps[step - 1];
    if (last) {
      at = last.instruction;
      rows.choose(at);
      tools.say(`step ${step}: ${nameOf(at)}`);
    }
  }

  // ---- machine code

  function drawCode() {
    const { runs_left: left, why_not: why, groups, refused, ops } = part.machine_code;
    const intro = why ? `No machine code: ${why}.` : left ? `Machine code takes over after at most ${counted(left, "more run")}, once it is built; these are the groups as they will be.`
      : groups.length ? "These groups run as machine code." : "No group of ops became machine code.";
    const chosen = groups[group];
    const written = groups.some((each) => each.cuda !== null);
    return [
      h("p", {}, intro),
      groups.length > 0 && long((made) => table("Groups", ["#", "what it is", "instructions", "#bytes not stored"], made), groups, (each, k) => [String(k),
        h("button", { type: "button", class: "link", "data-group": k, "aria-pressed": String(k === group), onclick: () => showGroup(k) }, each.text),
        instructions(each.instructions), bytes(each.bytes_saved)]),
      refused.length > 0 && section("Could not be built", h("ul", {}, refused.map((text) => h("li", {}, text)))),
      chosen && section(`Group ${group}: ${chosen.kind === "call" ? "one call of several parts" : "one loop"}`,
        h("p", {}, chosen.ops.join(", ")),
        chosen.parts.length > 0 && h("p", { class: "dim" }, `in it ${counted(chosen.parts.length, "loop")}: ${chosen.parts.map((each) => each.ops.join(" + ")).join("; ")}`),
        written && h("label", { class: "bar" }, h("input", { type: "checkbox", checked: cuda, onchange: (event) => {
          cuda = event.target.checked;
          parts.draw();
        } }), "as a CUDA kernel"),
        (cuda ? chosen.cuda : chosen.source) ? code(cuda ? chosen.cuda : chosen.source, { label: `Source of group ${group}` })
          : h("p", { class: "dim" }, data.values ? "There is no source of it." : "Generated source was left out.")),
      ops.length > 0 && folded("The order of the ops then: groups, what was moved, divided or joined",
        () => long((made) => table("Ops", ["#", "op", "", "makes", "instructions"], made), ops, (each, k) => [String(k),
          each.group === null ? h("span", { class: "mono" }, each.op) : h("button", { type: "button", class: "link mono", onclick: () => showGroup(each.group) }, `${each.op} (group ${each.group})`),
          each.note && h("span", { class: "badge" }, each.note),
          h("span", { class: "mono" }, each.outputs.join(", ")), instructions(each.instructions)])),
      part.code && folded("What a replay runs, a line for each op", () => code(part.code, { label: "Code of a replay" })),
    ];
  }

  function showGroup(k) {
    group = k;
    parts.open("code");
    parts.body.querySelector(`[data-group="${k}"]`)?.focus();
  }

  // ---- times

  function drawTimes() {
    const line = part.time_line;
    if (!line) return [h("p", {}, `No run was measured: ${part.unmeasured || "none was watched"}.`)];
    const depth = Math.max(0, ...line.events.map((each) => each.depth)) + 1;
    const high = 26;
    const boxes = line.events.map((each) => ({ id: each.instructions.join(" "), from: each.start, to: each.start + each.duration,
      top: (each.thread * depth + each.depth) * high, height: high - 3,
      kind: `span ${each.instructions.length ? kindOf(part.instructions[each.instructions[0]]) : each.kind}${each.instructions.includes(at) ? " here" : ""}`,
      label: each.name, tip: () => timeTip(each), chosen: () => each.instructions.length && choose(each.instructions[0]) }));
    const drawn = chart(tools, { label: `Time line of one run: ${time(line.total)}`, length: line.total,
      height: line.threads.length * depth * high, boxes, tick: time });
    const ops = line.events.filter(({ kind }) => kind === "op").toSorted((a, b) => b.duration - a.duration);
    const inside = ops.reduce((sum, { duration }) => sum + duration, 0);
    return [
      h("p", {}, `One run took ${time(line.total)}, as the profiler measured it; the ops in it ${time(inside)}. `,
        line.threads.length > 1 && `Threads, from above: ${line.threads.join(", ")}.`),
      zoomer(drawn, Math.max(1, line.events.length / 120)), drawn.element,
      long((made) => table("Ops, the longest first", ["op", "instructions", "#starts at", "#takes", "#share", "#read", "#written"], made), ops,
        (each) => [h("span", { class: "mono" }, each.name), instructions(each.instructions), time(each.start), time(each.duration),
          `${((100 * each.duration) / line.total).toFixed(1)} %`, bytes(each.bytes_read), bytes(each.bytes_written)]),
    ];
  }

  function timeTip(each) {
    return [h("p", {}, h("b", {}, each.name), ` ${time(each.duration)}`),
      h("p", { class: "dim" }, `from ${time(each.start)}, on ${part.time_line.threads[each.thread]}`),
      each.parts.length > 0 && h("p", {}, each.parts.join(", ")),
      each.kind === "op" && h("p", {}, `read ${bytes(each.bytes_read)}, wrote ${bytes(each.bytes_written)}`)];
  }

  // ---- passes

  function drawPasses() {
    const saved = ({ ops, bytes: count }) => [ops !== undefined && counted(ops, "op"), count !== undefined && bytes(count)]
      .filter(Boolean).join(", ");
    return [
      table("What the passes did", ["pass", "#fired", "#saved"], part.passes.map((each) => [each.name, String(each.fired), saved(each.saved)])),
      facts([["feeds", part.feeds.join(", ")], ["fetches", part.fetches.join(", ")]]),
    ];
  }

  show(0);

  const inQueue = () => parts.at === "queue";
  return {
    keys: [
      { key: "ArrowDown", shown: "↓", does: "the next instruction", run: () => choose(at + 1) },
      { key: "ArrowUp", shown: "↑", does: "the instruction before", run: () => choose(at - 1) },
      { key: "Home", does: "the first instruction", run: () => choose(0) },
      { key: "End", does: "the last instruction", run: () => choose(part.instructions.length - 1) },
      { key: "ArrowRight", shown: "→", does: "a step of the queue forth", run: () => inQueue() && goStep(step + 1) },
      { key: "ArrowLeft", shown: "←", does: "a step of the queue back", run: () => inQueue() && goStep(step - 1) },
      { key: "b", does: "dependencies before or after shrinking", run: () => setShrunk(!shrunk) },
      { key: "]", does: "the next Program", run: () => show((all.indexOf(now) + 1) % all.length) },
      { key: "[", does: "the Program before", run: () => show((all.indexOf(now) + all.length - 1) % all.length) },
      ...parts.keys,
    ],
    open(where) {
      const k = where.program ?? all.findIndex((each) => each.compiled === where.compiled && each.recording === where.recording
        && each.backward === (where.backward ?? null));
      if (!all[k]) return;
      if (all[k] !== now) show(k);
      if (where.group !== undefined) showGroup(where.group);
      else if (where.variable !== undefined) showVariable(where.variable);
      else if (where.instruction !== undefined) {
        parts.open("instruction");
        choose(where.instruction);
      }
    },
    shown: () => graph?.fit(),
  };
}

const MOST = 1500; // instructions of a graph that is drawn whole
const READABLE = 0.8; // the least zoom at the beginning

// The picture of some instructions and edges in an element, laid out by dagre and drawn by cytoscape.
function pictureOf(tools, element, part, shown, edges, at, chosen) {
  const layout = new dagre.graphlib.Graph();
  layout.setGraph({ rankdir: "TB", nodesep: 18, ranksep: 34 });
  layout.setDefaultEdgeLabel(() => ({}));
  const label = (i) => `${i} ${part.instructions[i].name}`;
  for (const i of shown) layout.setNode(String(i), { width: Math.max(60, label(i).length * 7.4 + 20), height: 30 });
  for (const [from, to] of edges) layout.setEdge(String(from), String(to));
  dagre.layout(layout);
  const cy = cytoscape({
    container: element,
    elements: [
      ...[...shown].map((i) => ({ group: "nodes", data: { id: String(i), label: label(i), width: layout.node(String(i)).width },
        position: layout.node(String(i)), classes: kindOf(part.instructions[i]) })),
      ...edges.map(([from, to, kind]) => ({ group: "edges", data: { id: `${from}>${to}`, source: String(from), target: String(to),
        label: edges.length < 60 ? kind : "" }, classes: kind || "implied" })),
    ],
    style: style(),
    layout: { name: "preset" },
    autoungrabify: true,
    maxZoom: 2,
  });

  function style() {
    const c = tools.colour;
    const box = (name) => ({ "background-color": c(name), "border-color": c(`${name}-line`) });
    return [
      { selector: "node", style: { shape: "round-rectangle", width: "data(width)", height: 30, label: "data(label)", color: c("ink"),
        "font-size": 12, "text-valign": "center", "text-halign": "center", "border-width": 1.5, "min-zoomed-font-size": 6, ...box("op") } },
      { selector: ".backward", style: { shape: "rectangle", "border-style": "dashed", ...box("function") } },
      { selector: ".optimize", style: { shape: "cut-rectangle", ...box("leaf") } },
      { selector: ".feed, .fetch, .transfer", style: { shape: "ellipse", ...box("group") } },
      { selector: "node.here", style: { "border-width": 5, "border-color": c("ink") } },
      { selector: "edge", style: { width: 1.5, "line-color": c("edge"), "target-arrow-color": c("edge"), "target-arrow-shape": "triangle",
        "curve-style": "bezier", label: "data(label)", "font-size": 9, color: c("dim"), "text-background-color": c("panel"),
        "text-background-opacity": 1 } },
      { selector: ".implied", style: { "line-style": "dashed", "line-color": c("bad"), "target-arrow-color": c("bad") } },
      { selector: ".event", style: { width: 3 } },
    ];
  }

  cy.on("tap", "node", (event) => chosen(Number(event.target.id())));
  tools.onTheme(() => element.isConnected && cy.style(style()));
  const picture = {
    fit() {
      if (!element.isConnected) return;
      cy.resize();
      cy.fit(undefined, 20);
      if (cy.zoom() > 1.2) {
        cy.zoom(1.2);
        cy.center();
      } else if (cy.zoom() < READABLE) { // the chosen one stands near the top
        cy.zoom(READABLE);
        const { x, y } = cy.getElementById(String(at)).position();
        cy.pan({ x: element.clientWidth / 2 - x * READABLE, y: 40 - y * READABLE });
      }
    },
    choose(i) {
      at = i;
      cy.nodes(".here").removeClass("here");
      cy.getElementById(String(i)).addClass("here");
    },
    cy,
  };
  picture.choose(at);
  picture.fit();
  element.cy = cy;
  return picture;
}
