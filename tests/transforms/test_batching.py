"""vmap beside loops: every op, random numbers, sizes, containers, writes in place, refusals."""

from __future__ import annotations

import warnings
from collections import OrderedDict, defaultdict, namedtuple
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import oneflow_lite as flow
from oneflow_lite.errors import ArgumentError, ShapeError, TransformError
from oneflow_lite.transforms import batching
from tests.op_samples import every_op
from tests.transforms.agreement import assert_close, batches
from tests.transforms.sweep import PARTS, cases, ops_of

F = flow.nn.functional

# --- Every op -------------------------------------------------------------------------------------

# The ops that run once for each entry.
LOOPED = set(
    """
    as_strided as_strided_grad as_strided_grad_grad attention_dropout ctc_loss ctc_occupancy
    ctc_occupancy_grad
    embedding_bag_argmax embedding_bag_coefficients embedding_bag_sum embedding_bag_sum_dots
    embedding_bag_sum_grad embedding_scale gru_layer gru_layer_grad histc histogram_edges
    histogram_of linear_cross_entropy_rows linear_cross_entropy_rows_grad lstm_layer
    lstm_layer_grad rnn_layer rnn_layer_grad scatter_groups segment_ids
    setitem_overwritten
    """.split()
)
# Why a call is refused, by a part of the message, and the ops of whose samples one is.
REFUSED = {
    # the function says nothing about randomness
    "draws random numbers": """
        _sample_dirichlet _standard_gamma _von_mises bernoulli bernoulli_ binomial cauchy_
        dropout_mask exponential_ geometric_ log_normal_ multinomial normal normal_ orthogonal_
        poisson random_ random_integers random_normal random_permutation random_uniform
        trunc_normal_ uniform_
    """,
    # collectives
    "nothing is sent to other processes": """
        all_gather all_reduce all_reduce_ all_to_all barrier broadcast_from broadcast_from_
        gather_to receive_from_ reduce_scatter reduce_to reduce_to_ scatter_from send_to
    """,
    # shapes from values
    "the shape of its result depends on the values": """
        bincount masked_select masked_select_grad nonzero repeat_index unique unique_consecutive
    """,
    # Python asks for a value
    "not one for Python to read": "allclose equal",
    # a tensor without the batch is written; what `batch_norm` writes are its running statistics
    "was to be written with values that differ by entry": """
        adadelta_update adafactor_update adagrad_update adam_update adamax_update asgd_update
        batch_norm copy_ copy_slices fill_ muon_update nadam_update radam_update rmsprop_update
        rprop_update setitem_ setitem_grad setitem_overwritten sgd_update take_slices
        take_slices_grad update_running
    """,
    "an optimizer steps outside of vmap": "muon_update sgd_update",
}


def kind_of(error: TransformError) -> str:
    """Return the reason for a refusal."""
    (kind,) = [text for text in REFUSED if text in str(error)] or [f"unknown: {error}"]
    return kind


@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.parametrize("single", [False, True], ids=["double", "single"])
def test_every_op_gives_what_a_loop_gives(part: int, single: bool) -> None:
    looped, refused, wrong = set(), set(), []
    own = set()
    for op in ops_of(part):
        for case in cases(op, single, lambda sample: tuple(range(len(sample.inputs)))):
            try:
                names = batches(case.function, case.sample.inputs, case.which)
            except TransformError as error:
                refused.add((kind_of(error), op))
            except Exception as error:
                wrong.append(f"{case}: {type(error).__name__}: {error}")
            else:
                looped |= names
                own |= names & {op}
    assert not wrong, "\n\n".join(wrong)
    assert looped <= LOOPED
    counted = {op for op in ops_of(part) if any(True for _ in cases(op, single, _inputs))}
    assert own == LOOPED & counted, "a name of LOOPED loops no more, or is missing there"
    listed = {(kind, op) for kind, ops in REFUSED.items() for op in ops.split()}
    assert refused == {(kind, op) for kind, op in listed if op in counted}


def _inputs(sample: Any) -> tuple[int, ...]:
    return tuple(range(len(sample.inputs)))


