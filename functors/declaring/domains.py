"""The values of arguments: domains, as annotations of declared functors (`declare.py`).

A domain is the line that checks an argument, and the words that `help()` has for it. In the line
`{x}` is the argument, `{first}` the first tensor of the call, and NAME what errors call the op.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Annotated, Any, NamedTuple

from oneflow_lite.functors.declaring import checks
from oneflow_lite.functors.declaring.fill_value import fill_value
from oneflow_lite.tensors.tensor import Tensor


class Domain(NamedTuple):
    """The values that an argument may have."""

    says: str = ""
    check: str = ""  # a line, run unless `quick` holds
    quick: str = ""  # a condition under which nothing has to be checked
    raises: dict[str, str] = {}  # noqa: RUF012  errors, and when
    uses: tuple[Callable[..., Any], ...] = ()  # the functions that the line calls
    tensor: str = ""  # "one" or "many" inputs of the op; "operand": one of several that meet
    meet: Callable[..., Any] | None = None  # brings operands to one dtype, instead of dispatch
    sample: str = ""  # makes a sample, in the words of `oneflow_lite.functors.declaring.samples`
    early: bool = False  # checked before all others, and not handed to the op
    dropped: bool = False  # checked, and not handed on at all
    type: str = ""  # for help(), where it is not the type of the annotation

    def __hash__(self) -> int:  # `Dim | None` asks for it, and the errors are a dict
        return hash((self.says, self.check))


def tensor(
    check: Callable[..., Any], kinds: str, says: str, sample: str = "x(2, 3)", **raises: str
) -> Domain:
    """Return a domain of tensors: `check(name, value, argument)` runs for other dtype kinds."""
    among = f" and {{x}}._data.dtype.kind {'in' if kinds[1:] else '=='} {kinds!r}"
    quick = "type({x}) is Tensor" + among if kinds else ""
    line = f"{{x}} = {check.__name__}(NAME, {{x}}, '{{x}}')"
    raises = {**check.__dict__.get("raises", {}), **raises}
    return Domain(says, line, quick, raises, (check,), "one", sample=sample)


def pair(
    meet: Callable[..., Any],
    says: str,
    when: str = "",
    kinds: str = "",
    type: str = "Tensor",
    sample: str = "x(2, 3)",
) -> Domain:
    """Return the domain of two operands that `meet(name, a, b)` checks or brings to one dtype.

    Tensors of a common dtype of these kinds are left alone. `when` says when DTypeError comes.
    """
    raises = {"DTypeError": when} if when else {}
    raises["ShapeError"] = "When the shapes do not broadcast."
    alike = "type({0}) is type({1}) is Tensor and {0}._data.dtype is {1}._data.dtype"
    quick = f"{alike} and {{0}}._data.dtype.kind in {kinds!r}" if kinds else ""
    return Domain(says, "", quick, raises, (), "operand", meet, sample, type=type)


def attribute(check: Callable[..., Any], extra: str = "", **more: Any) -> Domain:
    """Return a domain of attributes: `check(name, argument, value)` returns what is handed on."""
    line = f"{{x}} = {check.__name__}(NAME, '{{x}}', {{x}}{extra})"
    return Domain(check=line, uses=(check,), **more)


def choice(*allowed: str, says: str = "") -> Domain:
    """Return the domain of a word among several: `Annotated[str, choice("none", "tanh")]`."""
    return attribute(
        checks.check_choice,
        f", {allowed!r}",
        says=says,
        quick=f"{{x}} in {allowed!r}",
        raises={"ArgumentError": f"When {{x}} is not {' or '.join(map(repr, allowed))}."},
        type="{" + ", ".join(f'"{word}"' for word in allowed) + "}",
    )


def flag(says: str) -> Domain:
    """Return the domain of a flag."""
    return Domain(says, "{x} = bool({x})", "type({x}) is bool")


# --- Tensors -----------------------------------------------------------------------------------

_COMPLEX = "When an argument is complex."
_PRECISE = "When {x} is not in single or double precision."
_DEFAULT = "Integers and bools are computed in the default dtype."
_BROADCAST = "Real, of shapes that broadcast together"

AnyTensor = Annotated[
    Tensor,
    Domain(
        "Of any shape and dtype.",
        "check_any_tensor(NAME, '{x}', {x})",
        "type({x}) is Tensor",
        uses=(checks.check_any_tensor,),
        tensor="one",
        sample="x(2, 3)",
    ),
]
Floating = Annotated[Tensor, tensor(checks.floating, "fc", f"Of any shape. {_DEFAULT}")]
FloatingOrComplex = Annotated[
    Tensor, tensor(checks.require_floating, "fc", "Floating or complex, of any shape.")
]
Real = Annotated[Tensor, tensor(checks.real, "fiub", "Real, of any shape.")]
RealToFloating = Annotated[
    Tensor,
    tensor(checks.real_to_floating, "f", f"Real, of any shape. {_DEFAULT}", DTypeError=_COMPLEX),
]
RealFloating = Annotated[Tensor, tensor(checks.real_floating, "f", "Real floating, of any shape.")]
RealNumber = Annotated[
    Tensor,
    tensor(checks.number_tensor, "fiu", "Of any shape; an integer or real floating dtype."),
]
Numeric = Annotated[Tensor, tensor(checks.numeric, "fciu", "Of any shape and dtype but bool.")]
Integer = Annotated[Tensor, tensor(checks.require_integer, "iu", "Of integers.", "i(2, 3, n=2)")]
Matrix = Annotated[
    Tensor,
    tensor(
        checks.check_matrix,
        "",
        "Of shape (*, m, n), in single or double precision, real or complex.",
        DTypeError=_PRECISE,
        ShapeError="When {x} has less than two dimensions.",
    ),
]
Square = Annotated[
    Tensor,
    tensor(
        checks.check_square,
        "",
        "Of shape (*, n, n), in single or double precision, real or complex.",
        "m(3)",
        DTypeError=_PRECISE,
        ShapeError="When {x} is no square matrix, nor a batch of them.",
    ),
]
Matrices = Annotated[
    Tensor,
    tensor(
        checks.check_matrices,
        "",
        "Of shape (*, rows, columns).",
        ShapeError="When {x} has fewer than two dimensions.",
    ),
]
Vector = Annotated[
    Tensor,
    tensor(checks.check_vector, "", "A vector.", "x(3)", ShapeError="When {x} is no vector."),
]
Tensors = Annotated[
    Sequence[Tensor],
    Domain(
        "Tensors on one device; they are brought to their common dtype.",
        "{x} = check_tensors(NAME, {x}, '{x}')",
        uses=(checks.check_tensors,),
        tensor="many",
        sample="[x(2, 3), x(2, 3)]",
        type="sequence of Tensors",
    ),
]
Operand = Annotated[Any, Domain(tensor="operand", sample="x(2, 3)", type="Tensor or number")]
RealPair = Annotated[Tensor, pair(checks.real_pair, f"{_BROADCAST}.", _COMPLEX, "fiub")]
RealToFloatingPair = Annotated[
    Tensor, pair(checks.real_to_floating_pair, f"{_BROADCAST}. {_DEFAULT}", _COMPLEX, "f")
]
RealFloatingPair = Annotated[
    Tensor,
    pair(
        checks.real_floating_pair,
        f"{_BROADCAST}; their common dtype is floating.",
        "When an argument is complex, or neither is floating.",
        "f",
    ),
]

# --- Types alone: the body checks them ------------------------------------------------------------

GivenTensor = Annotated[Any, Domain(type="Tensor")]
TensorOrNumber = Annotated[Any, Domain(type="Tensor or number")]
TensorOrInt = Annotated[Any, Domain(type="Tensor or int")]
TensorOrInts = Annotated[Any, Domain(type="Tensor or sequence of int")]
TensorOrTensors = Annotated[Any, Domain(type="Tensor or sequence of Tensors")]
AnyNumber = Annotated[Any, Domain(type="number")]
FloatOrFloats = Annotated[Any, Domain(type="number or sequence of numbers")]
IntOrInts = Annotated[Any, Domain(type="int or sequence of int")]
Order = Annotated[Any, Domain(type="number or str")]

# --- Attributes --------------------------------------------------------------------------------

_NO_NUMBER = {"ArgumentTypeError": "When {x} is no number."}
_NO_INT = {"ArgumentTypeError": "When {x} is no whole number."}
_NEGATIVE = {"ArgumentError": "When {x} is negative."}
_BELOW_1 = {"ArgumentError": "When {x} is below 1."}

Number = Annotated[float, attribute(checks.check_number, raises=_NO_NUMBER)]
NonNegative = Annotated[
    float, attribute(checks.check_not_negative, raises={**_NEGATIVE, **_NO_NUMBER})
]
Scalar = Annotated[  # written into the dtype of the first tensor
    float,
    attribute(
        fill_value,
        ", {first}._data.dtype",
        raises={"DTypeError": "When the dtype of the input cannot hold {x}.", **_NO_NUMBER},
    ),
]
Int = Annotated[int, attribute(checks.check_int, raises=_NO_INT)]
Count = Annotated[int, attribute(checks.check_int, ", 0", raises={**_NEGATIVE, **_NO_INT})]
Positive = Annotated[int, attribute(checks.check_int, ", 1", raises={**_BELOW_1, **_NO_INT})]
Ints = Annotated[
    int | Sequence[int],
    attribute(checks.check_ints, raises={"ArgumentTypeError": "When {x} holds no whole numbers."}),
]
Sizes = Annotated[  # of `*size`, next to `**named`: then they may be given by name, too
    Any,
    Domain(
        "Whole numbers, or one sequence of them.",
        "{x} = check_sizes(NAME, {x}, named, '{x}')",
        raises={"ArgumentTypeError": "When {x} holds no whole numbers."},
        uses=(checks.check_sizes,),
        type="int or sequence of int",
    ),
]
Flag = Annotated[bool, flag("")]
KeepDim = Annotated[bool, flag("Keep the reduced dimensions, with size 1.")]
Dim = Annotated[
    int,
    Domain(
        "The dimension, counted from either end.",
        "{x} = check_dim(NAME, {x}, {first}._data.ndim, '{x}')",
        raises={"DimError": "When {x} is out of range."},
        uses=(checks.check_dim,),
    ),
]
Dims = Annotated[  # handed on as a tuple, all dimensions for None
    int | Sequence[int] | None,
    Domain(
        "The dimensions to reduce; None and () mean all.",
        "{x} = check_dims(NAME, {x}, {first}._data.ndim, '{x}')",
        raises={"DimError": "When a dimension is out of range or given twice."},
        uses=(checks.check_dims,),
        type="int or sequence of int, optional",
    ),
]
CastTo = Annotated[
    Any,
    Domain(
        "Cast the input to it first.",
        "{first} = to_dtype_of_numbers(NAME, {first}, {x})",
        "{x} is None",
        {"DTypeError": "When {x} is bool."},
        uses=(checks.to_dtype_of_numbers,),
        early=True,
        type="dtype, optional",
    ),
]
_KEPT = "Return the losses of the elements, their mean, or their sum."
Reduction = Annotated[str, choice("none", "mean", "sum", says=_KEPT)]
