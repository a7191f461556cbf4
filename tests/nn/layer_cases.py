"""Every module without parameters of its own, as text, and inputs for it.

The text is read with this library's names or with PyTorch's. The first case of a class leaves as
much as it can to defaults; together its cases give every argument another value.
"""

from __future__ import annotations

import numpy as np

Inputs = tuple[np.ndarray, ...]

CASES: list[tuple[str, Inputs]] = []
# What draws random numbers in training.
RANDOM = ("Dropout", "RReLU", "FractionalMaxPool")


def _add(*inputs: np.ndarray, texts: str) -> None:
    CASES.extend((" ".join(text.split()), inputs) for text in texts.split("|"))


def _numbers(*shape: int) -> np.ndarray:
    numbers = np.random.default_rng(sum(shape)).normal(size=shape)
    return numbers.astype(np.float32)


def _counts(*shape: int, below: int) -> np.ndarray:
    return np.random.default_rng(2).integers(0, below, shape)


FLAT, OTHER, THIRD = _numbers(6, 4), _numbers(4, 6).reshape(6, 4), np.flip(_numbers(6, 4)).copy()
LINES, IMAGES, VOLUMES = _numbers(2, 4, 7), _numbers(2, 4, 6, 7), _numbers(1, 2, 5, 6, 4)
SHARES = (np.arange(24, dtype=np.float32).reshape(6, 4) % 7 + 1) / 12
SIGNS = np.array([1, -1, 1, 1, -1, -1])
WEIGHT = "flow.tensor([0.5, 1.0, 2.0, 1.5])"

