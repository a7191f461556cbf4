"""Whose code is whose, and which functions of Python itself neither have effects nor hidden state.

Asked by `flow.compile` about everything that a function names or calls.
"""

from __future__ import annotations

import builtins
import os
import site
import sys
import sysconfig
from collections import OrderedDict, defaultdict, deque
from types import BuiltinFunctionType, CodeType, FunctionType, GeneratorType, MappingProxyType
from typing import Any, Literal

import numpy as np

from oneflow_lite.static.ir.location import is_own_code

Origin = Literal["own", "library", "user"]
BUILTINS = builtins.__dict__

_PATHS = sysconfig.get_paths()
_LIBRARY = tuple(
    {
        spelling + os.sep
        for folder in (
            *(_PATHS[name] for name in ("stdlib", "platstdlib", "purelib", "platlib")),
            *site.getsitepackages(),
            site.getusersitepackages(),
            os.path.dirname(os.__file__),
        )
        for spelling in (folder, os.path.realpath(folder))
    }
)
# Modules whose functions answer with nothing but what they are given.
PURE_MODULES = frozenset(
    """
    __future__ _abc _collections _collections_abc _functools _operator abc cmath collections
    collections.abc contextlib dataclasses enum functools itertools math numbers operator types
    typing
    """.split()
)
_PURE = {
    BUILTINS[name]
    for name in """
    abs all any ascii bin callable chr delattr divmod format hex isinstance issubclass iter len max
    min next oct ord pow repr round setattr sorted sum __build_class__
    """.split()
}
# They read attributes by names that do not stand in the code.
_REFLECTIVE = {BUILTINS[name] for name in ("getattr", "hasattr", "vars", "dir")}
_CONTAINERS: tuple[type, ...] = (
    list, dict, tuple, set, frozenset, str, bytes, bytearray, int, float, complex, range, slice,
    OrderedDict, defaultdict, deque, MappingProxyType, GeneratorType, np.generic, np.dtype,
    type({}.keys()), type({}.values()), type({}.items()), type(None),
)  # fmt: skip
_CONSTRUCTORS = {"__new__", "fromkeys", "from_bytes", "fromhex", "maketrans", "__init_subclass__"}
_PURE_GENERATED = (
    "<attrs generated", "<frozen importlib", "<frozen abc", "<frozen _collections_abc",
)  # fmt: skip
# Library files written in Python that user code may enter.
_PURE_FILES = frozenset(
    """
    _collections_abc.py abc.py contextlib.py dataclasses.py enum.py functools.py numbers.py
    operator.py types.py typing.py
    """.split()
)
# Functions of this package with effects that no replay would repeat, or on files.
_OWN_EFFECTS = frozenset(
    """
    Generator.get_state Generator.initial_seed Generator.manual_seed Generator.seed
    Generator.set_state get_rng_state initial_seed load manual_seed
    register_functor register_grad_func register_kernel register_op save seed set_default_dtype
    set_rng_state
    """.split()
)


_HEAP_TYPE = 1 << 9  # Py_TPFLAGS_HEAPTYPE: a class that a class statement made
_of_file: dict[str, Origin] = {}


def origin(code: CodeType) -> Origin:
    """Return whose code it is: the package's own, that of Python or an installed library, a user's.

    Examples
    --------
    >>> import json
    >>> import oneflow_lite as flow
    >>> from oneflow_lite.static.capture.trusted import origin
    >>> [origin(f.__code__) for f in (flow.relu, json.dumps, lambda: 0)]
    ['own', 'library', 'user']
    """
    name = code.co_filename
    known = _of_file.get(name)
    if known is None:
        if is_own_code(code):
            known = "own"
        elif name.startswith(("<frozen", "<attrs generated")) or name.startswith(_LIBRARY):
            known = "library"
        else:
            known = "user"
        _of_file[name] = known
    return known


def origin_of_module(name: str | None) -> Origin:
    """Return whose module it is, by its name."""
    root = (name or "").partition(".")[0]
    if root == "oneflow_lite":
        return "own"
    if root == "__main__":  # whatever file `python -m` started
        return "user"
    if root in sys.stdlib_module_names or root == "numpy":
        return "library"
    file = getattr(sys.modules.get(name or ""), "__file__", None)
    if file is not None and str(file).startswith(_LIBRARY):
        return "library"
    return "user"


def origin_of_class(cls: type) -> Origin:
    """Return whose class it is."""
    return origin_of_module(cls.__module__)


def is_found(cls: type) -> bool:
    """Return whether a class stands in the module that it names, or was made in C.

    make_dataclass() and new_class() make classes that name the module `types`.
    """
    if not cls.__flags__ & _HEAP_TYPE:
        return True
    module = sys.modules.get(cls.__module__)
    return getattr(module, cls.__qualname__.partition(".")[0], None) is not None


def call_reason(function: Any) -> str | None:
    """Return why a call of a C function cannot be left out of a replay; None when it can.

    Examples
    --------
    >>> import random
    >>> from oneflow_lite.static.capture.trusted import call_reason
    >>> call_reason(len), call_reason([].append), call_reason(random.random)
    (None, None, 'random()')
    """
    if is_reflective(function):
        return None
    owner = getattr(function, "__self__", None)
    if owner is None or type(owner) is type(sys):
        try:
            if function in _PURE:
                return None
        except TypeError:  # a callable that cannot be hashed
            pass
        module = getattr(function, "__module__", None)
        objclass = getattr(function, "__objclass__", None)
        if objclass is None and module in PURE_MODULES:
            return None
        if isinstance(objclass, type) and objclass in _CONTAINERS:
            return None
    elif isinstance(owner, type):
        if function.__name__ in _CONSTRUCTORS:
            return None
    elif isinstance(owner, _CONTAINERS) or _is_iterator(owner):
        return None
    return f"{getattr(function, '__name__', type(function).__name__)}()"


def is_reflective(function: Any) -> bool:
    """Return whether it reads attributes of its argument by a name that is a value."""
    return isinstance(function, BuiltinFunctionType) and function in _REFLECTIVE


def _is_iterator(value: Any) -> bool:
    return type(value).__module__ in ("builtins", "itertools") and hasattr(type(value), "__next__")


def may_enter(code: CodeType) -> bool:
    """Return whether user code may enter this code of a library."""
    name = code.co_filename
    if name.startswith(_PURE_GENERATED):
        return True
    return os.path.basename(name) in _PURE_FILES and name.startswith(_LIBRARY)


def reads_fields(code: CodeType) -> bool:
    """Return whether this code of a library reads all that an object holds, as asdict() does."""
    return os.path.basename(code.co_filename) == "dataclasses.py" and origin(code) == "library"


def has_own_effect(code: CodeType) -> bool:
    """Return whether this code of the package changes what no replay would change."""
    return code.co_qualname in _OWN_EFFECTS


def is_users(value: Any) -> bool:
    """Return whether a value is a user's function or method, or an object of a user's class."""
    value = getattr(value, "__func__", value)
    if type(value) is FunctionType:
        return origin(value.__code__) == "user"
    if callable(value):
        return origin_of_class(value if isinstance(value, type) else type(value)) == "user"
    return False
