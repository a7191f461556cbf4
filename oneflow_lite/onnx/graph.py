"""The graph that translations add nodes to."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from oneflow_lite.arrays.dtype import DTypeLike
from oneflow_lite.errors import OnnxMissingError
from oneflow_lite.onnx.registry import NotTranslated
from oneflow_lite.onnx.sizes import SymbolicSize

Shape = tuple[Any, ...]  # of int, or SymbolicSize for a size that varies


class Value(str):
    """The name of a value in a graph, with its dtype, shape and origin.

    Attributes
    ----------
    dtype : numpy.dtype or None
    shape : tuple of int or SymbolicSize, or None
    made_by : (str, tuple of Value) or None
        The op of the Program whose output it is, and its inputs.
    """

    def __new__(cls, name: str | None = "") -> Value:
        """Make a value of a name; None gives a value that stands for nothing."""
        return super().__new__(cls, name or "")

    dtype: Any = None
    shape: Any = None
    made_by: Any = None

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return len(self.shape)

    @property
    def base_shape(self) -> tuple[int, ...]:
        """The shape that it has for the sizes of the example."""
        return tuple([n.base if isinstance(n, SymbolicSize) else n for n in self.shape])


def require_onnx() -> Any:
    """Return the onnx package; raise an error that names the extra when it is not installed."""
    try:
        onnx = importlib.import_module("onnx")
        importlib.import_module("onnx.helper")
        return onnx
    except ImportError as error:
        raise OnnxMissingError(
            "onnx.export(): it needs the package onnx, which cannot be imported; "
            "pip install 'oneflow_lite[onnx]'"
        ) from error


class Graph:
    """Nodes and constants in the making. `g.Relu(x)` adds a node and returns its output.

    Attributes
    ----------
    opset : int
        The version of ONNX's operators to be used.
    """

    def __init__(self, opset: int, reserved: Sequence[str] = ()) -> None:
        self.onnx = require_onnx()
        self.opset = opset
        self.nodes: list[Any] = []
        self.initializers: dict[str, Any] = {}
        self._taken = set(reserved)
        self._constants: dict[Any, Value] = {}
        self._known: dict[Any, Value] = {}  # sizes that nodes compute already
        self.axes: dict[str, tuple[Value, int]] = {}  # by symbol: a value and an axis of that size

    def __getattr__(self, op_type: str) -> Callable[..., Any]:
        if not op_type[0].isupper():
            raise AttributeError(op_type)
        return partial(self.node, op_type)

    def node(self, op_type: str, *inputs: Any, outputs: int = 1, **attributes: Any) -> Any:
        """Add a node; return its output, or a tuple when there are to be several.

        Inputs are values, arrays (which become constants), or None for an omitted input. Attributes
        that are None are omitted.
        """
        names = [self._input(x) for x in inputs]
        while names and not names[-1]:
            names.pop()
        made = [self.fresh(op_type) for _ in range(outputs)]
        given = {name: value for name, value in attributes.items() if value is not None}
        self.nodes.append(self.onnx.helper.make_node(op_type, names, made, **given))
        return made[0] if outputs == 1 else tuple(made)

    def fresh(self, prefix: str) -> Value:
        """Return a name that is not taken."""
        number = len(self._taken)
        while (name := f"{prefix}_{number}") in self._taken:
            number += 1
        self._taken.add(name)
        return Value(name)

    def _input(self, x: Any) -> str:
        if x is None:
            return ""
        if isinstance(x, (np.ndarray, np.generic)):
            return self.constant(np.asarray(x))
        if not isinstance(x, str):
            raise NotTranslated(f"{x!r} is no input of a node")
        return x

    # Constants

    def constant(self, array: Any) -> Value:
        """Return a constant; equal constants are kept once."""
        array = np.asarray(array)
        key = (array.dtype.str, array.shape, array.tobytes())
        if key not in self._constants:
            self._constants[key] = self.initializer(self.fresh("constant"), array)
        return self._constants[key]

    def initializer(self, name: Value, array: Any) -> Value:
        """Add an array under a name."""
        array = np.asarray(array)
        array = array if array.flags.c_contiguous else array.copy()
        self.initializers[name] = self.onnx.numpy_helper.from_array(array, str(name))
        name.dtype, name.shape = array.dtype, array.shape
        return name

    def number(self, value: Any, like: Value) -> Value:
        """Return a number as a 0-d constant of the dtype of another value."""
        if isinstance(value, SymbolicSize):
            scalar: Value = self.Reshape(self.size(value), np.zeros(0, np.int64))
            return self.cast(scalar, like.dtype)  # type: ignore[no-any-return]
        return self.constant(np.asarray(value, like.dtype))

    def cast(self, x: Any, dtype: DTypeLike) -> Any:
        """Convert a value."""
        return self.Cast(x, to=self.type(dtype))

    def type(self, dtype: DTypeLike) -> int:
        """Return ONNX's number of a dtype."""
        try:
            number: int = self.onnx.helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
        except (TypeError, KeyError, ValueError) as error:
            raise NotTranslated(f"ONNX has no dtype {dtype}") from error
        return number

    # Sizes

    def size(self, size: Any) -> Value:
        """Return a number, which may vary, as a vector of one int64."""
        if not isinstance(size, SymbolicSize):
            return self.constant(np.array([size], np.int64))
        if size.terms is None:
            raise NotTranslated("a number depends on the dynamic sizes otherwise than by products")
        total = None
        for symbols, factor in size.terms:
            term = None if symbols and factor == 1 else self.size(factor)
            for symbol in sorted(symbols):
                axis = self._size_of(symbol)
                term = axis if term is None else self.Mul(term, axis)
            total = term if total is None else self.Add(total, term)
        return self.size(0) if total is None else total

    def _size_of(self, symbol: str) -> Value:
        if symbol not in self._known:
            x, axis = self.axes[symbol]
            self._known[symbol] = self.Shape(x, start=axis, end=axis + 1)
        return self._known[symbol]

    def sizes(self, sizes: Sequence[Any]) -> Value:
        """Return a vector of int64; sizes that vary are computed when the graph runs."""
        if not any(isinstance(size, SymbolicSize) for size in sizes):
            return self.constant(np.array(sizes, np.int64).reshape(len(sizes)))
        key = tuple(sizes)
        if key not in self._known:
            parts: list[Any] = []
            for size in sizes:
                if isinstance(size, SymbolicSize):
                    parts.append(self.size(size))
                elif parts and isinstance(parts[-1], list):
                    parts[-1].append(size)
                else:
                    parts.append([size])
            whole = [self.constant(np.array(p, np.int64)) if type(p) is list else p for p in parts]
            self._known[key] = whole[0] if len(whole) == 1 else self.Concat(*whole, axis=0)
        return self._known[key]

    def source_of_product(self, x: Value) -> tuple[Value, Value, Value | None] | None:
        """Return the y, w and b of `y @ w.T + b` or its reshape; None for any other value."""

        def made(value: Value) -> tuple[str, Sequence[Any]]:
            return value.made_by or ("", ())

        kind, inputs = made(x)
        if kind == "reshape":
            kind, inputs = made(inputs[0])
        bias = None
        if kind == "add" and inputs[1].ndim == 1:
            bias = inputs[1]
            kind, inputs = made(inputs[0])
        return (inputs[0], inputs[1], bias) if kind == "matmul_nt" else None

    def reshape(self, x: Any, shape: Sequence[Any]) -> Any:
        """Reshape a value; the runtime finds a single size that varies."""
        varying = [size for size in shape if isinstance(size, SymbolicSize)]
        if len(varying) == 1 and not any(size == 0 for size in shape):
            shape = [-1 if isinstance(size, SymbolicSize) else size for size in shape]
        return self.Reshape(x, self.sizes(shape), allowzero=1 if 0 in shape else None)
