"""The tab Graph: groups that open and close, the picture, and what it says of each node."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.explore.conftest import Browse
from tests.explore.documents import backward, empty, looped, modular, node, tangled, trained

PICTURE = "explorer.views.graph.picture"
DRAWN = f"() => [...{PICTURE}.boxes.keys()].map((item) => item.id)"
EDGES = f"() => {PICTURE}.cy.edges().map((edge) => edge.id())"
SETTLED = ".graph .picture:not([aria-busy])"


def drawn(page: Any) -> list[str]:
    """Return the boxes: "n3" is node 3, and "g…" a group."""
    return list(page.evaluate(DRAWN))


@pytest.mark.slow
@pytest.mark.parametrize("make", [modular, tangled])
def test_a_large_graph_is_closed_at_first(browse: Browse, make: Callable[[], Any]) -> None:
    page = browse(make())
    assert 0 < len(drawn(page)) < 80
    assert page.evaluate(f"{PICTURE}.top.size") == 5000


@pytest.mark.slow
@pytest.mark.parametrize(
    "document", [looped(1000), modular(10, 10), tangled(500)], ids=["loop", "modules", "neither"]
)
def test_a_large_graph_shows_all_its_nodes(browse: Browse, document: Any) -> None:
    count = len(document["nodes"])
    page = browse(document)
    assert 0 < len(drawn(page)) < 80
    assert page.evaluate(f"{PICTURE}.top.size") == count
    assert page.get_attribute(".graph .row", "aria-setsize") == str(count)
    page.click("[aria-label='Open all groups']")
    page.wait_for_selector(SETTLED)
    boxes = drawn(page)
    assert {name for name in boxes if name[0] == "n"} == {f"n{k}" for k in range(count)}
    wanted = {
        f"n{each['id']}>n{edge['to']}" for each in document["nodes"] for edge in each["edges"]
    }
    assert {*page.evaluate(EDGES)} == wanted
    # No two nodes overlap.
    boxes = page.evaluate(
        f"[...{PICTURE}.boxes].filter(([item]) => item.node).map(([, box]) => box)"
    )
    places = sorted(
        [b["x"] + side * b["width"] / 2 for side in (-1, 1)]
        + [b["y"] + side * b["height"] / 2 for side in (-1, 1)]
        for b in boxes
    )
    open_boxes: list[Any] = []
    for left, right, upper, lower in places:
        open_boxes = [each for each in open_boxes if each[1] > left]
        assert not any(upper < each[3] and each[2] < lower for each in open_boxes)
        open_boxes.append((left, right, upper, lower))
    page.click("[aria-label='Close all groups']")
    assert len(drawn(page)) < 80


def test_a_loop_is_one_box_and_its_rounds_are_boxes(browse: Browse) -> None:
    page = browse(looped(10))
    page.keyboard.press("c")
    (loop,) = [name for name in drawn(page) if name[0] == "g"]
    labels = f"(id) => {PICTURE}.cy.$id(id).data('label')"
    assert page.evaluate(labels, loop) == "▸ matmul, add, tanh, … × 10\nrepeats · 50 nodes"
    assert [name for name in drawn(page) if name[0] == "n"] == ["n0"]  # the weight is shared
    page.evaluate("document.activeElement.blur()")
    page.keyboard.press("ArrowDown")
    while page.evaluate(f"{PICTURE}.at.id") != loop:
        page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    rounds = [name for name in drawn(page) if name[0] == "g" and name != loop]
    assert len(rounds) == 2
    assert page.evaluate(labels, rounds[0]) == "▸ round 1\n5 nodes"
    assert page.evaluate(labels, rounds[1]) == "▸ 9 more rounds\nlike the first · 45 nodes"
    page.keyboard.press("Enter")
    assert [name for name in drawn(page) if name[0] == "g"] == [loop]


def test_loops_inside_of_loops(browse: Browse) -> None:
    nodes = [node(0, "accumulate_grad", [])]
    for _ in range(4):
        for _ in range(3):
            nodes.append(node(len(nodes), "sin_backward", [len(nodes) - 1], source=["a.py", 2]))
        nodes.append(node(len(nodes), "exp_backward", [len(nodes) - 1], source=["a.py", 3]))
    page = browse(empty(nodes=nodes))
    tree = page.evaluate(f"""() => (function told(item) {{ return item.node ? item.node.name
        : [item.label, ...item.children.map(told)]; }})({PICTURE}.top)""")
    inner = ["sin × 3", "sin_backward", "sin_backward", "sin_backward"]
    rounds = [[f"round {k + 1}", inner, "exp_backward"] for k in range(4)]
    rounds[0].insert(1, "accumulate_grad")  # the first round alone uses the leaf
    assert tree == ["", ["sin, sin, sin, … × 4", rounds[0], ["3 more rounds", *rounds[1:]]]]


def test_modules_are_groups_and_a_press_opens_them(browse: Browse) -> None:
    page = browse(modular(layers=3, blocks=2))
    page.keyboard.press("c")
    (net,) = drawn(page)
    label = page.evaluate(f"{PICTURE}.cy.$id('{net}').data('label')")
    assert label == "▸ Net\nNet · 30 nodes"
    place = page.evaluate(f"{PICTURE}.cy.$id('{net}').renderedPosition()")
    box = page.locator(".graph .canvas").bounding_box()
    page.mouse.click(box["x"] + place["x"], box["y"] + place["y"])
    assert len(drawn(page)) == 4
    assert page.inner_text(".graph .card h2") == "Net"
    page.click(".graph .card >> text=Close it")
    assert drawn(page) == [net]
    page.click(".graph .card >> text=Net.layers1")
    assert len(drawn(page)) == 4
    assert page.inner_text(".graph .card h2") == "Net.layers1"
    # Twice on an open one closes it.
    place = page.evaluate(f"""() => {{ const b = {PICTURE}.cy.$id('{net}').renderedBoundingBox();
        return {{ x: b.x1 + 8, y: b.y2 - 8 }}; }}""")
    page.mouse.dblclick(box["x"] + place["x"], box["y"] + place["y"])
    page.wait_for_timeout(400)  # cytoscape tells two presses from one by time
    assert drawn(page) == [net]


def test_each_node_shows_its_numbers(browse: Browse) -> None:
    document = trained()
    page = browse(document, tab="graph")
    page.focus(".graph .list")
    page.keyboard.press("Home")
    for each in sorted(document["nodes"], key=lambda part: -part["sequence_nr"]):
        card = page.inner_text(".graph .card")
        assert page.inner_text(".graph .card h2") == each["label"]
        facts = page.evaluate("""() => Object.fromEntries([...document.querySelectorAll(
            ".graph .card dt")].map((e) => [e.innerText, e.nextElementSibling.innerText]))""")
        assert facts["name"] == each["name"]
        assert facts["topological number"] == f"{each['topological_nr']} longest way to a leaf"
        assert facts["sequence number"] == f"{each['sequence_nr']} order of making"
        assert facts.get("module", "") == each["module"]
        assert facts.get("rule", "") == each["rule"]
        for hook in each["hooks"]:
            assert hook in card
        for saved in each["saved"]:
            assert saved["why"] in card and str(saved["version"]) in card
        rows = page.locator("[aria-label='Sends gradients to'] tbody tr")
        assert [row.split("\t") for row in rows.all_inner_texts()] == [
            [
                str(edge["input"]),
                document["nodes"][edge["to"]]["label"],
                str(edge["output"]),
                shape(edge["shape"]),
                edge["dtype"],
            ]
            for edge in each["edges"]
        ]
        page.keyboard.press("ArrowDown")
    assert any(each["hooks"] for each in document["nodes"])


def shape(sizes: list[int]) -> str:
    """Return a shape as Python writes it."""
    return str(tuple(sizes))


def test_double_backward_is_shown_and_hidden(browse: Browse) -> None:
    document = trained()
    second = {f"n{each['id']}" for each in document["nodes"] if each["layer"]}
    page = browse(document, tab="graph")
    shown = f"() => {PICTURE}.shownNodes().map((id) => `n${{id}}`)"
    assert second and not second & {*page.evaluate(shown)}
    page.check(".graph .layer input")
    assert second <= {*page.evaluate(shown)}
    page.evaluate("document.activeElement.blur()")
    page.keyboard.press("d")
    assert not second & {*page.evaluate(shown)}
    # Whoever goes to one sees it.
    page.click(".graph .row:has-text('layer 1') >> nth=0")
    assert page.is_checked(".graph .layer input")
    assert page.evaluate(f"{PICTURE}.at.id") in second


def test_zoom_and_fit_by_button_and_key(browse: Browse) -> None:
    page = browse(trained(), tab="graph")
    zoom = f"{PICTURE}.cy.zoom()"
    start = page.evaluate(zoom)
    page.click("[aria-label='Larger']")
    assert page.evaluate(zoom) == pytest.approx(1.25 * start)
    page.click("[aria-label='Smaller']")
    assert page.evaluate(zoom) == pytest.approx(start)
    page.evaluate("document.activeElement.blur()")
    page.keyboard.press("+")
    page.keyboard.press("+")
    assert page.evaluate(zoom) > 1.5 * start
    page.keyboard.press("-")
    page.keyboard.press("0")
    whole = page.evaluate(
        f"{PICTURE}.cy.elements().renderedBoundingBox({{ includeLabels: false }})"
    )
    box = page.locator(".graph .canvas").bounding_box()
    assert whole["x1"] >= 0 and whole["x2"] <= box["width"]
    assert whole["y1"] >= 0 and whole["y2"] <= box["height"]


def test_keys_go_from_box_to_box(browse: Browse) -> None:
    page = browse(trained(), tab="graph")
    page.keyboard.press("e")
    page.wait_for_selector(SETTLED)
    boxes = drawn(page)
    forth = []
    for _ in boxes:
        page.keyboard.press("n")
        forth.append(page.evaluate(f"{PICTURE}.at.id"))
    assert sorted(forth) == sorted(boxes)
    back = []
    for _ in boxes[1:]:
        page.keyboard.press("p")
        back.append(page.evaluate(f"{PICTURE}.at.id"))
    assert back == forth[-2::-1]
    assert page.inner_text("#said")
    # Arrows go to a box that lies in their direction.
    place = f"() => {{ const b = {PICTURE}.boxes.get({PICTURE}.at); return [b.x, b.y]; }}"
    for key, axis, sign in (("ArrowDown", 1, 1), ("ArrowUp", 1, -1)):
        before = page.evaluate(place)
        page.keyboard.press(key)
        assert sign * (page.evaluate(place)[axis] - before[axis]) > 0
    page.keyboard.press("ArrowRight")
    right = page.evaluate(place)
    page.keyboard.press("ArrowLeft")
    assert page.evaluate(place)[0] < right[0]


def test_a_tip_over_a_box(browse: Browse) -> None:
    document = trained()
    page = browse(document, tab="graph")
    number = next(
        int(name[1:])
        for name in drawn(page)
        if name[0] == "n" and document["nodes"][int(name[1:])]["edges"]
    )
    place = page.evaluate(f"{PICTURE}.cy.$id('n{number}').renderedPosition()")
    box = page.locator(".graph .canvas").bounding_box()
    page.mouse.move(box["x"] + place["x"], box["y"] + place["y"])
    page.wait_for_selector("#tip:not([hidden])")
    told = page.inner_text("#tip")
    each = document["nodes"][number]
    assert each["label"] in told and f"topological {each['topological_nr']}" in told
    page.mouse.move(5, 5)
    page.wait_for_selector("#tip", state="hidden")


def test_a_graph_of_one_node(browse: Browse) -> None:
    nodes = [node(0, "accumulate_grad", [])]
    page = browse(empty(nodes=nodes, runs=[backward(nodes)]))
    assert drawn(page) == ["n0"]
    page.click("#tab-backward")
    page.keyboard.press("ArrowRight")
    assert page.inner_text(".count") == "step 1 of 1"