def test_the_lists_name_ops_and_are_short() -> None:
    listed = {op for ops in REFUSED.values() for op in ops.split()}
    assert listed | LOOPED <= set(every_op())
    assert len(LOOPED) <= 27


# --- Random numbers -------------------------------------------------------------------------------

VALUES = np.random.default_rng(0).uniform(0.2, 0.9, (3, 8))

# A function of a row of 8 probabilities, for each op that draws.
RANDOM: dict[str, Callable[[flow.Tensor], flow.Tensor]] = {
    "_sample_dirichlet": lambda x: flow._sample_dirichlet(x),
    "_standard_gamma": lambda x: flow._standard_gamma(x),
    "_von_mises": lambda x: flow.distributions.VonMises(0 * x, x).sample(),
    "bernoulli": flow.bernoulli,
    "bernoulli_": lambda x: x.clone().bernoulli_(0.5),
    "binomial": lambda x: flow.binomial(flow.full_like(x, 20), x),
    "cauchy_": lambda x: x.clone().cauchy_(),
    "dropout_mask": lambda x: F.dropout(flow.ones_like(x)),
    "exponential_": lambda x: x.clone().exponential_(),
    "geometric_": lambda x: x.clone().geometric_(0.1),
    "log_normal_": lambda x: x.clone().log_normal_(),
    "multinomial": lambda x: flow.multinomial(x, 8),
    "normal": lambda x: flow.normal(x, 1.0),
    "normal_": lambda x: x.clone().normal_(),
    "orthogonal_": lambda x: flow.nn.init.orthogonal_(x.clone().reshape(2, 4)),
    "poisson": lambda x: flow.poisson(x * 20),
    "random_": lambda x: x.clone().random_(0, 1000),
    "random_integers": lambda x: flow.randint(0, 1000, (8,)),
    "random_normal": lambda x: flow.randn(8),
    "random_permutation": lambda x: flow.randperm(8),
    "random_uniform": lambda x: flow.rand(8),
    "trunc_normal_": lambda x: flow.nn.init.trunc_normal_(x.clone()),
    "uniform_": lambda x: x.clone().uniform_(),
}
# Functions that draw in other ways.
MORE_RANDOM: dict[str, Callable[[flow.Tensor], flow.Tensor]] = {
    "an array of its own": lambda x: flow.empty(8).uniform_(),
    "rrelu": lambda x: F.rrelu(-flow.ones_like(x), training=True),
    "gumbel_softmax": lambda x: F.gumbel_softmax(0 * x),
    "rand_like": flow.rand_like,
    "alpha_dropout": lambda x: F.alpha_dropout(flow.ones_like(x), 0.5, True),
    "rsample": lambda x: flow.distributions.Exponential(x * 0 + 1).rsample(),
    "svd_lowrank": lambda x: flow.svd_lowrank(flow.eye(4), 2)[0],
    "attention": lambda x: F.scaled_dot_product_attention(
        *[flow.ones_like(x).reshape(4, 2)] * 3, dropout_p=0.5
    ),
}


def test_each_op_that_draws_is_among_them() -> None:
    assert RANDOM.keys() == set(REFUSED["draws random numbers"].split())


@pytest.mark.parametrize("name", [*RANDOM, *MORE_RANDOM])
def test_randomness_is_error_same_or_different(name: str) -> None:
    function = (RANDOM | MORE_RANDOM)[name]
    x = flow.tensor(VALUES)
    same = flow.tensor(np.broadcast_to(VALUES[:1], VALUES.shape).copy())
    shape = tuple(function(x[0]).shape)
    if name != "an array of its own":
        with pytest.raises(TransformError, match=r"randomness='different'"):
            flow.vmap(function)(x)
    flow.manual_seed(1)
    y = flow.vmap(function, randomness="same")(same).numpy()
    assert y.shape == (3, *shape)
    assert (y == y[:1]).all()
    flow.manual_seed(1)
    np.testing.assert_allclose(y[0], function(same[0]).numpy(), rtol=1e-12)  # as without vmap
    y = flow.vmap(function, randomness="different")(same).numpy()
    assert y.shape == (3, *shape)
    assert any((y[i] != y[0]).any() for i in (1, 2))
    again = flow.vmap(function, randomness="different")(same).numpy()
    assert (again != y).any()


