"""`RawModule` and `RawKernel`: CUDA C++ that `emulation` runs, where there is a C++ compiler."""

from typing import Any

from tests.strict_cupy import emulation
from tests.strict_cupy.array import _check_devices, _launch, _run, ndarray
from tests.strict_cupy.devices import CUDARuntimeError

texts: dict[str, tuple[str, ...]] = {}  # all that was compiled in this process, and the options


class RawKernel:
    """One kernel of a text; its arguments are arrays."""

    def __init__(self, code: str, name: str, options: tuple[str, ...] = ()) -> None:
        if not isinstance(options, tuple):
            raise TypeError("Argument 'options' has incorrect type")
        self.code, self.name, self.options = code, name, options
        self._writes = emulation.written_by(code, name)

    def compile(self, log_stream: Any = None) -> None:
        if emulation.COMPILER is None:
            raise CUDARuntimeError("there is no C++ compiler to emulate kernels with")
        texts[self.code] = self.options
        emulation.compiled(self.code)

    def __call__(self, grid: Any, block: Any, args: Any, *, shared_mem: int = 0) -> None:
        if not all(isinstance(each, tuple) for each in (grid, block, args)):
            raise TypeError("grid, block and args are tuples")
        for argument in args:
            if not isinstance(argument, ndarray):
                raise TypeError(f"Unsupported type {type(argument)}")
        if len(args) != len(self._writes):
            raise CUDARuntimeError(f"{self.name} has {len(self._writes)} parameters")
        if max(block) > 1024 or max(grid[1:], default=0) > 65535 or not min(*grid, *block):
            raise CUDARuntimeError(f"CUDA_ERROR_INVALID_VALUE: {grid} blocks of {block} threads")
        _check_devices(list(args))
        _run(
            self.name,
            lambda *arrays: emulation.launch(self.code, self.name, grid, block[0], arrays),
            [array._host for array in args],
        )
        reads = [a for a, writes in zip(args, self._writes, strict=True) if not writes]
        writes = [a for a, writes in zip(args, self._writes, strict=True) if writes]
        _launch(self.name, reads, writes)


class RawModule:
    """The kernels of a text."""

    def __init__(
        self,
        *,
        code: str | None = None,
        path: str | None = None,
        options: tuple[str, ...] = (),
        backend: str = "nvrtc",
    ) -> None:
        if code is None or path is not None:
            raise TypeError("the stand-in takes a text")
        self.code, self.options = code, options

    def compile(self, log_stream: Any = None) -> None:
        RawKernel(self.code, "", self.options).compile()

    def get_function(self, name: str) -> RawKernel:
        return RawKernel(self.code, name, self.options)
