"""CUDA graphs: a stream that captures takes kernels down instead of running them.

The result of a captured kernel is garbage until the graph is launched, as on a device. Kernels
of a graph are not followed by `races`.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

GARBAGE = 77
# What CuPy leaves to cuBLAS, which it does not let be captured.
CUBLAS = frozenset("dot einsum inner matmul outer tensordot vdot".split())


class Graph:
    """The kernels that a stream took down, in order."""

    def __init__(self) -> None:
        self.kernels: list[Callable[[], None]] = []

    def launch(self, stream: Any = None) -> None:
        """Run them, on the current stream if none is given."""
        for kernel in self.kernels:
            kernel()

    def upload(self, stream: Any = None) -> None:
        """Send the graph to the device before its first launch."""


def run_or_capture(graph: Graph | None, name: str, function: Any, args: Any, keywords: Any) -> Any:
    """Call a function of host arrays; or take it down, and return where its results will be."""
    with np.errstate(all="ignore"):  # a device has no floating point warnings
        if graph is None:
            return function(*args, **keywords)
        return _capture(graph, name, function, args, keywords)


def _capture(graph: Graph, name: str, function: Any, args: Any, keywords: Any) -> Any:
    if name in CUBLAS:
        raise NotImplementedError(
            "calling cuBLAS API during stream capture is currently unsupported"
        )
    originals: dict[int, Any] = {}
    copies: list[Any] = []

    def copied(value: Any) -> Any:
        if isinstance(value, np.ndarray):
            copies.append(np.copy(value, "K"))
            originals[id(copies[-1])] = value
            return copies[-1]
        if isinstance(value, list | tuple):
            return type(value)([copied(item) for item in value])
        if isinstance(value, dict):
            return {key: copied(item) for key, item in value.items()}
        return value

    def target(result: Any) -> Any:
        if isinstance(result, np.ndarray | np.generic):
            found = originals.get(id(result))
            return np.full_like(result, GARBAGE) if found is None else found
        if isinstance(result, list | tuple):
            return type(result)([target(item) for item in result])
        return result

    def write(targets: Any, results: Any) -> None:
        if isinstance(targets, np.ndarray):
            if targets is not results:
                targets[...] = results
        elif isinstance(targets, list | tuple):
            for item, result in zip(targets, results, strict=True):
                write(item, result)

    def kernel() -> None:
        with np.errstate(all="ignore"):
            write(targets, function(*args, **keywords))

    targets = target(function(*copied(args), **copied(keywords)))
    graph.kernels.append(kernel)
    return targets


def no_sync(graph: Graph | None) -> None:
    """Refuse to wait for a stream that captures."""
    if graph is not None:
        raise RuntimeError("the current stream is capturing, so it cannot be waited for")
