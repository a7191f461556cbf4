"""Convolution: functions that users call, which check arguments and hand them to dispatch."""

from __future__ import annotations

from typing import Annotated, Any

from oneflow_lite.autograd.engine.rule_namespace import FUNCTORS_F as F
from oneflow_lite.errors import arg_error
from oneflow_lite.functors import spatial as S
from oneflow_lite.functors.declaring.checks import check_int, check_ndim, check_tensor
from oneflow_lite.functors.declaring.declare import functor
from oneflow_lite.functors.declaring.domains import AnyTensor, Domain, Int, tensor
from oneflow_lite.interpreter.dispatch import dispatch
from oneflow_lite.ops.op_expr import op_expr
from oneflow_lite.tensors.tensor import Tensor

CONV, CONV_INPUT_GRAD = op_expr("conv"), op_expr("conv_input_grad")


def _filters(op: str, weight: Tensor, argument: str) -> Tensor:
    return check_ndim(op, weight, (S.number_of(op) + 2,), argument)


_UNLIKE = {"DTypeError": "When dtypes differ.", "ShapeError": "When shapes or groups do not fit."}
_WORDS = 'int, tuple of ints, "same" or "valid"'
Filters = Annotated[Tensor, tensor(_filters, "", "Of the input's dtype.", **_UNLIKE)]
NamedPadding = Annotated[Any, S.sizes("", ", 0", quick="isinstance({x}, str)", type=_WORDS)]
Groups = Annotated[int, Domain("Blocks of channels that are treated apart.")]


@S.spatially(
    "flow functional",
    samples="""x(2, S), x(2, 2, K), x(2); x(2, 2, S), x(2, 1, K), None, 2, 1, 2, 2
        x(1, S), x(1, 1, K), padding='same'""",
)
def conv_nd(
    input: S.Planes,
    weight: Filters,
    bias: Tensor | None = None,
    stride: S.Sizes = 1,
    padding: NamedPadding = 0,
    dilation: S.Sizes = 1,
    groups: Groups = 1,
) -> Tensor:
    """Correlate sequences, images or volumes with filters.

    y[n, o, s] = Σ_c Σ_k weight[o, c, k] input[n, c, s·stride + k·dilation - padding] + bias[o]

    weight, bias: of shape (O, C / groups, *kernel) and (O,), and of the input's dtype.
    padding: zeros added on both sides; "same" keeps the sizes (with an odd total, the last zero
      goes to the end) and needs stride 1, "valid" is 0.
    returns: (N, O, *size) or (O, *size), of ⌊(L + 2·padding - dilation·(K - 1) - 1) / stride⌋ + 1.

    >>> flow.conv2d(flow.arange(6.).reshape(1, 2, 3), flow.ones(1, 1, 2, 2))
    tensor([[[ 8., 12.]]])
    """
    spatial = len(stride)
    op, kernel_size = f"conv{spatial}d", weight.shape[2:]
    _check_channels(op, input, weight, bias, groups)
    if isinstance(padding, str):
        input, padding = _pad_by_name(op, input, padding, kernel_size, stride, dilation)
    for size, p, k, d in zip(input.shape[-spatial:], padding, kernel_size, dilation, strict=True):
        if size + 2 * p < d * (k - 1) + 1:
            expected = f"filters that fit into the padded input, shape {input.shape} with padding"
            got = f"shape {weight.shape} with dilation {dilation}"
            hint = "use smaller filters or more padding"
            raise arg_error(op, "weight", f"{expected} {padding}", got, hint)
    attrs = {"stride": stride, "padding": padding, "dilation": dilation, "groups": groups}
    if input.ndim == spatial + 2:
        return dispatch(CONV, (input, weight, bias), attrs)
    return dispatch(CONV, (input.unsqueeze(0), weight, bias), attrs).squeeze(0)


