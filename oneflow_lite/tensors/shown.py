"""Short reprs: the class of an object, and the options that it was made with."""

from __future__ import annotations

import inspect
from typing import Any

_ATOMS = (bool, int, float, complex, str, bytes, type(None))
_LONGEST = 60  # characters of one value
_MOST = 4  # elements of a list


class Shown:
    """Gives a class a repr: its name, and the options that differ from their defaults.

    An option is a parameter of `__init__` that the object keeps under the same name, also with an
    underscore before it. Nothing is computed, and no code of a subclass runs.

    Examples
    --------
    >>> import oneflow_lite as flow
    >>> from oneflow_lite.utils.data import BatchSampler, SequentialSampler, TensorDataset
    >>> data = TensorDataset(flow.ones(6, 2), flow.ones(6))
    >>> data
    TensorDataset(tensors=(Tensor of shape (6, 2), Tensor of shape (6,)))
    >>> BatchSampler(SequentialSampler(data), 2, drop_last=False)
    BatchSampler(sampler=SequentialSampler, batch_size=2, drop_last=False)
    """

    def _facts(self) -> dict[str, Any]:
        """Return what the repr says beside the options."""
        return {}

    def __repr__(self) -> str:
        kind, kept = type(self), vars(self)
        options: dict[str, Any] = {}
        for p in [*inspect.signature(kind.__init__).parameters.values()][1:]:
            value = kept.get(p.name, kept.get(f"_{p.name}", p.default))
            if not _is_default(value, p.default):
                options[p.name] = value
        facts = (options | self._facts()).items()
        return f"{kind.__name__}({', '.join(f'{name}={brief(value)}' for name, value in facts)})"


def _is_default(value: Any, default: Any) -> bool:
    return value is default or (isinstance(value, _ATOMS) and bool(value == default))


def brief(value: Any) -> str:
    """Return a few words for any value: no addresses, and no code of the value's class.

    >>> from oneflow_lite.tensors.shown import brief
    >>> brief([1, 2]), brief(range(9)), brief({"a": print}), brief(list("abcdefgh"))
    ('[1, 2]', 'range', 'dict', 'list of 8')
    """
    kind = type(value)
    if kind in _ATOMS:
        text = repr(value)
        return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."
    if kind in (list, tuple):
        if len(value) > _MOST:
            return f"{kind.__name__} of {len(value)}"
        inner = ", ".join(map(brief, value))
        return f"[{inner}]" if kind is list else f"({inner}{',' * (len(value) == 1)})"
    if isinstance(shape := inspect.getattr_static(value, "shape", None), property):
        return f"{kind.__name__} of shape {tuple(shape.__get__(value))}"
    if kind.__module__.startswith("oneflow_lite.arrays"):  # a device, a dtype
        return repr(value)
    if inspect.isroutine(value) or inspect.isclass(value):
        return str(value.__qualname__)
    return kind.__name__
