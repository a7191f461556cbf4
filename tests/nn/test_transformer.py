"""Transformers and their layers: PyTorch's results, derivatives, starting values and errors."""

from __future__ import annotations

import itertools
import warnings

import numpy as np
import pytest

import oneflow_lite as flow
from oneflow_lite.errors import ArgumentError, ShapeError
from tests.nn.against_torch import agree, draws, loaded, numbers, pair, signature

CLASSES = (
    "Transformer",
    "TransformerEncoder",
    "TransformerDecoder",
    "TransformerEncoderLayer",
    "TransformerDecoderLayer",
)


@pytest.fixture(autouse=True)
def _no_warnings():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of PyTorch's nested tensors and mixed masks
        yield


def test_arguments(torch):
    for name in CLASSES:
        theirs, ours = getattr(torch.nn, name), getattr(flow.nn, name)
        expected, found = signature(theirs), signature(ours)
        if "activation" in expected:  # the function there; its name here
            assert expected.pop("activation").__name__ == found.pop("activation")
        assert found == expected, name
        assert signature(ours.forward) == signature(theirs.forward), name
    made = torch.nn.Transformer.generate_square_subsequent_mask
    assert signature(flow.nn.Transformer.generate_square_subsequent_mask) == signature(made)
    for steps in (0, 1, 3):
        mask = flow.nn.Transformer.generate_square_subsequent_mask(steps, dtype=flow.float64)
        expected = made(steps, dtype=torch.float64)
        np.testing.assert_array_equal(mask.numpy(), expected.numpy())


def masks_of(lib, shapes):
    """Make masks by name: of the kind that the name of the first half says."""
    found = {}
    for i, (name, (shape, kind)) in enumerate(shapes.items()):
        count = int(np.prod(shape))
        if kind == "bool":
            found[name] = lib.tensor(np.arange(count).reshape(shape) % 5 == 4)
        else:
            found[name] = lib.tensor(numbers(*shape, seed=i))
    return found


LAYERS = [
    case
    for n, case in enumerate(
        itertools.product(
            ("relu", "gelu", "silu"),
            (False, True),
            (False, True),
            (True, False),
            (None, "bool", "float"),
        )
    )
    if n % 5 == 1
]


@pytest.mark.parametrize(("activation", "norm_first", "first", "bias", "kind"), LAYERS, ids=str)
@pytest.mark.parametrize("decoder", [False, True])
def test_layers_as_in_pytorch(torch, decoder, activation, norm_first, first, bias, kind):
    name = "TransformerDecoderLayer" if decoder else "TransformerEncoderLayer"
    options = {"norm_first": norm_first, "batch_first": first, "bias": bias, "layer_norm_eps": 0.1}
    modules = []
    for lib in (torch, flow):
        chosen = lib.nn.functional.silu if activation == "silu" else activation
        make = getattr(lib.nn, name)
        modules.append(make(4, 2, 6, 0.0, chosen, **options, dtype=lib.float64))
    loaded(*modules)
    target, memory = ((2, 3, 4), (2, 5, 4)) if first else ((3, 2, 4), (5, 2, 4))
    shapes = {
        "tgt_mask" if decoder else "src_mask": ((3, 3), kind),
        "tgt_key_padding_mask" if decoder else "src_key_padding_mask": ((2, 3), kind),
    }
    if decoder:
        shapes |= {"memory_mask": ((3, 5), kind), "memory_key_padding_mask": ((2, 5), kind)}

    def call(lib, module, *inputs):
        return module(*inputs, **(masks_of(lib, shapes) if kind else {}))

    arrays = [numbers(*target), *([numbers(*memory, seed=1)] if decoder else [])]
    agree(torch, modules, call, *arrays)


@pytest.mark.parametrize("hint", [None, False, True])
@pytest.mark.parametrize("norm", [False, True])
def test_stacks_and_hints_as_in_pytorch(torch, norm, hint):
    encoders, decoders = [], []
    for lib in (torch, flow):
        options = {"dim_feedforward": 6, "dropout": 0.0, "dtype": lib.float64}
        for stacks, kind in ((encoders, "Encoder"), (decoders, "Decoder")):
            layer = getattr(lib.nn, f"Transformer{kind}Layer")(4, 2, **options)
            last = lib.nn.LayerNorm(4, dtype=lib.float64) if norm else None
            stacks.append(getattr(lib.nn, f"Transformer{kind}")(layer, 2, last))
    for stacks in (encoders, decoders):
        loaded(*stacks)

    def mask(lib, steps):
        return lib.nn.Transformer.generate_square_subsequent_mask(steps, dtype=lib.float64)

    def encode(lib, module, x):
        return module(x, mask=mask(lib, 3), is_causal=hint)

    def decode(lib, module, x, memory):
        return module(x, memory, tgt_mask=mask(lib, 3), tgt_is_causal=hint)

    agree(torch, encoders, encode, numbers(3, 2, 4))
    agree(torch, decoders, decode, numbers(3, 2, 4), numbers(5, 2, 4, seed=1))


