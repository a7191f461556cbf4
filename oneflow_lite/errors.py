"""Every exception the package raises.

Each class derives from `FlowError` and from the built-in exception that PyTorch raises in the same
place, so that `except RuntimeError` written for PyTorch keeps working.
"""

import contextlib
import inspect
import re
from collections.abc import Iterator
from typing import Any

import numpy as np


class FlowError(Exception):
    """Base of all exceptions of oneflow_lite."""


class ShapeError(FlowError, RuntimeError):
    """Shapes of the arguments do not fit the op."""


class DTypeError(FlowError, RuntimeError):
    """A dtype does not fit the op, or cannot require gradients."""


class DeviceError(FlowError, RuntimeError):
    """Tensors on different devices were mixed, or a device is missing."""


class OutOfMemoryError(DeviceError, MemoryError):
    """A size that no array can have, or for which there is no memory."""


class NoDataError(DeviceError, NotImplementedError):
    """The values of a tensor on the device "meta" were asked for, which has none."""


class LinAlgError(FlowError, RuntimeError):
    """A matrix has no inverse, no such factorization, or an algorithm did not converge."""


class DimError(FlowError, IndexError, RuntimeError):
    """A dimension is out of range (IndexError in PyTorch) or given twice (RuntimeError)."""


class IndexRangeError(FlowError, IndexError, RuntimeError):
    """An index lies outside the tensor it indexes (PyTorch raises either built-in, by the op)."""


class ArgumentError(FlowError, ValueError, RuntimeError):
    """An argument has the right type and a wrong value (PyTorch raises either built-in)."""


class ArgumentTypeError(FlowError, TypeError):
    """An argument has the wrong Python type."""


class ForeignTypeError(ArgumentTypeError):
    """An argument is of a class that may do the functor's work itself, by `__torch_function__`."""


class OptionError(ArgumentError, AssertionError):
    """An option, or a combination of options, that does not exist (PyTorch asserts on these)."""


class RegistrationError(FlowError, ValueError):
    """A name is registered twice, or a registration contradicts itself."""


class KernelError(FlowError, RuntimeError):
    """The kernel of an op returned something that is no array of a supported dtype."""


class UnknownOpError(FlowError, RuntimeError):
    """No kernel, functor or gradient function has this name."""


class GradientError(FlowError, RuntimeError):
    """A backward call cannot be served: wrong gradients, unused inputs, nothing recorded."""


class ExportError(GradientError, BufferError):
    """A tensor that requires a gradient was to be exported through DLPack."""


class NotDifferentiableError(GradientError):
    """The derivative that was asked for does not exist or has not been written."""


class FreedGraphError(GradientError):
    """A second backward through a graph whose saved tensors were released."""


class StaleTensorError(GradientError):
    """A tensor that a gradient needs was overwritten in place after it was saved."""


class CheckpointError(GradientError):
    """A checkpointed function did not do the same when it ran again."""


class AnomalyError(GradientError):
    """Anomaly mode met a NaN in a gradient; the text says where the forward op was called."""


class NestedBackwardError(GradientError, RecursionError):
    """Backward calls are inside one another without end."""


class GradcheckError(FlowError, RuntimeError):
    """A gradient differs from finite differences, or from the result of a second try."""


class TransformError(FlowError, RuntimeError):
    """A function under vmap, jvp or jet does what the transform cannot follow."""


class InplaceError(FlowError, RuntimeError):
    """An in-place write that autograd cannot follow."""


class CaptureError(FlowError, RuntimeError):
    """A call that depends on values was met while a Program was being captured."""


class SerializationError(FlowError, RuntimeError):
    """A file cannot be read or written as a state dict."""


class OnnxError(FlowError, RuntimeError):
    """A module or Program cannot be exported to ONNX."""


class OnnxMissingError(FlowError, ImportError):
    """The package onnx is not installed."""


class StateDictError(FlowError, RuntimeError):
    """Keys or shapes of a state dict do not match the module."""


class MissingOptionError(ArgumentError, KeyError):
    """A dict lacks a key that is asked for, as a parameter group an option that is read from it."""

    __str__ = Exception.__str__  # KeyError would show the message as a quoted key


class ModuleNameError(FlowError, KeyError):
    """A parameter, buffer or submodule cannot be registered under this name."""

    __str__ = Exception.__str__  # KeyError would show the message as a quoted key


class ModuleAttributeError(FlowError, AttributeError):
    """A module has no such attribute, or `Module.__init__` has not run yet."""


class MissingMethodError(FlowError, NotImplementedError):
    """A method was called that a subclass has to define, as `forward`."""


class UnsupportedError(FlowError, NotImplementedError):
    """A name of PyTorch's was called that this library has for imports alone."""


class WorkerError(FlowError, RuntimeError):
    """A worker process of a DataLoader died, or did not answer in time."""


class DistributedError(FlowError, RuntimeError):
    """Processes that should work together disagree, one has ended, or none answers in time."""


class HookError(FlowError, RuntimeError):
    """A hook returned something that cannot be used."""


