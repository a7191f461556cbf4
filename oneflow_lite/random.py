"""The generator of random numbers, under the names of `torch.random`."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from typing import Any

from oneflow_lite.arrays.device import DeviceLike
from oneflow_lite.functors.random import (
    default_generator as default_generator,
    get_rng_state as get_rng_state,
    initial_seed as initial_seed,
    manual_seed as manual_seed,
    seed as seed,
    set_rng_state as set_rng_state,
)
from oneflow_lite.ops.exposure import expose

expose(globals())


@contextlib.contextmanager
def fork_rng(
    devices: Iterable[DeviceLike] | None = None, enabled: bool = True, **options: Any
) -> Iterator[None]:
    """Put the generator back after a `with` block; its one state serves all devices.

    >>> import oneflow_lite as flow
    >>> _ = flow.manual_seed(0)
    >>> with flow.random.fork_rng():
    ...     inside = flow.rand(2)
    >>> bool((flow.rand(2) == inside).all())
    True
    """
    state = get_rng_state()
    try:
        yield
    finally:
        if enabled:
            set_rng_state(state)
