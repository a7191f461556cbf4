"""Ops that work element by element: most are written from their scalar expressions."""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Mapping, Sequence
from operator import add, mul, sub, truediv
from typing import Any

import numpy as np

from oneflow_lite.onnx.graph import Graph, Value
from oneflow_lite.onnx.registry import NotTranslated, register_onnx
from oneflow_lite.ops.op_expr import op_expr
from oneflow_lite.ops.scalar_expression import Scalar, scalar_of

# Ops that ONNX has, too.
_SAME = {
    "abs": "Abs", "acos": "Acos", "acosh": "Acosh", "asin": "Asin", "asinh": "Asinh",
    "atan": "Atan", "atanh": "Atanh", "ceil": "Ceil", "cosh": "Cosh", "erf": "Erf",
    "floor": "Floor", "isnan": "IsNaN", "neg": "Neg",
    "reciprocal": "Reciprocal", "relu": "Relu", "sigmoid": "Sigmoid", "sign": "Sign",
    "sinh": "Sinh", "softsign": "Softsign", "add": "Add", "sub": "Sub", "mul": "Mul",
    "where": "Where",
}  # fmt: skip
# Expressions of ops whose kernels have no scalar expression.
_EXPRESSIONS = {
    "entr": "where(x > 0, -x * log(x), where(x == 0, 0, where(isnan(x), x, -inf)))",
    "erfc": "1 - erf(x)",
    "exp2": "exp(x * 0.6931471805599453)",
    "frac": "x - trunc(x)",
    "heaviside": "where(x == 0, values, where(isnan(x), x, where(x > 0, 1, 0)))",
    "hypot": "sqrt(x * x + y * y)",
    "isfinite": "abs(x) < inf",
    "isinf": "abs(x) == inf",
    "fmax": "where(isnan(x), y, where(isnan(y), x, maximum(x, y)))",
    "fmin": "where(isnan(x), y, where(isnan(y), x, minimum(x, y)))",
    "lerp": "where(abs(weight) < 0.5, x + weight * (end - x), end - (end - x) * (1 - weight))",
    "log2": "log(x) / 0.6931471805599453",
    "log10": "log(x) / 2.302585092994046",
    "logaddexp": "d = abs(x - y); m = maximum(x, y); where(d < inf, m + log1p(exp(-d)), m)",
    "logaddexp2": "d = abs(x - y) * 0.6931471805599453; m = maximum(x, y); "
    "where(d < inf, m + log1p(exp(-d)) / 0.6931471805599453, m)",
    "nan_to_num": "where(isnan(x), nan, where(x == inf, posinf, where(x == -inf, neginf, x)))",
    "ndtr": "(1 + erf(x / 1.4142135623730951)) / 2",
    "binary_cross_entropy": "n = maximum(log1p(-x), -100); "
    "-((maximum(log(x), -100) - n) * target + n)",
    "sinc": "t = x * 3.141592653589793; where(x == 0, 1, sin(t) / where(x == 0, 1, t))",
    "sgn": "where(x > 0, 1, where(x < 0, -1, x))",
    "xlog1py": "where((x == 0) & (y == y), 0, x * log1p(y))",
    "xlogy": "where((x == 0) & (y == y), 0, x * log(y))",
}
_FUNCTIONS = {
    "maximum": "Max", "minimum": "Min", "isnan": "IsNaN", "abs": "Abs", "sqrt": "Sqrt",
    "floor": "Floor", "ceil": "Ceil", "exp": "Exp", "log": "Log", "pow": "Pow", "sin": "Sin",
    "cos": "Cos", "tan": "Tan", "tanh": "Tanh", "erf": "Erf", "sigmoid": "Sigmoid",
}  # fmt: skip
_OPERATORS: dict[type, str] = {
    ast.Add: "Add", ast.Sub: "Sub", ast.Mult: "Mul", ast.Div: "Div", ast.Lt: "Less",
    ast.LtE: "LessOrEqual", ast.Gt: "Greater", ast.GtE: "GreaterOrEqual", ast.Eq: "Equal",
    ast.BitAnd: "And", ast.BitOr: "Or", ast.BitXor: "Xor", ast.USub: "Neg",
}  # fmt: skip
_COMBINES = {"sum": "ReduceSum", "amax": "ReduceMax", "amin": "ReduceMin"}
_BOOL = np.dtype(bool)


def _register_same() -> None:
    def translation(onnx_op: str) -> Callable[..., Any]:
        return lambda g, *inputs: g.node(onnx_op, *inputs)

    for op, onnx_op in _SAME.items():
        register_onnx(op)(translation(onnx_op))
    for op, text in _EXPRESSIONS.items():
        register_onnx(op)(_expressed(text))


