"""Switches of PyTorch: each is kept and can be read, and documents its effect here."""

from __future__ import annotations

from typing import Any

from oneflow_lite.arrays.device import set_default_device
from oneflow_lite.arrays.dtype import as_dtype, set_default_dtype
from oneflow_lite.arrays.refusals import guarded
from oneflow_lite.arrays.threads import threads
from oneflow_lite.compatibility.tensors import TensorType, check_dtype
from oneflow_lite.errors import ArgumentError, ArgumentTypeError, arg_error
from oneflow_lite.ops import cudnn, eager_loops
from oneflow_lite.tensors.tensor_methods import TYPE_NAMES

_state: dict[str, Any] = {
    "threads": None,
    "interop_threads": None,
    "deterministic": 0,
    "precision": "highest",
    "warn_always": False,
}


def _positive(op: str, value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        kind: Any = ArgumentTypeError
    elif value < 1:
        kind = ArgumentError
    else:
        return value
    raise arg_error(op, "int", "an int of at least 1", repr(value), "pass a larger one", kind)


def get_num_threads() -> int:
    """Return the number kept by `set_num_threads`; at first OMP_NUM_THREADS or that of cores."""
    return _state["threads"] or threads()


def set_num_threads(int: int) -> None:
    """Keep a number; NumPy's libraries read OMP_NUM_THREADS instead, once, when they start."""
    _state["threads"] = _positive("set_num_threads", int)


def get_num_interop_threads() -> int:
    """Return the number kept by `set_num_interop_threads`; at first 1, as ops run in sequence."""
    return _state["interop_threads"] or 1


def set_num_interop_threads(int: int) -> None:
    """Keep a number."""
    _state["interop_threads"] = _positive("set_num_interop_threads", int)


@guarded
def use_deterministic_algorithms(mode: bool, *, warn_only: bool = False) -> None:
    """Give a seeded script the same bits at every run.

    Engines of cuDNN whose results differ from run to run are barred. Machine code, which may differ
    from NumPy in the last bits, takes over at calls that do not depend on how long it takes to
    build: such a call waits for it. All else is deterministic anyway.
    """
    set_deterministic_debug_mode((1 if warn_only else 2) if mode else 0)


def are_deterministic_algorithms_enabled() -> bool:
    """Return whether `use_deterministic_algorithms` was asked for."""
    return bool(_state["deterministic"])


def is_deterministic_algorithms_warn_only_enabled() -> bool:
    """Return whether it was asked for with `warn_only`."""
    return bool(_state["deterministic"] == 1)


def get_deterministic_debug_mode() -> int:
    """Return the setting as a number: 0 off, 1 warnings, 2 errors."""
    return int(_state["deterministic"])


@guarded
def set_deterministic_debug_mode(debug_mode: int | str) -> None:
    """Give `use_deterministic_algorithms` a number, or "default", "warn" or "error"."""
    levels: dict[Any, int] = {"default": 0, "warn": 1, "error": 2, 0: 0, 1: 1, 2: 2}
    if debug_mode not in levels:
        raise arg_error(
            "set_deterministic_debug_mode",
            "debug_mode",
            expected="0, 1, 2, 'default', 'warn' or 'error'",
            got=repr(debug_mode),
            hint="name one of these",
            kind=ArgumentError,
        )
    _state["deterministic"] = levels[debug_mode]
    cudnn.deterministic_algorithms = eager_loops.deterministic = bool(levels[debug_mode])


def get_float32_matmul_precision() -> str:
    """Return the word kept by `set_float32_matmul_precision`."""
    return str(_state["precision"])


@guarded
def set_float32_matmul_precision(precision: str) -> None:
    """Keep a word, "highest", "high" or "medium": float32 is always computed in full."""
    if precision not in ("highest", "high", "medium"):
        raise arg_error(
            "set_float32_matmul_precision",
            "precision",
            expected="'highest', 'high' or 'medium'",
            got=repr(precision),
            hint="name one of these",
            kind=ArgumentError,
        )
    _state["precision"] = precision


def set_flush_denormal(mode: bool) -> bool:
    """Return False: the processor's mode is left as it is."""
    return False


@guarded
def set_warn_always(b: bool, /) -> None:
    """Keep the setting: the module warnings decides which warnings are repeated."""
    _state["warn_always"] = bool(b)


def is_warn_always_enabled() -> bool:
    """Return the setting of `set_warn_always`."""
    return bool(_state["warn_always"])


def set_default_tensor_type(t: Any, /) -> None:
    """Set the default dtype and device by a typed tensor or its name, "torch.DoubleTensor"."""
    op = "set_default_tensor_type"
    text = t.type_name if isinstance(t, TensorType) else t
    place, _, name = str(text).removeprefix("torch.").rpartition(".")
    if not isinstance(text, str) or name not in TYPE_NAMES or place not in ("", "cuda"):
        raise arg_error(
            op,
            "t",
            expected="a type of floating point tensors or its name",
            got=repr(t),
            hint="pass 'torch.FloatTensor' or 'torch.DoubleTensor'",
            kind=ArgumentTypeError,
        )
    dtype = as_dtype(op, TYPE_NAMES[name])
    check_dtype(op, dtype)
    set_default_device(place or "cpu")
    set_default_dtype(dtype)
