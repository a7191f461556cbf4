"""Kernels of users are watched at every call: which inputs they write, and what they return.

`OpExpr` binds a kernel here. The package's own kernels are certified by its tests and run bare.
"""

from __future__ import annotations

import contextlib
import functools
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from oneflow_lite.arrays.dtype import SUPPORTED
from oneflow_lite.arrays.dtype_object import CHAR
from oneflow_lite.errors import InplaceError, KernelError
from oneflow_lite.ops import upward
from oneflow_lite.ops.function_writer import FunctionWriter
from oneflow_lite.ops.registry import Schema

ndarray = np.ndarray


class _Local(threading.local):
    strict = False


local = _Local()


@contextlib.contextmanager
def refusing_aliases() -> Iterator[None]:
    """Let an output that shares memory without a declaration be an error on this thread."""
    before, local.strict = local.strict, True
    try:
        yield
    finally:
        local.strict = before


_CHARS = frozenset([d.char for d in SUPPORTED] + [CHAR])


def watched(op: str, kernel: Callable[..., Any], schema: Schema, xp: Any) -> Callable[..., Any]:
    """Return a user's kernel with the array module bound, and its promises on memory kept.

    NumPy's inputs that the schema does not name arrive read-only, so a write raises before it
    happens. Compiled code may write all the same, an input that may be viewed and an input on a
    device cannot be locked: in the first call they are compared. An output that shares memory
    without a declaration, or that the kernel keeps, is copied.

    Raises
    ------
    InplaceError
        When the kernel writes an input that `mutates` does not name.
    KernelError
        When it returns anything but arrays of supported dtypes.
    """
    watch = _Watch(op, kernel, schema, xp)
    if watch.locks and watch.viewed < 0 and schema.variadic is None and schema.inputs:
        return _written_out(watch)
    return watch.call


def _written_out(watch: _Watch) -> Callable[..., Any]:
    """Return `watch.call` for arrays of NumPy without its loops, which cost 3 µs."""
    schema, lines, given = watch.schema, [], []
    for i in range(len(schema.inputs)):
        locked = i not in watch.unlocked
        given.append(f"a{i}" if locked else f"x{i}")
        if locked:
            lines += [f"    a{i} = x{i}.view()", f"    a{i}.setflags(False)"]
    inputs = ", ".join([f"x{i}" for i in range(len(schema.inputs))])
    options = ", **attrs" if schema.attrs or schema.out else ""
    lines = [
        f"if not WATCH.compared: return GENERAL({inputs}{options})",
        *(["try:", *lines] if lines else []),
        *([f"except AttributeError: return GENERAL({inputs}{options})"] if lines else []),
        f"try: out = KERNEL({', '.join(given)}{options})",
        f"except (ValueError, TypeError) as error: raise EXPLAINED(error, ({inputs},))",
    ]
    if not schema.mutates:
        lines += [
            "if type(out) is NDARRAY and out.base is None and out.dtype.char in CHARS:",
            "    return out if REFERENCES(out) <= NEW else OWN(out)",
        ]
    lines.append(f"return SETTLED(out, ({inputs},))")
    names = {
        "WATCH": watch,
        "GENERAL": watch.call,
        "KERNEL": watch.kernel,
        "EXPLAINED": watch.explained,
        "SETTLED": watch.settled,
        "NDARRAY": ndarray,
        "CHARS": _CHARS,
        "REFERENCES": sys.getrefcount,
        "NEW": _references_of_new(),
        "OWN": watch.own,
        "__name__": __name__,  # a warning skips this frame
    }
    writer = FunctionWriter(names, lines)
    return writer.function(f"watched({inputs}{options})", f"<op {watch.op}>")  # type: ignore[no-any-return]


def _references_of_new() -> int:
    """Return what `sys.getrefcount` says of an array that nobody else has."""
    out = np.empty(0)
    return sys.getrefcount(out)


