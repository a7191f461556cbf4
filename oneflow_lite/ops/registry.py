"""The registries, which find kernels, functors and gradient functions by name, and run nothing.

A call passes this file twice: the functor's `OpExpr` looks up its kernel on first use, and the
engine looks up the gradient function when an input requires a gradient.
"""

from __future__ import annotations

import difflib
import inspect
import os
import sys
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any, Generic, TypeVar

from oneflow_lite.errors import RegistrationError, UnknownOpError

T = TypeVar("T")
Function = TypeVar("Function", bound=Callable[..., Any])


class Registry(Generic[T]):
    """Names to values. A name is taken once; a name that is missing is answered with near misses.

    >>> from oneflow_lite.ops.registry import Registry
    >>> colours = Registry("colour")
    >>> colours.add("green", 0x00FF00)
    >>> "green" in colours, colours.get("green") == 0x00FF00
    (True, True)
    >>> colours.get("gren")
    Traceback (most recent call last):
    oneflow_lite.errors.UnknownOpError: no colour is registered as 'gren'; did you mean 'green'?
    """

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self._entries: dict[str, T] = {}
        self.origins: dict[str, str] = {}  # the module that was being imported, for the index
        # Imports the module that registers a name, or all modules for None and for a name that the
        # index does not list; with a true second argument an unlisted name imports nothing.
        self.missing: Callable[..., None] | None = None
        # Called with the name of an entry that changed or went, so that its value is not kept.
        self.on_change: list[Callable[[str], None]] = []

    def add(self, name: str, value: T) -> None:
        """Register `value`; raise `RegistrationError` when the name is taken."""
        if not (name and type(name) is str):
            raise RegistrationError(f"a {self.kind} is registered under a name, got {name!r}")
        if self.find(name, known_only=True) is not None:
            raise RegistrationError(
                f"{self.kind} {name!r} is registered already; choose another name"
            )
        self._entries[name] = value
        self.origins[name] = _importing()

    def get(self, name: str) -> T:
        """Look a name up; raise `UnknownOpError` naming the nearest registered names."""
        value = self._entries.get(name) or self.find(name)
        if value is not None:
            return value
        near = difflib.get_close_matches(name, self._entries, n=3)
        hint = f"did you mean {' or '.join(map(repr, near))}?" if near else "no name is near it"
        raise UnknownOpError(f"no {self.kind} is registered as {name!r}; {hint}")

    def find(self, name: str, known_only: bool = False) -> T | None:
        """Look a name up; None when it is missing.

        With `known_only` nothing is loaded for a name that the index does not know.
        """
        value = self._entries.get(name)
        if value is None and self.missing is not None:
            self.missing(name, known_only)
            value = self._entries.get(name)
        return value

    def peek(self, name: str) -> T | None:
        """Return the value if it is registered by now; nothing is loaded."""
        return self._entries.get(name)

    def remove(self, name: str) -> None:
        """Forget a name (for tests and interactive redefinition)."""
        self._entries.pop(name, None)
        self.changed(name)

    def changed(self, name: str) -> None:
        """Tell the keepers of a name's value that it has changed."""
        for tell in self.on_change:
            tell(name)

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and self.find(name) is not None

    def __iter__(self) -> Iterator[str]:
        if self.missing is not None:
            self.missing(None)
        return iter(self._entries)

    def __len__(self) -> int:
        return len(list(iter(self)))


def runs_again(old: Any, new: Any) -> bool:
    """Return whether a function or class replaces an older self: its cell or line ran once more.

    Both have one module and one qualified name, and no file on disk has the code. In a file, a
    second function of the name is a mistake.
    """
    code = getattr(new, "__code__", None) or getattr(getattr(new, "apply", None), "__code__", None)
    places = [(getattr(f, "__module__", ""), getattr(f, "__qualname__", f)) for f in (old, new)]
    return code is not None and places[0] == places[1] and not os.path.exists(code.co_filename)


def _importing() -> str:
    """Return the name of the innermost module that is being imported by this call."""
    frame: FrameType | None = sys._getframe(2)
    while frame is not None and frame.f_code.co_name != "<module>":
        frame = frame.f_back
    return "" if frame is None else str(frame.f_globals.get("__name__"))


