"""Attention: the arguments that PyTorch documents, agreement with it, errors."""

import itertools
import warnings

import numpy as np
import pytest

import oneflow_lite as flow
from oneflow_lite.errors import ArgumentError, DTypeError, ShapeError
from oneflow_lite.kernels import attention as kernel

F = flow.nn.functional
attend = F.scaled_dot_product_attention


def numbers(*shape, seed=0):
    return np.random.default_rng(seed).uniform(-1.0, 1.0, shape)


MASK = np.array([[1, 0, 1, 1, 0], [0, 0, 0, 0, 0], [1, 1, 1, 1, 1]], bool)


@pytest.mark.parametrize("mask", [MASK, np.where(MASK, 0.5, -np.inf)], ids=["bool", "float"])
def test_a_query_that_may_look_at_nothing_gives_zeros(mask):
    torch = pytest.importorskip("torch")
    from tests.functors.agreement import compare

    compare(
        lambda q, k, v: attend(q, k, v, flow.tensor(mask)),
        lambda q, k, v: torch.nn.functional.scaled_dot_product_attention(
            q, k, v, torch.tensor(mask)
        ),
        *(numbers(2, n, 4, seed=i) for i, n in enumerate((3, 5, 5))),
        rtol=1e-8,
    )


@pytest.mark.parametrize("mask", [MASK, np.where(MASK, 0.5, -np.inf)], ids=["bool", "float"])
def test_a_mask_may_be_causal_too(mask):
    torch = pytest.importorskip("torch")
    q, k = numbers(1, 2, 3, 4), numbers(1, 2, 5, 4, seed=1)
    mine = attend(*map(flow.tensor, (q, k, k)), flow.tensor(mask), is_causal=True)
    q, k, mask = map(torch.tensor, (q, k, mask))
    theirs = torch.nn.functional.scaled_dot_product_attention(q, k, k, mask, is_causal=True)
    np.testing.assert_allclose(mine.numpy(), theirs.numpy(), atol=1e-12)


@pytest.mark.parametrize("shapes", [((2, 0, 4), (2, 3, 4)), ((2, 3, 4), (2, 0, 4))])
def test_empty_sequences(shapes):
    q, k = (flow.tensor(numbers(*shape)) for shape in shapes)
    assert attend(q, k, k).numpy().tolist() == np.zeros(shapes[0]).tolist()


def test_dropout_of_weights():
    q = flow.tensor(numbers(2, 3, 4))
    flow.manual_seed(1)
    first = attend(q, q, q, dropout_p=0.5)
    flow.manual_seed(1)
    assert flow.equal(attend(q, q, q, dropout_p=0.5), first)
    assert not flow.allclose(first, attend(q, q, q))
    assert attend(q, q, q, dropout_p=1.0).abs().sum().item() == 0


