"""Values that no callable expects, as texts: each is made anew for each call."""

from __future__ import annotations

from typing import Any

import numpy as np

import oneflow_lite as flow

VALUES = {
    "None": "None",
    "True": "True",
    "empty text": "''",
    "text": "'abc'",
    "bytes": "b'x'",
    "object": "object()",
    "empty list": "[]",
    "nested list": "[[]]",
    "ragged list": "[[1], [2, 3]]",
    "list of None": "[None]",
    "dict": "{}",
    "0": "0",
    "-1": "-1",
    "2**31": "2**31",
    "2**62": "2**62",
    "2**63": "2**63",
    "2**64": "2**64",
    "-2**63": "-(2**63)",
    "list of 2**62": "[2**62, 2**62]",
    "1e308": "1e308",
    "nan": "float('nan')",
    "inf": "float('inf')",
    "-inf": "float('-inf')",
    "1j": "1j",
    "0-d tensor": "flow.tensor(1.5)",
    "empty tensor": "flow.ones(0)",
    "truth values": "flow.tensor([True, False])",
    "tensor of 2**62": "flow.tensor(2**62)",
    "vector of 2**62": "flow.tensor([2**62, -(2**63)])",
    "complex tensor": "flow.tensor([1j, 2.0])",
    "7 dimensions": "flow.ones(1, 2, 1, 3, 1, 1, 1)",
    "tensor of nan": "flow.tensor([[float('nan')] * 3] * 2)",
    "halves": "flow.ones(2, 3, dtype=flow.float16)",
    "array of objects": "np.array([object(), None], dtype=object)",
    "array of texts": "np.array(['a', 'b'])",
    "array of dates": "np.array(['2020-01-01'], dtype='datetime64[D]')",
    "generator": "(i for i in range(2))",
    "cyclic list": "cyclic()",
    "lambda": "(lambda *args: None)",
    "class": "int",
}


def cyclic() -> list[Any]:
    """Return a list that holds itself."""
    found: list[Any] = []
    found.append(found)
    return found


SCOPE = {"flow": flow, "np": np, "cyclic": cyclic}