@pytest.mark.parametrize("first", [False, True])
@pytest.mark.parametrize("batched", [False, True])
def test_transformer_as_in_pytorch(torch, first, batched):
    options = {"dropout": 0.0, "batch_first": first}
    modules = pair(torch, "Transformer", 4, 2, 1, 2, 6, **options)
    shapes = {
        "src_mask": ((5, 5), "bool"),
        "memory_mask": ((3, 5), "float"),
        "src_key_padding_mask": ((2, 5) if batched else (5,), "bool"),
        "tgt_key_padding_mask": ((2, 3) if batched else (3,), "float"),
        "memory_key_padding_mask": ((2, 5) if batched else (5,), "bool"),
    }

    def call(lib, module, src, tgt):
        mask = module.generate_square_subsequent_mask(3, dtype=lib.float64)
        given = masks_of(lib, shapes)
        return module(src, tgt, tgt_mask=mask, tgt_is_causal=True, **given), module(src, tgt)

    source, target = (5, 4), (3, 4)
    if batched:
        source, target = ((2, *s) if first else (s[0], 2, s[1]) for s in (source, target))
    agree(torch, modules, call, numbers(*source), numbers(*target, seed=1), orders=1)


@pytest.mark.parametrize("name", CLASSES[3:])
def test_layers_are_drawn_in_the_order_of_pytorch(torch, monkeypatch, name):
    theirs, ours = draws(torch, monkeypatch, lambda nn: getattr(nn, name)(4, 2, 6))
    assert ours == theirs and len(ours) > 4


def test_a_transformer_is_drawn_in_the_order_of_pytorch(torch, monkeypatch):
    theirs, ours = draws(torch, monkeypatch, lambda nn: nn.Transformer(4, 2, 2, 1, 6))
    assert ours == theirs and len(ours) > 20


def test_layers_of_a_stack_are_copies():
    layer = flow.nn.TransformerEncoderLayer(4, 2, 6)
    stack = flow.nn.TransformerEncoder(layer, 2)
    first, second = stack.layers
    assert flow.equal(first.linear1.weight, second.linear1.weight)
    assert len({id(m.linear1.weight) for m in (layer, first, second)}) == 3


def test_own_encoder_and_decoder():
    class Own(flow.nn.Module):
        def forward(self, x, memory=None, **options):
            return x + 1 if memory is None else x + memory

    net = flow.nn.Transformer(4, custom_encoder=Own(), custom_decoder=Own())
    assert not list(net.parameters())
    assert net(flow.ones(3, 2, 4), flow.ones(3, 2, 4)).sum().item() == 3 * 24


def test_dropout():
    flow.manual_seed(0)
    x, layer = flow.tensor(numbers(3, 2, 4)).float(), flow.nn.TransformerEncoderLayer(4, 2, 6, 0.5)
    assert not flow.allclose(layer(x), layer(x))
    layer.eval()
    assert flow.equal(layer(x), layer(x))
    dropped = [m.p for m in layer.modules() if isinstance(m, flow.nn.Dropout)]
    assert dropped == [0.5] * 3 and layer.self_attn.dropout == 0.5


def test_a_training_step_is_replayed():
    def train(wrap):
        flow.manual_seed(0)
        net = flow.nn.Transformer(4, 2, 1, 1, 6)
        optimizer = flow.optim.SGD(net.parameters(), lr=0.1)
        mask = net.generate_square_subsequent_mask(3)

        @wrap
        def step(src, tgt):
            optimizer.zero_grad()
            loss = net(src, tgt, tgt_mask=mask, tgt_is_causal=True).square().sum()
            loss.backward()
            optimizer.step()
            return loss.detach()

        src, tgt = (flow.tensor(numbers(n, 2, 4)).float() for n in (5, 3))
        return [step(src, tgt).item() for _ in range(5)], step

    eager, _ = train(lambda step: step)
    replayed, step = train(flow.compile)
    np.testing.assert_allclose(replayed, eager, 1e-5)
    assert step.explain().hits >= 3 and not step.explain().fallbacks


def test_programs():
    net = flow.nn.TransformerEncoderLayer(4, 2, 6, 0.0)
    array = numbers(3, 2, 4).astype(np.float32)
    main, start = flow.static.Program(), flow.static.Program()
    with flow.static.program_guard(main, start):
        y = net(flow.static.data("x", [3, 2, 4]))
    executor = flow.static.Executor()
    executor.run(start)
    (found,) = executor.run(main, feed={"x": array}, fetch_list=[y])
    expected = net(flow.tensor(array)).detach().numpy()
    np.testing.assert_allclose(np.asarray(found), expected, 1e-5, 1e-6)


NET, X = flow.nn.Transformer(4, 2, 1, 1, 6), flow.zeros(3, 2, 4)
LAYER = flow.nn.TransformerEncoderLayer
ERRORS = {
    "batch": (lambda: NET(X, X[:, :1]), ShapeError, "tgt"),
    "source": (lambda: NET(X[..., :2], X), ShapeError, "src"),
    "target": (lambda: NET(X, X[..., :2]), ShapeError, "tgt"),
    "activation": (lambda: LAYER(4, 2, activation="tanh"), ArgumentError, "activation"),
    "dropout": (lambda: LAYER(4, 2, dropout=2), ArgumentError, "p"),
    "causal": (lambda: LAYER(4, 2)(X, is_causal=True), ArgumentError, "is_causal"),
}


@pytest.mark.parametrize(("call", "error", "argument"), ERRORS.values(), ids=ERRORS)
def test_bad_arguments(call, error, argument):
    with pytest.raises(error, match=argument) as raised:
        call()
    assert isinstance(raised.value, flow.errors.FlowError)
