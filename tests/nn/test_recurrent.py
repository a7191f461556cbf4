"""Recurrent networks, cells and packed sequences: PyTorch's results, derivatives and errors."""

from __future__ import annotations

import itertools
import warnings

import numpy as np
import pytest

import oneflow_lite as flow
from oneflow_lite.errors import ArgumentError, DTypeError, ShapeError
from tests.nn.against_torch import agree, draws, numbers, pair, signature

rnn = flow.nn.utils.rnn
NETWORKS = {
    "RNN": ({}, {"nonlinearity": "relu"}),
    "LSTM": ({}, {"proj_size": 2}),
    "GRU": ({},),
}
OPTIONS = {
    "num_layers": (1, 2),
    "bias": (True, False),
    "batch_first": (False, True),
    "bidirectional": (False, True),
}
FORMS = ("padded", "unbatched", "packed", "sorted")
CASES = [
    (
        name,
        {**more, **dict(zip(OPTIONS, chosen, strict=True))},
        FORMS[(number + number // 4) % 4],
        number % 3 > 0,
    )
    for name, kinds in NETWORKS.items()
    for more in kinds
    for number, chosen in enumerate(itertools.product(*OPTIONS.values()))
]


@pytest.mark.parametrize(("name", "options", "form", "given"), CASES, ids=str)
def test_networks_as_in_pytorch(torch, name, options, form, given):
    """Values, states, and derivatives by all of them and all weights, to second order."""
    modules = pair(torch, name, 3, 4, **options)
    first = options["batch_first"]
    shape = (5, 3) if form == "unbatched" else (3, 5, 3) if first else (5, 3, 3)
    lines = options["num_layers"] * (1 + options["bidirectional"])
    widths = [options.get("proj_size", 4), 4][: 1 + (name == "LSTM")]
    batch = () if form == "unbatched" else (3,)
    states = [numbers(lines, *batch, n, seed=i) for i, n in enumerate(widths)] if given else []

    def call(lib, module, x, *hx):
        tools = lib.nn.utils.rnn
        if form in ("packed", "sorted"):
            lengths = [5, 2, 1] if form == "sorted" else [2, 5, 1]
            x = tools.pack_padded_sequence(x, lengths, first, enforce_sorted=form == "sorted")
        y, last = module(x, (hx if len(hx) > 1 else hx[0]) if hx else None)
        return (tools.pad_packed_sequence(y, first) if form in ("packed", "sorted") else y), last

    agree(torch, modules, call, numbers(*shape, seed=7), *states)


@pytest.mark.parametrize("unbatched", [False, True])
@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize(
    ("name", "options"),
    [("RNNCell", {}), ("RNNCell", {"nonlinearity": "relu"}), ("LSTMCell", {}), ("GRUCell", {})],
)
def test_cells_as_in_pytorch(torch, name, options, bias, unbatched):
    modules = pair(torch, name, 3, 4, bias=bias, **options)

    def call(lib, cell, x, *hx):
        once = cell(x)  # from zeros
        return once, cell(x, hx if len(hx) > 1 else hx[0])

    batch = () if unbatched else (2,)
    states = [numbers(*batch, 4, seed=i) for i in range(1 + (name == "LSTMCell"))]
    agree(torch, modules, call, numbers(*batch, 3, seed=7), *states)


def test_names_arguments_and_defaults(torch):
    theirs = torch.nn.utils.rnn
    assert set(rnn.__all__) == set(theirs.__all__)
    assert {n for n in dir(theirs.PackedSequence) if n[0] != "_"} <= set(dir(rnn.PackedSequence))
    for name in {*rnn.__all__} - {"PackedSequence"}:
        assert signature(getattr(rnn, name)) == signature(getattr(theirs, name)), name
    made = signature(rnn.PackedSequence.__new__), signature(theirs.PackedSequence.__new__)
    assert [*made[0].values()] == [*made[1].values()] and [*made[0]][1:] == [*made[1]][1:]
    for name in ("RNNBase", "RNNCellBase", "RNNCell", "LSTMCell", "GRUCell"):
        assert signature(getattr(flow.nn, name)) == signature(getattr(torch.nn, name)), name
    base = signature(torch.nn.RNNBase)
    base.pop("mode")
    assert signature(flow.nn.LSTM) == signature(flow.nn.GRU) == base
    with_kind = [*base]
    with_kind.insert(with_kind.index("bias"), "nonlinearity")
    assert list(signature(flow.nn.RNN)) == with_kind
    inherited = {*vars(torch.nn.Module()), *dir(torch.nn.Module)}
    public = {n for n in {*vars(torch.nn.LSTM(1, 1)), *dir(torch.nn.LSTM)} if n[0] != "_"}
    steps = {n for n in public if n.startswith(("check_", "get_expected", "permute_"))}
    assert public - inherited - steps <= set(dir(flow.nn.LSTM(1, 1)))


@pytest.mark.parametrize("name", ["RNN", "LSTM", "GRU", "RNNCell", "LSTMCell", "GRUCell"])
def test_weights_are_drawn_in_the_order_of_pytorch(torch, monkeypatch, name):
    options = {} if "Cell" in name else {"num_layers": 2, "bidirectional": True}
    if name == "LSTM":
        options["proj_size"] = 2
    theirs, ours = draws(torch, monkeypatch, lambda nn: getattr(nn, name)(3, 4, **options))
    assert ours == theirs and len(ours) > 3


def test_text_and_state(torch):
    for name in NETWORKS:
        options = {"num_layers": 2, "bias": False, "batch_first": True, "dropout": 0.5}
        pair(torch, name, 3, 4, bidirectional=True, **options)
    net = flow.nn.LSTM(3, 4, 2, bidirectional=True)
    assert net.flatten_parameters() is None
    assert [len(weights) for weights in net.all_weights] == [4] * 4
    assert net.all_weights[1][0] is net.weight_ih_l0_reverse


@pytest.mark.parametrize("name", NETWORKS)
def test_inputs_that_depend_on_one_another(torch, name):
    """Each derivative is that by one input alone; the rest goes through the graph."""
    modules = pair(torch, name, 3, 3)

    def call(lib, module, x):
        h = x[:1] * module.weight_hh_l0[0]
        return module(x, (h, h * h) if name == "LSTM" else h)

    agree(torch, modules, call, numbers(4, 2, 3))


def test_dropout_between_layers():
    x, options = flow.tensor(numbers(4, 2, 3)).float(), {"num_layers": 2}
    net = flow.nn.GRU(3, 5, dropout=1.0, **options)
    y, _ = net(x)
    assert flow.equal(y[:, 0], y[:, 1])  # the second layer saw zeros
    assert not flow.allclose(net.eval()(x)[0], y)
    net = flow.nn.GRU(3, 5, dropout=0.5, **options)
    flow.manual_seed(1)
    first = net(x)[0]
    flow.manual_seed(1)
    assert flow.equal(net(x)[0], first) and not flow.equal(net(x)[0], first)
    with pytest.warns(UserWarning, match="dropout"):
        flow.nn.GRU(3, 5, dropout=0.5)


def test_results_may_be_written_to():
    """As in PyTorch: what the gradient needs is the layer's own."""
    net, x = flow.nn.LSTM(3, 4), flow.tensor(numbers(5, 2, 3)).float()
    plain = flow.autograd.grad((net(x)[0] * 2).sum(), net.weight_hh_l0)[0]
    y, _ = net(x)
    y.mul_(2)
    assert flow.allclose(flow.autograd.grad(y.sum(), net.weight_hh_l0)[0], plain)


@pytest.mark.parametrize("name", ["LSTM", "GRU", "RNN"])
def test_halves_and_devices(name, device):
    arrays = {}
    for dtype in ("float16", "float32"):
        flow.manual_seed(3)
        net = getattr(flow.nn, name)(3, 4, 2, bidirectional=True).to(device, getattr(flow, dtype))
        x = flow.tensor(numbers(5, 2, 3), dtype=getattr(flow, dtype), device=device)
        packed = rnn.pack_padded_sequence(x.requires_grad_(), [2, 5], enforce_sorted=False)
        y, _ = net(packed)
        y.data.square().sum().backward()
        assert y.data.dtype == x.grad.dtype == getattr(flow, dtype) and y.data.device == x.device
        arrays[dtype] = [a.float().cpu().numpy() for a in (y.data.detach(), x.grad)]
    for half, single in zip(*arrays.values(), strict=True):
        np.testing.assert_allclose(half, single, 0.05, 0.01)


# --- Packed sequences -----------------------------------------------------------------------------


@pytest.mark.parametrize("first", [False, True])
@pytest.mark.parametrize("sort", [False, True])
@pytest.mark.parametrize("rest", [(), (2,)])
def test_packing_as_in_pytorch(torch, first, sort, rest):
    lengths = [4, 2, 2, 1] if sort else [2, 1, 4, 2]
    x = numbers(*((4, 5) if first else (5, 4)), *rest)
    found = []
    for lib in (torch, flow):
        tools = lib.nn.utils.rnn
        t = lib.tensor(x).requires_grad_()
        packed = tools.pack_padded_sequence(t, lib.tensor(lengths), first, enforce_sorted=sort)
        padded, sizes = tools.pad_packed_sequence(packed, first, -1.0, 6)
        ((packed.data**2).sum() + (padded**3).sum()).backward()
        results = [*packed, padded, sizes, t.grad, *tools.unpack_sequence(packed)]
        found.append([None if y is None else y.detach().numpy() for y in results])
    for theirs, ours in zip(*found, strict=True):
        assert (theirs is None) == (ours is None)
        if ours is not None:
            np.testing.assert_array_equal(ours, theirs)
            assert ours.dtype == theirs.dtype


@pytest.mark.parametrize("side", ["right", "left"])
@pytest.mark.parametrize("first", [False, True])
def test_padding_as_in_pytorch(torch, first, side):
    arrays = [numbers(n, 2, seed=n) for n in (3, 1, 2)]
    found = []
    for lib in (torch, flow):
        tools = lib.nn.utils.rnn
        each = [lib.tensor(x).requires_grad_() for x in arrays]
        padded = tools.pad_sequence(each, first, 9.0, side)
        (padded * padded).sum().backward()
        packed = tools.pack_sequence([x.detach() for x in each], enforce_sorted=False)
        lengths = lib.tensor([3, 1, 2])
        back = tools.unpad_sequence(tools.pad_sequence(each, first), lengths, first)
        again = tools.pad_sequence(iter(each)), tools.pad_sequence(padded.detach())
        results = [padded, *[x.grad for x in each], *packed, *back, *again]
        found.append([y.detach().numpy() for y in results])
    for theirs, ours in zip(*found, strict=True):
        np.testing.assert_array_equal(ours, theirs)


def test_packed_sequences_are_converted_and_moved(device):
    packed = rnn.pack_sequence([flow.ones(1), flow.ones(2)], enforce_sorted=False)
    assert packed.double().data.dtype == flow.float64 and packed.long().data.dtype == flow.int64
    assert packed.float() is packed and packed.pin_memory() is packed and not packed.is_pinned()
    moved = packed.to(device)
    assert moved.data.device.type == moved.sorted_indices.device.type == device
    assert moved.is_cuda == (device == "cuda") and moved.batch_sizes.device.type == "cpu"
    assert moved.cpu().data.device.type == "cpu"
    again = rnn.PackedSequence(packed.data, packed.batch_sizes, packed.sorted_indices)
    assert flow.equal(again.unsorted_indices, packed.unsorted_indices)
    assert rnn.invert_permutation(None) is None


# --- Captured -------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["LSTM", "GRU", "RNN"])
def test_a_training_step_is_replayed(name):
    def train(wrap):
        flow.manual_seed(0)
        net = getattr(flow.nn, name)(3, 4, 2, bidirectional=True)
        optimizer = flow.optim.SGD(net.parameters(), lr=0.1)

        @wrap
        def step(x):
            optimizer.zero_grad()
            y, _ = net(x)
            loss = y.square().sum()
            loss.backward()
            optimizer.step()
            return loss.detach()

        x = flow.tensor(numbers(5, 2, 3)).float()
        return [step(x).item() for _ in range(5)], step

    eager, _ = train(lambda step: step)
    replayed, step = train(flow.compile)
    assert replayed == eager
    assert step.explain().hits >= 3 and not step.explain().fallbacks


def test_second_derivatives_are_replayed():
    net = flow.nn.LSTM(3, 4).double()

    def penalty(x):
        (dx,) = flow.autograd.grad(net(x)[0].sum(), x, create_graph=True)
        return flow.autograd.grad(dx.square().sum(), net.weight_hh_l0)[0]

    x = flow.tensor(numbers(3, 2, 3), requires_grad=True)
    compiled = flow.compile(penalty)
    for _ in range(3):
        np.testing.assert_array_equal(compiled(x).numpy(), penalty(x).numpy())
    assert compiled.explain().hits and not compiled.explain().fallbacks


def test_packed_sequences_stay_eager_in_compiled_code():
    net = flow.nn.GRU(3, 4)
    compiled = flow.compile(lambda packed: net(packed)[0].data)
    packed = rnn.pack_sequence([flow.ones(2, 3), flow.ones(1, 3)])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for _ in range(2):
            assert flow.equal(compiled(packed), net(packed)[0].data)
    assert compiled.explain().fallbacks


def test_programs():
    """A Program has one op for each layer's backward pass, and differentiates twice."""
    net = flow.nn.LSTM(3, 4, 2)
    array = numbers(5, 2, 3).astype(np.float32)
    x = flow.tensor(array, requires_grad=True)
    (dx,) = flow.autograd.grad(net(x)[0].sum(), x, create_graph=True)
    (second,) = flow.autograd.grad(dx.square().sum(), x)
    net.weight_ih_l0.grad = None
    net(x)[0].sum().backward()
    main, start = flow.static.Program(), flow.static.Program()
    with flow.static.program_guard(main, start):
        fed = flow.static.data("x", [5, 2, 3])
        fed.requires_grad = True
        loss = net(fed)[0].sum()
        pairs = flow.static.append_backward(loss)
        by_name = {id(p): dp for p, dp in pairs}
        counts = [op.type for op in main.global_block().ops].count("lstm_layer_grad")
        (first,) = flow.static.gradients(loss, fed)
        (again,) = flow.static.gradients(first.square().sum(), fed)
    assert counts == 2
    executor = flow.static.Executor()
    executor.run(start)
    wanted = [by_name[id(net.weight_ih_l0)], first, again]
    found = executor.run(main, feed={"x": array}, fetch_list=wanted)
    for got, expected in zip(found, (net.weight_ih_l0.grad, dx.detach(), second), strict=True):
        np.testing.assert_allclose(np.asarray(got), expected.numpy(), 1e-4, 1e-6)


# --- Errors ---------------------------------------------------------------------------------------

X, H = flow.zeros(5, 2, 3), flow.zeros(1, 2, 4)
LSTM, GRU, CELL = flow.nn.LSTM(3, 4), flow.nn.GRU(3, 4), flow.nn.LSTMCell(3, 4)
ERRORS = {
    "a word for a flag": (
        lambda: flow.nn.LSTM(3, 2, batch_first="False"),
        TypeError,
        "batch_first",
    ),
    "a number for a flag": (lambda: flow.nn.RNN(3, 2, bias=1), TypeError, "bias"),
    "no features": (lambda: flow.nn.GRU(0, 2), ValueError, "input_size"),
    "features": (lambda: GRU(flow.zeros(5, 2, 4)), ShapeError, "input"),
    "rank": (lambda: GRU(flow.zeros(5)), ArgumentError, "input"),
    "dtype": (lambda: GRU(X.double()), ArgumentError, "input"),
    "no step": (lambda: GRU(X[:0]), ShapeError, "input"),
    "state": (lambda: GRU(X, flow.zeros(1, 3, 4)), ShapeError, "hx"),
    "state's rank": (lambda: GRU(X, flow.zeros(2, 4)), ShapeError, "hx"),
    "cell state": (lambda: LSTM(X, (H, flow.zeros(1, 2, 3))), ShapeError, r"hx\[1\]"),
    "no pair": (lambda: LSTM(X, H), ArgumentError, "hx"),
    "a pair": (lambda: GRU(X, (H, H)), ArgumentError, "hx"),
    "hidden_size": (lambda: flow.nn.LSTM(3, 0), ArgumentError, "hidden_size"),
    "hidden type": (lambda: flow.nn.LSTM(3, 4.0), TypeError, "hidden_size"),
    "layers": (lambda: flow.nn.LSTM(3, 4, 0), ArgumentError, "num_layers"),
    "dropout": (lambda: flow.nn.LSTM(3, 4, dropout=True), ArgumentError, "dropout"),
    "proj_size": (lambda: flow.nn.LSTM(3, 4, proj_size=4), ArgumentError, "proj_size"),
    "projected": (lambda: flow.nn.GRU(3, 4, proj_size=2), ArgumentError, "proj_size"),
    "kind": (lambda: flow.nn.RNN(3, 4, nonlinearity="x"), ArgumentError, "nonlinearity"),
    "mode": (lambda: flow.nn.RNNBase("X", 3, 4), ArgumentError, "mode"),
    "cell features": (lambda: CELL(flow.zeros(2, 4)), ShapeError, "input"),
    "cell rank": (lambda: CELL(X), ArgumentError, "input"),
    "cell hx": (lambda: CELL(X[0], (H[0], H[0, :1])), ShapeError, "hx"),
    "cell hx type": (lambda: CELL(X[0], (1, 2)), TypeError, "hx"),
    "rising": (lambda: rnn.pack_padded_sequence(X, [2, 3]), ArgumentError, "lengths"),
    "no length": (lambda: rnn.pack_padded_sequence(X, [3, 0]), ArgumentError, "lengths"),
    "too long": (lambda: rnn.pack_padded_sequence(X, [6, 0]), ArgumentError, "lengths"),
    "a length": (lambda: rnn.pack_padded_sequence(X, [3]), ArgumentError, "lengths"),
    "nothing": (lambda: rnn.pack_padded_sequence(X[:0], [1, 1]), ShapeError, "input"),
    "total": (
        lambda: rnn.pad_packed_sequence(rnn.pack_sequence([X, X]), total_length=2),
        ArgumentError,
        "total_length",
    ),
    "no sequence": (lambda: rnn.pad_sequence([]), ArgumentError, "sequences"),
    "no iterable": (lambda: rnn.pad_sequence(3), TypeError, "sequences"),
    "sizes": (lambda: rnn.pad_sequence([X, X[:, 0]]), ShapeError, r"sequences\[1\]"),
    "side": (lambda: rnn.pad_sequence([X], padding_side="up"), ArgumentError, "padding_side"),
    "params": (
        lambda: flow.gru(X, H, GRU.all_weights[0][:3], True, 1, 0.0, False, False, False),
        ArgumentError,
        "params",
    ),
    "w_hh": (
        lambda: flow.gru_cell(X[0], H[0], GRU.weight_ih_l0, GRU.weight_ih_l0),
        ShapeError,
        "w_hh",
    ),
    "weight's dtype": (
        lambda: flow.gru_cell(X[0], H[0], GRU.weight_ih_l0, GRU.weight_hh_l0.double()),
        DTypeError,
        "w_hh",
    ),
    "states": (
        lambda: flow.lstm_cell(X[0], [H[0]], LSTM.weight_ih_l0, LSTM.weight_hh_l0),
        ArgumentError,
        "hx",
    ),
    "unprojected": (
        lambda: flow.lstm_cell(X[0], (H[0, :, :3], H[0]), LSTM.weight_ih_l0, flow.ones(16, 3)),
        ShapeError,
        "w_hr",
    ),
    "networks' input": (
        lambda: flow.gru(X[0], H, GRU.all_weights[0], True, 1, 0.0, False, False, False),
        ShapeError,
        "input",
    ),
    "complex relu": (
        lambda: flow.rnn_relu_cell(X[0] * 1j, H[0] * 1j, X[0], X[0]),
        DTypeError,
        "input",
    ),
}


@pytest.mark.parametrize(("call", "error", "argument"), ERRORS.values(), ids=ERRORS)
def test_bad_arguments(call, error, argument):
    with pytest.raises(error, match=argument) as raised:
        call()
    assert isinstance(raised.value, flow.errors.FlowError)
