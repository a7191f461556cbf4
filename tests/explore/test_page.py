"""The explorer's page: what it shows is what the document says, with every control and key."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

import oneflow_lite as flow
from oneflow_lite.explore import html
from tests.explore.conftest import Browse
from tests.explore.documents import empty, explored, node, trained


def texts(page: Any, selector: str) -> list[str]:
    """Return the texts of all elements, with single spaces."""
    return [" ".join(text.split()) for text in page.locator(selector).all_inner_texts()]


def tip(page: Any) -> str:
    """Return what the tooltip says."""
    page.wait_for_selector("#tip:not([hidden])")
    return str(page.inner_text("#tip"))


# ---- the file


def test_the_file_needs_nothing_else() -> None:
    text = html.html(trained())
    assert re.findall(r"""<(?:script|link|img|iframe)[^>]*(?:src|href)=""", text) == []
    assert "sourceMappingURL" not in text
    assert "default-src 'none'" in text
    found = re.search(r'<script id="document" type="application/json">(.*?)</script>', text)
    assert found and json.loads(found[1]) == trained()


def test_what_the_joiner_cannot_join_is_refused(monkeypatch: Any, tmp_path: Any) -> None:
    monkeypatch.setattr(html, "_PAGE", tmp_path)
    (tmp_path / "page.js").write_text('import x from "./x.js";\n')
    with pytest.raises(ImportError, match="cannot join 'import x from"):
        html._join("page.js", {})
    (tmp_path / "page.js").write_text('import { x } from "./x.js";\n')
    (tmp_path / "x.js").write_text('import { y } from "./page.js";\nexport const x = 1;\n')
    with pytest.raises(ImportError, match="import each other"):
        html._join("page.js", {})


HOSTILE = (
    '</script><script>hacked = 1</script><img src=x onerror="hacked = 1">&lt;<!-- "\'\u2028\ud800'
)


def test_hostile_names_are_text(browse: Browse) -> None:
    document = json.loads(json.dumps(trained()))
    document["title"] = HOSTILE

    def poison(part: Any, key: str) -> None:
        part[key] = HOSTILE

    for each in document["tensors"]:
        poison(each, "name")
    for each in document["ops"]:
        poison(each, "op"), poison(each, "functor"), poison(each, "kernel")
        each["attrs"] = {HOSTILE: HOSTILE}
        for saved in each["saved"]:
            poison(saved, "why")
    for each in document["nodes"]:
        poison(each, "label"), poison(each, "name")
        each["hooks"] = [HOSTILE]
    for source in document["sources"]:
        source["text"] = "\n".join([HOSTILE] * len(source["text"].splitlines()))
    page = browse(document)
    for tab in ("graph", "backward", "forward"):
        page.click(f"#tab-{tab}")
    page.fill("#search", "hacked")
    page.wait_for_selector("#found mark")
    assert page.evaluate("typeof hacked") == "undefined"
    assert page.locator("main img").count() == 0
    shown = page.inner_text("h1")
    assert shown.startswith("</script><script>hacked = 1</script><img src=x onerror=")


def test_it_says_that_it_embeds_source_and_values(browse: Browse) -> None:
    assert "embeds the text of your sources and values" in browse(trained()).inner_text("footer")


def test_without_values_it_says_so_and_has_none(browse: Browse) -> None:
    def secret() -> None:
        number = flow.tensor([[12345.678, 1.0], [2.0, 3.0]], requires_grad=True)
        (number * number).sum().backward()

    document = explored(secret, values=False)
    text = html.html(document)
    assert "12345.678" not in text and "number * number" not in text
    page = browse(document)
    assert "were left out" in page.inner_text("footer")
    assert "text of sources was left out" in page.inner_text(".forward .beside")
    page.hover(".forward article .tensor >> nth=0")
    assert "Values were left out." in tip(page)


def test_an_empty_document_and_an_error(browse: Browse) -> None:
    page = browse(empty())
    assert "Nothing ran" in page.inner_text("main")
    assert page.locator("[role=tab]").count() == 0
    error = {"kind": "ValueError", "text": "no <b>good</b>", "source": ["train.py", 3]}
    page = browse(empty(error=error))
    assert "The code ended with ValueError. no <b>good</b> train.py:3" in page.inner_text("#error")


# ---- around the tabs


def test_tabs_by_mouse_and_key(browse: Browse) -> None:
    page = browse(trained())
    names = texts(page, "[role=tab]")
    assert names == ["Forward 1", "Graph 2", "Backward 3"]

    def chosen() -> list[str]:
        return texts(page, "[role=tab][aria-selected=true]")

    assert chosen() == ["Forward 1"]
    page.click("#tab-graph")
    assert chosen() == ["Graph 2"]
    assert page.is_visible("#panel-graph") and not page.is_visible("#panel-forward")
    page.keyboard.press("3")
    assert chosen() == ["Backward 3"]
    page.focus("#tab-backward")
    page.keyboard.press("ArrowRight")
    assert chosen() == ["Forward 1"]
    page.keyboard.press("ArrowLeft")
    assert chosen() == ["Backward 3"]
    page.keyboard.press("Home")
    assert chosen() == ["Forward 1"]
    page.keyboard.press("End")
    assert chosen() == ["Backward 3"]
    assert page.evaluate("document.activeElement.id") == "tab-backward"


def test_the_address_may_name_a_tab(browse: Browse) -> None:
    page = browse(trained())
    page.goto(f"{page.url}#backward")
    page.reload()
    page.wait_for_selector("html[data-ready]")
    assert texts(page, "[role=tab][aria-selected=true]") == ["Backward 3"]


def test_the_address_may_name_a_place_and_be_changed(browse: Browse) -> None:
    page = browse(trained())
    for at, count in (("run=0&step=2", "step 2 of"), ("run=0&step=1", "step 1 of")):
        page.evaluate("at => { location.hash = at; }", f"backward?{at}")
        page.wait_for_timeout(50)
        assert page.inner_text(".count").startswith(count)
    page.evaluate("location.hash = 'backward?run=99&step=1'")  # of another document
    page.evaluate("location.hash = 'graph?node=1'")
    page.wait_for_timeout(50)
    assert texts(page, "[role=tab][aria-selected=true]") == ["Graph 2"]


def test_a_frame_opens_at_its_place(browse: Browse, tmp_path: Path) -> None:
    with flow.explore(path=tmp_path / "page.html") as e:
        x = flow.ones(2, requires_grad=True)
        (x * x).sum().backward()
    page = browse(e.document)
    page.set_content(e.frame("backward?run=0&step=3", height=300))
    frame = page.frames[1]
    frame.wait_for_selector("html[data-ready]")
    assert frame.inner_text(".count") == "step 3 of 3"


def test_the_page_opens_where_the_code_failed(browse: Browse) -> None:
    with pytest.raises(flow.errors.ShapeError), flow.explore(open=False) as e:
        x = flow.ones(2, 3)
        y = x + 1
        _ = y @ x
    page = browse(e.document)
    assert e.path is not None
    e.path.unlink()
    assert "y @ x" in page.inner_text(".code .marked")


def test_the_page_says_where_nan_began(browse: Browse) -> None:
    def code() -> None:
        x = flow.tensor([1.0, 0.0], requires_grad=True)
        y = (x - 1).sqrt() * 2
        (y + 1).sum().backward()

    page = browse(explored(code))
    text = page.inner_text("#nan")
    assert "sqrt (op" in text
    assert "step 4 of call 0: backward, by sqrt_backward" in text
    page.click("#nan [data-op]")
    assert page.inner_text("article h2").startswith("sqrt")
    assert browse(trained()).is_hidden("#nan")


def test_a_watched_parameter_shows_its_values_versions_and_gradients(browse: Browse) -> None:
    def code() -> None:
        w = flow.tensor([1.0, 2.0], requires_grad=True)
        optimizer = flow.optim.SGD([w], lr=0.5)
        for _ in range(2):
            optimizer.zero_grad()
            (w * w).sum().backward()
            optimizer.step()
        names["w"] = w

    names: dict[str, flow.Tensor] = {}
    with flow.explore(open=False) as e:
        code()
        w = names["w"]
    assert e.path is not None
    e.path.unlink()
    assert w.tolist() == [0, 0]
    page = browse(e.document, tab="watch")
    assert page.input_value("[list=watched]") == "w"
    rows = page.evaluate(
        "[...document.querySelectorAll('#panel-watch tbody tr')].map("
        "row => [...row.cells].map(cell => cell.innerText.trim()))"
    )
    values = [(value, grad) for _, value, _, grad in rows]
    start, end = ("[1, 2]", ""), ("[0, 0]", "")
    assert values == [start, ("", "[2, 4]"), end, ("", "[0, 0]"), end]
    assert [row[2] for row in rows if "sgd_update" in row[0]] == ["1", "2"]


def test_a_long_watch_shows_its_beginning_first(browse: Browse) -> None:
    with flow.explore(open=False) as e:
        w = flow.zeros(2, requires_grad=True)
        with flow.no_grad():
            for _ in range(250):
                w.add_(1)
    assert e.path is not None
    e.path.unlink()
    page = browse(e.document, tab="watch")
    rows = page.locator("#panel-watch tbody tr")
    assert rows.count() == 200
    page.click("#panel-watch >> text=Show 51 more rows")
    assert rows.count() == 251 and "[250, 250]" in rows.last.inner_text()


def test_search_finds_all_text(browse: Browse) -> None:
    document = trained()
    page = browse(document)
    page.keyboard.press("/")
    assert page.evaluate("document.activeElement.id") == "search"
    words = {
        document["ops"][10]["kernel"]: "forward",
        "tensor hook double": "graph",
        "Net.hidden": "graph",
        "step 3": "backward",
        "parameter -= 0.1": "forward",
    }
    for word, tab in words.items():
        page.fill("#search", word)
        found = texts(page, "#found .row")
        title = {"forward": "Forward", "graph": "Graph", "backward": "Backward"}[tab]
        assert any(row.startswith(title) for row in found), (word, found)
    page.fill("#search", "nothing has this text")
    assert texts(page, "#found .row") == ["Nothing has these words."]
    page.keyboard.press("Escape")
    assert page.is_hidden("#found")


def test_search_goes_to_what_it_found(browse: Browse) -> None:
    page = browse(trained())
    page.fill("#search", "saves y tanh_backward")
    page.keyboard.press("Enter")
    assert texts(page, "[role=tab][aria-selected=true]") == ["Graph 2"]
    assert texts(page, ".graph .card h2")[0].startswith("tanh_backward")
    page.keyboard.press("/")
    page.fill("#search", "mse_loss")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowUp")
    page.keyboard.press("Escape")
    assert page.evaluate("document.activeElement.id") == "search"
    page.click("#found .row >> nth=0")
    assert page.is_hidden("#found")
    assert texts(page, "[role=tab][aria-selected=true]") == ["Forward 1"]


def test_help_lists_the_keys_and_every_key_is_one(browse: Browse) -> None:
    page = browse(trained())
    for tab, key in (("forward", "↓"), ("graph", "Enter"), ("backward", "Space")):
        page.click(f"#tab-{tab}")
        page.keyboard.press("?")
        assert page.is_visible("#help")
        keys = texts(page, "#help tbody tr td:first-child")
        assert key in keys and "/" in keys and "?" in keys
        assert all(texts(page, "#help tbody tr td:nth-child(2)"))
        page.keyboard.press("Escape")
        page.wait_for_selector("#help", state="hidden")
    page.click("#help-button")
    page.click("#help form button")
    page.wait_for_selector("#help", state="hidden")


def background(page: Any) -> str:
    """Return the colour behind everything."""
    return str(page.evaluate("getComputedStyle(document.documentElement).backgroundColor"))


def test_dark_and_light(browse: Browse) -> None:
    light, dark = "rgb(255, 255, 255)", "rgb(21, 24, 29)"
    page = browse(trained(), scheme="dark", tab="backward")
    assert background(page) == dark
    page.emulate_media(color_scheme="light")
    assert background(page) == light
    page.select_option("#theme", "dark")
    assert background(page) == dark
    page.keyboard.press("Escape")
    page.evaluate("document.activeElement.blur()")
    page.keyboard.press("t")
    assert (background(page), page.input_value("#theme")) == (light, "")
    page.keyboard.press("t")
    assert page.input_value("#theme") == "light"


def luminance(colour: str) -> float:
    """Return the relative luminance of "rgb(…)", as WCAG 2 defines it."""
    parts = [int(part) / 255 for part in re.findall(r"\d+", colour)[:3]]
    linear = [p / 12.92 if p <= 0.03928 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    return sum(weight * p for weight, p in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_contrast_is_enough_to_read(browse: Browse, scheme: str) -> None:
    page = browse(trained(), scheme=scheme)
    read = """(name) => { const e = document.createElement("i"); e.style.color = `var(--${name})`;
        document.body.append(e); const c = getComputedStyle(e).color; e.remove(); return c; }"""
    pairs = [
        *((ink, paper) for ink in ("ink", "dim", "link") for paper in ("paper", "panel", "raised")),
        *(("ink", box) for box in ("op", "leaf", "group", "function", "runs", "ready", "done")),
        *(("ink", box) for box in ("waits", "mark", "accent-soft", "bad-soft")),
        ("dim", "pruned"),
    ]
    for ink, paper in pairs:
        one, other = sorted(luminance(page.evaluate(read, name)) for name in (ink, paper))
        assert (other + 0.05) / (one + 0.05) >= 4.5, (ink, paper)


CONTROLS = """() => [...document.querySelectorAll("button, input, select, [tabindex='0']")]
  .filter((e) => e.checkVisibility() && !e.disabled && e.tabIndex >= 0
    && !e.closest("dialog, .row, [hidden]"))"""
REACH = """() => {
  const e = document.activeElement;
  e.dataset.reached = "";
  const outline = getComputedStyle(e).outlineStyle;
  return e === document.body || outline !== "none" ? null : e.outerHTML.slice(0, 200);
}"""


def test_everything_is_reached_by_the_keyboard(browse: Browse) -> None:
    page = browse(trained())
    for tab in ("forward", "graph", "backward"):
        page.click(f"#tab-{tab}")
        wanted = page.evaluate(f"({CONTROLS})().length")
        page.evaluate("document.activeElement.blur()")
        for _ in range(wanted + 20):
            page.keyboard.press("Tab")
            assert page.evaluate(REACH) is None  # the focus is seen
            if page.evaluate(f"({CONTROLS})().every((e) => 'reached' in e.dataset)"):
                break
        missed = f"({CONTROLS})().filter((e) => !('reached' in e.dataset)).map((e) => e.outerHTML)"
        assert page.evaluate(missed) == []


NAMELESS = """() => [...document.querySelectorAll(
    "button, input, select, [role=listbox], [role=application], [role=region], [role=toolbar]")]
  .filter((e) => e.checkVisibility() && !(e.innerText?.trim() || e.ariaLabel || e.labels?.length
    || e.getAttribute("aria-labelledby")))
  .map((e) => e.outerHTML.slice(0, 100))"""


def test_controls_have_names(browse: Browse) -> None:
    page = browse(trained())
    for tab in ("forward", "graph", "backward"):
        page.click(f"#tab-{tab}")
        assert page.evaluate(NAMELESS) == []


@pytest.mark.parametrize("width", [400, 800, 1100])
def test_narrow_windows_need_no_scrolling_aside(browse: Browse, width: int) -> None:
    page = browse(trained(), width=width, height=800)
    for tab in ("forward", "graph", "backward"):
        page.click(f"#tab-{tab}")
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        assert page.locator(f"#panel-{tab}").is_visible()


# ---- forward


SHOWN = """() => ({
  article: document.querySelector(".forward article").innerText,
  marked: [...document.querySelectorAll(".forward .code .marked .line-number")]
    .map((e) => Number(e.innerText)),
  tensors: [...document.querySelectorAll(".forward article .tensor")]
    .map((e) => Number(e.dataset.tensor)),
  versions: [...document.querySelectorAll("[aria-label='Versions of the memory'] tbody tr")]
    .map((e) => [e.querySelector(".tensor").dataset.tensor, ...[1, 2].map((k) =>
      Number(e.cells[k].innerText))]),
})"""


def test_forward_shows_each_op(browse: Browse) -> None:
    document = trained()
    page = browse(document)
    page.select_option(".forward .ops select", "")
    page.focus(".forward .list")
    page.keyboard.press("Home")
    for op in document["ops"]:
        shown = page.evaluate(SHOWN)
        article = shown["article"]
        assert f"{op['op']} op {op['id']}" in article
        assert " → ".join(op["functors"]) in article
        assert " → ".join(op["interpreters"]) in article
        for text in (op["functor"], op["kernel"], op["module"], *op["attrs"].values()):
            assert text in article
        if op["source"]:
            assert ":".join(map(str, op["source"])) in article
            assert shown["marked"] == [op["source"][1]]
        assert {*op["outputs"], *(i for i in op["inputs"] if i is not None)} <= {*shown["tensors"]}
        for saved in op["saved"]:
            assert saved["why"] in article and saved["name"] in article
        assert {name: counts for name, *counts in shown["versions"]} == op["versions"]
        for change in op["rebased"]:
            old, new = (
                "none" if change[k] is None else document["nodes"][change[k]]["label"]
                for k in ("old", "new")
            )
            assert f"{old}\t{new}" in article
        page.keyboard.press("ArrowDown")
    assert any(op["rebased"] for op in document["ops"])


def test_forward_filters_and_links(browse: Browse) -> None:
    document = trained()
    page = browse(document)
    outside = [op for op in document["ops"] if op["run"] is None]
    assert page.get_attribute(".forward .row", "aria-setsize") == str(len(outside))
    page.select_option(".forward .ops select", "")
    assert page.get_attribute(".forward .row", "aria-setsize") == str(len(document["ops"]))
    inside = next(op for op in document["ops"] if op["run"] is not None)
    page.select_option(".forward .ops select", str(inside["run"]))
    assert page.inner_text(".forward h2") == f"{inside['op']} op {inside['id']}"
    page.click(".forward article [data-run]")
    assert texts(page, "[role=tab][aria-selected=true]") == ["Backward 3"]
    page.keyboard.press("1")
    page.select_option(".forward .ops select", "forward")
    for key, number in (("End", -1), ("Home", 0)):
        page.evaluate("document.activeElement.blur()")
        page.keyboard.press(key)
        assert page.inner_text(".forward h2").endswith(f"op {outside[number]['id']}")
    recorded = next(op for op in outside if op["node"] is not None)
    page.click(f".forward .row:has-text('{recorded['id']} {recorded['op']}')")
    page.keyboard.press("g")
    assert texts(page, ".graph .card h2") == [document["nodes"][recorded["node"]]["label"]]
    page.click(f".graph .card [data-op='{recorded['id']}']")
    assert page.inner_text(".forward h2").endswith(f"op {recorded['id']}")


def test_lines_of_source_lead_to_their_ops(browse: Browse) -> None:
    document = trained()
    page = browse(document)
    counts: dict[int, list[int]] = {}
    for op in document["ops"]:
        if op["source"] and op["source"][0] == document["sources"][0]["name"]:
            counts.setdefault(op["source"][1], []).append(op["id"])
    shown = {
        int(page.get_attribute(f":nth-match(.line:has(button), {k + 1})", "data-line")): int(text)
        for k, text in enumerate(texts(page, ".code .line-mark button"))
    }
    assert shown == {line: len(ids) for line, ids in counts.items()}
    line, ids = next((line, ids) for line, ids in counts.items() if len(ids) > 2)
    for number in [*ids, ids[0]]:
        page.click(f".line[data-line='{line}'] button")
        assert page.inner_text(".forward h2").endswith(f"op {number}")


def test_a_tip_shows_the_value_and_an_image_of_a_matrix(browse: Browse) -> None:
    document = trained()
    page = browse(document)
    page.select_option(".forward .ops select", "")
    op, tensor = next(
        (op, document["tensors"][i])
        for op in document["ops"]
        for i in op["inputs"]
        if i is not None and (document["tensors"][i]["value"] or {}).get("low", 0) < 0
    )
    page.fill("#search", f"(op {op['id']})")
    page.keyboard.press("Enter")
    chip = page.locator(f".forward article .tensor[data-tensor='{tensor['id']}']").first
    chip.hover()
    shown = tip(page)
    for text in (tensor["dtype"], tensor["device"], str(tuple(tensor["shape"]))):
        assert text in shown
    assert tensor["value"]["text"] in shown
    rows = tensor["value"]["rows"]
    canvas = page.locator("#tip canvas")
    assert [canvas.get_attribute(name) for name in ("width", "height")] == [
        str(len(rows[0])),
        str(len(rows)),
    ]
    # Not all pixels are alike, for the numbers are not; and the legend has both ends.
    colours = page.evaluate("""() => {
        const c = document.querySelector("#tip canvas");
        const { data } = c.getContext("2d").getImageData(0, 0, c.width, c.height);
        return [...new Uint32Array(data.buffer)];
    }""")
    assert len(set(colours)) > 2
    ends = [float(text) for text in texts(page, "#tip figcaption span:not(.ramp)")]
    assert ends[0] <= tensor["value"]["low"] + 1e-2 and ends[1] >= tensor["value"]["high"] - 1e-2
    page.mouse.move(0, 0)
    page.wait_for_selector("#tip", state="hidden")
    chip.focus()
    assert tip(page) == shown
    assert chip.get_attribute("aria-describedby") == "tip"
    page.keyboard.press("Escape")
    assert page.is_hidden("#tip")


def test_numbers_that_are_not_finite_have_a_colour_of_their_own(browse: Browse) -> None:
    def odd() -> None:
        flow.tensor([[1.0, float("nan")], [float("inf"), 3.0]]).relu()

    page = browse(explored(odd))
    page.hover(".forward article .tensor >> nth=0")
    assert "not finite" in tip(page)


@pytest.mark.slow
def test_a_document_of_ten_thousand_ops_draws_rows_in_sight_only(browse: Browse) -> None:
    document = json.loads(json.dumps(trained()))
    op = document["ops"][10]
    document["ops"] = [{**op, "id": k, "run": None} for k in range(10_000)]
    page = browse(document)
    assert page.locator(".forward .row").count() < 100
    page.focus(".forward .list")
    page.keyboard.press("End")
    assert page.inner_text(".forward h2").endswith("op 9999")
    page.keyboard.press("PageUp")
    assert not page.inner_text(".forward h2").endswith("op 9999")


def test_slots_for_programs_open_when_there_are_some() -> None:
    text = html.html(empty(nodes=[node(0, "accumulate_grad", [])]))
    assert 'modules["programs.js"]' in text and 'modules["compiled.js"]' in text
