"""nn.functional.pad, with the ops that one call takes."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Annotated, Any

from oneflow_lite.errors import ArgumentError, arg_error
from oneflow_lite.functors.declaring.checks import check_shape
from oneflow_lite.functors.declaring.declare import functor
from oneflow_lite.functors.declaring.domains import AnyTensor, choice
from oneflow_lite.functors.declaring.fill_value import fill_value
from oneflow_lite.interpreter.dispatch import dispatch1
from oneflow_lite.ops.op_expr import op_expr
from oneflow_lite.tensors.tensor import Tensor

_PAD = op_expr("pad")
_SAMPLES = """
    x(2, 3), (1, 2), value=1.5; x(2, 3, 4), (-1, 2, 0, 1); x(2, 3), (0, -1)
    x(1, 3, 4), (2, 1), mode="reflect"; x(1, 2, 3, 4), (1, 2, 2, -1), "replicate"
    x(1, 2, 3), (3, 1), "circular"; x(1, 1, 2, 3, 2), (1, 0, 2, 1, 1, 1), "replicate"
"""
Mode = Annotated[str, choice("constant", "reflect", "replicate", "circular")]


@functor("functional", samples=_SAMPLES)
def pad(
    input: AnyTensor, pad: Sequence[int], mode: Mode = "constant", value: float | None = None
) -> Tensor:
    """Add entries before and after the entries of the last dimensions; negative numbers cut off.

    Unlike PyTorch's, the modes other than "constant" take any number of dimensions.

    pad: (before, after) of the last dimension, then of the one before it, and so on.
    mode: the entries that are added: `value` (0), the entries mirrored at the first and last, the
        first and last themselves, or the entries from the other end.
    ShapeError: when `pad` has an odd length or too many numbers, or asks for more than there is.
    ArgumentError: when `mode` is unknown, or `value` is given for another mode than "constant".

    >>> x = flow.tensor([[1., 2., 3.]])
    >>> flow.nn.functional.pad(x, (1, 2)), flow.nn.functional.pad(x, (1, 2), mode="reflect")
    (tensor([[0., 1., 2., 3., 0., 0.]]), tensor([[2., 1., 2., 3., 2., 1.]]))
    """
    sizes = check_shape("pad", (pad,), "pad")
    if mode != "constant" and value:
        expected = f"none for mode {mode!r}"
        raise arg_error("pad", "value", expected, f"{value}", "leave it out", ArgumentError)
    number = fill_value("pad", "value", value, input._data.dtype) if value else 0
    for each, way in _steps(input._data.shape, sizes, mode):
        input = dispatch1(_PAD, input, {"pad": each, "mode": way, "value": number})
    return input


@functools.lru_cache(512)
def _steps(shape: tuple[int, ...], sizes: tuple[int, ...], mode: str) -> Sequence[Any]:
    """Return the sizes and the mode of each op that it takes, checked."""
    if len(sizes) % 2 or len(sizes) > 2 * len(shape):
        expected = f"(before, after) for at most {len(shape)} dimensions of shape {shape}"
        hint = "pass two numbers for each dimension, the last one first"
        raise arg_error("pad", "pad", expected, f"{len(sizes)} numbers", hint)
    cuts, grows = tuple(min(n, 0) for n in sizes), tuple(max(n, 0) for n in sizes)
    for i, n in enumerate(grows):
        size, cut = shape[-1 - i // 2], cuts[i] + cuts[i ^ 1]
        if size + cut < 0:
            expected = f"to cut at most the {size} entries of a dimension of shape {shape}"
            raise arg_error("pad", "pad", expected, sizes[i : i + 2], "cut fewer")
        # What is cut off can still be mirrored or repeated, but not from the other end.
        most = {"reflect": size - 1, "circular": size + cut}.get(mode, n if size else 0)
        if mode != "constant" and n > max(most, 0):
            expected = f"at most {max(most, 0)} for a dimension of size {size} in mode {mode!r}"
            raise arg_error("pad", "pad", expected, n, "pad less, or with another mode")
    if mode == "constant" or not any(grows):
        return ((sizes, "constant"),)
    cut_off = [(cuts, "constant")] if any(cuts) else []
    return [*cut_off, (grows, mode)] if mode == "circular" else [(grows, mode), *cut_off]