_add(
    FLAT,
    texts="""
    nn.Sigmoid() | nn.LogSigmoid() | nn.Tanh() | nn.Tanhshrink() | nn.Softsign() | nn.Identity()
    | nn.Identity(3, unused=1) | nn.Softplus() | nn.Softplus(2, 0.5) | nn.ELU() | nn.ELU(0.7)
    | nn.CELU() | nn.CELU(1.5) | nn.SELU() | nn.SiLU() | nn.Mish() | nn.GELU() | nn.GELU("tanh")
    | nn.GLU() | nn.GLU(0) | nn.ReLU() | nn.ReLU6() | nn.LeakyReLU() | nn.LeakyReLU(0.3)
    | nn.RReLU() | nn.RReLU(0.2, 0.7) | nn.PReLU() | nn.PReLU(4, 0.1) | nn.Hardtanh()
    | nn.Hardtanh(-0.5, 0.7) | nn.Hardsigmoid() | nn.Hardswish() | nn.Hardshrink()
    | nn.Hardshrink(0.8) | nn.Softshrink() | nn.Softshrink(0.8) | nn.Threshold(0.1, 7)
    | nn.Softmax(1) | nn.Softmin(dim=0) | nn.LogSoftmax(1)
    | nn.Dropout() | nn.Dropout(0.2) | nn.AlphaDropout() | nn.AlphaDropout(0.2, True)
    | nn.FeatureAlphaDropout() | nn.FeatureAlphaDropout(0.2, True)
    | nn.Unflatten(1, (2, 2)) | nn.Unflatten(-1, [1, 4])
    """,
)
_add(
    LINES,
    texts="""
    nn.Flatten() | nn.Flatten(0, 1) | nn.Dropout1d() | nn.Dropout1d(0.2)
    | nn.MaxPool1d(2) | nn.MaxPool1d(3, 2, 1, 2, True, True) | nn.MaxPool1d([3], ceil_mode=True)
    | nn.AvgPool1d(2) | nn.AvgPool1d(3, 2, 1, True, False) | nn.AvgPool1d([2])
    | nn.LPPool1d(2, 3) | nn.LPPool1d(4.0, 2, 1, True)
    | nn.AdaptiveAvgPool1d(3) | nn.AdaptiveMaxPool1d(3) | nn.AdaptiveMaxPool1d(2, True)
    | nn.ConstantPad1d(1, 0.5) | nn.ConstantPad1d((2, 0), 3) | nn.ZeroPad1d(2)
    | nn.ZeroPad1d((0, 1))
    | nn.ReflectionPad1d(3) | nn.ReflectionPad1d((0, 2)) | nn.ReplicationPad1d(3)
    | nn.ReplicationPad1d((0, 2)) | nn.CircularPad1d(3) | nn.CircularPad1d((0, 2))
    | nn.LocalResponseNorm(2) | nn.LocalResponseNorm(3, 0.5, 1.5, 2)
    | nn.ChannelShuffle(2) | nn.Upsample(9) | nn.Upsample(scale_factor=2)
    | nn.Upsample(None, 1.5, "linear", True, True)
    """,
)
_add(
    IMAGES,
    texts="""
    nn.Softmax2d() | nn.Dropout2d() | nn.Dropout2d(0.2)
    | nn.MaxPool2d(2) | nn.MaxPool2d((2, 3), (2, 1), 1, 1, True, True)
    | nn.MaxPool2d(2, dilation=(1, 2)) | nn.AvgPool2d(2)
    | nn.AvgPool2d((2, 3), 2, 1, True, False, 4)
    | nn.LPPool2d(2, 3) | nn.LPPool2d(4.0, (2, 1), 1, True)
    | nn.AdaptiveAvgPool2d((2, None)) | nn.AdaptiveAvgPool2d(2) | nn.AdaptiveMaxPool2d(3)
    | nn.AdaptiveMaxPool2d((None, 2), True)
    | nn.FractionalMaxPool2d(2, (3, 2), _random_samples=flow.full((2, 4, 2), 0.6))
    | nn.FractionalMaxPool2d((2, 1), None, 0.5, True, flow.full((2, 4, 2), 0.3))
    | nn.FractionalMaxPool2d(2, 3)
    | nn.ConstantPad2d(1, 0.5) | nn.ConstantPad2d((2, 0, 1, -1), 3) | nn.ZeroPad2d(2)
    | nn.ZeroPad2d((0, 1, 2, 3)) | nn.ReflectionPad2d(3) | nn.ReflectionPad2d((0, 2, 1, 0))
    | nn.ReplicationPad2d(3) | nn.ReplicationPad2d((0, 2, 1, 0)) | nn.CircularPad2d(3)
    | nn.CircularPad2d((0, 2, 1, 0)) | nn.CrossMapLRN2d(7) | nn.CrossMapLRN2d(7, 0.5, 1.5, 2)
    | nn.PixelShuffle(2) | nn.Unfold(2) | nn.Unfold((2, 3), (2, 1), 1, (1, 2))
    | nn.UpsamplingNearest2d(9) | nn.UpsamplingNearest2d(scale_factor=(2, 1.5))
    | nn.UpsamplingBilinear2d((9, 3)) | nn.UpsamplingBilinear2d(scale_factor=2)
    """,
)
_add(
    VOLUMES,
    texts="""
    nn.Dropout3d() | nn.Dropout3d(0.2)
    | nn.MaxPool3d(2) | nn.MaxPool3d((2, 3, 2), (2, 1, 1), 1, 1, True, True)
    | nn.MaxPool3d(2, dilation=(1, 2, 1)) | nn.AvgPool3d(2)
    | nn.AvgPool3d((2, 3, 1), 2, (1, 1, 0), True, False, 4)
    | nn.LPPool3d(2, 3) | nn.LPPool3d(4.0, (2, 1, 2), 1, True)
    | nn.AdaptiveAvgPool3d((2, None, 3)) | nn.AdaptiveMaxPool3d(3)
    | nn.AdaptiveMaxPool3d((None, 2, 1), True)
    | nn.FractionalMaxPool3d(2, 2, _random_samples=flow.full((1, 2, 3), 0.6))
    | nn.FractionalMaxPool3d((2, 1, 2), None, 0.5, True, flow.full((1, 2, 3), 0.3))
    | nn.ConstantPad3d(1, 0.5) | nn.ConstantPad3d((2, 0, 1, -1, 0, 1), 3) | nn.ZeroPad3d(2)
    | nn.ZeroPad3d((0, 1, 2, 3, 1, 0)) | nn.ReflectionPad3d(3)
    | nn.ReflectionPad3d((0, 2, 1, 0, 1, 1))
    | nn.ReplicationPad3d(3) | nn.ReplicationPad3d((0, 2, 1, 0, 1, 1)) | nn.CircularPad3d(3)
    | nn.CircularPad3d((0, 2, 1, 0, 1, 1))
    """,
)
_add(_numbers(1, 2, 4, 6), texts="nn.PixelUnshuffle(2)")
_add(_numbers(2, 12, 4), texts="nn.Fold((3, 3), 2) | nn.Fold((3, 5), (2, 3), (2, 1), 1, (2, 3))")
_add(
    np.array([[[1.5, -2.0, 0.5]]], np.float32),
    np.array([[[1, 2, 4]]]),
    texts="nn.MaxUnpool1d(2) | nn.MaxUnpool1d([3], 2, (1,)) | nn.MaxUnpool1d(3, stride=2)",
)
_add(
    _numbers(1, 2, 2, 2),
    np.array([[[[0, 3], [9, 14]], [[1, 2], [12, 15]]]]),
    texts="nn.MaxUnpool2d(2) | nn.MaxUnpool2d((4, 2), 3, (1, 0)) | nn.MaxUnpool2d(3, padding=0)",
)
_add(
    _numbers(1, 1, 2, 1, 1),
    np.array([[[[[1]], [[9]]]]]),
    texts="nn.MaxUnpool3d(3) | nn.MaxUnpool3d((2, 3, 2), (1, 3, 2), (0, 0, 0))",
)
_add(
    FLAT, OTHER,
    texts="""
    nn.L1Loss() | nn.L1Loss(reduction="sum") | nn.MSELoss() | nn.MSELoss(reduction="none")
    | nn.SmoothL1Loss() | nn.SmoothL1Loss(reduction="sum", beta=0.4)
    | nn.HuberLoss() | nn.HuberLoss("sum", 0.4)
    | nn.KLDivLoss(reduction="sum", log_target=True)
    | nn.CosineSimilarity() | nn.CosineSimilarity(0, 1e-4)
    | nn.PairwiseDistance() | nn.PairwiseDistance(1.0, 0.01, True)
    """,
)  # fmt: skip
_add(
    FLAT, SHARES,
    texts=f"""
    nn.BCEWithLogitsLoss() | nn.BCEWithLogitsLoss({WEIGHT}, pos_weight={WEIGHT}, reduction="none")
    | nn.MultiLabelSoftMarginLoss() | nn.MultiLabelSoftMarginLoss({WEIGHT}, reduction="none")
    | nn.PoissonNLLLoss() | nn.PoissonNLLLoss(full=True, reduction="sum")
    | nn.KLDivLoss(reduction="batchmean")
    """,
)  # fmt: skip
_add(
    SHARES, np.flip(SHARES).copy(),
    texts=f"""
    nn.BCELoss() | nn.BCELoss({WEIGHT}, reduction="sum")
    | nn.PoissonNLLLoss(False, eps=0.1, reduction="none")
    """,
)  # fmt: skip
_add(
    FLAT, OTHER, SHARES,
    texts='nn.GaussianNLLLoss() | nn.GaussianNLLLoss(full=True, eps=0.3, reduction="none")',
)  # fmt: skip
_add(
    FLAT, np.array([0, 3, 1, 2, 2, 0]),
    texts=f"""
    nn.NLLLoss() | nn.NLLLoss({WEIGHT}, ignore_index=2, reduction="sum")
    | nn.CrossEntropyLoss() | nn.CrossEntropyLoss({WEIGHT}, None, 2, None, "none", 0.1)
    | nn.MultiMarginLoss() | nn.MultiMarginLoss(2, 0.3, {WEIGHT}, reduction="none")
    | nn.LinearCrossEntropyLoss(4, 4)
    | nn.LinearCrossEntropyLoss(4, 4, bias=True, reduction="sum", weight={WEIGHT}, ignore_index=2,
        label_smoothing=0.1)
    """,
)  # fmt: skip
_add(
    FLAT, _counts(6, 3, below=2),
    texts="nn.LinearCrossEntropyLoss(4, 2, out_features=(3,))",
)  # fmt: skip
_add(
    IMAGES, _counts(2, 6, 7, below=4),
    texts=f'nn.NLLLoss2d() | nn.NLLLoss2d({WEIGHT}, None, 2, None, "none")',
)  # fmt: skip
_add(
    FLAT, np.array([[0, 2, -1, 1], [3, 3, -1, 0], [-1, 0, 1, 2]] * 2),
    texts='nn.MultiLabelMarginLoss() | nn.MultiLabelMarginLoss(reduction="none")',
)  # fmt: skip
_add(
    _numbers(5, 2, 4), np.array([[1, 2, 1], [3, 1, 0]]), np.array([5, 4]), np.array([3, 2]),
    texts='nn.CTCLoss() | nn.CTCLoss(3, "none", True)',
)  # fmt: skip
_add(
    FLAT[:, 0].copy(), SIGNS,
    texts="""
    nn.SoftMarginLoss() | nn.SoftMarginLoss(reduction="none")
    | nn.HingeEmbeddingLoss() | nn.HingeEmbeddingLoss(0.4, reduction="none")
    """,
)  # fmt: skip
_add(
    FLAT[:, 0].copy(), OTHER[:, 1].copy(), SIGNS,
    texts='nn.MarginRankingLoss() | nn.MarginRankingLoss(0.3, reduction="none")',
)  # fmt: skip
_add(
    FLAT, OTHER, SIGNS,
    texts='nn.CosineEmbeddingLoss() | nn.CosineEmbeddingLoss(-0.3, reduction="none")',
)  # fmt: skip
_add(
    FLAT, OTHER, THIRD,
    texts="""
    nn.TripletMarginLoss() | nn.TripletMarginLoss(0.5, 1.0, 0.1, True, reduction="none")
    | nn.TripletMarginWithDistanceLoss()
    | nn.TripletMarginWithDistanceLoss(distance_function=nn.PairwiseDistance(1.0), margin=0.5,
        swap=True, reduction="none")
    | nn.TripletMarginWithDistanceLoss(distance_function=nn.functional.pairwise_distance)
    """,
)  # fmt: skip