OPTIONS = {
    "mask": [None, "bool", "float", "per head", "causal"],
    "padding": [None, "bool", "float"],
    "bias": [False, True],
    "zero": [False, True],
    "apart": [False, True],
    "static": [False, True],
    "weights": [None, "mean", "each"],
}
# Every pair of options meets in some of these.
CASES = [
    case
    for number, case in enumerate(itertools.product(*OPTIONS.values()))
    if number % 17 == 5 and not (case[2] and case[5])
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_multi_head_attention_as_in_pytorch(case):
    torch = pytest.importorskip("torch")
    from tests.functors.agreement import compare

    mask, padding, bias, zero, apart, static, weights = case
    steps, keys, batch, size, heads, other = 3, 5, 2, 4, 2, 3 if apart else 4
    masks = {
        "bool": ~MASK & (np.arange(5) > 0),
        "float": numbers(steps, keys, seed=7),
        "per head": numbers(batch * heads, steps, keys, seed=8),
        "causal": ~np.tril(np.ones((steps, keys), bool)),
    }
    paddings = {"bool": np.arange(10).reshape(2, 5) % 4 == 3, "float": numbers(batch, keys, seed=9)}
    shapes = [
        (steps, batch, size),
        (keys, batch, other),
        (keys, batch, other),
        (3 * size, size),
        (3 * size,),
        *[(1, 1, size)] * 2,
        *[(size, size), (size,)],
        *[(size, size), (size, other), (size, other)],
        *[(batch * heads, keys, size // heads)] * 2,
    ]
    arrays = [numbers(*shape, seed=i) for i, shape in enumerate(shapes)]

    def call(lib, f):
        def tensor(array):
            return None if array is None else lib.tensor(array)

        def function(q, k, v, w, b, bias_k, bias_v, out, out_bias, qw, kw, vw, sk, sv):
            result, shares = f.multi_head_attention_forward(
                *(q, k, v, size, heads, None if apart else w, b),
                *((bias_k, bias_v) if bias else (None, None)),
                *(zero, 0.3, out, out_bias),
                training=False,
                key_padding_mask=tensor(paddings.get(padding)),
                need_weights=weights is not None,
                attn_mask=tensor(masks.get(mask)),
                use_separate_proj_weight=apart,
                **(
                    {"q_proj_weight": qw, "k_proj_weight": kw, "v_proj_weight": vw} if apart else {}
                ),
                **({"static_k": sk, "static_v": sv} if static else {}),
                average_attn_weights=weights == "mean",
                is_causal=mask == "causal",
            )
            return result if weights is None else (result, shares)

        return function

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ours, theirs = call(flow, F), call(torch, torch.nn.functional)
        compare(ours, theirs, *arrays, orders=1, rtol=1e-7, atol=1e-9)


Q, K = flow.zeros(2, 3, 4), flow.zeros(2, 5, 4)
ERRORS = {
    "vector": ((Q[0, 0], K, K), {}, ShapeError, "query"),
    "dtypes": ((Q, K.double(), K), {}, DTypeError, "key"),
    "features": ((Q, K[..., :3], K), {}, ShapeError, "key"),
    "keys": ((Q, K, K[:, :4]), {}, ShapeError, "key"),
    "mask": ((Q, K, K, flow.ones(3, 5, dtype=flow.int64)), {}, DTypeError, "attn_mask"),
    "dropout": ((Q, K, K, None, 2.0), {}, ArgumentError, "dropout_p"),
    "heads": ((flow.zeros(3, 2, 4), Q, Q), {"enable_gqa": True}, ShapeError, "key"),
}


@pytest.mark.parametrize(("given", "options", "error", "argument"), ERRORS.values(), ids=ERRORS)
def test_bad_arguments(given, options, error, argument):
    with pytest.raises(error, match=rf"attention\(\): argument '{argument}'"):
        attend(*given, **options)


@pytest.fixture
def small_blocks(monkeypatch):
    """Cut what tests can afford as thousands of tokens are cut."""
    monkeypatch.setattr(kernel, "_KEYS", 4)
    monkeypatch.setattr(kernel, "_ROWS", 2)
    monkeypatch.setattr(kernel, "_BLOCK_BYTES", 4 * 4 * 6)


HEADS = {"one": (2, 3, 3), "shared": (2, 4, 2), "all share": (1, 3, 1)}
MASKS = [None, (7, 9), (1, 9), (2, 1, 7, 9), (1, 3, 7, 1), (2, 3, 7, 9)]


@pytest.mark.parametrize("kind", ["bool", "float"])
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("shape", MASKS, ids=str)
def test_blocks_agree_with_pytorch(small_blocks, shape, causal, kind):
    torch = pytest.importorskip("torch")
    rng = np.random.default_rng(0)
    arrays = [rng.standard_normal((2, 3, n, 5)) for n in (7, 9, 9)]
    mask = None if shape is None else rng.random(shape) < 0.7
    if mask is not None and kind == "float":
        mask = np.where(mask, rng.standard_normal(shape), -np.inf)
    mine = [flow.tensor(x, requires_grad=True) for x in arrays]
    theirs = [torch.tensor(x, requires_grad=True) for x in arrays]
    y = attend(*mine, None if mask is None else flow.tensor(mask), is_causal=causal)
    given = None if mask is None else torch.tensor(mask)
    if causal and mask is not None:  # PyTorch takes one of the two
        added = torch.where(given, 0.0, -np.inf) if kind == "bool" else given
        given = added.double() + torch.full((7, 9), -np.inf).triu(1)
        causal = False
    z = torch.nn.functional.scaled_dot_product_attention(*theirs, given, is_causal=causal)
    dy = rng.standard_normal(y.shape)
    y.backward(flow.tensor(dy)), z.backward(torch.tensor(dy))
    for a, b in zip((y, *(x.grad for x in mine)), (z, *(x.grad for x in theirs)), strict=True):
        np.testing.assert_allclose(a.detach().numpy(), b.detach().numpy(), 1e-10, 1e-10)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("heads", HEADS)
def test_derivatives_to_second_order(small_blocks, heads, causal):
    n, own, shared = HEADS[heads]
    q, k, v = (numbers(n, h, m, 2, seed=h) for h, m in ((own, 3), (shared, 5), (shared, 5)))
    mask = numbers(n, 1, 3, 5)
    inputs = [flow.tensor(x, requires_grad=True) for x in (q, k, v, mask)]

    def run(q, k, v, mask):
        return attend(q, k, v, mask, is_causal=causal, enable_gqa=True)

    assert flow.autograd.gradcheck(run, inputs)
    assert flow.autograd.gradgradcheck(run, inputs)


@pytest.mark.parametrize("needed", [[0], [1], [2], [3], [0, 2], [1, 3]], ids=str)
def test_only_the_gradients_that_are_needed(small_blocks, needed):
    arrays = [numbers(2, 2, n, 3, seed=n) for n in (5, 6, 6)] + [numbers(2, 1, 5, 6)]
    inputs = [flow.tensor(x, requires_grad=True) for x in arrays]
    whole = flow.autograd.grad(attend(*inputs).square().sum(), inputs)
    given = [flow.tensor(x, requires_grad=i in needed) for i, x in enumerate(arrays)]
    some = flow.autograd.grad(attend(*given).square().sum(), [given[i] for i in needed])
    for i, found in zip(needed, some, strict=True):
        np.testing.assert_allclose(found.numpy(), whole[i].numpy(), 1e-12, 1e-12)


def dropped(q, k, v, p=0.4):
    flow.manual_seed(3)
    return attend(q, k, v, dropout_p=p)


def test_dropout_is_the_same_forward_and_backward_and_in_all_blocks(monkeypatch):
    q, k, v, other = (flow.tensor(numbers(1, 2, 4, 3, seed=i)) for i in range(4))
    whole = dropped(q, k, v)
    monkeypatch.setattr(kernel, "_KEYS", 4)
    monkeypatch.setattr(kernel, "_ROWS", 2)
    monkeypatch.setattr(kernel, "_BLOCK_BYTES", 4 * 4 * 2)
    inputs = [x.requires_grad_() for x in (q, k, v)]
    y = dropped(*inputs)
    np.testing.assert_allclose(y.detach().numpy(), whole.numpy(), 1e-12, 1e-12)
    # The result is linear in the value: the gradient turns the weights, with the same zeros.
    (dv,) = flow.autograd.grad(y, v, other, retain_graph=True)
    again = dropped(q.detach(), k.detach(), other)
    np.testing.assert_allclose((dv * v).sum().item(), (other * y).sum().item(), 1e-10)
    assert not np.allclose(again.numpy(), y.detach().numpy())
    assert flow.autograd.gradcheck(dropped, inputs)
    assert flow.autograd.gradgradcheck(dropped, inputs)


def test_the_rate_of_dropout_and_its_independence():
    q = flow.zeros(4, 2, 50, 1)
    v = flow.eye(50).expand(4, 2, 50, 50)
    weights = 50 * dropped(q, q, v, p=0.3).numpy()  # 0 or 1 / 0.7
    assert set(np.round(np.unique(weights), 5)) == {0.0, np.float32(round(1 / 0.7, 5))}
    kept = weights > 0
    assert abs(kept.mean() - 0.7) < 0.015  # four standard deviations are 0.013
    flat = kept.reshape(8 * 50, 50).astype(float) - kept.mean()
    for a, b in ((flat[1:], flat[:-1]), (flat[:, 1:], flat[:, :-1]), (flat[50:], flat[:-50])):
        assert abs((a * b).mean()) < 0.007  # neighbours, and heads, have nothing in common
    first, second = attend(q, q, v, dropout_p=0.3), attend(q, q, v, dropout_p=0.3)
    assert not flow.equal(first, second)
    assert attend(q, q, v, dropout_p=1.0).abs().sum() == 0


@pytest.mark.parametrize("dtype", [flow.float16, flow.bfloat16])
def test_halves_are_computed_in_float32(dtype):
    arrays = [flow.tensor(numbers(1, 2, n, 8, seed=n)).to(dtype) for n in (6, 7, 7)]
    mask = flow.tensor(numbers(6, 7)).to(dtype)
    mine = [x.detach().requires_grad_() for x in arrays]
    wide = [x.detach().float().requires_grad_() for x in arrays]
    y, z = attend(*mine, mask), attend(*wide, mask.float())
    assert y.dtype == dtype
    y.sum().backward(), z.sum().backward()
    for a, b in zip((y, *(x.grad for x in mine)), (z, *(x.grad for x in wide)), strict=True):
        bound = 2.0**-7 if dtype == flow.bfloat16 else 2.0**-10
        np.testing.assert_allclose(a.detach().float().numpy(), b.detach().numpy(), bound, bound)


def test_value_heads_may_differ_from_those_of_the_keys():
    q, k, v = (flow.tensor(numbers(1, h, 3, 4, seed=h)) for h in (8, 2, 4))
    wide = attend(q, k.repeat_interleave(4, 1), v.repeat_interleave(2, 1))
    np.testing.assert_allclose(attend(q, k, v, enable_gqa=True).numpy(), wide.numpy(), 1e-12)
    with pytest.raises(ShapeError):
        attend(q, k, k)


def peak(length):
    from tests.benchmarks.memory import numpy_allocations

    q, k, v = (flow.ones(1, 1, length, 32, requires_grad=True) for _ in range(3))

    def step():
        attend(q, k, v, is_causal=True).sum().backward()
        return []

    step()
    return numpy_allocations(step).peak


def test_memory_grows_with_the_length_and_not_with_its_square():
    short, long = peak(1024), peak(4096)
    assert long < 4.5 * short
    assert long < 4096 * 4096


@pytest.mark.slow
def test_a_step_of_16384_tokens_fits_into_300_megabytes():
    assert peak(16_384) < 300e6


def test_products_use_their_threads_again():
    from oneflow_lite.arrays import blas_threads

    blas = blas_threads.openblas()
    if blas is None:
        pytest.skip("NumPy has another BLAS")
    count = blas.scipy_openblas_get_num_threads64_
    before = count()
    with pytest.raises(KeyError), blas_threads.products_on_one_thread() as alone:
        assert alone and count() == 1
        with blas_threads.products_on_one_thread():
            assert count() == 1
        assert count() == 1
        raise KeyError
    assert count() == before


def test_autocast_rounds_what_attention_multiplies():
    q, k = (flow.tensor(numbers(1, 2, n, 4, seed=n)).float() for n in (3, 5))
    with flow.autocast("cpu", dtype=flow.bfloat16):
        y = attend(q, k, k)
    assert y.dtype == flow.float32
    rounded = attend(q.bfloat16(), k.bfloat16(), k.bfloat16()).float()
    assert flow.equal(y, rounded) and not flow.equal(y, attend(q, k, k))
