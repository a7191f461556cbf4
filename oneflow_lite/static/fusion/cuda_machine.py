"""Groups as kernels on a CUDA device, which NVRTC compiles and CuPy launches.

Compiled kernels are kept by their source, here for the process and by CuPy in its own folder.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from oneflow_lite.arrays.device import Device, on_device, require_cupy
from oneflow_lite.static.fusion.cuda_source import (
    OPTIONS,
    THREADS,
    VECTOR,
    CudaSource,
    cuda_source_of,
)
from oneflow_lite.static.fusion.group import Group
from oneflow_lite.static.ir.program import Block

Launcher = Callable[..., None]


def compiled(group: Group, block: Block, place: Device) -> tuple[Launcher, str]:
    """Return a function of a group's inputs and outputs, as arrays, and the source of its kernels.

    The function launches on the current stream, and waits for nothing.

    Raises
    ------
    Exception
        Whatever NVRTC says where it cannot compile.
    """
    source = cuda_source_of(group, block)
    with on_device(place):
        launch = _launcher(source)
    if not source.packed:
        return launch, source.text

    @functools.cache
    def unpacked() -> Launcher:
        return _launcher(cuda_source_of(group, block, packed=False))

    def run(*arrays: Any) -> None:
        if any([arrays[i].data.ptr % VECTOR for i in source.packed]):
            unpacked()(*arrays)
        else:
            launch(*arrays)

    return run, source.text


@functools.lru_cache(1024)
def _module(text: str) -> Any:
    return require_cupy().RawModule(code=text, options=OPTIONS)


def _launcher(source: CudaSource) -> Launcher:
    module, cupy = _module(source.text), require_cupy()
    steps = [(module.get_function(name), grid) for name, grid in source.launches]
    module.compile()
    block = (THREADS,)

    def launch(*arrays: Any) -> None:
        arrays += tuple([cupy.empty(n) for n in source.parts])
        for kernel, grid in steps:
            kernel(grid, block, arrays)

    return launch
