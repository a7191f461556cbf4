"""`jit`: functions and modules come back as they are; `flow.compile` compiles."""

from __future__ import annotations

import builtins
from collections.abc import Callable
from typing import Any, Final as Final

from oneflow_lite.nn.module import Module

ScriptModule = RecursiveScriptModule = TopLevelTracedModule = Module
Error = RuntimeError


def _itself(obj: Any = None, *args: Any, **kwargs: Any) -> Any:
    """Return the function or module as it is; given only options, a decorator that returns it."""
    return obj if callable(obj) else lambda function: function


script = trace = trace_module = script_method = script_if_tracing = ignore = unused = _itself
export = interface = freeze = optimize_for_inference = run_frozen_optimizations = _itself
jit_module_from_flatbuffer = _itself


def annotate(the_type: Any, the_value: Any) -> Any:
    """Return the value."""
    return the_value


Attribute = lambda value, type: value  # noqa: E731


def is_scripting() -> bool:
    """Return False: nothing is scripted."""
    return False


is_tracing = is_scripting


def isinstance(obj: Any, target_type: Any) -> bool:
    """Return whether an object is of a type, or of one of several."""
    return builtins.isinstance(obj, target_type)


def fork(func: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Return the result of a function, which runs at once."""
    return func(*args, **kwargs)


def wait(future: Any) -> Any:
    """Return the result of `fork`."""
    return future


def enable_onednn_fusion(enabled: bool) -> None:
    """Do nothing."""


def set_fusion_strategy(strategy: Any) -> None:
    """Do nothing."""


def _files(op: str) -> Callable[..., Any]:
    def absent(*args: Any, **kwargs: Any) -> Any:
        raise RuntimeError(
            f"jit.{op}(): there are no TorchScript files here; use flow.save and flow.load with a "
            "state_dict, or flow.static.save and load with a Program"
        )

    return absent


save, load = _files("save"), _files("load")
