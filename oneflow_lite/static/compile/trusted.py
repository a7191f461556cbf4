"""Tells whose code is whose, and which functions of Python have neither effects nor hidden state.

Asked by `flow.compile` about everything that a function names or calls.
"""

from __future__ import annotations

import os
import site
import sysconfig
from types import CodeType
from typing import Literal

from oneflow_lite.static.ir.location import is_own_code

Origin = Literal["own", "library", "user"]

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
# Functions of this package with effects that no replay would repeat, on files or other processes.
_OWN_EFFECTS = frozenset(
    """
    Generator.get_state Generator.initial_seed Generator.manual_seed Generator.seed
    Generator.set_state get_rng_state initial_seed load manual_seed
    register_functor register_grad_func register_kernel register_op save seed set_default_dtype
    set_rng_state
    all_gather_object broadcast_object_list destroy_process_group gather_object init_process_group
    irecv isend monitored_barrier new_group recv_object_list scatter_object_list send_object_list
    set_debug_level
    """.split()
)


_of_file: dict[str, Origin] = {}


def origin(code: CodeType) -> Origin:
    """Return whose code it is: the package's own, that of Python or an installed library, a user's.

    Examples
    --------
    >>> import json
    >>> import oneflow_lite as flow
    >>> from oneflow_lite.static.compile.trusted import origin
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


def has_own_effect(code: CodeType) -> bool:
    """Return whether this code of the package changes what no replay would change."""
    return code.co_qualname in _OWN_EFFECTS
