"""The tabs of Programs and compiled functions in a browser: every control, by mouse and keys."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import oneflow_lite as flow
from oneflow_lite import nn, static
from oneflow_lite.explore.compiled import Watch
from oneflow_lite.explore.programs import program_part
from tests.chromium import wait_until
from tests.conftest import needs_numba
from tests.explore import test_page_figures
from tests.static.runtime.passes.named_programs import NAMED

pytestmark = [
    pytest.mark.unjudged("the calls of the judge would be watched as well"),
    pytest.mark.own_loops,
]
Part = dict[str, Any]
Browse = Callable[..., Any]
_EMPTY: Part = {"error": None, **{k: [] for k in "sources modules tensors ops nodes runs".split()}}


def document(programs: list[Part], compiled: list[Part], values: bool = True) -> Any:
    """Return a document of these parts, with the names of files for their paths."""
    sources: dict[str, str] = {}

    def place(value: Any) -> Any:
        if isinstance(value, list):
            return [place(each) for each in value]
        if not isinstance(value, dict):
            return value
        found = {name: place(each) for name, each in value.items()}
        if isinstance(found.get("source"), list):
            path = Path(found["source"][0])
            sources[path.name] = path.read_text() if path.is_file() else ""
            found["source"] = [path.name, found["source"][1]]
        return found

    parts = {"programs": place(programs), "compiled": place(compiled)}
    texts = [{"name": n, "first": 1, "text": text} for n, text in sources.items()] if values else []
    about = {"format": 1, "version": "0", "title": "Programs", "values": values}
    return {**about, **_EMPTY, "sources": texts, **parts}


def program(name: str, **options: Any) -> Part:
    main, startup = static.Program(), static.Program()
    with static.program_guard(main, startup):
        fetches = NAMED[name]()
    executor, scope = static.Executor(), static.Scope()
    executor.run(startup, scope=scope)
    feed = {
        desc.name: np.zeros(desc.shape, desc.dtype)
        for desc in main.global_block().vars.values()
        if desc.need_check_feed
    }
    return program_part(main, feed, fetches, scope, executor=executor, title=name, **options)


def compiled_functions(values: bool = True) -> list[Part]:
    net = nn.Sequential(nn.Linear(2, 8), nn.Tanh(), nn.Linear(8, 1))

    @flow.compile
    def predict(x: flow.Tensor, factor: int = 2) -> flow.Tensor:
        return net(x) * factor

    @flow.compile
    def centred(x: flow.Tensor) -> flow.Tensor:
        return x - x.mean().item()

    with Watch(values) as watch, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for rows in (4, 4, 4, 6, 4):
            predict(flow.ones(rows, 2))
        predict(flow.ones(4, 2), 3)
        for _ in range(4):
            centred(flow.ones(3))
    return watch.parts()


@pytest.fixture(scope="module")
def shown() -> Any:
    with flow.use_jit(True):
        programs = [program("MLP step", number=0, cuda=True), program("prediction alone", number=1)]
        return document(programs, compiled_functions())


@pytest.fixture
def page(browse: Browse, shown: Any) -> Any:
    return browse(shown)


def texts(page: Any, selector: str) -> list[str]:
    found: list[str] = page.locator(selector).all_inner_texts()
    return [" ".join(text.split()) for text in found]


def body_of(page: Any, name: str) -> Any:
    return page.locator(f"#panel-{name} .card")


def test_the_list_has_every_instruction(page: Any, shown: Any) -> None:
    part = shown["programs"][0]
    rows = page.locator("#panel-programs .ops [role=option]")
    assert rows.first.get_attribute("aria-setsize") == str(len(part["instructions"]))
    for i, text in enumerate(texts(page, "#panel-programs .ops [role=option]")[:5]):
        assert part["instructions"][i]["name"] in text
    page.keyboard.press("End")
    last = part["instructions"][-1]["name"]
    assert last in page.locator("#panel-programs [aria-selected=true][role=option]").inner_text()
    assert last in body_of(page, "programs").locator("h2").inner_text()
    for key, expected in (("Home", 0), ("ArrowDown", 1), ("ArrowDown", 2), ("ArrowUp", 1)):
        page.keyboard.press(key)
        heading = body_of(page, "programs").locator("h2").inner_text()
        assert heading.startswith(f"{expected} {part['instructions'][expected]['name']}")


def test_an_instruction_says_what_the_analysis_says(page: Any, shown: Any) -> None:
    part = shown["programs"][0]
    i = next(k for k, each in enumerate(part["instructions"]) if each["op"] == "sgd_update")
    for _ in range(i):
        page.keyboard.press("ArrowDown")
    body = body_of(page, "programs")
    facts = " ".join(body.locator("dl").inner_text().split())
    assert f"waits for {part['instructions'][i]['waits_for']} instruction" in facts
    for from_, to, kind in part["edges"]:
        if to == i:
            assert f"{from_} {part['instructions'][from_]['name']}" in facts
        if from_ == i:
            assert f"{to} {part['instructions'][to]['name']} ({kind})" in facts
    tables = body.locator("table").all_inner_texts()
    inputs = [k for k in part["instructions"][i]["inputs"] if k is not None]
    assert len(inputs) > 1
    for k in inputs:
        assert part["variables"][k]["name"] in tables[0]
    line = part["instructions"][i]["source"][1]
    assert body.locator(".line.marked").get_attribute("data-line") == str(line)
    body.locator("button[data-instruction]").first.click()
    assert body.locator("h2").inner_text().split()[0] != str(i)
    body.locator("button[data-variable]").first.hover()
    page.wait_for_selector("#tip:not([hidden])")
    assert "float32" in page.locator("#tip").inner_text()


def test_dependencies_before_and_after_shrinking(page: Any, shown: Any) -> None:
    part = shown["programs"][0]
    page.keyboard.press("d")
    body = body_of(page, "programs")
    kept = [edge for edge in part["edges"] if edge[2]]
    count = "document.querySelector('#panel-programs .picture').cy.edges().length"
    wait_until(page, f"{count} === {len(kept)}")
    nodes = page.evaluate(count.replace("edges", "nodes"))
    assert nodes == len(part["instructions"])
    for key in ("b", "b", None):
        if key:
            page.keyboard.press(key)
        else:
            body.locator("[data-control=before]").click()
        expected = (
            len(part["edges"])
            if key is None or body.locator("[data-control=before]").is_checked()
            else len(kept)
        )
        wait_until(page, f"{count} === {expected}")
        assert body.locator("p[data-count]").get_attribute("data-count") == str(expected)
    assert len(part["edges"]) > len(kept)
    implied = page.evaluate(count.replace("edges()", "edges('.implied')"))
    assert implied == len(part["edges"]) - len(kept)
    assert len(texts(page, "#panel-programs .card tbody tr")) == len(part["instructions"])
    body.locator("select[aria-label='How much of the graph']").select_option("1")
    near = {
        0,
        *(j for i, j, _ in part["edges"] if i == 0),
        *(i for i, j, _ in part["edges"] if j == 0),
    }
    wait_until(page, f"{count.replace('edges', 'nodes')} === {len(near)}")
    body.locator("button[data-instruction='2']").first.click()
    wait_until(
        page, "document.querySelector('#panel-programs .picture').cy.$('.here').id() === '2'"
    )


def test_last_uses(page: Any, shown: Any) -> None:
    part = shown["programs"][0]
    page.keyboard.press("l")
    rows = texts(page, "#panel-programs .card tbody tr")
    assert len(rows) == len(part["variables"])
    for row, variable, uses in zip(rows, part["variables"], part["last_live"], strict=True):
        assert row.startswith(variable["name"])
        before = ", ".join(f"{i} {part['instructions'][i]['name']}" for i in uses["before"])
        after = ", ".join(f"{i} {part['instructions'][i]['name']}" for i in uses["after"])
        assert row.endswith(f"{before} {after}")


def test_buffers_over_time(page: Any, shown: Any) -> None:
    part = shown["programs"][0]
    memory = part["memory"]
    page.keyboard.press("m")
    body = body_of(page, "programs")
    pieces = [(b, v) for b in memory["buffers"] for v in b["variables"]]
    wait_until(page, f"document.querySelectorAll('#panel-programs .box').length === {len(pieces)}")
    width = page.evaluate("document.querySelector('#panel-programs .boxes').clientWidth")
    scale = width / len(part["instructions"])
    for buffer, variable in pieces:
        if buffer["offset"] is None:
            continue
        box = body.locator(f".box[data-box='{variable['variable']}']")
        left = box.evaluate("box => parseFloat(box.style.left)")
        assert left == pytest.approx(variable["from"] * scale, abs=0.6)
    assert len(texts(page, "#panel-programs .card tbody tr")) == len(memory["buffers"])
    for i in (5, 6, 7):
        page.locator(f"#panel-programs .ops [data-row='{i}']").click()
        alive = [b for b in memory["buffers"] if b["from"] <= i <= b["until"]]
        inside = sum(b["bytes"] for b in alive if b["offset"] is not None)
        assert body.locator("p[data-alive]").get_attribute("data-alive") == str(inside)
        assert f"{len(alive)} buffer" in body.locator("p[data-alive]").inner_text()
    body.locator("[data-control=zoom]").fill("60")
    wait_until(
        page,
        "document.querySelector('#panel-programs .boxes').clientWidth"
        " > 3 * document.querySelector('#panel-programs .chart').clientWidth",
    )
    body.locator(".box").first.hover()
    page.wait_for_selector("#tip:not([hidden])")
    assert "bytes 0 to" in page.locator("#tip").inner_text()
    buffer, variable = next(each for each in pieces if each[1]["from"] > 1)
    page.keyboard.press("Home")
    body.locator(f".box[data-box='{variable['variable']}']").click()
    chosen = page.locator("#panel-programs [role=option][aria-selected=true]").get_attribute(
        "data-row"
    )
    assert int(chosen) == variable["from"]


def test_the_queue_step_by_step(page: Any, shown: Any) -> None:
    part = shown["programs"][0]
    page.keyboard.press("q")
    body = body_of(page, "programs")
    ready, steps = list(part["queue"]["start"]), part["queue"]["steps"]

    def there() -> list[int]:
        return [int(i) for i in body.locator("[data-queue]").get_attribute("data-queue").split()]

    assert there() == ready
    for k, step in enumerate(steps[:9]):
        if k % 2:
            body.locator("[data-control=forth]").click()
        else:
            page.keyboard.press("ArrowRight")
        ready = [i for i in ready if i != step["instruction"]] + step["ready"]
        assert there() == ready
        assert body.locator("[data-ran]").get_attribute("data-ran") == str(step["instruction"])
        chosen = page.locator("#panel-programs [role=option][aria-selected=true]")
        assert chosen.get_attribute("data-row") == str(step["instruction"])
    body.locator("[data-control=back]").click()
    assert page.evaluate("document.activeElement.dataset.control") == "back"  # the focus stays
    page.keyboard.press("ArrowLeft")
    assert body.locator("[data-ran]").get_attribute("data-ran") == str(steps[6]["instruction"])
    slider = body.locator("[data-control=step]")
    slider.fill(str(len(steps)))
    assert there() == [] and body.locator("[data-control=forth]").is_disabled()
    assert f"{len(part['variables'])} variables of" in body.inner_text()
    body.locator("[data-control=step]").fill("0")
    assert there() == part["queue"]["start"] and body.locator("[data-control=back]").is_disabled()


@needs_numba
def test_machine_code(page: Any, shown: Any) -> None:
    code = shown["programs"][0]["machine_code"]
    page.keyboard.press("c")
    body = body_of(page, "programs")
    assert f"{code['runs_left']:,} more runs" in body.locator("p").first.inner_text()
    assert body.locator("[data-group]").all_inner_texts() == [g["text"] for g in code["groups"]]
    for k in (1, 2):
        body.locator(f"[data-group='{k}']").click()
        assert page.evaluate("document.activeElement.dataset.group") == str(k)
        lines = body.locator(".code").first.locator("code").all_inner_texts()
        assert "\n".join(lines).split() == code["groups"][k]["source"].split()
    body.get_by_label("as a CUDA kernel").check()
    assert "__global__" in body.locator(".code").first.inner_text()
    assert body.locator("details").count() == 1  # not run as a whole yet: no code of a replay
    body.locator("summary").first.click()
    rows = body.locator("details tbody tr")
    rows.first.wait_for()
    assert rows.count() == len(code["ops"])


def test_times(page: Any, shown: Any) -> None:
    line = shown["programs"][0]["time_line"]
    page.keyboard.press("r")
    body = body_of(page, "programs")
    wait_until(
        page, f"document.querySelectorAll('#panel-programs .box').length === {len(line['events'])}"
    )
    width = page.evaluate("document.querySelector('#panel-programs .boxes').clientWidth")
    lefts = body.locator(".box").evaluate_all("all => all.map(box => parseFloat(box.style.left))")
    expected = [event["start"] / line["total"] * width for event in line["events"]]
    assert lefts == pytest.approx(expected, abs=0.6)
    ops = sorted((e for e in line["events"] if e["kind"] == "op"), key=lambda e: -e["duration"])
    rows = texts(page, "#panel-programs .card tbody tr")
    assert [row.split()[0] for row in rows] == [op["name"] for op in ops]
    share = f"{100 * ops[0]['duration'] / line['total']:.1f} %"
    assert share in rows[0]
    body.locator(".box").nth(1).hover()
    page.wait_for_selector("#tip:not([hidden])")
    assert line["events"][1]["name"] in page.locator("#tip").inner_text()


def test_passes_and_feeds(page: Any, shown: Any) -> None:
    part = shown["programs"][0]
    page.keyboard.press("p")
    rows = texts(page, "#panel-programs .card tbody tr")
    assert [row.split()[:2] for row in rows] == [
        [r["name"], str(r["fired"])] for r in part["passes"]
    ]
    assert ", ".join(part["feeds"]) in body_of(page, "programs").locator("dl").inner_text()


def test_all_programs_can_be_chosen(page: Any, shown: Any) -> None:
    select = page.locator("#panel-programs select[aria-label=Program]")
    names = select.locator("option").all_inner_texts()
    assert names[:2] == ["MLP step", "prediction alone"] and "predict, recording 1" in names
    assert "predict, recording 1, backward" in names
    for k in (1, 2):
        page.keyboard.press("]")
        assert select.input_value() == str(k)
    page.keyboard.press("[")
    count = len(shown["programs"][1]["instructions"])
    assert f"{count} instructions" in page.locator("#panel-programs .ops").inner_text()
    select.select_option("0")
    for key in "idlmqcrp":
        page.keyboard.press(key) if select.evaluate("s => (s.blur(), true)") else None
        pressed = page.locator("#panel-programs [data-section][aria-pressed=true]")
        assert pressed.get_attribute("aria-keyshortcuts") == key
        pressed.click()


def test_the_calls_of_a_compiled_function(page: Any, shown: Any) -> None:
    part = shown["compiled"][0]
    page.keyboard.press("2")
    body = body_of(page, "compiled")
    assert body.locator("h2").inner_text() == "predict"
    facts = " ".join(body.locator("dl").first.inner_text().split())
    counts = (
        f"{part['captures']} recorded, {part['hits']} replayed, {part['fallbacks']} run eagerly"
    )
    assert counts in facts and body.inner_text().count(part["why"]) == 1
    rows = texts(page, "#panel-compiled .card tbody > tr")
    assert len(rows) == len(part["calls"]) == body.locator("[data-call]").count()
    for row, call in zip(rows, part["calls"], strict=True):
        assert row.startswith(str(call["call"])) and call["outcome"] in row and call["why"] in row
    assert [c["outcome"] for c in part["calls"]] == [
        "recorded", "replayed", "replayed", "recorded", "replayed", "recorded",
    ]  # fmt: skip
    body.locator("[data-call='4']").focus()
    page.wait_for_selector("#tip:not([hidden])")
    assert part["calls"][3]["why"] in page.locator("#tip").inner_text()
    body.locator("button[data-recording='2']").first.click()
    assert body.locator("select").input_value() == "2"


def test_a_reason_to_record_is_told_once(browse: Browse) -> None:
    """Each kind of change: the name of the variable, its value before, and its value now."""
    net = nn.Sequential(nn.Dropout(0.5))
    table, layers = {"gain": 1.0}, [flow.relu]

    @flow.compile
    def run(x: flow.Tensor, factor: int, f: Any) -> flow.Tensor:
        for layer in layers:
            x = layer(x)
        return f(net(x)) * factor * table["gain"]

    def changes() -> Iterator[tuple[str, tuple[Any, ...]]]:
        x = flow.ones(2, 3)
        yield "the first call", (x, 2, flow.relu)
        x = flow.ones(4, 3)
        yield "x.shape was (2, 3), is (4, 3)", (x, 2, flow.relu)
        x = x.double()
        yield "x.dtype was float32, is float64", (x, 2, flow.relu)
        x.requires_grad_()
        yield "whether x requires a gradient was False, is True", (x, 2, flow.relu)
        yield "factor was 2, is 3", (x, 3, flow.relu)
        net.eval()
        yield "net[0].training was True, is False", (x, 3, flow.relu)
        table["gain"] = 2.5
        yield "table['gain'] was 1.0, is 2.5", (x, 3, flow.relu)
        layers.append(flow.tanh)
        yield "len(layers) was 1, is 2", (x, 3, flow.relu)
        yield "f was the function relu, is the function tanh", (x, 3, flow.tanh)

    said = []
    with flow.explore(open=False) as e:
        for words, args in changes():
            said.append(words)
            run(*args)
    assert e.path is not None
    e.path.unlink()
    page = browse(e.document, tab="compiled")
    body = body_of(page, "compiled")
    for fold in body.locator("summary").all():
        fold.click()
    rows = texts(page, "#panel-compiled .card tbody > tr")
    for row, words in zip(rows, said, strict=True):
        assert row.count(words) == 1, row
    assert str(Path(__file__).parent) not in body.inner_text()
    body.locator("td button", has_text=f"{Path(__file__).name}:").first.click()
    assert page.locator("#panel-forward").is_visible()


def test_guards_in_words(page: Any, shown: Any) -> None:
    part = shown["compiled"][0]
    page.keyboard.press("2")
    page.keyboard.press("g")
    body = body_of(page, "compiled")
    for number in (r["number"] for r in part["recordings"]):
        recording = next(r for r in part["recordings"] if r["number"] == number)
        assert body.locator("select").input_value() == str(number)
        rows = texts(page, "#panel-compiled .card tbody tr")
        rows = rows[: len(recording["guards"])]
        for row, guard in zip(rows, recording["guards"], strict=True):
            assert row.startswith(" ".join(guard["words"].split()))
        page.keyboard.press("]")
    body.get_by_label("Show guards with this text").fill("shape")
    rows = texts(page, "#panel-compiled .card tbody tr")
    assert any(row.startswith("x.shape is (4, 2)") for row in rows)
    assert len(rows) < len(part["recordings"][0]["guards"])


def test_recordings_lead_to_their_programs_and_back(page: Any, shown: Any) -> None:
    part = shown["compiled"][0]
    page.keyboard.press("2")
    page.keyboard.press("r")
    body = body_of(page, "compiled")
    rows = texts(page, "#panel-compiled .card tbody tr")
    for row, recording in zip(rows, part["recordings"], strict=True):
        assert row.startswith(f"recording {recording['number']} {recording['hits']}")
        assert (recording["why"] or "the first call") in row
    body.locator("button[data-program]").nth(1).click()  # the backward pass of the first one
    name = f"predict, recording {part['recordings'][0]['number']}, backward"
    assert (
        page.locator("#panel-programs select[aria-label=Program] option:checked").inner_text()
        == name
    )
    page.get_by_role("button", name="the recording that it belongs to").click()
    assert page.locator("#panel-compiled").is_visible()
    assert body.locator("select").input_value() == str(part["recordings"][0]["number"])


def test_what_stays_eager(page: Any, shown: Any) -> None:
    part = shown["compiled"][1]
    page.keyboard.press("2")
    page.keyboard.press("ArrowDown")
    body = body_of(page, "compiled")
    assert body.locator("h2").inner_text() == "centred"
    (reason,) = part["reasons"]
    assert reason in body.locator("dl").first.inner_text()
    page.keyboard.press("n")
    assert body.locator("section h3").inner_text() == reason
    body.locator("summary").click()
    words = [guard["words"] for guard in part["refusals"][0]["guards"]]
    assert body.locator("section li").all_inner_texts() == words
    for key in "rgo":
        page.keyboard.press(key)
        assert "no recording" in body.inner_text()
    page.keyboard.press("ArrowUp")
    page.keyboard.press("o")
    first = shown["compiled"][0]["recordings"][0]["program"]["code"]
    lines = body.locator(".code").first.locator("code").all_inner_texts()
    assert "\n".join(lines).split() == first.split()


def test_source_is_shown_where_there_is_no_tab_for_it(page: Any, shown: Any) -> None:
    place = ":".join(map(str, shown["compiled"][0]["source"]))
    page.keyboard.press("2")
    page.keyboard.press("o")
    body = body_of(page, "compiled")
    assert place in body.locator("dl").inner_text() and not body.locator("dl button").count()
    body.locator("summary", has_text=place).click()
    assert "@flow.compile" in body.locator("details .line.marked").inner_text()


def test_programs_that_do_nothing_are_left_out(browse: Browse) -> None:
    empty = program_part(static.Program(), {}, [])
    assert empty["instructions"] == []
    constant = flow.compile(lambda: 3)
    with Watch() as watch:
        for _ in range(2):
            constant()
    (part,) = watch.parts()
    page = browse(document([empty, program("prediction alone"), empty], [part]))
    names = page.locator("#panel-programs select[aria-label=Program]")
    assert not names.count()  # for there is one
    page.keyboard.press("2")
    page.keyboard.press("r")
    rows = texts(page, "#panel-compiled .card tbody tr")
    assert len(rows) == part["captures"]
    page = browse(document([empty], []))
    assert "Nothing ran" in page.locator("#panels").inner_text()


@pytest.mark.slow
def test_what_explore_writes_can_be_opened(browse: Browse, tmp_path: Path) -> None:
    double = flow.compile(lambda x: x * 2)
    with flow.explore(path=tmp_path / "page.html") as e:
        for _ in range(3):
            double(flow.ones(2)).sum()
    page = browse(e.document, tab="compiled")
    body = body_of(page, "compiled")
    body.locator("dl button").first.click()  # to the line
    assert page.locator("#panel-forward").is_visible()
    assert "double" in page.locator("#panel-forward .line.marked").inner_text()


@pytest.mark.parametrize(
    ("words", "tab", "expected"),
    [
        ("log_softmax_grad 13", "programs", "log_softmax_grad"),
        ("guard: x.shape (6, 2)", "compiled", "recording"),
        ("runs eagerly item", "compiled", "centred"),
    ],
)
def test_the_search_leads_there(page: Any, words: str, tab: str, expected: str) -> None:
    page.keyboard.press("/")
    page.keyboard.type(words)
    page.locator("#found [role=option]").first.click()
    assert page.locator(f"#panel-{tab}").is_visible()
    assert expected.lower() in body_of(page, tab).inner_text().lower()


def test_help_names_every_key(page: Any) -> None:
    page.keyboard.press("m")
    page.keyboard.press("?")
    text = page.locator("#help").inner_text()
    for does in (
        "dependencies before or after shrinking",
        "a step of the queue forth",
        "the next Program",
    ):
        assert does in text


def test_without_values_it_says_so(browse: Browse) -> None:
    with flow.use_jit(True):
        shown = document(
            [program("MLP step", values=False)], compiled_functions(False), values=False
        )
    page = browse(shown)
    page.keyboard.press("c")
    assert "def " not in body_of(page, "programs").inner_text()
    page.keyboard.press("2")
    page.keyboard.press("g")
    assert "as it is asked" not in body_of(page, "compiled").inner_text()
    page.keyboard.press("o")
    assert "was left out" in body_of(page, "compiled").inner_text()


def test_both_themes_are_readable(browse: Browse, shown: Any) -> None:
    """Text of boxes and signs has a contrast of 4.5 and more in both themes."""
    for theme in ("light", "dark"):
        page = browse(shown, scheme=theme)
        page.keyboard.press("m")
        page.wait_for_selector("#panel-programs .box")
        assert page.evaluate(_CONTRAST) >= 4.5, theme


_CONTRAST = """() => {
  const canvas = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
  const light = (colour) => {
    canvas.fillStyle = colour;
    canvas.fillRect(0, 0, 1, 1);
    const [r, g, b] = [...canvas.getImageData(0, 0, 1, 1).data].map((v) => v / 255)
      .map((v) => (v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const ratios = [...document.querySelectorAll("#panel-programs :is(.box, .sign)")].map((each) => {
    const style = getComputedStyle(each);
    const [a, b] = [light(style.color), light(style.backgroundColor)].sort((x, y) => y - x);
    return (a + 0.05) / (b + 0.05);
  });
  return Math.min(...ratios);
}"""


def test_a_narrow_window_has_no_horizontal_scroll(browse: Browse, shown: Any) -> None:
    page = browse(shown, width=420)
    for tab, keys in (("1", "idlmqcrp"), ("2", "crgno")):
        page.keyboard.press(tab)
        for key in keys:
            page.keyboard.press(key)
            wide = page.evaluate("document.documentElement.scrollWidth")
            assert wide <= 420, (tab, key, wide)


@pytest.mark.slow
def test_a_program_of_thousands_of_ops_is_drawn_as_far_as_it_is_seen(browse: Browse) -> None:
    main = static.Program()
    with static.program_guard(main):
        y = static.data("x", [4])
        for _ in range(3000):
            y = flow.tanh(y)
    page = browse(document([program_part(main, {"x": np.ones(4, "float32")}, [y])], []))
    for key in "dlmqcrp":
        page.keyboard.press(key)
        page.evaluate(
            "() => new Promise(r => requestAnimationFrame(() => requestAnimationFrame(r)))"
        )
        assert page.evaluate("document.querySelectorAll('*').length") < 12_000, key
    page.keyboard.press("l")
    body_of(page, "programs").get_by_role("button", name="more rows").click()
    assert body_of(page, "programs").locator("tbody tr").count() == 3001


# Pictures for the docs, made and compared as those of test_page_figures.py
PICTURES = Path(__file__).with_name("figures_of_programs.json")


@pytest.mark.parametrize(
    ("name", "keys", "scheme"),
    [("program", "1m", "light"), ("compiled", "2", "light")],
)
def test_pictures_show_what_the_page_shows(
    browse: Browse, shown: Any, name: str, keys: str, scheme: str
) -> None:
    page = browse(shown, width=1280, height=800, scheme=scheme)
    for key in keys:
        page.keyboard.press(key)
    for _ in range(11):
        page.keyboard.press("ArrowDown" if name == "program" else "ArrowRight")
    page.wait_for_timeout(300)
    lines = test_page_figures.shown(page)
    figure = test_page_figures.FIGURES / f"explorer-{name}.png"
    known = json.loads(PICTURES.read_text()) if PICTURES.exists() else {}
    if test_page_figures.WRITE:
        page.screenshot(path=figure)
        known[name] = lines
        PICTURES.write_text(json.dumps(known, indent=1, ensure_ascii=False) + "\n")
    assert lines == known[name], "make the pictures anew: see the top of test_page_figures.py"
    assert figure.stat().st_size < test_page_figures.MOST