def _expressed(text: str) -> Callable[..., Any]:
    def translate(g: Graph, *inputs: Value, **attrs: Any) -> Any:
        if inputs[0].dtype.kind != "f":
            raise NotTranslated(f"only of floating point numbers, not of {inputs[0].dtype}")
        names = _names_in(text)
        scalar = Scalar(text, names, attrs)
        return Evaluation(g, scalar, dict(zip(names, inputs, strict=False)), attrs).results()[0]

    return translate


def _names_in(text: str) -> list[str]:
    """Return the inputs that an expression names, in the order of the kernel."""
    known = ["x", "y", "end", "weight", "target", "values"]
    words = {n.id for n in ast.walk(ast.parse(text)) if isinstance(n, ast.Name)}
    return [name for name in known if name in words]


def from_scalar(op_type: str, g: Graph, inputs: Sequence[Any], attrs: Mapping[str, Any]) -> Any:
    """Translate a call of an op by its scalar expression; None without a fitting expression."""
    try:
        scalar = scalar_of(op_type, attrs)
    except TypeError:  # the expression compares a number that varies
        return None
    if scalar is None or scalar.lines is not None:
        return None
    if scalar.reduces and "dim" not in attrs:
        return None
    names = _inputs_of(op_type)
    dim = attrs.get("dim")
    others = {name: value for name, value in attrs.items() if name not in ("dim", "keepdim")}
    evaluation = Evaluation(g, scalar, dict(zip(names, inputs, strict=True)), others, dim)
    y = evaluation.results()[0]
    if scalar.reduces and attrs.get("keepdim") is False:
        y = g.Squeeze(y, g.sizes(evaluation.axes)) if evaluation.axes else y
    return y


def _inputs_of(op_type: str) -> tuple[str, ...]:
    return op_expr(op_type).schema.inputs