@pytest.mark.parametrize("outer", ["same", "different"])
@pytest.mark.parametrize("inner", ["same", "different"])
@pytest.mark.parametrize("draw", [lambda x: flow.rand(8), F.dropout, lambda x: x.clone().normal_()])
def test_nested_batches_draw_each_in_its_way(outer: str, inner: str, draw: Any) -> None:
    def rows(block: flow.Tensor) -> flow.Tensor:
        return flow.vmap(draw, randomness=inner)(block)

    y = flow.vmap(rows, randomness=outer)(flow.ones(2, 3, 8)).numpy()
    assert y.shape == (2, 3, 8)
    assert (y[0] == y[1]).all() == (outer == "same")
    assert (y[:, 0] == y[:, 1]).all() == (inner == "same")


def test_draws_inside_jvp_inside_vmap() -> None:
    def function(x: flow.Tensor) -> flow.Tensor:
        return flow.func.jvp(lambda x: F.dropout(x) * flow.rand(8), (x,), (flow.ones(8),))[1]

    y = flow.vmap(function, randomness="different")(flow.ones(3, 8)).numpy()
    assert (y[0] != y[1]).any()
    y = flow.vmap(function, randomness="same")(flow.ones(3, 8)).numpy()
    assert (y[0] == y[1]).all()


def test_checks_of_values_draw_nothing() -> None:
    rates = flow.vmap(lambda x: flow.distributions.Poisson(x).mean)(flow.tensor(VALUES))
    np.testing.assert_array_equal(rates.numpy(), VALUES)
    with pytest.raises(ArgumentError, match="Poisson"):
        flow.vmap(lambda x: flow.distributions.Poisson(x).mean)(flow.tensor([1.0, -1.0]))


def test_a_generator_is_followed() -> None:
    x = flow.ones(3, 4)

    def draw(x: flow.Tensor) -> flow.Tensor:
        return flow.rand(4, generator=generator) + x

    generator = flow.Generator().manual_seed(3)
    same = flow.vmap(draw, randomness="same")(x).numpy()
    generator = flow.Generator().manual_seed(3)
    np.testing.assert_array_equal(same[2], draw(x[0]).numpy())


# --- Sizes and chunks -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x.exp().sum(),
        lambda x: x @ flow.ones(4, 2, dtype=flow.float64),
        lambda x: flow.stack([x, x]).softmax(0),
        lambda x: (x.sort()[0], x.max()),
        lambda x: F.conv1d(x.reshape(1, 1, 4), flow.ones(1, 1, 2, dtype=flow.float64)),
        lambda x: flow.histc(x, 4, 0, 1),
        lambda x: F.nll_loss(x.reshape(2, 2), flow.tensor([0, 1])),
        lambda x: x.index_add(0, flow.tensor([0, 1]), x[:2]),
        lambda x: x.clone().fill_(2.0),
        lambda x: flow.func.grad(lambda x: (x**3).sum())(x),
    ],
)
def test_a_batch_of_size_0(function: Any) -> None:
    made = flow.vmap(function)(flow.zeros(0, 4, dtype=flow.float64))
    one = function(flow.zeros(4, dtype=flow.float64))
    made, one = (x if isinstance(x, tuple) else (x,) for x in (made, one))
    for y, like in zip(made, one, strict=True):
        assert tuple(y.shape) == (0, *like.shape)
        assert y.dtype == like.dtype


def test_a_batch_of_size_1_and_numbers_as_entries() -> None:
    function = lambda x, y: (x * y, x.reshape(1).expand(3), flow.stack([x, y]))  # noqa: E731
    batches(function, (np.array(2.0), np.array(3.0)), (0, 1))
    made = flow.vmap(function)(flow.ones(1), flow.ones(1))
    assert [tuple(y.shape) for y in made] == [(1,), (1, 3), (1, 2)]


