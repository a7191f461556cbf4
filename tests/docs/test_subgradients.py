"""docs/subgradients.md: each row holds on each device, and is right about PyTorch."""

from __future__ import annotations

import dataclasses
import math
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import oneflow_lite as flow

PAGE = Path(__file__).resolve().parents[2] / "docs" / "subgradients.md"
NUMBERS = {**vars(math), "dict": dict}


@dataclasses.dataclass
class Row:
    """One row of a table; `order` is 2 in the tables of second derivatives."""

    expression: str
    at: str
    derivatives: list[Any]
    pytorch: list[Any]
    order: int


def read_rows() -> list[Row]:
    found = []
    order = 1
    for line in PAGE.read_text("utf-8").splitlines():
        cells = [cell.strip() for cell in line.strip().strip("|").split(" | ")]
        if line.startswith("| expression"):
            order = 2 if cells[2] == "second derivative" else 1
        elif line.startswith("| `"):
            values, theirs = (
                [eval(code, NUMBERS) for code in re.findall("`([^`]*)`", cell)]
                for cell in cells[2:]
            )
            assert theirs or cells[3] == "same", line
            row = Row(cells[0].strip("`"), cells[1].strip("`"), values, theirs or values, order)
            found.append(row)
    return found


ROWS = read_rows()
IDS = [f"{row.expression} at {row.at}, order {row.order}" for row in ROWS]


class Names(dict):
    """Names that an expression may use: the arguments, and the ops of a library."""

    def __init__(self, lib: Any, arguments: dict[str, Any]) -> None:
        super().__init__(arguments, inf=math.inf)
        self.lib = lib

    def __missing__(self, name: str) -> Any:
        for place in (self.lib, self.lib.nn.functional):
            if hasattr(place, name):
                return getattr(place, name)
        raise NameError(name)


def derivatives(lib: Any, row: Row, device: str) -> list[np.ndarray]:
    """Evaluate the expression of a row and return the gradients by its floating arguments."""
    arguments = {}
    for name, value in eval(f"dict({row.at})", NUMBERS).items():
        array = np.array(value)
        arguments[name] = lib.tensor(array, device=device)
        if array.dtype.kind in "fc":
            arguments[name].requires_grad_()
    leaves = [x for x in arguments.values() if x.requires_grad]
    result = eval(
        row.expression, {"__builtins__": {"__import__": __import__}}, Names(lib, arguments)
    )
    for _ in range(row.order):
        total = result.sum().real
        grads = lib.autograd.grad(total, leaves, create_graph=True, allow_unused=True)
        result = sum(g.sum().real for g in grads if g is not None and g.requires_grad)
    return [
        np.zeros(x.shape) if g is None else _array(g) for g, x in zip(grads, leaves, strict=True)
    ]


def _array(tensor: Any) -> np.ndarray:
    if isinstance(tensor, flow.Tensor):
        return tensor.detach().cpu().numpy()
    return tensor.detach().numpy(force=True)


def same(got: list[np.ndarray], expected: list[Any]) -> None:
    assert len(got) == len(expected)
    for g, e in zip(got, expected, strict=True):
        assert g.shape == np.shape(e)
        np.testing.assert_allclose(g, e, rtol=1e-9)


def test_the_page_has_rows() -> None:
    assert len(ROWS) > 80
    assert {row.order for row in ROWS} == {1, 2}
    assert len(set(IDS)) == len(IDS)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # NumPy remarks on every inf and nan
@pytest.mark.parametrize("row", ROWS, ids=IDS)
def test_a_row_holds(row: Row, device: str) -> None:
    same(derivatives(flow, row, device), row.derivatives)


@pytest.mark.parametrize("row", ROWS, ids=IDS)
def test_a_row_says_the_truth_of_pytorch(row: Row) -> None:
    torch = pytest.importorskip("torch")
    same(derivatives(torch, row, "cpu"), row.pytorch)
