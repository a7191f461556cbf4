"""The tab Backward: at each step it shows the numbers of `trace().steps`."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import oneflow_lite as flow
from tests.autograd.leaves import leaf
from tests.explore.conftest import Browse
from tests.explore.documents import Net, explored, looped, trained

STATE = """() => ({
  ready: [...document.querySelectorAll("[data-queued]")].map((e) => Number(e.dataset.queued)),
  waiting: Object.fromEntries([...document.querySelectorAll("[data-waiting]")].map((e) => [
    e.dataset.waiting,
    [Number(e.cells[1].innerText), e.cells[2].querySelectorAll(".tensor").length],
  ])),
  head: document.querySelector(".now h2").innerText,
  count: document.querySelector(".count").innerText,
  facts: document.querySelector(".now .facts").innerText,
})"""


def network() -> None:
    flow.manual_seed(0)
    flow.nn.functional.mse_loss(Net()(flow.randn(5, 3)), flow.randn(5, 2)).backward()


def inputs() -> None:
    x, w, b = leaf([2.0, 3.0]), leaf([5.0, 1.0]), leaf(1.0)
    u = x * w
    flow.autograd.grad([(u * b).sum(), (u.exp() + b).sum()], [w, u])


def higher() -> None:
    x, w = leaf([2.0, 3.0]), leaf([5.0, 1.0])
    (g,) = flow.autograd.grad(((x * w).tanh() * w).sum(), x, create_graph=True)
    (g * g).sum().backward()


@pytest.mark.parametrize("code", [network, inputs, higher])
def test_each_step_shows_what_the_trace_says(browse: Browse, code: Callable[[], None]) -> None:
    with flow.autograd.trace() as log:
        document = explored(code)
    numbers = {each["sequence_nr"]: each["id"] for each in document["nodes"]}
    page = browse(document, tab="backward")
    step_of_task: dict[int, int] = {}
    for step in log.steps:
        run = step.task - 1
        k = step_of_task[run] = step_of_task.get(run, -1) + 1
        if k == 0 and run:
            page.select_option("[aria-label='Backward call']", str(run))
        elif k:
            page.keyboard.press("ArrowRight")
        shown = page.evaluate(STATE)
        ids = {known: numbers[known.sequence_nr] for known in step.dependencies}
        assert shown["count"] == f"step {k} of {len(document['runs'][run]['steps'])}"
        assert shown["ready"] == [ids[known] for known in step.ready_queue]
        counts = {str(ids[known]): count for known, count in step.dependencies.items()}
        assert {key: count for key, (count, _) in shown["waiting"].items()} == counts
        # A sum's name is the node's, and the output's number where there are several.
        sums = {log.name(known): str(number) for known, number in ids.items()}
        held = {sums[name.partition("[")[0]] for name in step.current_grad}
        assert {key for key, (_, count) in shown["waiting"].items() if count} == held
        if step.node is None:
            assert shown["head"] == "Before the first step"
        else:
            label = document["nodes"][numbers[step.node.sequence_nr]]["label"]
            assert shown["head"].startswith(label)
    assert page.inner_text(".queue, .beside p.dim >> nth=0") == "Empty: the call has ended."


def test_the_sums_and_gradients_are_those_of_the_call(browse: Browse) -> None:
    def code() -> None:
        x, w = leaf([[2.0, 3.0], [1.0, 4.0]]), leaf([[5.0, 1.0], [0.5, 2.0]])
        (x * w + x).sum().backward()
        found.extend([x.grad, w.grad])

    found: list[Any] = []
    document = explored(code)
    page = browse(document, tab="backward")
    shown = []
    for step in document["runs"][0]["steps"]:
        page.click("[aria-label='Step forward']")
        facts = page.inner_text(".now .facts")
        assert ("acc_grad" in facts) == bool(step["acc_grad"])
        if step["acc_grad"]:
            page.hover(".now dt:has-text('acc_grad') + dd .tensor")
            page.wait_for_selector("#tip:not([hidden])")
            shown.append(
                np.array(
                    json.loads(page.inner_text("#tip .value").replace(".,", ",").replace(".]", "]"))
                )
            )
            assert page.locator("#tip canvas").count() == 1
        page.mouse.move(0, 0)
    expected = sorted((grad.tolist() for grad in found), key=str)
    assert sorted((each.tolist() for each in shown), key=str) == expected


def at(page: Any) -> int:
    """Return the step that is shown, which the slider says as well."""
    found = re.match(r"step (\d+) of", page.inner_text(".count"))
    assert found and page.input_value(".film [type=range]") == found[1]
    return int(found[1])


def test_every_control_of_the_film(browse: Browse) -> None:
    document = trained()
    last = len(document["runs"][0]["steps"])
    page = browse(document, tab="backward")
    assert at(page) == 0
    assert page.is_disabled("[aria-label='Step back']")
    assert page.is_disabled("[aria-label='First step']")
    page.click("[aria-label='Step forward']")
    page.click("[aria-label='Step forward']")
    assert at(page) == 2
    page.click("[aria-label='Step back']")
    assert at(page) == 1
    page.click("[aria-label='Last step']")
    assert at(page) == last
    assert page.is_disabled("[aria-label='Step forward']")
    page.click("[aria-label='First step']")
    assert at(page) == 0
    page.fill(".film [type=range]", "3")
    assert at(page) == 3
    page.focus(".film [type=range]")
    page.keyboard.press("ArrowRight")
    assert at(page) == 4
    page.evaluate("document.activeElement.blur()")
    for key, step in (("Home", 0), ("ArrowRight", 1), ("ArrowLeft", 0), ("End", last)):
        page.keyboard.press(key)
        assert at(page) == step
    # A curve's place leads to its step.
    box = page.locator(".curve .u-over").bounding_box()
    page.mouse.click(box["x"] + box["width"] / 2, box["y"] + 20)
    assert abs(at(page) - last / 2) <= 1
    page.keyboard.press("r")
    assert page.input_value("[aria-label='Backward call']") == "1"
    assert at(page) == 0
    page.select_option("[aria-label='Backward call']", "0")
    assert page.input_value("[aria-label='Backward call']") == "0"


def test_a_tip_goes_with_what_it_is_about(browse: Browse) -> None:
    page = browse(trained(), tab="backward")
    page.hover("[data-waiting] .tensor")
    page.wait_for_selector("#tip:not([hidden])")
    page.keyboard.press("End")
    page.wait_for_selector("#tip", state="hidden")


def test_playing_and_pausing(browse: Browse) -> None:
    last = len(trained()["runs"][0]["steps"])
    page = browse(trained(), tab="backward")
    page.select_option("[aria-label='Speed']", "60")
    page.click("[aria-label='Play']")
    page.wait_for_selector(f".count:text-is('step {last} of {last}')")
    page.wait_for_selector("[aria-label='Play']")  # it stops at the end
    page.select_option("[aria-label='Speed']", "2000")
    page.evaluate("document.activeElement.blur()")
    page.keyboard.press(" ")  # from the end it begins anew
    assert at(page) == 0
    page.keyboard.press(" ")
    page.wait_for_selector("[aria-label='Play']")


def test_pruned_nodes_are_marked(browse: Browse) -> None:
    document = explored(inputs)
    (run,) = document["runs"]
    assert run["pruned"]
    page = browse(document, tab="backward")
    shown = page.eval_on_selector_all(
        "[data-pruned]", "all => all.map((e) => Number(e.dataset.pruned))"
    )
    assert shown == run["pruned"]
    labels = page.evaluate(LABELS)
    for number in run["pruned"]:
        assert labels[f"n{number}"] == ["✕ pruned", True]


LABELS = """() => Object.fromEntries(explorer.views.backward.picture.cy.nodes().map((n) =>
    [n.id(), [n.data("label").split("\\n").at(-1), n.hasClass("pruned")]]))"""


def test_boxes_say_what_their_nodes_are_at(browse: Browse) -> None:
    document = explored(network)
    (run,) = document["runs"]
    page = browse(document, tab="backward")
    page.keyboard.press("e")
    page.wait_for_selector(".backward .picture:not([aria-busy])")
    waits = dict(run["start"]["dependencies"])
    done: list[int] = []
    for k in range(len(run["steps"]) + 1):
        if k:
            page.keyboard.press("ArrowRight")
            waits.update(run["steps"][k - 1]["dependencies"])
            done.append(run["steps"][k - 1]["node"])
        labels = {name: line for name, (line, _) in page.evaluate(LABELS).items() if name[0] == "n"}
        assert labels == {
            f"n{number}": "▶ runs now"
            if done and number == done[-1]
            else "✓ ran"
            if number in done
            else f"waits for {waits[str(number)]}"
            if waits[str(number)]
            else "● ready"
            for number in run["order"]
        }


def test_double_backward_is_a_layer_of_the_film(browse: Browse) -> None:
    document = explored(higher)
    second = {each["id"] for each in document["nodes"] if each["layer"]}
    page = browse(document, tab="backward")
    drawn = "() => explorer.views.backward.picture.shownNodes()"
    assert not second & {*page.evaluate(drawn)}  # the first call makes them
    page.check(".backward .layer input")
    assert second <= {*page.evaluate(drawn)}
    page.keyboard.press("e")
    page.wait_for_selector(".backward .picture:not([aria-busy])")
    page.keyboard.press("End")
    labels = page.evaluate(LABELS)
    made = [
        each["id"] for each in document["nodes"] if each["layer"] and each["made_by"] is not None
    ]
    assert made and all(labels[f"n{number}"][0] == "+ made by this call" for number in made)
    page.keyboard.press("d")
    assert not second & {*page.evaluate(drawn)}
    page.keyboard.press("r")  # the second call runs them
    assert second & {*document["runs"][1]["order"]} <= {*page.evaluate(drawn)}


def test_f_goes_to_the_box_that_runs(browse: Browse) -> None:
    document = looped(20)
    page = browse(document, tab="backward")
    for _ in range(3):
        page.keyboard.press("ArrowRight")
    page.keyboard.press("f")
    number = document["runs"][0]["steps"][2]["node"]
    assert page.evaluate("explorer.views.backward.picture.at.id") == f"n{number}"


def test_a_rehearsed_call_says_that_it_is_one(browse: Browse, tmp_path: Any) -> None:
    x = leaf([2.0, 3.0])
    document = flow.explore((x * x).sum(), path=tmp_path / "page.html").document
    page = browse(document, tab="backward")
    assert "rehearsed" in page.inner_text(".now")


@pytest.mark.slow
def test_five_thousand_steps(browse: Browse) -> None:
    document = looped(1000)
    page = browse(document, tab="backward")
    page.keyboard.press("End")
    assert at(page) == 5001
    page.keyboard.press("ArrowLeft")
    assert page.evaluate(STATE)["waiting"] == {"0": [0, 1]}
    page.fill(".film [type=range]", "2500")
    steps = document["runs"][0]["steps"]
    assert page.inner_text(".now h2").startswith(document["nodes"][steps[2499]["node"]]["label"])
    assert page.locator("[data-waiting]").count() == 200
    assert "and 2,301 nodes more" in page.inner_text(".beside")


def test_each_call_shows_its_own_nodes(browse: Browse) -> None:
    """A later call is the same picture as the first: no round of a loop that is closed."""

    def steps() -> None:
        net = Net()
        for _ in range(3):
            net(flow.randn(5, 3)).square().mean().backward()

    page = browse(explored(steps), tab="backward")
    picture = "explorer.views.backward.picture"
    shown = f"() => [...{picture}.boxes.keys()].map(({{ kind, node }}) => kind ?? node.name)"
    first = page.evaluate(shown)
    assert "module" in first and not {"loop", "round", "rounds"} & {*first}
    page.keyboard.press("r")
    page.keyboard.press("r")
    assert page.evaluate(shown) == first
    assert page.inner_text(".count").endswith(f"of {len(page.evaluate(f'{picture}.shownNodes()'))}")