# How NumPy refuses a size, in errors of classes which it uses for much else.
_TOO_LARGE = re.compile(
    "too large|too big|Maximum allowed|negative dimensions|cannot reshape|cannot fit|"
    "signed integer is"
)


def arg_error(
    op: str,
    argument: str,
    expected: str,
    got: Any,
    hint: str,
    kind: type[FlowError] = ShapeError,
) -> FlowError:
    """Build the exception for a bad argument: op, argument, expected and given value, and a hint.

    A tensor is shown by its shape.

    >>> from oneflow_lite.errors import DimError, arg_error
    >>> print(arg_error("sum", "dim", "-2 to 1", 5, "count from 0", DimError))
    sum(): argument 'dim': expected -2 to 1, got 5; count from 0
    """
    got = f"shape {got.shape}" if hasattr(got, "_data") else got  # Tensor stands above this file
    return kind(f"{op}(): argument '{argument}': expected {expected}, got {got}; {hint}")


def is_too_large(error: Exception) -> bool:
    """Return whether NumPy or CuPy refuses a size, or has no memory for it."""
    if isinstance(error, FlowError):
        return False
    texts = isinstance(error, ValueError | OverflowError) and _TOO_LARGE.search(str(error))
    return isinstance(error, MemoryError) or bool(texts)


def too_large_error(op: str, given: str, error: Exception) -> OutOfMemoryError:
    """Build the error for sizes that are too large."""
    made = OutOfMemoryError(
        f"{op}(): arrays of sizes that do not fit into memory are needed for {given} "
        f"({str(error) or 'out of memory'}); ask for smaller sizes"
    )
    return made.with_traceback(error.__traceback__)


@contextlib.contextmanager
def memory_for(op: str, **sizes: Any) -> Iterator[None]:
    """Have what a block needs too much memory for raise an error that names the op and the sizes.

    For arrays that are made outside of kernels.
    """
    try:
        yield
    except (MemoryError, ValueError, OverflowError) as error:
        if not is_too_large(error):
            raise
        given = ", ".join([f"{name}={value!r}" for name, value in sizes.items()])
        raise too_large_error(op, given, error) from None


def nesting_error(op: str, argument: str, value: Any) -> FlowError:
    """Build the error for nested sequences or dicts whose walk does not end."""
    expected, got = "something nested less deeply", f"a {type(value).__name__} without an end"
    hint = "flatten it, and let it not contain itself"
    return arg_error(op, argument, expected, got, hint, ArgumentError)


def shown(error: Exception) -> str:
    """Return the repr of an exception, in short where it is long or has no end."""
    try:
        text = repr(error)
    except Exception:  # of a user's class, or nested without an end
        return f"a {type(error).__name__}"
    return text if len(text) <= 300 else f"{text[:300]}…"


ATOMS = (bool, int, float, complex, str, bytes, type(None))
_LONGEST = 60  # characters of one value
_MOST = 4  # elements of a list


def is_tensor(value: Any) -> bool:
    """Return whether a value is a Tensor, whose class stands above this file."""
    return hasattr(type(value), "_asked")


def brief(value: Any, levels: int = 3) -> str:
    """Return a few words for any value: no addresses, and no code of the value's class.

    Of lists in lists so many levels are shown.

    >>> import numpy as np
    >>> from oneflow_lite.errors import brief
    >>> brief([1, 2]), brief(np.ones((2, 3))), brief({"a": print}), brief(list("abcdefgh"))
    ('[1, 2]', 'float64[2, 3]', 'dict', 'list of 8')
    """
    kind = type(value)
    if kind in ATOMS:
        try:
            text = repr(value)
        except ValueError:  # an int of more digits than Python writes
            return f"an int of {value.bit_length()} bits"
        return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."
    if kind in (list, tuple):
        if len(value) > _MOST or not levels:
            return f"{kind.__name__} of {len(value)}"
        inner = ", ".join([brief(each, levels - 1) for each in value])
        return f"[{inner}]" if kind is list else f"({inner}{',' * (len(value) == 1)})"
    if is_tensor(value) or isinstance(value, np.ndarray):
        return f"{value.dtype.name}{list(value.shape)}"
    if kind.__module__.startswith("oneflow_lite.arrays"):  # a device, a dtype
        return repr(value)
    if inspect.isroutine(value) or inspect.isclass(value):
        return str(value.__qualname__)
    return kind.__name__


def type_error(op: str, argument: str, expected: str, value: Any, hint: str) -> FlowError:
    """Build the exception for an argument of a wrong type.

    >>> from oneflow_lite.errors import type_error
    >>> print(type_error("save", "program", "a Program", [], "make one"))
    save(): argument 'program': expected a Program, got list; make one
    """
    owner = type(value)  # a class of tensors says by itself whether it is asked
    foreign = getattr(owner, "_asked", hasattr(owner, "__torch_function__"))
    kind = ForeignTypeError if foreign else ArgumentTypeError
    return arg_error(op, argument, expected, type(value).__name__, hint, kind)
