"""Attention: the arguments that PyTorch documents, agreement with it, errors."""

import itertools
import warnings

import numpy as np
import pytest

import oneflow_lite as flow
from oneflow_lite.errors import ArgumentError, DTypeError, ShapeError

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
