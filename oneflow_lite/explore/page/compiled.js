// Compiled functions: what became of their calls, and what each recording is for.

import { code, counted, facts, fill, h, list, section, shape, table } from "./elements.js";
import { folded, long, place, sections } from "./sections.js";

export const title = "Compiled";

export function has(data) {
  return data.compiled.length > 0;
}

export function texts(data) {
  return data.compiled.flatMap((part, k) => {
    const guards = (of, where) => of.map(({ words, code: asked }) => ({ where: { compiled: k, ...where },
      text: `${part.name}: guard: ${words}  ${asked}` }));
    return [
      { where: { compiled: k }, text: `${part.name} ${part.source?.join(":") ?? ""}` },
      ...part.reasons.map((reason) => ({ where: { compiled: k, section: "calls" }, text: `${part.name} runs eagerly: ${reason}` })),
      ...part.recordings.flatMap((each) => [
        { where: { compiled: k, recording: each.number }, text: `${part.name}: recording ${each.number}, because ${each.why || "it was the first"}` },
        ...guards(each.guards, { recording: each.number })]),
      ...part.refusals.flatMap((each, i) => [
        { where: { compiled: k, refusal: i }, text: `${part.name}: not kept: ${each.reason}` },
        ...guards(each.guards, { refusal: i })]),
      ...part.calls.map((each) => ({ where: { compiled: k, section: "calls" },
        text: `${part.name}: call ${each.call} ${each.outcome} ${each.why}` })),
    ];
  });
}

const SIGNS = { recorded: "●", replayed: "▶", eager: "○", plain: "·", raised: "✕" };