class _Watch:
    """One kernel of a user on one array module."""

    def __init__(self, op: str, kernel: Callable[..., Any], schema: Schema, xp: Any) -> None:
        self.op, self.schema, self.xp = op, schema, xp
        self.kernel = functools.partial(kernel, xp)
        self.array_type = ndarray if xp is np else xp.ndarray
        names = schema.inputs
        self.viewed = names.index(schema.view_of) if schema.view_of in names else -1
        # Written inputs have to be writable, and a view must be taken of the input itself.
        self.unlocked = {*schema.written} | ({self.viewed} if self.viewed >= 0 else set())
        self.locks = xp is np  # CuPy's arrays have no such flag
        self.compared = False  # the inputs before and after a call
        self.warned = False

    def call(self, *arrays: Any, **attrs: Any) -> Any:
        """Run the kernel on locked inputs, and settle what it returns."""
        given = [
            _locked(a) if self.locks and i not in self.unlocked and isinstance(a, ndarray) else a
            for i, a in enumerate(arrays)
        ]
        # A copy and a comparison wait for the device, which a graph cannot repeat.
        if self.compared or (not self.locks and _is_capturing(self.xp)):
            out = self.run(*given, **attrs)
        else:
            out = self._compare(given, arrays, attrs)
        return self.settled(out, arrays)

    def run(self, *arrays: Any, **attrs: Any) -> Any:
        """Call the kernel."""
        try:
            return self.kernel(*arrays, **attrs)
        except (ValueError, TypeError) as error:
            raise self.explained(error, arrays) from error.__cause__

    def explained(self, error: Exception, arrays: Any) -> Exception:
        """Return the error of the kernel; another one where it wrote to a locked input."""
        if not any([words in str(error) for words in ("read-only", "readonly", "not writeable")]):
            return error
        locked = [i for i in range(len(arrays)) if i not in self.unlocked]
        names = " or ".join([repr(self.schema.input_name(i)) for i in locked])
        found = self._written_error(names)
        found.__cause__ = error
        return found

    def _compare(self, given: list[Any], arrays: tuple[Any, ...], attrs: dict[str, Any]) -> Any:
        """Run the kernel, compare the inputs before and after, and put back what it wrote."""
        kept = [
            a.copy() if isinstance(a, self.array_type) and i not in self.schema.written else None
            for i, a in enumerate(arrays)
        ]
        out = self.run(*given, **attrs)
        for i, before in enumerate(kept):
            if before is not None and not self._equal(before, arrays[i]):
                if getattr(arrays[i].flags, "writeable", True):
                    arrays[i][...] = before
                raise self._written_error(repr(self.schema.input_name(i)))
        self.compared = True
        return out

    def _equal(self, a: Any, b: Any) -> bool:
        same = a == b
        if a.dtype.kind in "fc":
            same |= (a != a) & (b != b)
        return bool(same.all())

    def _written_error(self, names: str) -> InplaceError:
        return InplaceError(
            f"{self.op}(): its kernel writes into the input {names}, which other tensors may "
            f"share; compute a new array, write into a copy (x.copy()), or declare the write by "
            f"register_op({self.op!r}, mutates=...). A function that only asks for writable "
            "memory needs a copy, too"
        )

    # What it returned

    def settled(self, out: Any, arrays: tuple[Any, ...]) -> Any:
        """Return the outputs as arrays, each with memory that the schema allows."""
        if not isinstance(out, tuple):
            out = self._settled(out, "", arrays)
            self._check_writes((out,), arrays)
            return out
        several = [self._settled(y, f" {k}", arrays) for k, y in enumerate(out)]
        self._check_writes(several, arrays)
        for k, y in enumerate(several):
            own = self.viewed < 0 and all([y is not x for x in arrays])
            for before in several[:k] if own else ():
                if _shares(y, before):
                    several[k] = y = self._copied(y, f" {k}", "another output")
        return tuple(several)

    def _check_writes(self, several: Sequence[Any], arrays: tuple[Any, ...]) -> None:
        """Let a kernel that writes return what it wrote: only these outputs have a history."""
        if not self.schema.written:
            return
        names = ", ".join(self.schema.mutates)
        targets = [arrays[i] for i in self.schema.written if arrays[i] is not None]
        for target in targets:
            if all([y is not target for y in several]):
                raise self._output_error(
                    "another array than it wrote", f"write into {names} and return {names}"
                )
        for y in several:
            if y.dtype.kind in "fc" and all([y is not target for target in targets]):
                raise self._output_error(
                    f"a new floating array beside {names}, which it writes",
                    "such an output would have no gradient; make it the result of another op",
                )

    def _settled(self, out: Any, which: str, arrays: tuple[Any, ...]) -> Any:
        if isinstance(out, np.generic) and self.array_type is ndarray:
            out = np.asarray(out)
        if not isinstance(out, self.array_type):
            raise self._output_error(f"{_article(out)}{which and ' as output'}{which}", _hint(out))
        if isinstance(out, (np.ma.MaskedArray, np.matrix)):
            raise self._output_error(_article(out), "return a plain array: np.asarray(...)")
        if out.dtype.char not in _CHARS or not out.dtype.isnative:
            native = out.dtype.newbyteorder("=")
            known = [d for d in SUPPORTED if d == native]  # longlong is int64
            if not known:
                raise self._output_error(
                    f"an array of dtype {out.dtype}",
                    "tensors have no such dtype; return numbers, as by .astype(x.dtype)",
                )
            return out.astype(known[0])
        for i, x in enumerate(arrays):
            if i in self.schema.written and out is x:
                return out
            if not isinstance(x, self.array_type) or not _shares(out, x):
                continue
            if i == self.viewed:
                return out
            if i in self.schema.written:  # `_check_writes` refuses it, or it is a count, say
                return out.copy()
            return self._copied(out, which, f"the input {self.schema.input_name(i)!r}", i)
        if self.array_type is ndarray and not out.flags.writeable:
            return out.copy()  # of broadcast_to, for instance
        return out

    def _copied(self, out: Any, which: str, shared: str, position: int = -1) -> Any:
        """Copy an output that shares memory, and say so once."""
        if not self.warned or local.strict:
            name = self.schema.input_name(position) if position >= 0 else ""
            declare = f"or declare register_op({self.op!r}, view_of={name!r})"
            shares = f"{self.op}(): output{which} of its kernel shares memory with {shared}"
            mend = f"return a new array (.copy()){', ' + declare if name else ''}"
            if local.strict:
                raise KernelError(f"{shares}; {mend}")
            self.warned = True
            upward.module("caller's line").warn_caller(
                f"{shares}, so it was copied: a write to the one would change the other, unnoticed "
                f"by gradients; {mend}",
                once=True,
            )
        return out.copy()

    def own(self, out: Any) -> Any:
        """Copy an output that somebody else has: the next call would write into it, say."""
        return self._copied(out, "", "an array that the kernel keeps")

    def _output_error(self, got: str, hint: str) -> KernelError:
        module = "numpy" if self.array_type is ndarray else "cupy"
        return KernelError(
            f"{self.op}(): its kernel has to return an array of {module}, or a tuple of them; got "
            f"{got}; {hint}"
        )


