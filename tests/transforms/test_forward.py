"""jvp beside gradients and finite differences: every op, writes, values, kinds of numbers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import oneflow_lite as flow
from oneflow_lite.errors import NotDifferentiableError, TransformError
from tests.op_samples import every_op
from tests.transforms.agreement import assert_close, tangents
from tests.transforms.sweep import PARTS, cases, ops_of
from tests.transforms.test_batching import INDEX, WRITES, A, B

F = flow.nn.functional

# --- Every op -------------------------------------------------------------------------------------

_LAST = "its samples cannot be differentiated again"
_SENT = "tangents are not sent to other processes"
# What does not agree, and why.
EXCEPT = {
    "attention_grad": _LAST,
    "ctc_occupancy_grad": _LAST,
    "gru_layer_grad": _LAST,
    "lstm_layer_grad": _LAST,
    "rnn_layer_grad": _LAST,
    "embedding_scale": "the gradient is scaled by the counts, and so is no derivative",
    "all_reduce_": _SENT,
    "broadcast_from_": _SENT,
}


def _moving(sample: Any) -> tuple[int, ...]:
    return tuple(i for i in sample.differentiable if sample.inputs[i].dtype.kind in "fc")


@pytest.mark.slow(but=2)
@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.parametrize("single", [False, True], ids=["double", "single"])
def test_tangents_of_every_op_are_those_of_its_gradients(part: int, single: bool) -> None:
    wrong, met, seen = [], set(), set()
    for op in ops_of(part):
        for case in cases(op, single, _moving):
            seen.add(op)
            try:
                tangents(case.function, case.sample.inputs, case.which)
            except Exception as error:
                met.add(op)
                if op not in EXCEPT:
                    wrong.append(f"{case}: {type(error).__name__}: {error}")
    assert not wrong, "\n\n".join(wrong)
    assert met == EXCEPT.keys() & seen, "a name of EXCEPT agrees now"


def test_exceptions_name_ops() -> None:
    assert set(every_op()) >= EXCEPT.keys()


# --- Writes in place ------------------------------------------------------------------------------


@pytest.mark.parametrize("name", sorted(WRITES.keys() - {"out="}))
@pytest.mark.parametrize("which", [(0, 1), (0,), (1,)])
def test_writes_carry_tangents(name: str, which: tuple[int, ...]) -> None:
    tangents(WRITES[name], (A, B), which)


def push(function: Callable[..., Any], x: Any, v: Any) -> Any:
    """Return the tangent of a function of one array."""
    made = flow.func.jvp(function, (flow.tensor(x),), (flow.tensor(v),))[1]
    return made.numpy()


V = np.array([1.0, 2.0, 3.0, 4.0])


def test_a_plain_tensor_takes_the_tangent_with_its_views() -> None:
    def function(x: flow.Tensor) -> Any:
        z = flow.zeros(4, dtype=flow.float64)
        before, row = z[:2], z.reshape(2, 2)
        deeper = row[0]
        z.copy_(x)
        after = z[2:]
        return before * 1, row * 1, deeper * 1, after * 1, z.reshape(2, 2)[1, 1] * 1

    made = flow.func.jvp(function, (flow.tensor(A),), (flow.tensor(V),))[1]
    before, row, deeper, after, last = (t.numpy() for t in made)
    np.testing.assert_array_equal(before, V[:2])
    np.testing.assert_array_equal(row, V.reshape(2, 2))
    np.testing.assert_array_equal(deeper, V[:2])
    np.testing.assert_array_equal(after, V[2:])
    assert last == V[3]


def test_a_view_of_a_plain_tensor_takes_the_tangent_to_its_base() -> None:
    def function(x: flow.Tensor) -> Any:
        z = flow.ones(2, 4, dtype=flow.float64)
        other = z[:, 1]
        z[0].copy_(x)
        z[1, 2:] = x[:2]
        return z * 2, other * 1

    whole, other = flow.func.jvp(function, (flow.tensor(A),), (flow.tensor(V),))[1]
    expected = np.array([V, [0, 0, V[0], V[1]]])
    np.testing.assert_array_equal(whole.numpy(), expected * 2)
    np.testing.assert_array_equal(other.numpy(), expected[:, 1])


def test_a_constant_written_over_a_tangent_leaves_none() -> None:
    def function(x: flow.Tensor) -> Any:
        z = x.clone()
        view = z[2:]
        z[1:3] = flow.ones(2, dtype=flow.float64)
        y = x.clone()
        y.fill_(3.0)
        w = x.clone()
        w[:1].zero_()
        return z, view * 1, y, w, x.clone().copy_(flow.ones(4, dtype=flow.float64))

    made = flow.func.jvp(function, (flow.tensor(A),), (flow.tensor(V),))[1]
    z, view, y, w, c = (t.numpy() for t in made)
    np.testing.assert_array_equal(z, [1, 0, 0, 4])
    np.testing.assert_array_equal(view, [0, 4])
    np.testing.assert_array_equal(w, [0, 2, 3, 4])
    assert not y.any()
    assert not c.any()


def test_the_argument_of_the_caller_is_written_and_has_no_tangent_after() -> None:
    x, z = flow.tensor(A.copy()), flow.zeros(4, dtype=flow.float64)
    flow.func.jvp(lambda x: x.mul_(2), (x,), (flow.tensor(V),))
    np.testing.assert_array_equal(x.numpy(), A * 2)
    flow.func.jvp(lambda x: z[:2].copy_(x[:2]), (x,), (flow.tensor(V),))
    np.testing.assert_array_equal((z * 1).numpy(), [A[0] * 2, A[1] * 2, 0, 0])


def test_collectives_that_write_refuse_tangents() -> None:
    case = next(cases("all_reduce_", False, _moving))
    with pytest.raises(TransformError, match="not sent to other processes"):
        tangents(case.function, case.sample.inputs, case.which)


# --- What has no tangent --------------------------------------------------------------------------


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x.detach() * x,
        lambda x: x.data * x,
        lambda x: flow.tensor(x.numpy()) * x,
        lambda x: flow.tensor(x.tolist(), dtype=flow.float64) * x,
        lambda x: x.clone().detach().clone() * x,
        lambda x: x.view(4).detach()[:] * x,
    ],
)
def test_detach_drops_tangents(function: Any) -> None:
    np.testing.assert_allclose(push(function, A, V), A * V)


def test_a_detached_tensor_is_detached_inside_other_levels_too() -> None:
    def function(x: flow.Tensor) -> flow.Tensor:
        return flow.func.jvp(lambda x: x.detach() * x, (x,), (x.detach() * 0 + 1,))[1]

    np.testing.assert_allclose(push(function, A, V), 0 * V)  # d/dx of the constant x
    rows = flow.vmap(lambda x: flow.func.jvp(lambda x: x.detach() * x, (x,), (x,))[1])
    np.testing.assert_allclose(rows(flow.tensor([A, B])).numpy(), np.stack([A, B]) ** 2)


def test_values_are_read_inside_jvp() -> None:
    def function(x: flow.Tensor) -> flow.Tensor:
        total = x.sum()
        assert float(total) == A.sum()
        assert total.item() == A.sum()
        assert int(x.max()) == int(A.max())
        assert x.tolist() == A.tolist()
        assert np.asarray(x.numpy()).sum() == A.sum()
        assert bool(total > 0)
        assert 0.5 in x
        assert [float(part) for part in x] == A.tolist()
        assert flow.equal(x, x)
        assert len(x[x > 0.6]) == 2
        if total > 100:
            return x
        y = x
        while y.sum() < 10:
            y = y * 2
        return y * int(x.argmax())

    np.testing.assert_allclose(push(function, A, V), V * 4 * 3)


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x.argmax(),
        lambda x: x > 0.5,
        lambda x: x.sort()[1],
        lambda x: x.to(flow.int64),
        lambda x: flow.zeros(2),
        lambda x: x.floor(),
        lambda x: x.sign(),
        lambda x: flow.nonzero(x),
        lambda x: flow.histc(x, 3, 0, 1),
        lambda x: flow.tensor([1.0, 2.0]),
    ],
)
def test_outputs_without_derivative_give_zeros(function: Any) -> None:
    value, tangent = flow.func.jvp(function, (flow.tensor(A),), (flow.tensor(V),))
    np.testing.assert_array_equal(value.numpy(), function(flow.tensor(A)).numpy())
    assert tangent.shape == value.shape
    assert not tangent.numpy().any()


def test_a_tangent_that_is_missing_raises_where_it_is_read() -> None:
    def systems(x: flow.Tensor) -> Any:
        return flow.linalg.lstsq(x.reshape(2, 2), flow.eye(2, dtype=flow.float64), driver="gelsd")

    x = A + np.array([1.0, 0, 0, 1.0])
    solution = push(lambda x: systems(x).solution, x, V)  # the singular values are not read
    h = 1e-6
    central = [systems(flow.tensor(x + s * h * V)).solution.numpy() for s in (1, -1)]
    np.testing.assert_allclose(solution, (central[0] - central[1]) / (2 * h), atol=1e-7)
    (name, values) = "singular_values", systems(flow.tensor(x)).singular_values
    assert values.numel() == 2
    tangent = push(lambda x: getattr(systems(x), name), x, V)  # they are detached
    assert not tangent.any()


def test_an_op_without_a_gradient_rule_says_so() -> None:
    name = "no_rule_for_tangents"
    if not hasattr(test_an_op_without_a_gradient_rule_says_so, "op"):
        test_an_op_without_a_gradient_rule_says_so.op = flow.register_op(name)(  # type: ignore
            lambda xp, x: xp.sin(x)
        )
    op = test_an_op_without_a_gradient_rule_says_so.op  # type: ignore[attr-defined]
    with pytest.raises(NotDifferentiableError, match=name):
        push(op, A, V)
    np.testing.assert_allclose(push(lambda x: op(x.detach()) * x, A, V), np.sin(A) * V)


# --- Kinds of numbers -----------------------------------------------------------------------------

Z = np.array([0.5 + 1j, -1.5 + 0.25j, 2 - 0.75j])
DZ = np.array([1 - 2j, 0.5 + 0.5j, -1j])


@pytest.mark.parametrize(
    "function",
    [
        lambda z: z * z,
        lambda z: 1 / z,
        flow.exp,
        flow.sin,
        flow.tanh,
        flow.sqrt,
        flow.log,
        lambda z: z**3,
        lambda z: z.sum() * z.prod(),
        lambda z: flow.fft.fft(z),
        lambda z: flow.linalg.inv(flow.diag(z) + z[:, None] * z),
        lambda z: flow.cumprod(z, 0),
    ],
)
def test_holomorphic_functions_have_one_derivative(function: Any) -> None:
    h = 1e-6
    central = [function(flow.tensor(Z + s * h * DZ)).numpy() for s in (1, -1)]
    made = push(function, Z, DZ)
    np.testing.assert_allclose(made, (central[0] - central[1]) / (2 * h), atol=1e-6, rtol=1e-7)
    np.testing.assert_allclose(push(function, Z, 1j * DZ), 1j * made, atol=1e-12)


@pytest.mark.parametrize(
    "function",
    [
        flow.abs,
        flow.angle,
        flow.conj,
        lambda z: z * z.conj(),
        lambda z: z.real * z.imag,
        lambda z: flow.view_as_real(z),
        lambda z: flow.polar(z.real, z.imag),
        lambda z: flow.complex(z.imag, z.real) * z,
        lambda z: z.sgn(),
        lambda z: flow.linalg.norm(z),
        lambda z: flow.linalg.svdvals(flow.diag(z) + 1),
        lambda z: flow.fft.irfft(z),
    ],
)
def test_other_complex_functions_have_a_derivative_along_each_direction(function: Any) -> None:
    h = 1e-6
    for direction in (DZ, 1j * DZ):
        central = [function(flow.tensor(Z + s * h * direction)).numpy() for s in (1, -1)]
        made = push(function, Z, direction)
        assert made.dtype == central[0].dtype
        np.testing.assert_allclose(made, (central[0] - central[1]) / (2 * h), atol=1e-6)


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16", "complex64"])
@pytest.mark.parametrize(
    "function",
    [
        lambda x: x * x + 2,
        flow.tanh,
        lambda x: (x[:, None] * x).sum(0),
        lambda x: (x[:, None] * x) @ x,
        lambda x: flow.exp(x).mean(),
        lambda x: flow.stack([x, x * 2]).cumsum(0),
    ],
)
def test_tangents_have_the_dtype_of_values(dtype: str, function: Any) -> None:
    kind = getattr(flow, dtype)
    wide = flow.complex128 if dtype == "complex64" else flow.float64
    x, v = flow.tensor([0.5, -0.25, 0.75]), flow.tensor([1.0, 0.5, -2.0])
    value, tangent = flow.func.jvp(function, (x.to(kind),), (v.to(kind),))
    assert value.dtype == tangent.dtype == kind
    _, exact = flow.func.jvp(function, (x.to(wide),), (v.to(wide),))
    tolerance = {"float16": 5e-3, "bfloat16": 4e-2}.get(dtype, 1e-5)
    np.testing.assert_allclose(
        tangent.to(wide).numpy(), exact.numpy(), rtol=tolerance, atol=tolerance
    )


def test_a_cast_takes_the_tangent_along() -> None:
    made = flow.func.jvp(lambda x: x.to(flow.float32) * 2, (flow.tensor(A),), (flow.tensor(V),))[1]
    assert made.dtype == flow.float32
    np.testing.assert_array_equal(made.numpy(), V * 2)


# --- jvp of jvp -----------------------------------------------------------------------------------

M = np.array([[1.5, 0.25, -0.5], [0.125, 2.0, 0.75], [-0.25, 0.5, 1.75]])
S = np.array([0.6, -0.4, 1.1])
T = np.array([0.3, 1.2, -0.8])
TWICE: dict[str, Callable[[flow.Tensor], flow.Tensor]] = {
    "exp": flow.exp,
    "tanh": flow.tanh,
    "power": lambda x: (x * x + 1) ** 1.5,
    "quotient": lambda x: x / (1 + x * x),
    "logsumexp": lambda x: flow.logsumexp(x, 0),
    "softmax": lambda x: x.softmax(0),
    "log_softmax": lambda x: x.log_softmax(0),
    "norm": flow.linalg.norm,
    "prod": flow.prod,
    "cumprod": lambda x: flow.cumprod(x, 0),
    "matmul": lambda x: flow.outer(x, x) @ flow.sin(x),
    "inverse": lambda x: flow.linalg.inv(flow.tensor(M) + flow.outer(x, x)),
    "solve": lambda x: flow.linalg.solve(flow.tensor(M) + flow.diag(x), x),
    "slogdet": lambda x: flow.linalg.slogdet(flow.tensor(M) + flow.outer(x, x))[1],
    "cholesky": lambda x: flow.linalg.cholesky(
        flow.outer(x, x) + 2 * flow.eye(3, dtype=flow.float64)
    ),
    "eigvalsh": lambda x: flow.linalg.eigvalsh(flow.tensor(M + M.T) + flow.outer(x, x)),
    "svdvals": lambda x: flow.linalg.svdvals(flow.tensor(M) + flow.outer(x, x)),
    "layer_norm": lambda x: F.layer_norm(x, (3,)),
    "gelu": F.gelu,
    "softplus": F.softplus,
    "cross_entropy": lambda x: F.cross_entropy(x[None], flow.tensor([1])),
    "conv1d": lambda x: F.conv1d(x.reshape(1, 1, 3), flow.sin(x[:2]).reshape(1, 1, 2)),
    "fft": lambda x: flow.fft.fft(x * x).abs(),
    "indexed": lambda x: x[INDEX] * x[1:] + x.sort()[0][:2] ** 2,
    "erf": lambda x: flow.erf(x) * flow.lgamma(x + 3),
    "gradient": lambda x: flow.func.grad(lambda x: (x.sin() * x).prod())(x),
    "written": lambda x: WRITES["seen by a view"](flow.cat([x, x[:1]]).sin(), x.prod() * x[:1]),
}


@pytest.mark.parametrize("name", TWICE)
def test_jvp_of_jvp_is_the_second_difference(name: str) -> None:
    function = TWICE[name]

    def slope(x: flow.Tensor) -> flow.Tensor:
        return flow.func.jvp(function, (x,), (flow.tensor(T),))[1]

    second = push(slope, S, T)
    h = 1e-4
    f = [function(flow.tensor(S + k * h * T)).numpy() for k in (-2, -1, 0, 1, 2)]
    differences = (-f[0] + 16 * f[1] - 30 * f[2] + 16 * f[3] - f[4]) / (12 * h * h)
    np.testing.assert_allclose(second, differences, rtol=1e-5, atol=1e-5)
    # and another direction for the outer one, by a difference of slopes
    other = np.array([1.0, -0.5, 0.25])
    mixed = push(slope, S, other)
    h = 1e-5
    slopes = [slope(flow.tensor(S + s * h * other)).numpy() for s in (1, -1)]
    np.testing.assert_allclose(mixed, (slopes[0] - slopes[1]) / (2 * h), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("dim", [0, 1, (0, 1)])
@pytest.mark.parametrize("kind", [np.float64, np.complex128])
def test_series_of_reductions_along_a_dimension(dim: Any, kind: Any) -> None:
    x = flow.tensor(np.arange(1, 7).reshape(2, 3).astype(kind) * (1 + (kind is np.complex128) * 1j))
    v = flow.tensor(np.cos(np.arange(6)).reshape(2, 3).astype(kind))
    for function in (flow.linalg.vector_norm, flow.std, flow.var):
        call = lambda x: function(x, dim=dim)  # noqa: E731
        second = flow.func.jvp(lambda x: flow.func.jvp(call, (x,), (v,))[1], (x,), (v,))[1]
        series = flow.func.jet(call, (x,), ((v, v * 0),))[1]
        np.testing.assert_allclose(series[1].numpy(), second.numpy(), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("name", TWICE)
def test_jvp_of_a_gradient_and_gradient_of_a_jvp_agree(name: str) -> None:
    def total(x: flow.Tensor) -> flow.Tensor:
        return TWICE[name](x).square().sum()

    forward = push(flow.func.grad(total), S, T)
    backward = flow.func.grad(lambda x: flow.func.jvp(total, (x,), (flow.tensor(T),))[1])(
        flow.tensor(S)
    )
    assert_close(forward, backward.numpy(), name, 100)