export function view(data, element, tools) {
  let part = null;
  let recording = null;
  let wanted = ""; // what the guards that are shown have in them

  const functions = list("Compiled functions", (each) => [h("span", { class: "op" }, each.name),
    h("span", { class: "dim" }, ` ${[[each.captures, "recorded"], [each.hits, "replayed"], [each.fallbacks, "eager"]]
      .filter(([count]) => count).map((pair) => pair.join(" ")).join(", ") || "not called"}`)],
  (_, k) => show(k, false));
  const head = h("div", { class: "stack" });
  const parts = sections("What to see of the function", [
    { name: "calls", title: "Calls", key: "c", draw: drawCalls },
    { name: "recordings", title: "Recordings", key: "r", draw: drawRecordings },
    { name: "guards", title: "Guards", key: "g", draw: drawGuards },
    { name: "refusals", title: "Not kept", key: "n", draw: drawRefusals },
    { name: "code", title: "Code", key: "o", draw: drawCode },
  ]);
  element.append(h("div", { class: "columns" }, h("div", { class: "stack" }, functions.element),
    h("div", { class: "card stack" }, head, parts.element)));

  function show(k, scroll = true) {
    part = data.compiled[k];
    if (scroll) functions.choose(k);
    recording = part.recordings[0] ?? null;
    fill(head,
      h("h2", {}, part.name),
      facts([
        ["written at", part.source && place(tools, part.source)],
        ["calls", `${part.captures} recorded, ${part.hits} replayed, ${part.fallbacks} run eagerly`],
        ["recordings", `${part.kept} kept, ${part.dropped} made room for others`],
        ["mode", part.mode + (part.fullgraph ? ", fullgraph: an error instead of an eager call" : "")],
        // The calls and the recordings say it, as far as they are listed.
        ["recorded anew", ![...part.calls, ...part.recordings].some(({ why }) => why === part.why) && reason(part.why)],
        ["runs eagerly", part.reasons.length > 0 && h("ul", { class: "reasons" }, part.reasons.map((each) => h("li", {}, reason(each))))],
        ["machine code", part.loops.length > 0 && h("ul", { class: "reasons" }, part.loops.map((loop) => h("li", {}, loop)))],
      ]));
    parts.draw();
  }

  // A reason, with the place that it ends with as a link.
  function reason(text) {
    const [, what, file, line, inside] = text.match(/^(.*, at )(.+):(\d+)( in \S+)$/s) ?? [];
    return file ? [what, place(tools, [file, Number(line)]), inside] : text;
  }

  const because = ({ why, number }) => (why ? reason(why) : number === 1 ? "the first call" : "no recording was left to compare with");

  function link(number) {
    if (number === null) return h("span", { class: "dim" }, "none");
    if (!part.recordings.some((each) => each.number === number)) return h("span", { class: "dim" }, `${number}, gone`);
    return h("button", { type: "button", class: "link", "data-recording": number, onclick: () => open(number) }, `recording ${number}`);
  }

  function open(number, where = "guards") {
    recording = part.recordings.find((each) => each.number === number);
    parts.open(where);
  }

  function drawCalls() {
    if (!part.calls.length) return [h("p", { class: "dim" }, "No call of it was watched.")];
    return [
      h("ul", { class: "chips", "aria-label": "Calls in order" }, part.calls.slice(0, 200).map((each) =>
        tools.tip(h("li", { class: `sign call ${each.outcome}`, tabindex: 0, "data-call": each.call }, `${SIGNS[each.outcome]} ${each.call}`),
          () => [h("p", {}, h("b", {}, `call ${each.call}: ${each.outcome}`)), each.why && h("p", {}, reason(each.why))]))),
      h("p", { class: "dim" }, Object.entries(SIGNS).map(([outcome, sign]) => `${sign} ${outcome}`).join("   ")),
      long((made) => table("Calls", ["#call", "what became of it", "recording", "why"], made), part.calls, (each) => [
        String(each.call), `${SIGNS[each.outcome]} ${each.outcome}`, link(each.recording),
        [each.outcome === "recorded" ? because({ ...each, number: each.recording }) : reason(each.why), asked(each)]]),
    ];
  }

  // Why older recordings did not fit a call, where that is not what is said of the call.
  function asked(each) {
    const others = Map.groupBy(each.asked.filter(({ why }) => why !== each.why), ({ why }) => why);
    if (!others.size) return null;
    return h("details", {}, h("summary", {}, "Older recordings did not fit for other reasons"),
      h("ul", {}, [...others].map(([why, all]) => h("li", {}, reason(why), ": ",
        all.map(({ recording: number }, k) => [k > 0 && ", ", link(number)])))));
  }

  function chooser() {
    return h("label", { class: "bar" }, h("span", { class: "dim" }, "Recording"),
      h("select", { onchange: (event) => open(Number(event.target.value), parts.at) }, part.recordings.map(({ number, hits }) =>
        h("option", { value: number, selected: number === recording.number }, `${number}, ${counted(hits, "replay")}`))));
  }

  const none = () => [h("p", { class: "dim" }, "There is no recording of it.")];

  function toProgram(each, backward, text) {
    const { instructions } = backward === null ? each.program : each.backward[backward];
    if (!instructions.length) return text;
    return h("button", { type: "button", class: "link", "data-program": each.number,
      onclick: () => tools.go("programs", { compiled: part.id, recording: each.number, backward }) }, text);
  }

  function drawRecordings() {
    if (!part.recordings.length) return none();
    return [
      h("p", {}, "In the order in which a call asks them: the one that was replayed last comes first."),
      table("Recordings", ["recording", "#replays", "#guards", "why it was recorded", "what it runs"], part.recordings.map((each) => [
        link(each.number), String(each.hits), String(each.guards.length), because(each),
        [toProgram(each, null, counted(each.program.instructions.length, "instruction")),
          each.backward.map((program, k) => [", ", toProgram(each, k, `backward: ${counted(program.instructions.length, "instruction")}`)])]])),
    ];
  }

  function drawGuards() {
    if (!recording) return none();
    const field = h("input", { type: "search", value: wanted, "aria-label": "Show guards with this text", placeholder: "Show guards with …",
      oninput: () => {
        wanted = field.value;
        rows();
      } });
    const body = h("div", {});
    const { modes, outside } = recording;
    const rows = () => {
      const found = recording.guards.filter(({ words, code: asked }) => `${words} ${asked}`.toLowerCase().includes(wanted.toLowerCase()));
      fill(body, long((made) => table(`${counted(found.length, "guard")} of ${recording.guards.length}, in the order in which they are asked`,
        ["guard, in words", data.values && "as it is asked"].filter(Boolean), made), found,
      ({ words, code: asked }) => [words, data.values && h("span", { class: "mono dim" }, asked)].filter((cell) => cell !== false)));
    };
    rows();
    return [
      chooser(),
      facts([
        ["recorded because", because(recording)],
        ["modes", [modes.grad ? "gradients are recorded" : "no gradients", modes.inference && "inference mode", `default ${modes.default_dtype}`]
          .filter(Boolean).join(", ")],
        ["from outside", `${counted(outside.length, "tensor")}, each of the kind, with the place in the graph and the hooks that it had`],
      ]),
      field, body,
      outside.length > 0 && h("details", {}, h("summary", {}, "Tensors from outside"), long((made) => table("Tensors from outside",
        ["shape", "dtype", "requires a gradient"], made), outside, (each) => [shape(each.shape), each.dtype, each.requires_grad ? "yes" : "no"])),
    ];
  }

  function drawRefusals() {
    if (!part.refusals.length) return [h("p", { class: "dim" }, "Every call could be recorded.")];
    return part.refusals.map((each, k) => h("section", { "data-refusal": k, tabindex: -1 },
      h("h3", {}, reason(each.reason)),
      h("p", {}, each.attempts ? `Calls like it are tried ${counted(each.attempts, "more time")}.`
        : `Calls like it stay eager; the next attempt comes after ${counted(each.paused, "call")}.`),
      h("details", {}, h("summary", {}, `for calls that meet ${counted(each.guards.length, "guard")}`),
        h("ul", {}, each.guards.map(({ words }) => h("li", {}, words))))));
  }

  // The text of the function, as far as it is in the document.
  function written() {
    const lines = tools.lines(part.source, 12);
    return lines && folded(`The function, at ${part.source.join(":")}`, () => code(lines.text,
      { first: lines.first, marks: lines.marks, label: `Source ${part.source[0]}` }));
  }

  function drawCode() {
    if (!recording) return [written(), ...none()];
    const { program } = recording;
    const groups = program.machine_code.runs_left ? [] : program.machine_code.groups;
    return [
      written(),
      chooser(),
      program.code ? section("What a replay runs, a line for each op", code(program.code, { label: "Code of a replay" }))
        : h("p", { class: "dim" }, data.values ? "It was not replayed so far: there is no code yet." : "Generated code was left out."),
      groups.map((each) => section(each.text, each.source && code(each.source, { label: each.text }))),
    ];
  }

  functions.element.style.height = `${32 * Math.min(12, data.compiled.length) + 2}px`;
  functions.show(data.compiled);
  show(0);
  if (!part.calls.length) parts.open("recordings");

  const next = (by) => {
    if (!recording) return;
    const all = part.recordings;
    open(all[(all.indexOf(recording) + all.length + by) % all.length].number, parts.at);
  };
  return {
    keys: [
      { key: "ArrowDown", shown: "↓", does: "the next function", run: () => functions.go(functions.at + 1) },
      { key: "ArrowUp", shown: "↑", does: "the function before", run: () => functions.go(functions.at - 1) },
      { key: "]", does: "the next recording", run: () => next(1) },
      { key: "[", does: "the recording before", run: () => next(-1) },
      ...parts.keys,
    ],
    open(where) {
      if (where.compiled !== undefined && data.compiled[where.compiled] !== part) show(where.compiled);
      if (where.recording !== undefined) open(where.recording);
      else if (where.refusal !== undefined) {
        parts.open("refusals");
        parts.body.querySelector(`[data-refusal="${where.refusal}"]`)?.focus();
      } else if (where.section) parts.open(where.section);
    },
  };
}
