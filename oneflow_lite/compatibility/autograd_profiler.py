"""`torch.autograd.profiler`, the older face of `flow.profiler`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from oneflow_lite import profiler
from oneflow_lite.profiler import record_function as record_function


class profile(profiler.profile):
    """A profile with the arguments of older scripts; arguments for CUDA have no effect.

    >>> import oneflow_lite as flow
    >>> with flow.autograd.profiler.profile(use_cuda=False) as p:
    ...     y = flow.ones(2).exp()
    >>> [each.key for each in p.key_averages()]
    ['full', 'exp']
    """

    def __init__(
        self,
        enabled: bool = True,
        *,
        use_cuda: bool = False,
        use_device: str | None = None,
        record_shapes: bool = False,
        with_flops: bool = False,
        profile_memory: bool = False,
        with_stack: bool = False,
        with_modules: bool = False,
        use_kineto: bool = False,
        use_cpu: bool = True,
        experimental_config: Any = None,
        acc_events: bool = False,
        custom_trace_id_callback: Callable[[], str] | None = None,
    ) -> None:
        super().__init__(
            record_shapes=record_shapes,
            profile_memory=profile_memory,
            with_stack=with_stack,
            with_modules=with_modules,
        )
        self.enabled = enabled

    def start(self) -> None:
        """Begin, where it is enabled."""
        if self.enabled:
            super().start()

    @property
    def function_events(self) -> profiler.EventList:
        """All events."""
        return self.events()

    @property
    def self_cpu_time_total(self) -> float:
        """Microseconds of all events; an event inside another one counts once."""
        return self.events().self_cpu_time_total

    def total_average(self) -> profiler.FunctionEventAvg:
        """Return one average of all events."""
        return self.events().total_average()

    def table(
        self, sort_by: str | None = "self_cpu_time_total", row_limit: int = 100, **options: Any
    ) -> str:
        """Return the table of the averages."""
        return self.key_averages().table(sort_by, row_limit, **options)


@contextmanager
def emit_nvtx(enabled: bool = True, record_shapes: bool = False) -> Iterator[None]:
    """Do nothing: there are no ranges of NVTX."""
    yield
