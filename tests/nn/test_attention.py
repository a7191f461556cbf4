"""MultiheadAttention: PyTorch's results, derivatives, starting values and errors."""

from __future__ import annotations

import itertools
import warnings

import numpy as np
import pytest

import oneflow_lite as flow
from oneflow_lite.errors import ArgumentError, ShapeError
from tests.nn.against_torch import agree, draws, numbers, pair, signature

OPTIONS = {
    "bias": (True, False),
    "add_bias_kv": (False, True),
    "add_zero_attn": (False, True),
    "sizes": ({}, {"kdim": 3, "vdim": 5}),
    "batch_first": (False, True),
    "batched": (True, False),
    "masks": ((), ("attn_mask",), ("key_padding_mask",), ("attn_mask", "key_padding_mask")),
    "kind": ("bool", "float"),
    "weights": (None, "mean", "each"),
}
# Every pair of options meets in some of these.
CASES = [case for n, case in enumerate(itertools.product(*OPTIONS.values())) if n % 41 == 7]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_as_in_pytorch(torch, case):
    bias, bias_kv, zero, sizes, first, batched, masks, kind, weights = case
    options = {"add_bias_kv": bias_kv, "add_zero_attn": zero, "batch_first": first, **sizes}
    modules = pair(torch, "MultiheadAttention", 4, 2, bias=bias, **options)
    steps, keys, batch = 3, 5, 2
    shapes = [(steps, 4), (keys, sizes.get("kdim", 4)), (keys, sizes.get("vdim", 4))]
    if batched:
        shapes = [(batch, n, m) if first else (n, batch, m) for n, m in shapes]
    arrays = [numbers(*shape, seed=i) for i, shape in enumerate(shapes)]
    hidden = {
        "attn_mask": np.arange(steps * keys).reshape(steps, keys) % 4 == 1,
        "key_padding_mask": np.arange(batch * keys).reshape(batch, keys) % 5 == 3,
    }
    if not batched:
        hidden["key_padding_mask"] = hidden["key_padding_mask"][0]
    numbered = {name: numbers(*mask.shape, seed=9) for name, mask in hidden.items()}

    def call(lib, module, *inputs):
        chosen = hidden if kind == "bool" else numbered
        given = {name: lib.tensor(chosen[name]) for name in masks}
        need = {"need_weights": weights is not None, "average_attn_weights": weights == "mean"}
        return module(*inputs, **given, **need)

    agree(torch, modules, call, *arrays)


@pytest.mark.parametrize("kind", ["bool", "float"])
@pytest.mark.parametrize("need_weights", [False, True])
def test_queries_that_may_look_at_nothing(torch, kind, need_weights):
    """They get nan beside the weights, zeros without them."""
    modules = pair(torch, "MultiheadAttention", 4, 2, batch_first=True)
    padding = np.array([[True, False, False], [True, True, True]])
    mask = np.array([[False] * 3, [True] * 3])
    if kind == "float":
        padding, mask = (np.where(m, -np.inf, 0.0) for m in (padding, mask))
    x, y = numbers(2, 2, 4), numbers(2, 3, 4, seed=1)
    found = []
    for lib, module in zip((torch, flow), modules, strict=True):
        given = {"key_padding_mask": lib.tensor(padding), "attn_mask": lib.tensor(mask)}
        leaf = lib.tensor(x, requires_grad=True)
        result, weights = module(
            leaf, lib.tensor(y), lib.tensor(y), need_weights=need_weights, **given
        )
        (result * result).sum().backward()
        found.append([result, leaf.grad, *([weights] if need_weights else [])])
    for theirs, mine in zip(*found, strict=True):
        np.testing.assert_allclose(mine.detach().numpy(), theirs.detach().numpy(), atol=1e-12)
        assert bool(mine.isnan().any()) == need_weights


@pytest.mark.parametrize("first", [False, True])
@pytest.mark.parametrize("need_weights", [False, True])
def test_self_attention_and_the_causal_hint(torch, first, need_weights):
    modules = pair(torch, "MultiheadAttention", 4, 2, batch_first=first)

    def call(lib, module, x):
        steps = x.shape[1 if first else 0]
        mask = lib.nn.Transformer.generate_square_subsequent_mask(steps, dtype=lib.float64)
        options = {"attn_mask": mask, "is_causal": True, "need_weights": need_weights}
        same = module(x, x, x, **options)
        keys = x * 2
        return same, module(x, keys, keys, need_weights=need_weights)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        agree(torch, modules, call, numbers(3, 2, 4))


