"""Documents for the tests of the page: of small real runs, and large ones made by hand."""

from __future__ import annotations

import functools
import random
import tempfile
from collections.abc import Callable
from typing import Any

import oneflow_lite as flow


def explored(code: Callable[[], Any], values: bool = True) -> Any:
    """Return the document of what `code` does."""
    with (
        tempfile.TemporaryDirectory() as folder,
        flow.explore(path=f"{folder}/page.html", values=values, title=code.__name__) as e,
    ):
        code()
    return e.document


class Net(flow.nn.Module):
    """Two layers."""

    def __init__(self) -> None:
        super().__init__()
        self.hidden = flow.nn.Linear(3, 4)
        self.out = flow.nn.Linear(4, 2)

    def forward(self, x: Any) -> Any:
        """Return the two scores of each row."""
        return self.out(self.hidden(x).tanh())


def training() -> None:
    """Train a small network for one step; write in place; prune; differentiate twice."""
    flow.manual_seed(0)
    net = Net()
    x = flow.randn(5, 3)
    target = flow.randn(5, 2)
    loss = flow.nn.functional.mse_loss(net(x), target)
    loss.backward()
    with flow.no_grad():
        for parameter in net.parameters():
            parameter -= 0.1 * parameter.grad
    a, b = (flow.tensor([[1.0, -2.0], [3.0, 4.0]], requires_grad=True) for _ in range(2))
    product = a * b
    product[0] *= 2
    product.register_hook(double)
    flow.autograd.grad(product.exp().sum() + (b * 3).sum(), a)
    (g,) = flow.autograd.grad((a**3).sum(), a, create_graph=True)
    g.sum().backward()


def double(grad: Any) -> Any:
    """Double a gradient, as a hook."""
    return grad * 2


@functools.cache
def trained() -> Any:
    """Return the document of `training`."""
    return explored(training)


def empty(**parts: Any) -> Any:
    """Return a document with nothing but `parts`."""
    return {
        "format": 1,
        "version": flow.__version__,
        "title": "by hand",
        "values": True,
        "error": None,
        **{
            name: []
            for name in (
                *("sources", "modules", "tensors", "ops"),
                *("nodes", "runs", "programs", "compiled"),
            )
        },
        **parts,
    }


def node(number: int, name: str, to: list[int], **parts: Any) -> dict[str, Any]:
    """Return a node that sends gradients to others."""
    return {
        "id": number,
        "name": name,
        "label": f"{name}#{number}",
        "kind": "op" if to else "leaf",
        "topological_nr": number,
        "sequence_nr": number,
        "module": "",
        "source": None,
        "op": None,
        "rule": "",
        "layer": 0,
        "made_by": None,
        "shape": [2, 3],
        "shapes": [[2, 3]],
        "dtype": "float32",
        "tensor": None,
        "saved": [],
        "hooks": [],
        "edges": [
            {"to": each, "output": 0, "input": k, "shape": [2, 3], "dtype": "float32"}
            for k, each in enumerate(to)
        ],
        **parts,
    }


def backward(nodes: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the film of a backward call over all nodes, with ones for gradients."""
    waits = {each["id"]: 0 for each in nodes}
    for each in nodes:
        for edge in each["edges"]:
            waits[edge["to"]] += 1
    root = nodes[-1]["id"]
    gradient = {"output": 0, "shape": [2, 3], "dtype": "float32", "bytes": 24, "value": None}
    order = sorted(waits, reverse=True)
    start = {
        "ready": [k for k in order if not waits[k]],
        "dependencies": {str(k): waits[k] for k in order},
        "not_ready": {str(root): [gradient]},
        "held": 24,
        "alive": 24 * len(nodes),
    }
    steps = []
    for k in order:
        edges = nodes[k]["edges"]
        for edge in edges:
            waits[edge["to"]] -= 1
        to = {edge["to"] for edge in edges}
        steps.append(
            {
                "node": k,
                "ready": {"added": [n for n in to if not waits[n]], "removed": [k]},
                "dependencies": {str(n): waits[n] for n in to},
                "not_ready": {str(n): [gradient] for n in to},
                "current_grad": [gradient],
                "acc_grad": [] if edges else [gradient],
                "captured": {},
                "ops": [0, 0],
                "released": 0,
                "held": 24 * len(to),
                "freed": 0,
                "alive": 24 * k,
            }
        )
    return {
        "number": 0,
        "parent": None,
        "kind": "backward",
        "rehearsal": False,
        "roots": [root],
        "root": root,
        "inputs": None,
        "retain_graph": False,
        "create_graph": False,
        "recorded": False,
        "layer": 1,
        "order": order,
        "pruned": [],
        "unvisited": [],
        "needed": [],
        "op": 0,
        "source": None,
        "start": start,
        "steps": steps,
        "error": None,
    }


def looped(rounds: int = 1000) -> Any:
    """Return the document of a loop of five nodes a round, which all share a weight."""
    nodes = [node(0, "accumulate_grad", [])]
    last = 0
    for _ in range(rounds):
        k = len(nodes)
        nodes += [
            node(k, "matmul_backward", [last, 0], source=["train.py", 3]),
            node(k + 1, "accumulate_grad", []),
            node(k + 2, "add_backward", [k, k + 1], source=["train.py", 4]),
            node(k + 3, "tanh_backward", [k + 2], source=["train.py", 5]),
            node(k + 4, "mul_backward", [k + 3, k + 3], source=["train.py", 6]),
        ]
        last = k + 4
    return empty(nodes=nodes, runs=[backward(nodes)])


def modular(layers: int = 50, blocks: int = 20) -> Any:
    """Return the document of a deep network: layers of blocks of five nodes, in modules."""
    nodes: list[dict[str, Any]] = []
    last = None
    for layer in range(layers):
        for block in range(blocks):
            k = len(nodes)
            path = f"Net.layers{layer}.block{block}"
            weight = node(k, "accumulate_grad", [], module=path)
            # What the ops are called differs from block to block, so that nothing repeats.
            ops = [
                node(
                    k + 1, f"matmul{layer}_{block}_backward", [k, *([] if last is None else [last])]
                ),
                node(k + 2, "relu_backward", [k + 1]),
                node(k + 3, "mul_backward", [k + 1, k + 2]),
                node(k + 4, "add_backward", [k + 3, *([] if last is None else [last])]),
            ]
            nodes += [weight, *({**each, "module": path} for each in ops)]
            last = k + 4
    paths = ["Net", *(f"Net.layers{k}" for k in range(layers))]
    paths += [f"{path}.block{k}" for path in paths[1:] for k in range(blocks)]
    modules = [
        {"path": path, "kind": path.rpartition(".")[2].strip("0123456789")} for path in paths
    ]
    return empty(nodes=nodes, runs=[backward(nodes)], modules=modules)


def tangled(count: int = 5000) -> Any:
    """Return the document of a graph without modules and loops."""
    pick = random.Random(0)
    nodes = []
    for k in range(count):
        to = pick.sample(range(max(0, k - 40), k), min(k, pick.choice([1, 2, 2, 3])))
        nodes.append(node(k, f"op{pick.randrange(1000)}_backward", to))
    return empty(nodes=nodes, runs=[backward(nodes)])
