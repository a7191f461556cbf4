"""Short reprs: the class of an object, and the options that it was made with."""

from __future__ import annotations

import inspect
from typing import Any

from oneflow_lite.errors import ATOMS, brief


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
    TensorDataset(tensors=(float32[6, 2], float32[6]))
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
    return value is default or (isinstance(value, ATOMS) and bool(value == default))
