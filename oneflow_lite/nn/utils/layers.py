"""Tells which layer a module is, by the names of its class and base classes."""

from oneflow_lite.arrays.refusals import guard_all
from oneflow_lite.nn.module import Module


def is_one_of(module: Module, *names: str) -> bool:
    """Return whether a module is an instance of the package's classes of these names."""
    package = __name__.partition(".")[0]
    return any(
        cls.__name__ in names and cls.__module__.partition(".")[0] == package
        for cls in module.__class__.__mro__
    )


def default_dim(module: Module) -> int:
    """Return the dimension of the outputs in a layer's weight."""
    return int(is_one_of(module, *(f"ConvTranspose{n}d" for n in (1, 2, 3))))


guard_all(globals())
