"""Dropout: functions that users call; the library's generator draws the masks."""

from __future__ import annotations

from typing import Annotated

from oneflow_lite.errors import arg_error
from oneflow_lite.functors.declaring.declare import functor
from oneflow_lite.functors.declaring.domains import AnyTensor, Domain
from oneflow_lite.functors.random import Probability, dropout_mask
from oneflow_lite.tensors.caller_warnings import warn_caller
from oneflow_lite.tensors.mode import no_grad
from oneflow_lite.tensors.tensor import Tensor

_ALPHA = -1.7580993408473766  # -λα of selu, towards which its activations saturate
_SAMPLES = "x(2, 3), 0.5, False; x(2, 30), 0.5, True; x(2, 3), 1.0, True; x(2, 30, 2), 0.3, True"
_TRAIN = "train=training"
_UNLESS = "Without it the input is returned as it is."
Training = Annotated[bool, Domain(_UNLESS, "{x} = bool({x})", "type({x}) is bool")]


def _mask(input: Tensor, p: float) -> Tensor:
    """Draw 0 with probability p, else 1 / (1 - p), for each element."""
    with no_grad():
        return dropout_mask(input, p)


def _channel_mask(op: str, input: Tensor, p: float) -> Tensor:
    """Draw 0 with probability p, else 1 / (1 - p), for each channel."""
    if input.ndim < 2:
        expected = "at least 2 dimensions, (N, C, *)"
        raise arg_error(op, "input", expected, input, "use dropout for others")
    return _mask(input.new_empty((*input.shape[:2], *(1,) * (input.ndim - 2))), p)


def _alpha(input: Tensor, mask: Tensor, p: float) -> Tensor:
    """Put -λα where the mask is 0, and bring mean and variance back to 0 and 1."""
    if p == 1:
        return input * mask
    scale = ((1 - p) * (1 + p * _ALPHA**2)) ** -0.5
    with no_grad():
        kept = mask * (1 - p)
        shift = (1 - kept) * (_ALPHA * scale) - _ALPHA * scale * p
    return input * (kept * scale) + shift


@functor("functional flow", inplace=True, twin="flow", spelled=_TRAIN, samples=_SAMPLES)
def dropout(input: AnyTensor, p: Probability = 0.5, training: Training = True) -> Tensor:
    """Set elements to zero with probability `p`, and multiply the others by 1 / (1 - p).

    input: floating or complex in training.

    >>> flow.dropout(flow.ones(1000), 0.25).unique()
    tensor([0.0000, 1.3333])
    """
    return input * _mask(input, p) if training and p else input


@functor("functional flow", inplace=True, twin="flow", spelled=_TRAIN, samples=_SAMPLES)
def alpha_dropout(input: AnyTensor, p: Probability = 0.5, training: Training = False) -> Tensor:
    """Set elements to selu's limit at -∞ with probability `p`, keeping mean 0 and variance 1.

    Klambauer et al., Self-Normalizing Neural Networks, 2017.
    """
    return _alpha(input, _mask(input, p), p) if training and p else input


@functor("functional flow", inplace=True, twin="flow", spelled=_TRAIN, samples=_SAMPLES)
def feature_alpha_dropout(
    input: AnyTensor, p: Probability = 0.5, training: Training = False
) -> Tensor:
    """Do what `alpha_dropout` does to whole channels of (N, C, *).

    ShapeError: when the input has fewer than two dimensions.
    """
    if not training or not p:
        return input
    return _alpha(input, _channel_mask("feature_alpha_dropout", input, p), p)


@functor("flow", twin="flow", samples=_SAMPLES)
def feature_dropout(input: AnyTensor, p: Probability, train: Training) -> Tensor:
    """Set channels of (N, C, *) to zero with probability `p`, and multiply others by 1 / (1 - p).

    ShapeError: when the input has fewer than two dimensions.
    """
    return input * _channel_mask("feature_dropout", input, p) if train and p else input


def _of_channels(
    name: str, shapes: str, ndims: tuple[int, ...], samples: str, unbatched: int = 0
) -> None:
    def author(input: AnyTensor, p: Probability = 0.5, training: Training = True) -> Tensor:
        if name == "dropout1d" and input.ndim not in ndims:
            raise arg_error(name, "input", "2 or 3 dimensions", input, "use dropout for others")
        if training and input.ndim not in ndims:
            warn_caller(
                f"{name}(): an input of shape {input.shape}; the first two dimensions are taken as "
                "batch and channels: use dropout or dropout1d to say what is meant"
            )
        if input.ndim == unbatched:
            return feature_dropout(input[None], p, training)[0]
        return feature_dropout(input, p, training)

    author.__name__ = name
    author.__doc__ = f"Set channels of {shapes} to zero; see `feature_dropout`."
    if name == "dropout1d":
        author.__doc__ += "\n\nShapeError: when the input has another number of dimensions."
    functor("functional", inplace=True, samples=samples)(author)


_1D = "x(2, 3, 2), 0.5, False; x(60, 2); x(2, 30, 4)"
_2D = "x(2, 3, 2, 2), 0.5, False; x(2, 30, 4, 1)"
_3D = "x(2, 3, 2, 1, 1), 0.5, False; x(60, 1, 2, 1)"
_of_channels("dropout1d", "(N, C, L) or (C, L)", (2, 3), _1D, unbatched=2)
_of_channels("dropout2d", "(N, C, H, W), or of (N, C, L) with a warning,", (4,), _2D)
_of_channels("dropout3d", "(N, C, D, H, W) or (C, D, H, W)", (4, 5), _3D, unbatched=4)
