"""`jit`: functions and modules come back as they are; `flow.compile` compiles."""

from __future__ import annotations

import builtins
from collections.abc import Callable
from typing import Any, Final as Final

from oneflow_lite.compatibility.inert import no, none, same
from oneflow_lite.futures import Future as Future
from oneflow_lite.nn.module import Module

Error = RuntimeError
script = trace = trace_module = script_method = script_if_tracing = _script_if_tracing = same
export = interface = freeze = optimize_for_inference = run_frozen_optimizations = same
ignore = unused = _overload = _overload_method = jit_module_from_flatbuffer = same
is_scripting = is_tracing = no
enable_onednn_fusion = set_fusion_strategy = none


class TracerWarning(Warning):
    """The class of warnings of a trace; nothing is traced, so none is given."""


class ScriptModule(Module):
    """A module, for classes that derive from it; `script` makes none."""


RecursiveScriptModule = TopLevelTracedModule = ScriptModule


class ScriptFunction:
    """The class of scripted functions: there are none."""


def annotate(the_type: Any, the_value: Any) -> Any:
    """Return the value."""
    return the_value


Attribute = lambda value, type: value  # noqa: E731


def isinstance(obj: Any, target_type: Any) -> bool:
    """Return whether an object is of a type, or of one of several."""
    return builtins.isinstance(obj, target_type)


def fork(func: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Return the result of a function, which runs at once."""
    return func(*args, **kwargs)


def wait(future: Any) -> Any:
    """Return the result of `fork`."""
    return future


def _files(op: str) -> Callable[..., Any]:
    def absent(*args: Any, **kwargs: Any) -> Any:
        raise RuntimeError(
            f"jit.{op}(): there are no TorchScript files here; use flow.save and flow.load with a "
            "state_dict, or flow.static.save and load with a Program"
        )

    return absent


save, load = _files("save"), _files("load")
