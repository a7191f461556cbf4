"""Hooks that sum a bucket of gradients, as they are or in fewer bits.

A hook takes the state that it was registered with, a process group or None for the world, and a
`GradBucket`; it returns the future of the mean over all ranks.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from oneflow_lite.arrays.dtype import as_dtype
from oneflow_lite.distributed.collectives import all_reduce
from oneflow_lite.distributed.process_group import ProcessGroup, check_group
from oneflow_lite.futures import Future
from oneflow_lite.ops.exposure import expose
from oneflow_lite.tensors.tensor import Tensor

expose(globals())

Hook = Callable[[Any, Any], Future]


def _mean(group: Any, x: Tensor) -> Future:
    group = check_group("allreduce_hook", group)
    # Divided before the sum, which could overflow float16.
    work: Any = all_reduce(x.div_(group.size()), group=group, async_op=True)
    return Future(lambda: work.wait() and x)


def allreduce_hook(process_group: ProcessGroup, bucket: Any) -> Future:
    """Return the mean over all ranks, as without a hook."""
    return _mean(process_group, bucket.buffer())


def fp16_compress_hook(process_group: ProcessGroup, bucket: Any) -> Future:
    """Send gradients as float16, which halves the bytes of float32."""
    return _compressed("float16", _mean, process_group, bucket)


def bf16_compress_hook(process_group: ProcessGroup, bucket: Any) -> Future:
    """Send gradients as bfloat16, which halves the bytes of float32 and keeps its range."""
    return _compressed("bfloat16", _mean, process_group, bucket)


def noop_hook(state: Any, bucket: Any) -> Future:
    """Send nothing: each rank keeps its own gradients. This measures what communication costs."""
    return Future(bucket.buffer)


def fp16_compress_wrapper(hook: Hook) -> Hook:
    """Return a hook that runs `hook` on gradients in float16."""
    return _wrapper("float16", hook)


def bf16_compress_wrapper(hook: Hook) -> Hook:
    """Return a hook that runs `hook` on gradients in bfloat16."""
    return _wrapper("bfloat16", hook)


def _compressed(dtype: str, mean: Any, group: Any, bucket: Any) -> Future:
    whole = bucket.buffer()
    future = mean(group, whole.to(as_dtype("compress_hook", dtype)))
    return Future(lambda: whole.copy_(future.wait()))


def _wrapper(dtype: str, hook: Hook) -> Hook:
    def wrapped(state: Any, bucket: Any) -> Future:
        whole = bucket.buffer()
        bucket.set_buffer(whole.to(as_dtype("compress_wrapper", dtype)))
        future = hook(state, bucket)
        return Future(lambda: whole.copy_(future.wait()))

    return wrapped
