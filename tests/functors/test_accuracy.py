"""Reductions, running sums and all that adds up: errors at 100,000 elements.

Each function and its gradient is held against float64, beside PyTorch. Errors are root mean
squares, relative to the values. Ours is at most twice PyTorch's, or some units in the last place.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import oneflow_lite as flow

torch = pytest.importorskip("torch")

N = 100_000
# In the last place, and as many of them as are allowed at least.
UNITS = {"float32": 2 * 2.0**-23, "float16": 2.0**-10, "bfloat16": 2.0**-7}
# What differs more, and why.
OTHERS = {
    **dict.fromkeys(
        (f"float32 {name} {dn}" for name in ("bilinear", "conv1d", "attention") for dn in "nu"),
        "products of matrices are BLAS's; PyTorch multiplies in smaller blocks",
    ),
    **dict.fromkeys(
        (
            f"{kind} median {tag}"
            for kind in ("float16", "bfloat16")
            for tag in ("all", "last", "first", "mid", "long", "tall")
        ),
        "of equal numbers another one is the median",
    ),
    **dict.fromkeys(
        (
            f"float16 batch_norm {shape} n"
            for shape in ((10000, 10), (10, 10, 1000), (10, 10, 10, 100), (50000, 2))
        ),
        "the normalized input is kept in float16",
    ),
}
Draw = Callable[[np.random.Generator], Any]
CASES: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {}


def nrm(*shape: int) -> Draw:
    """Normal numbers."""
    return lambda random: random.normal(size=shape)


def uni(*shape: int) -> Draw:
    """Numbers from 0 to 1."""
    return lambda random: random.uniform(0, 1, shape)


def above(*shape: int) -> Draw:
    """Numbers from 0.1 on."""
    return lambda random: random.uniform(0.1, 1.1, shape)


def within(*shape: int) -> Draw:
    """Numbers from -1 to 1."""
    return lambda random: random.uniform(-1, 1, shape)


def near1(*shape: int) -> Draw:
    """Factors of long products."""
    return lambda random: random.normal(1, 1e-2, shape)


def between(low: int, high: int, *shape: int) -> Draw:
    """Integers from `low` to below `high`."""
    return lambda random: random.integers(low, high, shape)


def signs(*shape: int, kind: Any = float) -> Draw:
    """Numbers that are 1 or -1."""
    return lambda random: random.integers(0, 2, shape).astype(kind) * 2 - 1


def add(name: str, function: Callable[..., Any], *arrays: Any) -> None:
    """Add a case: a function of a library, its nn.functional, and tensors."""
    CASES[name] = function, arrays


for tag, shape, dim in (
    ("all", (N,), 0),
    ("last", (100, 1000), 1),
    ("first", (1000, 100), 0),
    ("mid", (10, 1000, 10), 1),
    ("long", (2, N // 2), 1),
    ("tall", (N // 4, 4), 0),
):
    for dn, dist in (("n", nrm), ("u", uni)):
        t = f"{tag}/{dn}"
        for f in (
            "sum",
            "mean",
            "nansum",
            "nanmean",
            "logsumexp",
            "softmax",
            "log_softmax",
            "cumsum",
            "logcumsumexp",
        ):
            add(f"{f} {t}", lambda L, F, x, f=f, dim=dim: getattr(L, f)(x, dim), dist(*shape))
        for f in ("var", "std"):
            add(f"{f} {t}", lambda L, F, x, f=f, dim=dim: getattr(L, f)(x, dim), dist(*shape))
            add(
                f"{f}+100 {t}",
                lambda L, F, x, f=f, dim=dim: getattr(L, f)(x + 100, dim),
                dist(*shape),
            )
        add(f"var_mean {t}", lambda L, F, x, dim=dim: L.var_mean(x, dim), dist(*shape))
        for p in (1, 2, 3, 0.5, float("inf")):
            add(
                f"norm{p} {t}",
                lambda L, F, x, p=p, dim=dim: L.linalg.vector_norm(x, p, dim),
                dist(*shape),
            )
        add(f"trapezoid {t}", lambda L, F, x, dim=dim: L.trapezoid(x, dim=dim), dist(*shape))
        add(
            f"cumulative_trapezoid {t}",
            lambda L, F, x, dim=dim: L.cumulative_trapezoid(x, dim=dim),
            dist(*shape),
        )
        add(f"cummax {t}", lambda L, F, x, dim=dim: L.cummax(x, dim)[0], dist(*shape))
        add(
            f"cosine_similarity {t}",
            lambda L, F, x, y, dim=dim: F.cosine_similarity(x, y, dim),
            dist(*shape),
            dist(*shape),
        )
        add(f"normalize {t}", lambda L, F, x, dim=dim: F.normalize(x, dim=dim), dist(*shape))
        add(
            f"renorm {t}",
            lambda L, F, x, dim=dim: L.renorm(x, 2, dim, 0.5) if x.ndim > 1 else x,
            dist(*shape),
        )
        add(f"flipcumsum {t}", lambda L, F, x, dim=dim: L.cumsum(x.flip(dim), dim), dist(*shape))
        add(f"diff {t}", lambda L, F, x, dim=dim: L.diff(x, dim=dim), dist(*shape))
    add(f"prod {tag}", lambda L, F, x, dim=dim: L.prod(x, dim), near1(*shape))
    add(f"cumprod {tag}", lambda L, F, x, dim=dim: L.cumprod(x, dim), near1(*shape))
    add(f"median {tag}", lambda L, F, x, dim=dim: L.median(x, dim)[0], nrm(*shape))
for f in (
    "mse_loss",
    "l1_loss",
    "smooth_l1_loss",
    "huber_loss",
    "poisson_nll_loss",
    "hinge_embedding_loss",
):
    for red in ("mean", "sum"):
        add(
            f"{f} {red}",
            lambda L, F, x, y, f=f, red=red: getattr(F, f)(x, y, reduction=red),
            nrm(N),
            (signs(N) if "margin" in f or "hinge" in f else uni(N)),
        )
for red in ("mean", "sum", "batchmean"):
    add(
        f"kl_div {red}",
        lambda L, F, x, y, red=red: F.kl_div(F.log_softmax(x, 1), F.softmax(y, 1), reduction=red),
        nrm(1000, 100),
        nrm(1000, 100),
    )
for red in ("mean", "sum"):
    add(
        f"bce {red}",
        lambda L, F, x, y, red=red: F.binary_cross_entropy(
            L.sigmoid(x), L.sigmoid(y), reduction=red
        ),
        nrm(N),
        nrm(N),
    )
    add(
        f"bcel {red}",
        lambda L, F, x, y, red=red: F.binary_cross_entropy_with_logits(x, y, reduction=red),
        nrm(N),
        uni(N),
    )
    for shp in ((1000, 100), (10, 10000), (10000, 10)):
        add(
            f"cross_entropy {red} {shp}",
            lambda L, F, x, t, red=red: F.cross_entropy(x, t, reduction=red),
            nrm(*shp),
            between(0, shp[1], shp[0]),
        )
        add(
            f"nll {red} {shp}",
            lambda L, F, x, t, red=red: F.nll_loss(x, t, reduction=red),
            nrm(*shp),
            between(0, shp[1], shp[0]),
        )
        add(
            f"ce ls {red} {shp}",
            lambda L, F, x, t, red=red: F.cross_entropy(x, t, reduction=red, label_smoothing=0.1),
            nrm(*shp),
            between(0, shp[1], shp[0]),
        )
    add(
        f"gaussian_nll {red}",
        lambda L, F, x, y, v, red=red: F.gaussian_nll_loss(x, y, v, reduction=red),
        nrm(N),
        nrm(N),
        above(N),
    )
    add(
        f"margin_ranking {red}",
        lambda L, F, x, y, red=red: F.margin_ranking_loss(x, y, L.ones_like(x), 0.1, reduction=red),
        nrm(N),
        nrm(N),
    )
    add(
        f"triplet {red}",
        lambda L, F, a, b, c, red=red: F.triplet_margin_loss(a, b, c, reduction=red),
        nrm(1000, 100),
        nrm(1000, 100),
        nrm(1000, 100),
    )
    add(
        f"cosine_embedding {red}",
        lambda L, F, a, b, t, red=red: F.cosine_embedding_loss(a, b, t, reduction=red),
        nrm(1000, 100),
        nrm(1000, 100),
        signs(1000, kind=int),
    )
    add(
        f"multi_margin {red}",
        lambda L, F, a, t, red=red: F.multi_margin_loss(a, t, reduction=red),
        nrm(1000, 100),
        between(0, 100, 1000),
    )
    add(
        f"ctc {red}",
        lambda L, F, x, t, a, b, red=red: F.ctc_loss(F.log_softmax(x, 2), t, a, b, reduction=red),
        nrm(100, 10, 100),
        between(1, 100, 10, 30),
        np.full(10, 100),
        np.full(10, 30),
    )
for dn, dist in (("n", nrm), ("u", uni)):
    for shp, norm in (
        ((1000, 100), (100,)),
        ((10, 10000), (10000,)),
        ((1, N), (N,)),
        ((10, 10, 1000), (10, 1000)),
    ):
        add(
            f"layer_norm {shp} {dn}",
            lambda L, F, x, w, b, norm=norm: F.layer_norm(x, norm, w, b),
            dist(*shp),
            nrm(*norm),
            nrm(*norm),
        )
        add(
            f"layer_norm+100 {shp} {dn}",
            lambda L, F, x, w, b, norm=norm: F.layer_norm(x + 100, norm, w, b),
            dist(*shp),
            nrm(*norm),
            nrm(*norm),
        )
        add(
            f"rms_norm {shp} {dn}",
            lambda L, F, x, w, norm=norm: F.rms_norm(x, norm, w),
            dist(*shp),
            nrm(*norm),
        )
    for shp in ((1000, 100), (10000, 10), (10, 10, 1000), (10, 10, 10, 100), (50000, 2)):
        c = shp[1]
        add(
            f"batch_norm {shp} {dn}",
            lambda L, F, x, w, b: F.batch_norm(x, None, None, w, b, True),
            dist(*shp),
            nrm(c),
            nrm(c),
        )
        add(
            f"batch_norm+100 {shp} {dn}",
            lambda L, F, x, w, b: F.batch_norm(x + 100, None, None, w, b, True),
            dist(*shp),
            nrm(c),
            nrm(c),
        )
        if len(shp) > 2:
            add(
                f"instance_norm {shp} {dn}",
                lambda L, F, x, w, b: F.instance_norm(x, None, None, w, b),
                dist(*shp),
                nrm(c),
                nrm(c),
            )
            add(
                f"group_norm {shp} {dn}",
                lambda L, F, x, w, b: F.group_norm(x, 2, w, b),
                dist(*shp),
                nrm(c),
                nrm(c),
            )
    add(f"dot {dn}", lambda L, F, x, y: L.dot(x, y), dist(N), dist(N))
    add(f"vdot2 {dn}", lambda L, F, x, y: (x * y).sum(), dist(N), dist(N))
    add(f"inner {dn}", lambda L, F, x, y: L.inner(x, y), dist(N), dist(N))
    add(f"mv {dn}", lambda L, F, x, y: L.mv(x, y), dist(10, 10000), dist(10000))
    add(f"mv2 {dn}", lambda L, F, x, y: L.mv(x, y), dist(10000, 10), dist(10))
    add(f"mm {dn}", lambda L, F, x, y: x @ y, dist(316, 316), dist(316, 316))
    add(f"mmlong {dn}", lambda L, F, x, y: x @ y, dist(10, 10000), dist(10000, 10))
    add(f"mmtall {dn}", lambda L, F, x, y: x @ y, dist(10000, 10), dist(10, 10))
    add(f"bmm {dn}", lambda L, F, x, y: L.bmm(x, y), dist(10, 10, 1000), dist(10, 1000, 10))
    add(
        f"linear {dn}",
        lambda L, F, x, w, b: F.linear(x, w, b),
        dist(1000, 100),
        dist(50, 100),
        dist(50),
    )
    add(
        f"bilinear {dn}",
        lambda L, F, x, y, w, b: F.bilinear(x, y, w, b),
        dist(1000, 20),
        dist(1000, 20),
        dist(10, 20, 20),
        dist(10),
    )
    add(
        f"einsum {dn}",
        lambda L, F, x, y: L.einsum("ij,ij->i", x, y),
        dist(10, 10000),
        dist(10, 10000),
    )
    add(
        f"einsum2 {dn}",
        lambda L, F, x, y: L.einsum("ij,ij->j", x, y),
        dist(10000, 10),
        dist(10000, 10),
    )
    add(
        f"tensordot {dn}", lambda L, F, x, y: L.tensordot(x, y, 1), dist(10, 10000), dist(10000, 10)
    )
    add(f"outer {dn}", lambda L, F, x, y: L.outer(x, y), dist(300), dist(300))
    add(f"kron {dn}", lambda L, F, x, y: L.kron(x, y), dist(100), dist(1000))
    for k, hi in (("few", 3), ("many", 1000)):
        add(
            f"scatter_add {k} {dn}",
            lambda L, F, x, s, i: x.scatter_add(0, i, s),
            dist(hi),
            dist(N),
            between(0, hi, N),
        )
        add(
            f"index_add {k} {dn}",
            lambda L, F, x, s, i: x.index_add(0, i, s),
            dist(hi, 10),
            dist(N // 10, 10),
            between(0, hi, N // 10),
        )
        add(
            f"index_add1 {k} {dn}",
            lambda L, F, x, s, i: x.index_add(0, i, s),
            dist(hi),
            dist(N),
            between(0, hi, N),
        )
        add(
            f"index_put_acc {k} {dn}",
            lambda L, F, x, s, i: x.index_put((i,), s, accumulate=True),
            dist(hi),
            dist(N),
            between(0, hi, N),
        )
        add(
            f"scatter_reduce_mean {k} {dn}",
            lambda L, F, x, s, i: x.scatter_reduce(0, i, s, "mean"),
            dist(hi),
            dist(N),
            between(0, hi, N),
        )
        add(
            f"scatter_reduce_sum {k} {dn}",
            lambda L, F, x, s, i: x.scatter_reduce(0, i, s, "sum"),
            dist(hi),
            dist(N),
            between(0, hi, N),
        )
        add(
            f"scatter_reduce_prod {k}",
            lambda L, F, x, s, i: x.scatter_reduce(0, i, s, "prod"),
            near1(hi),
            near1(N),
            between(0, hi, N),
        )
        add(
            f"index_reduce_mean {k} {dn}",
            lambda L, F, x, s, i: x.index_reduce(0, i, s, "mean"),
            dist(hi),
            dist(N),
            between(0, hi, N),
        )
        add(f"gather {k} {dn}", lambda L, F, x, i: x.gather(0, i), dist(hi), between(0, hi, N))
        add(
            f"index_select {k} {dn}",
            lambda L, F, x, i: x.index_select(0, i),
            dist(hi, 10),
            between(0, hi, N // 10),
        )
        add(f"getitem {k} {dn}", lambda L, F, x, i: x[i], dist(hi), between(0, hi, N))
        add(f"take {k} {dn}", lambda L, F, x, i: L.take(x, i), dist(hi), between(0, hi, N))
        add(
            f"embedding {k} {dn}",
            lambda L, F, w, i: F.embedding(i, w),
            dist(hi, 10),
            between(0, hi, N // 10),
        )
        for m in ("sum", "mean"):
            add(
                f"embedding_bag {m} {k} {dn}",
                lambda L, F, w, i, o, m=m: F.embedding_bag(i, w, o, mode=m),
                dist(hi, 10),
                between(0, hi, N // 10),
                np.arange(0, N // 10, 1000),
            )
        add(
            f"bincount {k} {dn}",
            lambda L, F, w, i: L.bincount(i, w.detach()),
            dist(N),
            between(0, hi, N),
        )
    add(
        f"segment_reduce sum {dn}",
        lambda L, F, x: L.segment_reduce(x, "sum", lengths=L.tensor([N // 2, N // 4, N // 4])),
        dist(N),
    )
    add(
        f"segment_reduce mean {dn}",
        lambda L, F, x: L.segment_reduce(x, "mean", lengths=L.tensor([N // 2, N // 4, N // 4])),
        dist(N),
    )
    add(f"histc {dn}", lambda L, F, x: L.histc(x.detach(), 10), dist(N))
    add(
        f"histogram {dn}",
        lambda L, F, x, w: L.histogram(x.detach(), 10, weight=w.detach())[0],
        dist(N),
        dist(N),
    )
    add(
        f"histogram d {dn}",
        lambda L, F, x, w: L.histogram(x.detach(), 10, weight=w.detach(), density=True)[0],
        dist(N),
        dist(N),
    )
    for dd, shp in ((1, (1, 10, 10000)), (2, (1, 10, 100, 100)), (3, (1, 2, 50, 50, 20))):
        add(
            f"avg_pool{dd} {dn}",
            lambda L, F, x, dd=dd: getattr(F, f"avg_pool{dd}d")(x, 5 if dd > 1 else 100),
            dist(*shp),
        )
        add(
            f"avg_poolall{dd} {dn}",
            lambda L, F, x, dd=dd, shp=shp: getattr(F, f"avg_pool{dd}d")(x, shp[2:]),
            dist(*shp),
        )
        for o in (1, 2, 3, 7):
            add(
                f"adaptive_avg{dd} {o} {dn}",
                lambda L, F, x, dd=dd, o=o: getattr(F, f"adaptive_avg_pool{dd}d")(x, o),
                dist(*shp),
            )
        add(
            f"lp_pool{dd} {dn}",
            lambda L, F, x, dd=dd: getattr(F, f"lp_pool{dd}d")(x, 2.0, 4),
            dist(*shp),
        )
    add(f"lp_poollong {dn}", lambda L, F, x: F.lp_pool1d(x, 2.0, 1000), dist(1, 10, 10000))
    add(f"cov {dn}", lambda L, F, x: L.cov(x), dist(10, 10000))
    add(f"corrcoef {dn}", lambda L, F, x: L.corrcoef(x), dist(10, 10000))
    add(f"cdist {dn}", lambda L, F, x, y: L.cdist(x, y), dist(10, 10000), dist(10, 10000))
    add(
        f"cdist nomm {dn}",
        lambda L, F, x, y: L.cdist(x, y, compute_mode="donot_use_mm_for_euclid_dist"),
        dist(10, 10000),
        dist(10, 10000),
    )
    add(f"cdist mm {dn}", lambda L, F, x, y: L.cdist(x, y), dist(300, 333), dist(300, 333))
    for p in (1.0, 3.0):
        add(
            f"cdist p{p} {dn}",
            lambda L, F, x, y, p=p: L.cdist(x, y, p),
            dist(10, 10000),
            dist(10, 10000),
        )
    add(f"pdist {dn}", lambda L, F, x: F.pdist(x), dist(10, 10000))
    add(
        f"pairwise {dn}",
        lambda L, F, x, y: F.pairwise_distance(x, y),
        dist(10, 10000),
        dist(10, 10000),
    )
    add(f"dist {dn}", lambda L, F, x, y: L.dist(x, y), dist(N), dist(N))
    add(f"conv1d {dn}", lambda L, F, x, w: F.conv1d(x, w), dist(1, 10, 10000), dist(10, 10, 100))
    add(
        f"conv2d {dn}",
        lambda L, F, x, w, b: F.conv2d(x, w, b),
        dist(10, 10, 32, 31),
        dist(10, 10, 3, 3),
        dist(10),
    )
    add(
        f"conv2d dw {dn}",
        lambda L, F, x, w: F.conv2d(x, w, groups=10),
        dist(10, 10, 32, 31),
        dist(10, 1, 3, 3),
    )
    add(
        f"convt2d {dn}",
        lambda L, F, x, w: F.conv_transpose2d(x, w),
        dist(10, 10, 32, 31),
        dist(10, 10, 3, 3),
    )
    add(f"fold {dn}", lambda L, F, x: F.fold(x, (60, 60), 5), dist(1, 25, 3136))
    add(f"unfold {dn}", lambda L, F, x: F.unfold(x, 5), dist(1, 1, 300, 300))
    add(f"Tunfold {dn}", lambda L, F, x: x.unfold(0, 100, 1), dist(10000))
    add(
        f"attention {dn}",
        lambda L, F, q, k, v: F.scaled_dot_product_attention(q, k, v),
        dist(1, 2, 300, 64),
        dist(1, 2, 300, 64),
        dist(1, 2, 300, 64),
    )
    add(f"interp area {dn}", lambda L, F, x: F.interpolate(x, size=3, mode="area"), dist(1, 1, N))
    add(
        f"interp lin {dn}", lambda L, F, x: F.interpolate(x, size=N, mode="linear"), dist(1, 10, 10)
    )
    add(
        f"interp aa {dn}",
        lambda L, F, x: F.interpolate(x, size=(3, 4), mode="bilinear", antialias=True),
        dist(1, 1, 300, 333),
    )
    add(
        f"grid_sample {dn}",
        lambda L, F, x, g: F.grid_sample(x, g),
        dist(1, 1, 10, 10),
        within(1, 300, 333, 2),
    )
    add(f"expand {dn}", lambda L, F, x: x.expand(N, 3) * 1, dist(3))
    add(f"expand1 {dn}", lambda L, F, x: x.expand(3, N) * 1, dist(3, 1))
    add(f"addb {dn}", lambda L, F, x, b: x + b, dist(N // 10, 10), dist(10))
    add(f"mulb {dn}", lambda L, F, x, b: x * b, dist(N // 10, 10), dist(10))
    add(f"mulb1 {dn}", lambda L, F, x, b: x * b, dist(10, N // 10), dist(10, 1))
    add(f"scalar {dn}", lambda L, F, x, b: x * b, dist(N), dist())
    add(f"prelu {dn}", lambda L, F, x, b: F.prelu(x, b), dist(N // 10, 10), dist(10))
    add(f"prelu1 {dn}", lambda L, F, x, b: F.prelu(x, b), dist(N), dist(1))
    add(f"repeat {dn}", lambda L, F, x: x.repeat(N), dist(3))
    add(f"repeat_interleave {dn}", lambda L, F, x: x.repeat_interleave(N // 3), dist(3))
    add(f"trace {dn}", lambda L, F, x: L.trace(x), dist(316, 316))
    add(f"masked sum {dn}", lambda L, F, x: L.where(x > 0, x, 0 * x).sum(), dist(N))
    add(f"sum2 {dn}", lambda L, F, x: x.sum((0, 2)), dist(10, 1000, 10))
    add(f"sumT {dn}", lambda L, F, x: x.t().sum(0), dist(1000, 100))
    add(f"sumT1 {dn}", lambda L, F, x: x.t().sum(1), dist(1000, 100))
    add(f"sumstride {dn}", lambda L, F, x: x[::2].sum(), dist(2 * N))
    add(f"meanall {dn}", lambda L, F, x: x.mean(), dist(N))
    add(f"logcumsumexp rev {dn}", lambda L, F, x: L.logcumsumexp(x.flip(0), 0), dist(N))
    add(f"fft {dn}", lambda L, F, x: L.view_as_real(L.fft.fft(x)), dist(N))
    add(f"rfft {dn}", lambda L, F, x: L.view_as_real(L.fft.rfft(x)), dist(N))
    add(
        f"stft {dn}",
        lambda L, F, x: L.view_as_real(
            L.stft(x, 256, return_complex=True, window=L.ones(256).to(x.dtype))
        ),
        dist(20000),
    )
    add(f"gradient {dn}", lambda L, F, x: L.gradient(x)[0], dist(N))
    add(f"vander {dn}", lambda L, F, x: L.linalg.vander(x, N=4), dist(N // 4))
    add(f"cross {dn}", lambda L, F, x, y: L.linalg.cross(x, y), dist(N // 3, 3), dist(N // 3, 3))
    add(
        f"rnn {dn}",
        lambda L, F, x, w: L.tanh(F.linear(x, w)).sum(0),
        dist(1000, 100),
        dist(100, 100),
    )
    add(f"frobenius {dn}", lambda L, F, x: L.linalg.matrix_norm(x), dist(316, 316))
    add(f"local_response {dn}", lambda L, F, x: F.local_response_norm(x, 5), dist(1, 100, 1000))
    add(f"gumbel-less softmin {dn}", lambda L, F, x: F.softmin(x, 1), dist(1000, 100))
    add(f"logaddexp {dn}", lambda L, F, x, y: L.logaddexp(x, y), dist(N), dist(N))
    for f in (
        "gelu",
        "silu",
        "mish",
        "elu",
        "softplus",
        "sigmoid",
        "tanh",
        "exp",
        "log1p",
        "erf",
        "lgamma",
        "digamma",
    ):
        add(
            f"{f} {dn}",
            lambda L, F, x, f=f: (
                getattr(F, f)(x)
                if hasattr(F, f) and f not in ("tanh", "sigmoid")
                else getattr(L, f)(x)
            ),
            above(N) if f in ("lgamma", "digamma", "log1p") else dist(N),
        )


def results(library: Any, name: str, kind: str, dtype: str, draw: int) -> list[Any]:
    """Return the results of a case and its gradients in float64, from numbers of a kind."""
    function, arrays = CASES[name]
    random = np.random.default_rng(zlib.crc32(name.encode()) + draw)

    def given(array: Any) -> Any:
        single = library.tensor(np.asarray(array, np.float32))
        return single.to(getattr(library, kind)).to(getattr(library, dtype))

    tensors, leaves = [], []
    for array in arrays:
        made = np.asarray(array(random) if callable(array) else array)
        if made.dtype.kind != "f":
            tensors.append(library.tensor(made))
            continue
        leaves.append(given(made).requires_grad_())
        tensors.append(leaves[-1])
    found = function(library, library.nn.functional, *tensors)
    outputs = list(found) if isinstance(found, (tuple, list)) else [found]
    weights = [given(random.uniform(0.5, 1.5, tuple(y.shape))).to(y.dtype) for y in outputs]
    kept = [(y, w) for y, w in zip(outputs, weights, strict=True) if y.requires_grad]
    grads: Any = []
    if kept:
        ys, ws = map(list, zip(*kept, strict=True))
        grads = library.autograd.grad(ys, leaves, ws, allow_unused=True)
    values = [*(y.detach() for y in outputs), *grads]
    return [None if v is None else v.to(library.float64).numpy() for v in values]


def hold_against_pytorch(name: str, kind: str) -> None:
    sums: dict[int, Any] = {}
    draws, draw = 1, 0
    while draw < draws:
        try:
            theirs = results(torch, name, kind, kind, draw)
        except (RuntimeError, NotImplementedError):
            pytest.skip(f"PyTorch has no such function of {kind}")
        truth = results(torch, name, kind, "float64", draw)
        ours = results(flow, name, kind, kind, draw)
        for i, (a, b, t) in enumerate(zip(ours, theirs, truth, strict=True)):
            if a is None or b is None:
                continue
            assert a.shape == b.shape
            fine = np.isfinite(t) & np.isfinite(b)
            assert np.isfinite(a[fine]).all()
            squares = [((a - t)[fine] ** 2).sum(), ((b - t)[fine] ** 2).sum(), (t[fine] ** 2).sum()]
            sums[i] = sums.get(i, 0) + np.array(squares)
            if t.size < 64:  # a single number tells little
                draws = 12
        draw += 1
    for i, (a, b, t) in sums.items():
        error, pytorchs = np.sqrt(a / (t or 1)), np.sqrt(b / (t or 1))
        said = f"result {i}: {error:.2e}, PyTorch's {pytorchs:.2e}"
        if f"{kind} {name}" not in OTHERS:
            assert error <= max(2 * pytorchs, UNITS[kind]), said
        elif kind == "float32":
            assert error <= max(4 * pytorchs, UNITS[kind]), said


@pytest.mark.slow(but=60)
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", CASES)
def test_errors_are_at_most_twice_pytorchs(name: str) -> None:
    hold_against_pytorch(name, "float32")


@pytest.mark.slow(but=40)
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("kind", ["float16", "bfloat16"])
def test_halves_are_computed_in_float32(name: str, kind: str) -> None:
    hold_against_pytorch(name, kind)


def test_the_gradient_of_a_mean_of_more_halves_than_float16_counts() -> None:
    x = flow.ones(N, dtype=flow.float16, requires_grad=True)
    flow.nn.functional.mse_loss(x * 2, flow.zeros(N, dtype=flow.float16)).backward()
    np.testing.assert_allclose(x.grad.numpy(), 8 / N, rtol=2e-3)


def test_a_view_of_bfloat16_sums_its_gradient_in_float32() -> None:
    x = flow.ones(3, dtype=flow.bfloat16, requires_grad=True)
    x.expand(1000, 3).backward(flow.ones(1000, 3, dtype=flow.bfloat16))
    assert x.grad.tolist() == [1000, 1000, 1000]