def test_a_mask_for_each_head(torch):
    modules = pair(torch, "MultiheadAttention", 4, 2)
    mask = numbers(4, 3, 3, seed=5)
    agree(
        torch, modules, lambda lib, m, x: m(x, x, x, attn_mask=lib.tensor(mask)), numbers(3, 2, 4)
    )


def test_scaled_dot_product_attention_as_in_pytorch(torch):
    """Cases that the sweeps leave out: is_causal with more keys, groups of heads with a mask."""

    def call(lib, module, q, k, v):
        attend = lib.nn.functional.scaled_dot_product_attention
        grouped = attend(q, k[:, :2], v[:, :2], enable_gqa=True, scale=0.3)
        mask = lib.ones(3, 5, dtype=lib.bool).tril()
        return attend(q, k, v, is_causal=True), attend(q, k, v, mask), grouped

    empty = torch.nn.Identity(), flow.nn.Identity()
    arrays = [numbers(2, 4, n, m, seed=i) for i, (n, m) in enumerate(((3, 2), (5, 2), (5, 3)))]
    agree(torch, empty, call, *arrays)


def test_dropout_of_weights():
    flow.manual_seed(0)
    x, layer = flow.tensor(numbers(6, 1, 4)).float(), flow.nn.MultiheadAttention(4, 2, dropout=0.5)
    _, weights = layer(x, x, x, average_attn_weights=False)
    assert 0.2 < (weights == 0).float().mean().item() < 0.8
    _, weights = layer.eval()(x, x, x)
    assert flow.allclose(weights.sum(-1), flow.ones(1, 6))


def test_arguments_and_starting_values(torch, monkeypatch):
    theirs, ours = torch.nn.MultiheadAttention, flow.nn.MultiheadAttention
    assert signature(ours) == signature(theirs)
    assert signature(ours.forward) == signature(theirs.forward)
    attributes = {n for n in vars(theirs(4, 2)) if n not in vars(torch.nn.Module())}
    assert attributes <= {*vars(ours(4, 2)), "bias_k", "bias_v"}
    for options in ({}, {"kdim": 3, "add_bias_kv": True}, {"bias": False}):
        log = draws(torch, monkeypatch, lambda nn: nn.MultiheadAttention(4, 2, **options))
        assert log[0] == log[1] and len(log[0]) > 1
    monkeypatch.undo()
    layer = ours(4, 2)
    assert not layer.in_proj_bias.abs().sum() and not layer.out_proj.bias.abs().sum()


def test_on_devices_and_in_halves(device):
    flow.manual_seed(0)
    layer = flow.nn.MultiheadAttention(4, 2)
    x = flow.tensor(numbers(3, 2, 4)).float()
    expected = layer(x, x, x)[0].detach().numpy()
    moved = x.to(device)
    found = layer.to(device)(moved, moved, moved)[0]
    assert found.device.type == device
    np.testing.assert_allclose(found.detach().cpu().numpy(), expected, 1e-5, 1e-6)
    half = moved.half()
    found = layer.half()(half, half, half)[0]
    assert found.dtype == flow.float16
    np.testing.assert_allclose(found.detach().float().cpu().numpy(), expected, 0.05, 0.01)


LAYER, X = flow.nn.MultiheadAttention(4, 2), flow.zeros(3, 2, 4)
ERRORS = {
    "heads": (lambda: flow.nn.MultiheadAttention(5, 2), AssertionError, "embed_dim"),
    "no features": (lambda: flow.nn.MultiheadAttention(0, 2), ValueError, "embed_dim"),
    "no head": (lambda: flow.nn.MultiheadAttention(4, 0), ValueError, "num_heads"),
    "query": (lambda: LAYER(X[..., :2], X, X), ShapeError, "query"),
    "rank": (lambda: LAYER(X, X[0], X), ShapeError, "key"),
    "mask": (lambda: LAYER(X, X, X, attn_mask=flow.zeros(2, 2)), ShapeError, "attn_mask"),
    "causal": (lambda: LAYER(X, X, X, is_causal=True), ArgumentError, "is_causal"),
}


@pytest.mark.parametrize(("call", "error", "argument"), ERRORS.values(), ids=ERRORS)
def test_bad_arguments(call, error, argument):
    with pytest.raises(error, match=argument) as raised:
        call()
    assert isinstance(raised.value, flow.errors.FlowError)