def _is_capturing(cupy: Any) -> bool:
    return bool(cupy.cuda.get_current_stream().is_capturing())


def _locked(array: Any) -> Any:
    """Return a read-only view."""
    locked = array.view()
    locked.setflags(write=False)
    return locked


def _shares(a: Any, b: Any) -> bool:
    """Return whether two arrays have memory in common."""
    if isinstance(a, ndarray):
        return isinstance(b, ndarray) and bool(np.may_share_memory(a, b) and np.shares_memory(a, b))
    return a.data.mem is b.data.mem  # CuPy allocates one piece for each new array


def _article(value: Any) -> str:
    name = type(value).__name__
    if value is None:
        return "None"
    return f"{'an' if name[0] in 'aeiouAEIOU' else 'a'} {name}"


def _hint(value: Any) -> str:
    """Return how to mend a kernel that returned this."""
    if value is None:
        return "is a `return` missing? An op that writes its input returns it, one of no results ()"
    if isinstance(value, list):
        return "return a tuple for several outputs, xp.asarray(...) for one"
    if isinstance(value, (bool, int, float, complex)):
        return "return an array: xp.asarray(value, dtype=x.dtype)"
    if hasattr(value, "_data"):  # Tensor stands above this file
        return "compute with `xp` on the arrays that the kernel gets; the functor makes the tensors"
    return "compute with `xp` on the arrays that the kernel gets"