Kernel = Callable[..., Any]


class Lines:
    """The scalar expression of an op with a line that the shapes alone do not tell.

    Parameters
    ----------
    text : str or callable
        The expression, or a function of the attributes that returns it or None.
    places : callable, optional
        Where arrays lie: `places(shapes, **attrs)`, see `array_places.py`.
    absent : dict, optional
        By input the number that stands for it where it is None.
    check : callable, optional
        Raises the errors of the kernel: `check(shapes, array, **attrs)`.
    checked : str, optional
        The input whose array `check` gets.
    """

    __slots__ = ("absent", "check", "checked", "places", "text")

    def __init__(
        self,
        text: str | Callable[..., str | None],
        places: Callable[..., dict[Any, Any]] | None = None,
        absent: dict[str, float] | None = None,
        check: Callable[..., None] | None = None,
        checked: str = "",
    ) -> None:
        self.text, self.places, self.absent = text, places, absent or {}
        self.check, self.checked = check, checked


ScalarText = str | Callable[..., str | None] | Lines | None
InferRule = Callable[..., Any]
SbpRule = str | Callable[..., Any] | None
BatchRule = str | Callable[..., Any] | None
WAYS_OVER_BATCHES = ("pointwise", "front", "new dimension", "dots", "fold", "loop", "refuse")
DynamicShape = bool | Callable[..., bool]


class Schema:
    """The inputs and attributes of an op, and its effects on memory.

    Attributes
    ----------
    inputs : tuple of str
        Names of the array parameters, in order.
    variadic : str or None
        Name of the `*arrays` parameter, when the kernel takes any number of arrays.
    attrs : dict
        Keyword-only parameters and their defaults (`inspect.Parameter.empty` where there is none).
    mutates : tuple of str
        Inputs that the kernel writes.
    written : tuple of int
        Their positions.
    view_of : str or None
        The input whose memory the output may share.
    random : bool
        Whether the kernel draws random numbers.
    effect : bool
        Whether a call acts outside its outputs, as a message to another process does: it is never
        dropped, done twice or moved before another call with an effect.
    infer : callable or None
        Shape and dtype of the outputs without running the kernel; see `interpreter/infer.py`.
    dynamic_shape : bool or callable
        Whether the shape of an output depends on the values of the inputs; a callable is asked with
        the inputs and attributes of a call (`interpreter/infer.py` does).
    out : bool
        Whether the kernel takes `out=`, an array to write its one result to: of the result's shape
        and dtype, laid out as the result would be, overlapping no input that is not in `reuses`.
    reuses : tuple of str
        Inputs that may themselves be given as `out`, where shape, dtype and layout agree.
    sbp, linear
        How parts of global tensors go through the op, and of which inputs it is a linear function;
        see `sbp_rules.py`.
    batch : str, callable or None
        How the op goes over a batch where that does not follow from `sbp` and `infer`; see
        `transforms/batching.py`.
    """

    __slots__ = (
        "attrs",
        "batch",
        "dynamic_shape",
        "effect",
        "infer",
        "inputs",
        "linear",
        "mutates",
        "out",
        "random",
        "reuses",
        "sbp",
        "variadic",
        "view_of",
        "written",
    )

    def __init__(
        self,
        kernel: Kernel,
        mutates: tuple[str, ...] = (),
        view_of: str | None = None,
        infer: InferRule | None = None,
        random: bool = False,
        dynamic_shape: DynamicShape = False,
        reuses: tuple[str, ...] = (),
        effect: bool = False,
        sbp: SbpRule = None,
        linear: str | None = None,
        batch: BatchRule = None,
    ) -> None:
        positional = (
            inspect.Parameter.POSITIONAL_ONLY,
            inspect.Parameter.POSITIONAL_OR_KEYWORD,
        )
        parameters = _parameters(kernel)
        self.inputs = tuple(p.name for p in parameters if p.kind in positional)
        self.variadic = next((p.name for p in parameters if p.kind is p.VAR_POSITIONAL), None)
        self.attrs = {p.name: p.default for p in parameters if p.kind is p.KEYWORD_ONLY}
        self.out = self.attrs.pop("out", self) is None  # where the kernel may write its result
        # The ranks whose sums it may add, which `sbp_rules.by_kernel` passes: no attribute.
        self.attrs.pop("line", None)
        named = (linear or "").replace("+", " ").split()
        for name in (*mutates, *reuses, *((view_of,) if view_of else ()), *named):
            if name not in (*self.inputs, self.variadic):
                raise RegistrationError(
                    f"the schema names {name!r}, which is no array parameter of the kernel; "
                    f"its array parameters are {self.inputs}"
                )
        self.mutates = mutates
        self.written = tuple(self.inputs.index(name) for name in mutates)
        self.view_of = view_of
        self.random = random
        self.infer = infer
        self.dynamic_shape = dynamic_shape
        self.reuses = reuses
        self.effect = effect
        self.sbp, self.linear, self.batch = sbp, linear, batch

    def input_name(self, position: int) -> str:
        """Return the name of an input, as `xs[1]` for one of any number."""
        if position < len(self.inputs):
            return self.inputs[position]
        return f"{self.variadic}[{position - len(self.inputs)}]"