@pytest.mark.parametrize("size", [1, 2, 3, 7, 10, 11, 100])
def test_chunks_give_the_same_and_bound_the_memory(
    size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    widths = []
    init = batching.BatchLevel.__init__

    def counted(self: Any, size: int, *rest: Any) -> None:
        widths.append(size)
        init(self, size, *rest)

    monkeypatch.setattr(batching.BatchLevel, "__init__", counted)
    x = flow.randn(4, 10, dtype=flow.float64)
    y = flow.randn(10, 4, dtype=flow.float64)

    def outer(a: flow.Tensor, b: flow.Tensor) -> Any:
        return a[:, None] * b, {"sum": (a + b).sum(), "whole": a}

    expected = flow.vmap(outer, (1, 0), (1, {"sum": 0, "whole": -1}))(x, y)
    widths.clear()
    made = flow.vmap(outer, (1, 0), (1, {"sum": 0, "whole": -1}), chunk_size=size)(x, y)
    assert max(widths) == min(size, 10)
    assert sum(widths) == 10
    for a, b in ((made[0], expected[0]), *zip(made[1].values(), expected[1].values(), strict=True)):
        assert_close(a.numpy(), b.numpy(), "chunk")


def test_chunks_of_other_numbers_and_bad_sizes() -> None:
    y = flow.vmap(lambda x: flow.rand(3), randomness="different", chunk_size=2)(flow.ones(5))
    assert len({tuple(row) for row in y.tolist()}) == 5
    for size in (0, -1):
        with pytest.raises(ShapeError, match="chunk_size"):
            flow.vmap(flow.sin, chunk_size=size)(flow.ones(3))


# --- Containers, in_dims and out_dims -------------------------------------------------------------

Pair = namedtuple("Pair", "left right")


def test_containers_keep_their_kind() -> None:
    ordered = OrderedDict([("b", flow.ones(3, 2)), ("a", flow.zeros(3))])
    made = flow.vmap(lambda d: OrderedDict((k, v + 1) for k, v in d.items()))(ordered)
    assert type(made) is OrderedDict
    assert list(made) == ["b", "a"]
    assert tuple(made["b"].shape) == (3, 2)

    pair = flow.vmap(lambda p: Pair(p.right * 2, p.left))(Pair(flow.ones(3), flow.zeros(3, 2)))
    assert type(pair) is Pair
    assert tuple(pair.left.shape) == (3, 2)

    table: Any = defaultdict(list, {"x": [flow.ones(3), (flow.ones(3, 2),)]})

    def of_table(d: Any) -> Any:
        assert type(d) is defaultdict
        assert d.default_factory is list
        return defaultdict(int, y=d["x"][1][0].sum() + d["x"][0])

    result = flow.vmap(of_table)(table)
    assert type(result) is defaultdict
    assert result.default_factory is int
    np.testing.assert_array_equal(result["y"].numpy(), [3, 3, 3])


def test_dims_may_be_nested_and_negative() -> None:
    x, y = flow.arange(6.0).reshape(2, 3), flow.arange(3.0)

    def function(pair: Any, other: flow.Tensor, scale: float = 1.0) -> Any:
        return pair[0] * pair[1]["y"] * scale, other

    made, other = flow.vmap(function, ((-1, {"y": 0}), None), (-1, None))(
        (x, {"y": y}), flow.ones(2)
    )
    np.testing.assert_array_equal(made.numpy(), (x * y).numpy())
    assert tuple(other.shape) == (2,)
    kept = flow.vmap(lambda x, k: x * k, (0, None))(x, 2.5)  # a number is handed on
    np.testing.assert_array_equal(kept.numpy(), (x * 2.5).numpy())


@pytest.mark.parametrize(
    ("call", "match"),
    [
        (lambda x: flow.vmap(flow.sin, out_dims=None)(x), "out_dims.*the same for all entries"),
        (lambda x: flow.vmap(flow.sin, out_dims=2)(x), "out_dims"),
        (lambda x: flow.vmap(flow.sin, out_dims=(0, 0))(x), "out_dims"),
        (lambda x: flow.vmap(flow.sin, in_dims=2)(x), "dimension 2"),
        (lambda x: flow.vmap(flow.sin, in_dims=None)(x), "one size"),
        (lambda x: flow.vmap(flow.add, in_dims=(0, 0, 0))(x, x), "in_dims"),
        (lambda x: flow.vmap(flow.add)(x, x[:2]), "one size"),
        (lambda x: flow.vmap(flow.add)(x, 2.0), "in_dims=None"),
        (lambda x: flow.vmap(lambda x: 2.0)(x), "returns tensors"),
        (lambda x: flow.vmap(flow.sin, randomness="none")(x), "randomness"),
    ],
)
def test_wrong_arguments_are_explained(call: Any, match: str) -> None:
    with pytest.raises(ArgumentError, match=match):
        call(flow.ones(3))


def test_out_dims_none_takes_what_is_the_same() -> None:
    shared = flow.arange(2.0)
    x = flow.ones(3)
    made = flow.vmap(lambda x: (shared * 2, x), out_dims=(None, 0))(x)
    np.testing.assert_array_equal(made[0].numpy(), [0, 2])
    assert tuple(flow.vmap(lambda x: shared)(x).shape) == (3, 2)


# --- Writes in place ------------------------------------------------------------------------------


def _through_views(x: flow.Tensor, y: flow.Tensor) -> Any:
    z = x.clone()
    v = z.reshape(2, 2)
    w = v[1]
    w[0] = y[3]
    return z, v.clone(), w.clone()


def _seen_by_view(x: flow.Tensor, y: flow.Tensor) -> Any:
    z = x.clone()
    v = z[:2]
    z.add_(y)
    return v * 2


def _copied_to_view(x: flow.Tensor, y: flow.Tensor) -> Any:
    z = x.clone()
    z.reshape(2, 2).t().copy_(y.reshape(2, 2))
    return z


def _swapped(x: flow.Tensor, y: flow.Tensor) -> Any:
    z = x.clone()
    z[0], z[1] = z[1].clone(), z[0].clone()
    z[1:] += y[1:]
    z *= 2
    return z


def _in_gradient(x: flow.Tensor, y: flow.Tensor) -> Any:
    def f(x: flow.Tensor) -> flow.Tensor:
        z = x * 1
        z[1:] = z[1:].clone() * y[1:]
        z[0].exp_()
        return (z * z).sum()

    return flow.func.grad(f)(x)


def _into_new(x: flow.Tensor, y: flow.Tensor) -> Any:
    a, b, c = x.new_zeros(2, 4), flow.empty_like(x), x.new_full((2, 2), 3.0)
    a[0] = y
    a[1] = x
    b[:] = x
    c[1].mul_(x[0])
    d = flow.zeros_like(x, dtype=flow.int64)
    d[0] = 2
    return a, b, c, d


def writing(change: Callable[[flow.Tensor, flow.Tensor], Any]) -> Callable[..., Any]:
    """Return a function that changes a copy of its first argument."""

    def function(x: flow.Tensor, y: flow.Tensor) -> flow.Tensor:
        z = x.clone()
        change(z, y)
        return z * x

    return function


INDEX = flow.tensor([0, 2])
WRITES: dict[str, Callable[..., Any]] = {
    "slice": writing(lambda z, y: z.__setitem__(slice(1, 3), y[:2])),
    "number": writing(lambda z, y: z.__setitem__(-1, y.sum())),
    "all": writing(lambda z, y: z.__setitem__(..., y)),
    "constant": writing(lambda z, y: z.__setitem__(1, 2.5)),
    "mask, constant": writing(lambda z, y: z.__setitem__(z > 1, 0.0)),
    "mask, number": writing(lambda z, y: z.__setitem__(z > 1, y[0])),
    "mask of a row": writing(lambda z, y: z.reshape(2, 2).__setitem__(z[:2] > 0.6, y[1])),
    "index": writing(lambda z, y: z.__setitem__(INDEX, y[:2])),
    "index of the batch": writing(lambda z, y: z.__setitem__(y[:2].to(flow.int64) % 4, y[2])),
    "add_": writing(lambda z, y: z.add_(y)),
    "view.mul_": writing(lambda z, y: z[1:].mul_(y[1:])),
    "fill_": writing(lambda z, y: z.fill_(y[0])),
    "zero_": writing(lambda z, y: z[:2].zero_()),
    "masked_fill_": writing(lambda z, y: z.masked_fill_(y > 7, 0.5)),
    "masked_scatter_": writing(lambda z, y: z.masked_scatter_(y > 7, y)),
    "index_add_": writing(lambda z, y: z.index_add_(0, flow.tensor([0, 0]), y[:2])),
    "index_put_": writing(lambda z, y: z.index_put_((INDEX,), y[:2], accumulate=True)),
    "scatter_": writing(lambda z, y: z.scatter_(0, INDEX, y[:2])),
    "out=": writing(lambda z, y: flow.add(z * 1, y, out=z)),
    "copy_ to a view": _copied_to_view,
    "through views": _through_views,
    "seen by a view": _seen_by_view,
    "swapped": _swapped,
    "inside grad": _in_gradient,
    "into new tensors": _into_new,
}
A, B = np.arange(1.0, 5) / 4, np.array([10.0, 12, 14, 16])


@pytest.mark.parametrize("name", WRITES)
def test_writes_in_place_are_those_of_a_loop(name: str) -> None:
    for which in ((0, 1), (0,)):
        if name == "into new tensors" and which == (0,):
            continue
        assert not batches(WRITES[name], (A, B), which)


@pytest.mark.parametrize("name", sorted(WRITES.keys() - {"constant", "zero_"}))
def test_tensors_without_the_batch_are_not_written_to(name: str) -> None:
    if name in ("mask, constant", "into new tensors"):
        return
    x = flow.tensor(A)
    with pytest.raises(TransformError, match="the same for all entries.*zeros_like, new_zeros"):
        flow.vmap(WRITES[name], (None, 0))(x, flow.tensor(np.stack([B, B + 1])))
    np.testing.assert_array_equal(x.numpy(), A)


def test_writes_to_an_argument_reach_the_caller() -> None:
    x = flow.arange(6.0).reshape(2, 3)
    flow.vmap(lambda row: row.mul_(2))(x)
    np.testing.assert_array_equal(x.numpy(), np.arange(6.0).reshape(2, 3) * 2)
    flow.vmap(lambda column: column.add_(1), in_dims=1, out_dims=1)(x)
    np.testing.assert_array_equal(x.numpy(), np.arange(6.0).reshape(2, 3) * 2 + 1)


# --- Refusals and warnings ------------------------------------------------------------------------

READS: dict[str, tuple[Callable[[flow.Tensor], Any], str]] = {
    "item": (lambda x: x * x.sum().item(), "item"),
    "float": (lambda x: x * float(x.sum()), "item|float"),
    "int": (lambda x: x[int(x.sum())], "item|int"),
    "bool": (lambda x: x * bool(x.sum() > 0), "item|bool"),
    "if": (lambda x: x if x.sum() > 0 else -x, "item|bool"),
    "while": (lambda x: next(iter([])) if (x > 0).all() else x, "item|bool"),
    "tolist": (lambda x: flow.tensor(x.tolist()), "tolist"),
    "numpy": (lambda x: flow.tensor(x.numpy()), "numpy"),
    "np.asarray": (lambda x: flow.tensor(np.asarray(x.detach())), "numpy|array"),
    "equal": (lambda x: x * flow.equal(x, x), "item"),
    "allclose": (lambda x: x * flow.allclose(x, x), "item"),
    "slice": (lambda x: x[: x.sum().to(flow.int64)], "item|index"),
}


@pytest.mark.parametrize("name", READS)
def test_reading_a_value_names_the_way_out(name: str) -> None:
    function, said = READS[name]
    with pytest.raises(TransformError, match=rf"^({said})\(\): .* vmap .*where\(\)"):
        flow.vmap(function)(flow.ones(3, 2))


@pytest.mark.parametrize(
    ("function", "said"),
    [
        (flow.nonzero, "nonzero"),
        (flow.unique, "unique"),
        (flow.unique_consecutive, "unique_consecutive"),
        (lambda x: flow.masked_select(x, x > 1), "masked_select"),
        (lambda x: x[x > 1], "masked_select|nonzero|getitem_advanced"),
        (lambda x: flow.bincount(x.to(flow.int64)), "bincount"),
        (lambda x: flow.repeat_interleave(x, x.to(flow.int64)), "repeat_index"),
        (lambda x: flow.argwhere(x), "nonzero|argwhere"),
    ],
)
def test_shapes_from_values_name_the_op_and_the_way_out(function: Any, said: str) -> None:
    with pytest.raises(TransformError, match=rf"^({said})\(\): .*shape.*(where\(\)|masks)"):
        flow.vmap(function)(flow.ones(3, 2))


def test_an_optimizer_steps_outside() -> None:
    def step(x: flow.Tensor) -> flow.Tensor:
        p = flow.ones(2, requires_grad=True)
        optimizer = flow.optim.SGD([p], 0.1)
        p.grad = x.clone()
        optimizer.step()
        return p

    with pytest.raises(TransformError, match=r"sgd_update\(\): .*(outside of vmap|zeros_like)"):
        flow.vmap(step)(flow.ones(3, 2))


def test_a_tensor_that_was_kept_is_refused() -> None:
    kept = []
    flow.vmap(lambda x: kept.append(x) or x)(flow.ones(3))
    with pytest.raises(TransformError, match="return the tensor from the mapped function"):
        kept[0] + 1


def test_an_entry_is_printed_with_its_batch() -> None:
    said = []
    flow.vmap(lambda x: said.append(repr(x)) or x)(flow.arange(4.0).reshape(2, 2))
    assert said == ["tensor(batch of 2, shape=(2,), dtype=float32)"]
    flow.func.jvp(lambda x: said.append(repr(x)) or x, (flow.ones(2),), (flow.ones(2),))
    assert said[1] == "tensor([1., 1.], tangent=tensor([1., 1.]))"


def test_an_op_without_a_rule_warns_once() -> None:
    batching._warned.clear()
    x = flow.rand(3, 5)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for _ in range(3):
            flow.vmap(lambda x: flow.histc(x, 4, 0, 1))(x)
        flow.vmap(lambda x: flow.as_strided(x, (2, 2), (1, 1)))(x)
    said = [str(warning.message) for warning in caught]
    assert len(said) == 2
    for text, op in zip(said, ("histc", "as_strided"), strict=True):
        assert text.startswith(f"vmap(): {op} has no rule for a batch")
        assert "register_op(batch=...)" in text
    assert caught[0].filename == __file__


# --- Rules of which one sample of an op says little -----------------------------------------------


@pytest.mark.parametrize(
    "function",
    [
        lambda x, i: x[0].gather(0, i),  # a number is a vector of one number
        lambda x, i: flow.func.grad(lambda x: x[0].gather(0, i * 0).sum())(x),
        lambda x, i: x.gather(-1, i * 0 + 2),
        lambda x, i: x[0].unfold(0, 1, 1),
        lambda x, i: x[0].unfold(0, 0, 1),
        lambda x, i: x.unfold(-1, 2, 1),
        lambda x, i: flow.func.grad(lambda x: (x.unfold(0, 2, 1) ** 2).sum())(x),
        lambda x, i: flow.func.grad(lambda x: (x[1].unfold(0, 1, 1) ** 2).sum())(x),
        lambda x, i: flow.linalg.lstsq(x.reshape(3, 1), x * 2),
        lambda x, i: flow.linalg.solve_ex(flow.diag(x), x.expand(2, 3)[..., None]),
        lambda x, i: flow.linalg.lstsq(x.reshape(3, 1), x[:, None] * 2, driver="gels"),
        lambda x, i: flow.istft(
            flow.stft(flow.cat([x] * 4), 4, window=x[:1].expand(4), return_complex=True),
            4,
            window=x[:1].expand(4),
        ),
    ],
)
def test_numbers_and_empty_outputs(function: Any) -> None:
    batches(function, (np.array([0.5, 1.5, 2.5]), np.array([0])), (0,))