class Evaluation:
    """Nodes for a scalar expression: NumPy's arithmetic in ONNX's ops.

    Parameters
    ----------
    g : Graph
    scalar : Scalar
    inputs : dict of str to Value
    attributes : mapping
    dim : int or tuple of int, optional
        The dimensions that it reduces.
    """

    def __init__(
        self,
        g: Graph,
        scalar: Scalar,
        inputs: Mapping[str, Value],
        attributes: Mapping[str, Any],
        dim: Any = None,
    ) -> None:
        self.g, self.scalar, self.attributes = g, scalar, attributes
        self.scope: dict[str, Any] = dict(inputs)
        first = next(iter(inputs.values()))
        floats = [x for x in inputs.values() if x.dtype.kind == "f"]
        self.like = floats[0] if floats else first  # gives numbers their dtype
        dims = range(first.ndim) if dim is None else [dim] if type(dim) is int else dim
        self.axes = [d % max(first.ndim, 1) for d in dims]
        self.shape = first.shape

    def results(self) -> list[Any]:
        """Add the nodes, and return the values of the results."""
        steps = self.scalar.steps({name: name for name in self.scope}, "result", repr)
        for step in steps:
            value = self.value(ast.parse(step.value, mode="eval").body)
            if step.combine:
                if step.combine not in _COMBINES:
                    raise NotTranslated(f"there is no translation of {step.combine}()")
                value = self.tensor(value, self.like)
                dtype = value.dtype
                value = self.g.node(
                    _COMBINES[step.combine], value, self.g.sizes(self.axes), keepdims=1,
                    noop_with_empty_axes=1,
                )  # fmt: skip
                value.dtype = dtype
            self.scope[step.name] = value
        made = [self.scope[step.name] for step in steps[-self.scalar.results :]]
        return [x if isinstance(x, Value) else self.tensor(x, self.like) for x in made]

    def value(self, tree: ast.expr) -> Any:
        """Return the value of an expression: a Value, or a number that takes the dtype it meets."""
        if isinstance(tree, ast.Constant):
            return tree.value
        if isinstance(tree, ast.Name):
            return self._named(tree.id)
        if isinstance(tree, ast.UnaryOp):
            x = self.value(tree.operand)
            if isinstance(tree.op, ast.Invert):
                return self._made("Not", [x], _BOOL)
            return self._made("Neg", [x]) if isinstance(x, Value) else -x
        if isinstance(tree, ast.Compare):
            operands = [self.value(tree.left), self.value(tree.comparators[0])]
            if isinstance(tree.ops[0], ast.NotEq):
                return self._made("Not", [self._made("Equal", operands, _BOOL)], _BOOL)
            return self._made(_OPERATORS[type(tree.ops[0])], operands, _BOOL)
        if isinstance(tree, ast.BinOp):
            operands = [self.value(tree.left), self.value(tree.right)]
            if not any(isinstance(x, Value) for x in operands):
                return _folded(tree.op, *operands)
            return self._made(_OPERATORS[type(tree.op)], operands)
        assert isinstance(tree, ast.Call) and isinstance(tree.func, ast.Name)
        return self._called(tree.func.id, [self.value(arg) for arg in tree.args])

    def _named(self, name: str) -> Any:
        if name in self.scope:
            return self.scope[name]
        if name in self.attributes:
            return self.attributes[name]
        if name == "inf":
            return math.inf
        if name == "count":
            sizes = [self.shape[axis] for axis in self.axes]
            if all(type(size) is int for size in sizes):
                return float(math.prod(sizes))
            total = self.g.size(1)
            for size in sizes:
                total = self.g.Mul(total, self.g.size(size))
            count = self.g.cast(self.g.Reshape(total, np.zeros(0, np.int64)), self.like.dtype)
            count.dtype = self.like.dtype
            return count
        raise NotTranslated(f"there is no translation of {name!r} in {self.scalar.text!r}")

    def _called(self, name: str, args: list[Any]) -> Any:
        if name == "where":
            mask, *branches = args
            if not any(isinstance(x, Value) for x in branches):
                branches = [self.tensor(x, self.like) for x in branches]
            return self._made("Where", branches, mask=mask)
        if name == "expm1":
            return self._made("Sub", [self._made("Exp", args), 1])
        if name == "log1p":
            return self._made("Log", [self._made("Add", [args[0], 1])])
        if name == "trunc":
            return self._made("Mul", [self._made("Sign", args), self._floor_of_abs(args)])
        if name == "isnan":
            return self._made("IsNaN", args, _BOOL)
        if name not in _FUNCTIONS:
            raise NotTranslated(f"there is no translation of {name}()")
        return self._made(_FUNCTIONS[name], args)

    def _floor_of_abs(self, args: list[Any]) -> Value:
        return self._made("Floor", [self._made("Abs", args)])

    def _made(
        self, op_type: str, operands: Sequence[Any], dtype: Any = None, mask: Any = None
    ) -> Value:
        """Add a node; numbers and truth values take the dtype of the other operand."""
        known = [x for x in operands if isinstance(x, Value)]
        numeric = [x for x in known if x.dtype != _BOOL]
        like = (numeric or known or [self.like])[0]
        if op_type in ("And", "Or", "Xor", "Not") and like.dtype != _BOOL:
            op_type = f"Bitwise{op_type}"
        tensors = [self.tensor(x, like) for x in operands]
        y: Value = self.g.node(op_type, *([] if mask is None else [mask]), *tensors)
        y.dtype = dtype if dtype is not None and "Bitwise" not in op_type else like.dtype
        return y

    def tensor(self, x: Any, like: Value) -> Value:
        """Return a number as a constant, a value in the dtype of another one."""
        if not isinstance(x, Value):
            made = self.g.number(x, like)
        elif x.dtype == _BOOL and like.dtype != _BOOL:
            made = self.g.cast(x, like.dtype)
        else:
            return x
        made.dtype = like.dtype
        return made


def _folded(op: ast.operator, x: Any, y: Any) -> Any:
    """Return the result of an operator on two numbers."""
    functions = {ast.Add: add, ast.Sub: sub, ast.Mult: mul, ast.Div: truediv}
    return functions[type(op)](x, y)


# --- Ops that ONNX has in a form of its own -------------------------------------------------------


@register_onnx("div")
def _div(g: Graph, x: Value, y: Value) -> Any:
    return g.Div(x, y)


@register_onnx("clone")
def _clone(g: Graph, x: Value) -> Any:
    return x


@register_onnx("cast")
def _cast(g: Graph, x: Value, *, dtype: Any) -> Any:
    return g.cast(x, dtype)


@register_onnx("round")
def _round(g: Graph, x: Value, *, decimals: int = 0) -> Any:
    if decimals or x.dtype.kind != "f":
        raise NotTranslated("only floating point numbers are rounded, and to whole ones")
    return g.Round(x)


@register_onnx("trunc")
def _trunc(g: Graph, x: Value) -> Any:
    return g.Mul(g.Sign(x), g.Floor(g.Abs(x)))


@register_onnx("gelu")
def _gelu(g: Graph, x: Value, *, approximate: str) -> Any:
    if g.opset >= 20:
        return g.Gelu(x, approximate=approximate)
    return from_scalar("gelu", g, [x], {"approximate": approximate})