def _parameters(kernel: Kernel) -> list[inspect.Parameter]:
    """Return a kernel's parameters behind `xp`; raise where they are no kernel's."""
    name = getattr(kernel, "__name__", type(kernel).__name__)
    try:
        module, *rest = inspect.signature(kernel).parameters.values()
    except (TypeError, ValueError):
        fits, rest = False, []
    else:
        fits = module.name in _MODULE_NAMES or module.name[0] == "_"
        fits = fits and module.kind in (module.POSITIONAL_ONLY, module.POSITIONAL_OR_KEYWORD)
    if not fits or any([p.kind is p.VAR_KEYWORD for p in rest]):
        raise RegistrationError(
            f"the kernel {name} has to be a function kernel(xp, x, ..., *, attribute=...): first "
            "the array module, called xp, then the arrays, then attributes by name (no **options);"
            f" got {name}{_signature_text(kernel)}"
        )
    return rest


def _signature_text(kernel: Kernel) -> str:
    try:
        return str(inspect.signature(kernel))
    except (TypeError, ValueError):
        return ", which has no signature"


_MODULE_NAMES = ("xp", "np", "cp", "numpy", "cupy")


class KernelEntry:
    """The schema of an op and its kernels by device type (None: serves every device).

    `ufunc` is the name of the array module's function, where the kernel does no more than call it.
    `scalar` says how the op computes single elements: an expression, or a function of the
    attributes that returns an expression or None; see `scalar_expression.py`.
    """

    __slots__ = ("_is_library", "by_device", "scalar", "schema", "ufunc")

    def __init__(self, schema: Schema) -> None:
        self.schema = schema
        self.by_device: dict[str | None, Kernel] = {}
        self._is_library: bool | None = None
        self.ufunc: str | None = None
        self.scalar: ScalarText = None

    @property
    def is_library(self) -> bool:
        """Whether all kernels are the package's own, whose schemas are tested."""
        if self._is_library is None:
            modules = [getattr(kernel, "__module__", None) for kernel in self.by_device.values()]
            self._is_library = all([str(name).startswith("oneflow_lite.") for name in modules])
        return self._is_library


KERNELS: Registry[KernelEntry] = Registry("kernel")


class _Functors(Registry[Callable[..., Any]]):
    """The functors, which pickle finds by module and name, though no line binds the name there."""

    def add(self, name: str, value: Callable[..., Any]) -> None:
        super().add(name, value)
        module = getattr(value, "__module__", None) or ""
        home = vars(sys.modules.get(module, sys))
        if not module.startswith("oneflow_lite.functors.") or "__getattr__" in home:
            return

        def __getattr__(wanted: str) -> Any:
            found = self.peek(wanted)
            if getattr(found, "__module__", None) == module:
                return found
            raise AttributeError(f"module {module!r} has no attribute {wanted!r}")

        home["__getattr__"] = __getattr__


FUNCTORS = _Functors("functor")
GRAD_FUNCS: Registry[Any] = Registry("gradient function")


