"""Draws the pictures of the tutorials, from what the library computes: `python draw.py`.

Text and lines are grey, and curves have colours that colour-blind people tell apart, so that one
file serves light and dark pages.
"""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import matplotlib

import oneflow_lite as flow
from oneflow_lite import nn
from oneflow_lite.autograd.engine.graph_task import GraphTask

matplotlib.use("Agg")
from matplotlib import pyplot as plt

HERE = Path(__file__).resolve().parent
GREY, BLUE, ORANGE, GREEN, PINK = "#808080", "#0072b2", "#d55e00", "#009e73", "#cc79a7"
STYLE = {
    "svg.hashsalt": "oneflow_lite",
    "svg.fonttype": "none",
    "font.size": 11,
    **dict.fromkeys(("text.color", "axes.edgecolor", "axes.labelcolor"), GREY),
    **dict.fromkeys(("xtick.color", "ytick.color"), GREY),
}


def derivatives() -> None:
    """A function and three derivatives of it."""
    x = flow.linspace(-4, 4, 161, dtype=flow.float64, requires_grad=True)
    y = flow.sin(x) * x**2
    _, axes = plt.subplots(figsize=(7, 3.2))
    for name, colour in zip(("f", "f′", "f″", "f‴"), (BLUE, ORANGE, GREEN, PINK), strict=True):
        axes.plot(x.detach(), y.detach(), color=colour)
        axes.text(4.1, y[-1].item(), name, color=colour, va="center")
        (y,) = flow.autograd.grad(y.sum(), x, create_graph=True)
    axes.axhline(0, color=GREY, linewidth=0.5)
    axes.spines[["top", "right"]].set_visible(False)
    axes.set_xlabel("x")