@register_onnx("elu")
def _elu(g: Graph, x: Value, *, alpha: float, scale: float, input_scale: float) -> Any:
    if input_scale == 1:
        return g.Elu(x, alpha=alpha) if scale == 1 else g.Selu(x, alpha=alpha, gamma=scale)
    if scale == 1 and alpha * input_scale == 1:
        return g.Celu(x, alpha=alpha)
    attrs = {"alpha": alpha, "scale": scale, "input_scale": input_scale}
    return from_scalar("elu", g, [x], attrs)


@register_onnx("leaky_relu")
def _leaky_relu(g: Graph, x: Value, *, negative_slope: float) -> Any:
    return g.LeakyRelu(x, alpha=negative_slope)


@register_onnx("hardsigmoid")
def _hardsigmoid(g: Graph, x: Value) -> Any:
    return g.HardSigmoid(x, alpha=1 / 6, beta=0.5)


@register_onnx("hardswish")
def _hardswish(g: Graph, x: Value) -> Any:
    return g.HardSwish(x)


@register_onnx("mish")
def _mish(g: Graph, x: Value) -> Any:
    return g.Mish(x)


@register_onnx("softplus")
def _softplus(g: Graph, x: Value, *, beta: float, threshold: float) -> Any:
    """Without the threshold, above which the kernel returns x: the results are equal there."""
    if beta == 1:
        return g.Softplus(x)
    return from_scalar("softplus", g, [x], {"beta": beta, "threshold": threshold})


@register_onnx("floor_divide")
def _floor_divide(g: Graph, x: Value, y: Value) -> Any:
    if x.dtype.kind == "f":
        return g.Floor(g.Div(x, y))
    return g.Div(g.Sub(x, g.Mod(x, y)), y)


@register_onnx("div_trunc")
def _div_trunc(g: Graph, x: Value, y: Value) -> Any:
    return _trunc(g, g.Div(x, y)) if x.dtype.kind == "f" else g.Div(x, y)


@register_onnx("remainder")
def _remainder(g: Graph, x: Value, y: Value) -> Any:
    return g.Sub(x, g.Mul(y, g.Floor(g.Div(x, y)))) if x.dtype.kind == "f" else g.Mod(x, y)


@register_onnx("fmod")
def _fmod(g: Graph, x: Value, y: Value) -> Any:
    return g.Mod(x, y, fmod=1)


@register_onnx("pow_integer")
def _pow_integer(g: Graph, x: Value, y: Value) -> Any:
    return g.Pow(x, y)


@register_onnx("atan2")
def _atan2(g: Graph, y: Value, x: Value) -> Any:
    """By quadrants; where both are 0, 0 or π as the sign of x is taken to be positive."""
    zero, pi = g.number(0, x), g.number(math.pi, x)
    inner = g.Atan(g.Div(y, x))
    turned = g.Where(g.Less(y, zero), g.Sub(inner, pi), g.Add(inner, pi))
    half = g.Mul(g.Sign(y), g.number(math.pi / 2, x))
    angle = g.Where(g.Less(x, zero), turned, inner)
    return g.Where(g.Equal(x, zero), half, angle)


@register_onnx("bitwise_not")
def _bitwise_not(g: Graph, x: Value) -> Any:
    return g.Not(x) if x.dtype.kind == "b" else g.BitwiseNot(x)


def _bitwise(name: str) -> Callable[..., Any]:
    def translate(g: Graph, x: Value, y: Value) -> Any:
        return g.node(name if x.dtype.kind == "b" else f"Bitwise{name}", x, y)

    return translate


for _op, _name in (("bitwise_and", "And"), ("bitwise_or", "Or"), ("bitwise_xor", "Xor")):
    register_onnx(_op)(_bitwise(_name))


@register_onnx("logit")
def _logit(g: Graph, x: Value, *, eps: float | None) -> Any:
    one = g.number(1, x)
    if eps is not None:
        x = g.Min(g.Max(x, g.constant(x.dtype.type(eps))), g.constant(x.dtype.type(1 - eps)))
    return g.Log(g.Div(x, g.Sub(one, x)))


def _logical(name: str) -> Callable[..., Any]:
    def translate(g: Graph, *inputs: Value) -> Any:
        return g.node(name, *[x if x.dtype == _BOOL else g.cast(x, bool) for x in inputs])

    return translate


for _op, _name in (("not", "Not"), ("and", "And"), ("or", "Or"), ("xor", "Xor")):
    register_onnx(f"logical_{_op}")(_logical(_name))


@register_onnx("clamp_min")
def _clamp_min(g: Graph, x: Value, low: Value) -> Any:
    return g.Max(x, low)


@register_onnx("clamp_max")
def _clamp_max(g: Graph, x: Value, high: Value) -> Any:
    return g.Min(x, high)


_register_same()