def register_kernel(
    op_type_name: str,
    *,
    device: str | None = None,
    mutates: str | tuple[str, ...] = (),
    view_of: str | None = None,
    infer: InferRule | None = None,
    random: bool = False,
    dynamic_shape: DynamicShape = False,
    reuses: str | tuple[str, ...] = (),
    scalar: ScalarText = None,
    effect: bool = False,
    sbp: SbpRule = None,
    linear: str | None = None,
    batch: BatchRule = None,
) -> Callable[[Function], Function]:
    """Register the arithmetic of an op.

    The kernel's first parameter `xp` is numpy or cupy, its positional parameters are arrays (or
    None for an optional input), its keyword-only parameters are attributes. A keyword-only
    `out=None` is no attribute: it says that the kernel can write its result to given memory.

    Parameters
    ----------
    op_type_name : str
        Name of the op.
    device : {None, "cpu", "cuda"}
        None serves both devices; a kernel for one device is preferred there. Its schema must be
        declared by the kernel that is registered first.
    mutates, view_of, infer, random, dynamic_shape, reuses, effect, sbp, linear, batch
        See `Schema`.
    scalar : str, callable or Lines, optional
        The expression that the kernel computes of each element, in the names of its parameters; or
        a function of the attributes that returns the expression or None. Groups of ops become
        machine code by it. Ops with lines may say more, see `Lines`.

    Raises
    ------
    RegistrationError
        When the op has a kernel for this device already.
    """
    if device not in (None, "cpu", "cuda"):
        raise RegistrationError(f"register_kernel(): device is None, 'cpu' or 'cuda', got {device}")

    def decorator(kernel: Function) -> Function:
        mutated = (mutates,) if isinstance(mutates, str) else tuple(mutates)
        reused = (reuses,) if isinstance(reuses, str) else tuple(reuses)
        schema = Schema(
            kernel,
            mutated,
            view_of,
            infer,
            random,
            dynamic_shape,
            reused,
            effect,
            sbp,
            linear,
            batch,
        )
        entry = KERNELS.find(op_type_name, known_only=True)
        if entry is not None and runs_again(entry.by_device.get(device), kernel):
            entry.by_device.pop(device)
            entry.schema = schema if not entry.by_device else entry.schema
        if entry is None:
            entry = KernelEntry(schema)
            entry.scalar = scalar
            KERNELS.add(op_type_name, entry)
        elif device in entry.by_device:
            raise RegistrationError(
                f"kernel {op_type_name!r} for device {device} is registered already; "
                "choose another name"
            )
        elif entry.schema.inputs != schema.inputs:
            raise RegistrationError(
                f"kernel {op_type_name!r} for device {device} takes {schema.inputs}, the one "
                f"registered first {entry.schema.inputs}; give both the same parameters"
            )
        entry.by_device[device] = kernel
        entry._is_library = None
        KERNELS.changed(op_type_name)
        return kernel

    return decorator


def register_ufunc(
    op_type_name: str,
    ufunc: str,
    inputs: int,
    infer: InferRule | None = None,
    linear: str | None = None,
) -> None:
    """Register an op by a function of the array module, such as `add`, as its kernel.

    `ufunc` is the function's name, `inputs` 1 or 2: the parameters are called `x`, or `x` and `y`.
    Dispatch calls the function directly, without a Python frame in between.
    """
    names = ("x", "y")[:inputs]
    if inputs == 1:

        def kernel(xp: Any, x: Any, *, out: Any = None) -> Any:
            return getattr(xp, ufunc)(x, out=out)
    else:

        def kernel(xp: Any, x: Any, y: Any, *, out: Any = None) -> Any:  # type: ignore[misc]
            return getattr(xp, ufunc)(x, y, out=out)

    kernel.__name__ = op_type_name
    register_kernel(op_type_name, infer=infer, reuses=names, linear=linear)(kernel)
    KERNELS.get(op_type_name).ufunc = ufunc


def register_functor(name: str) -> Callable[[Function], Function]:
    """Register the function that users call, and that `F.<name>` is in rules while recording."""

    def decorator(function: Function) -> Function:
        if runs_again(FUNCTORS.peek(name), function):
            FUNCTORS.remove(name)
        FUNCTORS.add(name, function)
        return function

    return decorator