@S.spatially(
    "flow functional",
    samples="x(2, S), x(2, 2, K), x(2); x(1, 2, S), x(2, 1, K), x(2), 2, 1, 1, 2, 2",
)
def conv_transpose_nd(
    input: S.Planes,
    weight: Filters,
    bias: Tensor | None = None,
    stride: S.Sizes = 1,
    padding: S.Padding = 0,
    output_padding: S.Padding = 0,
    groups: Groups = 1,
    dilation: S.Sizes = 1,
) -> Tensor:
    """Spread each element over a window of the result: the gradient of a convolution by its input.

    weight, bias: of shape (C, O / groups, *kernel) and (O,), and of the input's dtype.
    padding, output_padding: entries cut off on both sides, and entries added at the end.
    returns: sizes of (L - 1)·stride - 2·padding + dilation·(K - 1) + output_padding + 1.

    >>> flow.conv_transpose1d(flow.tensor([[1., 10.]]), flow.tensor([[[1., 2., 3.]]]), stride=2)
    tensor([[ 1.,  2., 13., 20., 30.]])
    """
    spatial = len(stride)
    op, kernel_size = f"conv_transpose{spatial}d", weight.shape[2:]
    _check_channels(op, input, weight, bias, groups, back=True)
    size = []
    for n, k, s, p, d, more in zip(
        input.shape[-spatial:], kernel_size, stride, padding, dilation, output_padding, strict=True
    ):
        size.append((n - 1) * s - 2 * p + d * (k - 1) + more + 1)
        if more >= max(s, d):
            expected = f"less than the stride {s} or the dilation {d}"
            raise arg_error(op, "output_padding", expected, more, "stride more, or pad less")
        if size[-1] < 1:
            raise arg_error(op, "padding", "a result that is not empty", p, "cut off less")
    attrs = {"stride": stride, "padding": padding, "dilation": dilation, "groups": groups}
    attrs["input_size"] = tuple(size)
    whole = input if input.ndim == spatial + 2 else input.unsqueeze(0)
    y = dispatch(CONV_INPUT_GRAD, (whole, weight), attrs)
    if bias is not None:
        y = y + bias.reshape(-1, *(1,) * spatial)
    return y if whole is input else y.squeeze(0)


@functor("flow functional", samples="x(4, 2, 3), x(2, 3, 2), x(2), 1; x(3, 1, 2), x(3, 2, 1), x(1)")
def conv_tbc(input: AnyTensor, weight: AnyTensor, bias: AnyTensor, pad: Int = 0) -> Tensor:
    """Correlate sequences (T, N, C), padded with zeros, with filters (K, C, O); add a bias (O,).

    ShapeError: when shapes do not fit.

    >>> flow.conv_tbc(flow.ones(3, 1, 2), flow.ones(2, 2, 1), flow.zeros(1)).flatten()
    tensor([4., 4.])
    """
    check_ndim("conv_tbc", input, (3,))
    check_ndim("conv_tbc", weight, (3,), "weight")
    y = F.conv1d(input.permute(1, 2, 0), weight.permute(2, 1, 0), bias, padding=pad)
    return y.permute(2, 0, 1)


def _check_channels(
    op: str, input: Tensor, weight: Tensor, bias: Tensor | None, groups: int, back: bool = False
) -> None:
    """Check what goes into a block of filters and comes out of it; `back`: the other way round."""
    outer, inner = weight.shape[0], weight.shape[1]
    if 0 in weight.shape[2:]:
        raise arg_error(op, "weight", "filters that are not empty", weight, "give them elements")
    if check_int(op, "groups", groups) < 1 or outer % groups:
        expected = f"a positive divisor of the {outer} {'input' if back else 'output'} channels"
        raise arg_error(op, "groups", expected, groups, "change the groups, or the filters")
    wanted, made = (outer, inner * groups) if back else (inner * groups, outer)
    channels = input.shape[1 - weight.ndim]
    if channels != wanted:
        expected = f"{wanted} channels, for weight of shape {weight.shape} and groups={groups}"
        raise arg_error(op, "input", expected, f"{channels} channels", "match the channels")
    if bias is not None and check_tensor(op, "bias", bias).shape != (made,):
        expected = f"shape {(made,)}, one element for each output channel"
        raise arg_error(op, "bias", expected, bias, "match the output channels")
    S.same_dtype(op, input, weight=weight, bias=bias)


def _pad_by_name(
    op: str, input: Tensor, padding: str, kernel_size: S.Ints, stride: S.Ints, dilation: S.Ints
) -> tuple[Tensor, S.Ints]:
    """Return the input, and the padding that is left for the op to add on both sides."""
    if padding == "valid":
        return input, (0,) * len(stride)
    if padding != "same" or any(step != 1 for step in stride):
        got, hint = f"{padding!r} with stride {stride}", "give the padding in numbers"
        raise arg_error(op, "padding", "'same' with stride 1, 'valid', or ints", got, hint)
    totals = [d * (k - 1) for k, d in zip(kernel_size, dilation, strict=True)]
    if any(total % 2 for total in totals):
        input = F.pad(input, [size for total in reversed(totals) for size in (0, total % 2)])
    return input, tuple([total // 2 for total in totals])