def digits() -> None:
    """The loss of a network that learns to read digits, and what it makes of ten unseen ones."""
    from sklearn.datasets import load_digits

    scans = load_digits()
    images = flow.tensor(scans.images / 16, dtype=flow.float32)
    labels = flow.tensor(scans.target, dtype=flow.int64)
    held_out = flow.arange(len(labels)) % 5 == 0
    data = flow.utils.data.TensorDataset(images[~held_out], labels[~held_out])
    flow.manual_seed(0)
    net = nn.Sequential(nn.Flatten(), nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 10))
    optimizer = flow.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
    losses = []
    for _ in range(10):
        for batch, target in flow.utils.data.DataLoader(data, batch_size=32, shuffle=True):
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(net(batch), target)
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
    figure = plt.figure(figsize=(7, 3))
    axes = figure.add_axes((0.09, 0.17, 0.42, 0.75))
    axes.semilogy(losses, color=BLUE, linewidth=1)
    axes.set(xlabel="step", ylabel="loss")
    axes.spines[["top", "right"]].set_visible(False)
    shown = images[held_out][:10]
    for i, (scan, guess) in enumerate(zip(shown, net(shown).argmax(1).tolist(), strict=True)):
        box = figure.add_axes((0.57 + 0.085 * (i % 5), 0.52 - 0.44 * (i // 5), 0.08, 0.4))
        box.imshow(scan, cmap="gray_r")
        box.set_title(guess, fontsize=11, pad=2)
        box.axis("off")


def graph_task() -> None:
    """The graph of the page on the GraphTask, with the counts of its task."""
    x, w = (flow.tensor(value, requires_grad=True) for value in (2.0, 5.0))
    a = x * w
    b = a + 1
    y = b * x
    task = GraphTask(retain_graph=True, create_graph=False, accumulate=True)
    task.compute_dependencies(task.set_roots([(y.grad_fn, 0)], [flow.tensor(1.0)]))
    places = {x: (0.0, 0.0), w: (2.4, 0.0), a: (2.0, 1.0), b: (2.0, 2.0), y: (1.0, 3.0)}
    nodes = {tensor.grad_fn_node: at for tensor, at in places.items()}
    names = dict(zip(nodes, ("x", "w", "a = x * w", "b = a + 1", "y = b * x"), strict=True))
    _, axes = plt.subplots(figsize=(7, 3.8))
    boxes = {}
    for node, (left, up) in nodes.items():
        waits = task.dependencies[node]
        colour = ORANGE if waits == 0 else BLUE
        frame = {"boxstyle": "round,pad=0.35", "facecolor": "white", "edgecolor": colour}
        style = {"ha": "center", "va": "center", "fontsize": 10, "color": "black", "bbox": frame}
        text = axes.text(left, up, f"{names[node]}\n{node.name()}", **style)
        boxes[node] = text.get_bbox_patch()
        axes.text(left + 0.62, up, f"waits for {waits}", va="center")
    for node, at in nodes.items():
        for below, _ in node.next_functions:
            if below is not None:
                arrow = {"arrowstyle": "-|>", "color": GREY, "patchA": boxes[node]}
                axes.annotate("", nodes[below], at, arrowprops={**arrow, "patchB": boxes[below]})
    axes.set(xlim=(-0.7, 3.7), ylim=(-0.4, 3.4))
    axes.axis("off")


WAY = {  # of one relu: the step, its file, and its place: column and row
    "flow.relu(x)\nchecks x": ("functors/activation.py", 0, 4),
    "dispatch1(op, x)": ("interpreter/dispatch.py", 0, 3),
    "AutogradInterpreter": ("interpreter/stack.py", 0, 2),
    "EagerInterpreter": ("interpreter/stack.py", 0, 1),
    "a kernel": ("kernels/activation.py", 0, 0),
    "FunctionNode\nrelu_backward": ("tensors/node.py", 1, 2),
    "y.backward(g)\nchecks g": ("", 2, 4),
    "GraphTask\nthe node's turn": ("autograd/engine/graph_task.py", 2, 3),
    "relu's rule\nF.relu_grad(dy, y)": ("grad_funcs/activation.py", 2, 2),
    "a kernel again": ("kernels/activation.py", 2, 1),
    "x.grad": ("", 2, 0),
}


def one_relu() -> None:
    """The way of one relu through the engine, forward and back."""
    _, axes = plt.subplots(figsize=(7.4, 5))
    boxes = {}
    for text, (file, column, row) in WAY.items():
        frame = {"boxstyle": "round,pad=0.35", "facecolor": "white"}
        frame["edgecolor"] = GREEN if column == 1 else BLUE if column == 0 else ORANGE
        style = {"ha": "center", "va": "center", "fontsize": 10, "color": "black", "bbox": frame}
        boxes[text] = axes.text(column, row, text, **style).get_bbox_patch()
        axes.text(column + 0.04, row - 0.45, file, va="center", fontsize=8)
    steps = [*WAY]
    arrows = [*itertools.pairwise(steps[:5]), *itertools.pairwise(steps[6:])]
    for one, other in [*arrows, (steps[2], steps[5]), (steps[8], steps[5])]:
        style = {"arrowstyle": "-|>", "color": GREY, "patchA": boxes[one], "patchB": boxes[other]}
        axes.annotate("", WAY[other][1:], WAY[one][1:], arrowprops=style)
    for column, title in ((0, "forward"), (2, "backward")):
        axes.text(column, 4.75, title, ha="center", fontsize=12)
    axes.set(xlim=(-0.6, 2.6), ylim=(-0.6, 5))
    axes.axis("off")


FIGURES: dict[str, Callable[[], Any]] = {
    "derivatives": derivatives,
    "digits": digits,
    "graph_task": graph_task,
    "one_relu": one_relu,
}


def main(folder: Path = HERE) -> None:
    """Draw all of them into a folder."""
    for name, draw in FIGURES.items():
        with plt.rc_context(STYLE):
            draw()
            options = {"transparent": True, "metadata": {"Date": None}, "bbox_inches": "tight"}
            plt.savefig(folder / f"{name}.svg", **options)
            plt.close()


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
