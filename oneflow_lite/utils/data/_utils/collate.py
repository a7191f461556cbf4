"""Functions that make a batch of samples."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, MutableMapping, MutableSequence, Sequence
from typing import Any

import numpy as np

from oneflow_lite.arrays.dtype import float64
from oneflow_lite.errors import (
    ArgumentTypeError,
    FlowError,
    IndexRangeError,
    ShapeError,
    arg_error,
    brief,
    nesting_error,
)
from oneflow_lite.functors.creation import as_tensor, tensor
from oneflow_lite.functors.joining import stack
from oneflow_lite.tensors.tensor import Tensor

Collate = Callable[..., Any]
CollateMap = dict[type | tuple[type, ...], Collate]
_TEXT = "SUO"  # kinds of arrays that become no tensor: strings, bytes and objects


def collate(batch: Sequence[Any], *, collate_fn_map: CollateMap | None = None) -> Any:
    """Join samples: each type by its function, going into dicts and sequences.

    Parameters
    ----------
    batch : sequence
        The samples.
    collate_fn_map : dict, optional
        Functions by the type of sample they join, or by a tuple of types. Each is called with the
        samples, and the map as `collate_fn_map`. The sample's own type comes before its bases; of
        several bases in the map, the first in the map's order is taken.

    Raises
    ------
    ArgumentTypeError
        For samples of another type.
    ShapeError
        When sequences are not of one size.

    Examples
    --------
    >>> from oneflow_lite.utils.data._utils.collate import collate
    >>> functions = {int: lambda batch, collate_fn_map: sum(batch)}
    >>> collate([{"x": 1}, {"x": 2}], collate_fn_map=functions)
    {'x': 3}
    """
    functions = collate_fn_map or {}
    try:
        first = batch[0]
    except (TypeError, LookupError) as error:
        kind = ArgumentTypeError if isinstance(error, TypeError) else IndexRangeError
        got, hint = f"{type(batch).__name__} {brief(batch)}", "pass a list of samples"
        raise arg_error("default_collate", "batch", "a list of samples", got, hint, kind) from None
    function = functions.get(type(first)) or next(
        (function for kind, function in functions.items() if isinstance(first, kind)), None
    )
    if function is not None:
        return function(batch, collate_fn_map=collate_fn_map)
    if isinstance(first, Mapping):
        columns: Any = {key: [sample[key] for sample in batch] for key in first}
    elif isinstance(first, Sequence):
        if any(len(sample) != len(first) for sample in batch):
            raise arg_error(
                "default_collate",
                "batch",
                expected=f"samples of {len(first)} entries each",
                got=[len(sample) for sample in batch],
                hint="pad them, or pass a collate_fn of your own",
                kind=ShapeError,
            )
        columns = dict(enumerate(zip(*batch, strict=True)))
    else:
        raise _no_batch_error(type(first).__name__)
    joined = {
        key: collate(column, collate_fn_map=collate_fn_map) for key, column in columns.items()
    }
    return _like(first, joined)


def _like(sample: Any, entries: dict[Any, Any]) -> Any:
    """Return a dict or sequence of the sample's kind with other entries, by key or position.

    A mutable sample is copied with its attributes, and its entries are replaced. Tuples become
    lists, named tuples stay; a sample whose type cannot be called so becomes a plain dict or list.
    """
    mapping = isinstance(sample, Mapping)
    plain: Any = entries if mapping else list(entries.values())
    if isinstance(sample, tuple):
        return type(sample)(*plain) if hasattr(sample, "_fields") else plain
    try:
        if not isinstance(sample, MutableMapping | MutableSequence):
            return type(sample)(plain)
        # A copy keeps the attributes, and the default factory of a defaultdict.
        changed: Any = copy.copy(sample)
        for key, value in entries.items():
            changed[key] = value
        return changed
    except TypeError:
        return plain


def _no_batch_error(kind: str) -> FlowError:
    return arg_error(
        "default_collate",
        "batch",
        expected="tensors, arrays, numbers, strings, or tuples, lists and dicts of these",
        got=f"samples of type {kind}",
        hint="pass a collate_fn of your own",
        kind=ArgumentTypeError,
    )


def collate_tensor_fn(batch: Any, *, collate_fn_map: CollateMap | None = None) -> Any:
    """Stack tensors of one shape."""
    return stack(list(batch))


def collate_numpy_array_fn(batch: Any, *, collate_fn_map: CollateMap | None = None) -> Any:
    """Stack arrays of numbers."""
    if batch[0].dtype.kind in _TEXT:
        raise _no_batch_error(str(batch[0].dtype))
    return collate([as_tensor(array) for array in batch], collate_fn_map=collate_fn_map)


def collate_numpy_scalar_fn(batch: Any, *, collate_fn_map: CollateMap | None = None) -> Any:
    """Make a tensor of NumPy's scalars."""
    return as_tensor(np.array(batch))


def collate_float_fn(batch: Any, *, collate_fn_map: CollateMap | None = None) -> Any:
    """Make a float64 tensor of floats."""
    return tensor(batch, dtype=float64)


def collate_int_fn(batch: Any, *, collate_fn_map: CollateMap | None = None) -> Any:
    """Make a tensor of ints or bools."""
    return tensor(batch)


def collate_str_fn(batch: Any, *, collate_fn_map: CollateMap | None = None) -> Any:
    """Leave strings as they are."""
    return batch


default_collate_fn_map: CollateMap = {
    Tensor: collate_tensor_fn,
    np.ndarray: collate_numpy_array_fn,
    (np.bool_, np.number, np.object_): collate_numpy_scalar_fn,
    float: collate_float_fn,
    int: collate_int_fn,
    str: collate_str_fn,
    bytes: collate_str_fn,
}


def default_collate(batch: Any) -> Any:
    """Join samples along a new first dimension, going into tuples, lists and dicts.

    Tensors and arrays are stacked, numbers become a tensor (floats of float64), strings stay a
    list. Tuples of a sample become a list of batches, named tuples and dicts keep their kind. A
    type added to `_utils.collate.default_collate_fn_map` is joined by the function given there.

    Raises
    ------
    ArgumentTypeError
        For samples of another type.
    ShapeError
        When tensors or sequences are not of one size.

    Examples
    --------
    >>> import oneflow_lite as flow
    >>> flow.utils.data.default_collate([(1, "a"), (2, "b")])
    [tensor([1, 2]), ('a', 'b')]
    """
    try:
        return collate(batch, collate_fn_map=default_collate_fn_map)
    except RecursionError:
        raise nesting_error("default_collate", "batch", batch) from None


def default_convert(data: Any) -> Any:
    """Make tensors of the arrays and NumPy scalars in a sample, which share their memory.

    It goes into tuples, lists and dicts as `default_collate` does. All remaining values, and arrays
    of strings and objects, stay as they are.

    >>> import numpy as np
    >>> import oneflow_lite as flow
    >>> flow.utils.data.default_convert({"x": np.array([1, 2]), "y": 3})
    {'x': tensor([1, 2]), 'y': 3}
    """
    try:
        return _converted(data)
    except RecursionError:
        raise nesting_error("default_convert", "data", data) from None


def _converted(data: Any) -> Any:
    if isinstance(data, np.ndarray | np.generic) and data.dtype.kind not in _TEXT:
        return as_tensor(data)
    if isinstance(data, Mapping):
        return _like(data, {key: _converted(data[key]) for key in data})
    if isinstance(data, Sequence) and not isinstance(data, str | bytes):
        return _like(data, {key: _converted(value) for key, value in enumerate(data)})
    return data
