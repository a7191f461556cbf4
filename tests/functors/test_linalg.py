"""Dense linear algebra: what the samples of the declarations do not show."""

from __future__ import annotations

import itertools
from unittest import mock

import numpy as np
import pytest

import oneflow_lite as flow
from oneflow_lite.errors import ArgumentError, DTypeError, LinAlgError, NotDifferentiableError
from oneflow_lite.interpreter.dispatch import dispatch
from oneflow_lite.kernels import lapack
from oneflow_lite.kernels.linalg import linalg_solve_triangular
from oneflow_lite.ops.op_expr import op_expr
from oneflow_lite.ops.registry import FUNCTORS
from oneflow_lite.testing import Fixed, Sample, check_op
from tests.functors.declared import Call, calls
from tests.functors.meant import meant

FAMILIES = ("matmul", "einsum", "decompositions", "linalg", "distances")
CALLS = [call for call in calls() if call.declaration.family in FAMILIES]


def array(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape)


def matrix(*shape: int, seed: int = 0) -> np.ndarray:
    return array(*shape, shape[-1], seed=seed) + 3 * np.eye(shape[-1])


SINGULAR = np.array([[1.0, 2.0], [2.0, 4.0]])
RANK_ONE = np.outer([1.0, 2.0, -1.0], [2.0, 1.0, 1.0])


def results(call: Call, device: str) -> list[np.ndarray]:
    """Return what a call gives on a device, and the gradients of the sum of its squares."""
    leaves = [flow.tensor(a, device=device).requires_grad_() for a in call.arrays]
    given = iter(leaves)
    args, kwargs = call._map(lambda a: next(given), lambda a: flow.tensor(a, device=device))
    name = call.declaration.name
    made = meant(name, FUNCTORS.get(name))(*args, **kwargs)
    tensors = list(made) if isinstance(made, (tuple, list)) else [made]
    assert all(y.device.type == device for y in tensors)
    joined = [y for y in tensors if y.requires_grad]
    if joined:
        total = sum(y.abs().square().sum() for y in joined)
        grads = flow.autograd.grad(total, leaves, create_graph=True, allow_unused=True)
        tensors += [g for g in grads if g is not None]
    return [y.detach().cpu().numpy() for y in tensors]


@pytest.mark.parametrize("call", CALLS, ids=str)
def test_cuda_gives_what_the_cpu_gives(call):
    flow.manual_seed(0)
    expected = results(call, "cpu")
    for device in _cuda():
        got = results(call, device)
        for x, y in zip(got, expected, strict=True):
            assert (x.shape, x.dtype) == (y.shape, y.dtype)
            if "lowrank" not in call.declaration.name:  # random
                np.testing.assert_allclose(x, y, rtol=1e-6, atol=1e-8)


def _cuda():
    from tests import strict_cupy
    from tests.conftest import REAL_CARD

    if REAL_CARD:
        yield "cuda"
    else:
        with strict_cupy.installed():
            yield "cuda"


INNER = {
    "cofactor": [Sample(matrix(3)), Sample(matrix(2, 2)), Sample(array(1, 1))],
    "cofactor_grad": [Sample(array(3, 3), matrix(3)), Sample(array(2, 2, 2), matrix(2, 2))],
    "pinv": [Sample(array(3, 2), None, None, hermitian=False)],
    "upper_pairs_grad": [Sample(array(3), n=3)],
    "free_of_phase": [Sample(array(2, 2), Fixed(np.zeros(2)), of="svd")],
    "over_gaps": [
        Sample(array(2, 2), matrix(2), Fixed(np.eye(2)), None),
        Sample(array(2, 3, 2), array(2, 1, 2), Fixed(np.ones((4, 2))), Fixed(np.ones((3, 2)))),
    ],
}


@pytest.mark.parametrize("op", INNER)
def test_inner_op(op, device):
    check_op(op, INNER[op], device=device, degenerate=False)


# --- Determinants of singular matrices ----------------------------------------------------------


@pytest.mark.parametrize(
    "x", [SINGULAR, RANK_ONE, np.zeros((2, 2)), np.zeros((3, 3)), 1j * RANK_ONE]
)
def test_determinants_of_singular_matrices_have_derivatives(x):
    check_op("det", [Sample(x)], degenerate=False)
    check_op("cofactor", [Sample(x)], degenerate=False, second_order=False)


def test_a_batch_may_hold_singular_matrices():
    x = np.stack([SINGULAR, matrix(2)])
    check_op("det", [Sample(x)], degenerate=False)


def test_the_third_derivative_of_a_determinant_raises_where_it_is_not_known():
    x = flow.tensor(SINGULAR, requires_grad=True)
    (first,) = flow.autograd.grad(flow.det(x), x, create_graph=True)
    (second,) = flow.autograd.grad(first.square().sum(), x, create_graph=True)
    with pytest.raises(LinAlgError, match="singular"):
        second.sum().backward()


def test_the_logarithm_of_a_negative_determinant_is_nan():
    assert np.isnan(flow.logdet(flow.tensor([[1.0, 0.0], [0.0, -1.0]])).item())


# --- What does not exist ------------------------------------------------------------------------


def test_gradients_that_do_not_exist_raise():
    x = flow.tensor(array(3, 2), requires_grad=True)
    for mode, text in (("complete", "arbitrary"), ("r", "does not compute")):
        with pytest.raises(NotDifferentiableError, match=text):
            flow.linalg.qr(x, mode).R.sum().backward()
    with pytest.raises(NotDifferentiableError, match="geqrf"):
        flow.geqrf(x).tau.sum().backward()
    with pytest.raises(NotDifferentiableError, match="linalg_ldl_factor"):
        flow.linalg.ldl_factor(x @ x.mT + flow.eye(3).double()).LD.sum().backward()
    assert not flow.linalg.lstsq(x, x, driver="gelsd").singular_values.requires_grad


@pytest.mark.parametrize("name", ["svd", "eigh", "eig"])
def test_a_loss_that_depends_on_a_phase_raises(name):
    x = matrix(3) + 1j * matrix(3, seed=1)
    x = flow.tensor(x + x.conj().T if name == "eigh" else x, requires_grad=True)
    vectors = getattr(flow.linalg, name)(x)[0 if name == "svd" else 1]
    with pytest.raises(NotDifferentiableError, match=rf"linalg\.{name}: .*phase"):
        vectors.imag.sum().backward()


def test_of_a_whole_basis_what_is_not_arbitrary_has_a_gradient():
    """PyTorch ignores the columns that complete U; their projector depends on the matrix."""

    def projector(x):
        u = flow.linalg.svd(x).U[..., 2:]
        return u @ u.mT

    check_op(projector, [Sample(array(4, 2))], degenerate=False)


# --- Vectors of repeated values -----------------------------------------------------------------


def projector(x, weight):
    """A function of the space of some columns, whatever their signs and phases."""
    return ((x @ x.mH) * weight).real.sum()


def top(name, **options):
    """Return a function of a matrix and weights that depends on vectors of its largest value."""

    def f(x, weight):
        if name == "eigh":
            return projector(flow.linalg.eigh((x + x.mH) / 2).eigenvectors[..., -1:], weight)
        if name == "eig":
            w, v = flow.linalg.eig(x)
            chosen = w.detach().abs().argmax(-1)[..., None, None].expand(*x.shape[:-1], 1)
            return projector(v.gather(-1, chosen), weight)
        u, _, vh = flow.linalg.svd(x, **options)
        if name == "u":
            return projector(u[..., :1], weight)
        return ((u[..., :1] @ vh[..., :1, :]) * weight).real.sum()

    return f


def repeated(values, shape, kind):
    """Matrices of these singular values: one is diagonal, one turned, one has no equal values."""
    rows, columns = shape
    x = np.zeros((3, *shape), kind)
    x[0, range(len(values)), range(len(values))] = values
    turn = np.kron(np.eye(2), np.array([[0.0, -1.0], [1.0, 0.0]]))  # keeps equal values equal
    x[1] = turn[:rows, :rows] @ x[0] @ turn[:columns, :columns].T if max(shape) <= 4 else x[0]
    x[2] = x[0] + 0.1 * array(*shape)
    return x


@pytest.mark.parametrize("kind", [float, complex])
@pytest.mark.parametrize("name", ["eigh", "eig"])
def test_an_eigenvector_has_a_gradient_where_other_values_are_equal(name, kind, device):
    x = repeated([3.0, 1.0, 1.0, 1.0], (4, 4), kind)
    x = x + np.swapaxes(x.conj(), -1, -2) if name == "eigh" else x
    samples = [Sample(x, Fixed(matrix(4).astype(kind)))]
    check_op(top(name), samples, degenerate=False, second_order=False, device=device)


@pytest.mark.parametrize("full", [False, True])
@pytest.mark.parametrize("kind", [float, complex])
@pytest.mark.parametrize("values", [(3.0, 1.0, 1.0), (3.0, 1.0, 0.0), (3.0, 0.0, 0.0)], ids=str)
@pytest.mark.parametrize("shape", [(3, 3), (4, 3), (3, 5)])
def test_singular_vectors_have_a_gradient_where_other_values_are_equal(shape, values, kind, full):
    x = repeated(values, shape, kind)
    for name, size in (("u", (shape[0], shape[0])), ("both", shape)):
        samples = [Sample(x, Fixed(array(*size, seed=1).astype(kind)))]
        f = top(name, full_matrices=full)
        check_op(f, samples, degenerate=False, second_order=False)


I3, HOLLOW = np.eye(3), 1 - np.eye(3)
# Where the loss uses a vector of a repeated value, or the values as well, the gradients by vectors
# and values do not determine the gradient: they are the same for functions whose gradients differ.
UNKNOWN = {
    "depends on a turn": lambda x: flow.linalg.eigh(x)[1][0, 1],
    "happens not to change with a turn": lambda x: flow.linalg.eigh(x)[1][0, 0],
    "matrix function": lambda x: _matrix_function(x, *flow.linalg.eigh(x)),
    "its values from elsewhere": lambda x: _matrix_function(
        x, flow.linalg.eigvalsh(x), flow.linalg.eigh(x)[1]
    ),
    "logarithm": lambda x: (lambda w, v: ((v * w.log()) @ v.mT * flow.tensor(HOLLOW)).sum())(
        *flow.linalg.eigh(x)
    ),
    "product": lambda x: (lambda u, s, vh: ((u * s) @ vh).norm())(*flow.linalg.svd(x)),
    "polar factor": lambda x: (lambda u, s, vh: (u @ vh).sum())(*flow.linalg.svd(x)),
    "eig": lambda x: flow.linalg.eig(x)[1][:, 0].abs().sum(),
}


def _matrix_function(x, w, v):
    return ((v * w) @ v.mT * flow.tensor(matrix(3))).sum()


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("name", UNKNOWN)
def test_a_gradient_that_is_not_determined_is_not_finite(name):
    x = flow.tensor(I3, requires_grad=True)
    UNKNOWN[name](x).backward()
    assert not bool(x.grad.isfinite().all())


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize(
    "loss",
    [
        lambda x: (flow.linalg.eigvalsh(x) - 1).square().sum(),
        lambda x: (flow.linalg.svdvals(x) - 1).square().sum(),
        lambda x: (flow.linalg.eigvals(x) - 1).abs().square().sum(),
        lambda x: top("eigh")(x * flow.tensor([1.0, 1.0, 2.0]), flow.tensor(matrix(3))),
    ],
)
def test_second_derivatives_at_equal_values_are_not_finite(loss):
    """They exist, but the rule of the first one does not know the change of the gradient by values.

    Here that gradient is 0, as it is where the vectors are not used at all.
    """
    x = flow.tensor(I3, requires_grad=True)
    (first,) = flow.autograd.grad(loss(x), x, create_graph=True)
    assert bool(first.isfinite().all())
    (second,) = flow.autograd.grad((first * flow.tensor(matrix(3))).sum(), x)
    assert not bool(second.isfinite().all())


# --- Errors and infos ---------------------------------------------------------------------------


def both(x: np.ndarray) -> flow.Tensor:
    return flow.tensor(np.stack([np.eye(2), x]))


ERRORS = [
    (lambda: flow.linalg.inv(both(SINGULAR)), LinAlgError, r"linalg.inv\(\).*element 2.*batch.* 1"),
    (lambda: flow.linalg.inv(flow.tensor(SINGULAR)), LinAlgError, "a singular one: element 2"),
    (lambda: flow.linalg.solve(both(SINGULAR), flow.ones(2, 1).double()), LinAlgError, "singular"),
    (lambda: flow.linalg.cholesky(both(-np.eye(2))), LinAlgError, "minor of order 1.*element 1"),
    (lambda: flow.linalg.cholesky_ex(both(-np.eye(2)), check_errors=True), LinAlgError, "minor"),
    (lambda: flow.linalg.lu_factor(flow.tensor(SINGULAR)), LinAlgError, "element 2 on the diag"),
    (lambda: flow.linalg.ldl_factor(flow.zeros(2, 2)), LinAlgError, "element 1 on the diagonal"),
    (lambda: flow.linalg.svd(flow.full((2, 2), np.nan)), LinAlgError, "linalg.svd.*inf and nan"),
    (lambda: flow.linalg.eig(flow.full((2, 2), np.nan)), LinAlgError, "linalg.eig.*inf and nan"),
    (lambda: flow.linalg.inv(flow.ones(2, 3)), RuntimeError, "'A': expected a square matrix"),
    (lambda: flow.linalg.inv(flow.ones(2)), RuntimeError, "'A': expected a matrix"),
    (lambda: flow.linalg.det(flow.ones(2, 2).half()), RuntimeError, "det.*float16"),
    (lambda: flow.linalg.svd(flow.ones(2, 2).long()), RuntimeError, "svd.*int64"),
    (lambda: flow.linalg.solve(flow.eye(2), flow.ones(3, 1)), RuntimeError, "'B': expected 2 rows"),
    (lambda: flow.linalg.solve(flow.eye(2), flow.ones(2), left=False), RuntimeError, "unless"),
    (lambda: flow.linalg.solve(flow.eye(2), flow.ones(2, 1).double()), RuntimeError, "dtype"),
    (lambda: flow.linalg.lu(flow.eye(2), pivot=False), RuntimeError, "'pivot'"),
    (lambda: flow.linalg.svd(flow.eye(2), driver="gesvd"), RuntimeError, "'driver'"),
    (lambda: flow.linalg.qr(flow.eye(2), "raw"), RuntimeError, "'mode'"),
    (lambda: flow.linalg.eigh(flow.eye(2), "X"), RuntimeError, "'UPLO'"),
    (lambda: flow.linalg.norm(flow.ones(2, 2, 2), 2), RuntimeError, "'dim'"),
    (lambda: flow.linalg.norm(flow.ones(2), "fro"), RuntimeError, "'ord'"),
    (lambda: flow.linalg.matrix_norm(flow.ones(2, 2), 3), RuntimeError, "'ord'"),
    (lambda: flow.linalg.matrix_norm(flow.ones(2, 2), dim=1), RuntimeError, "'dim'"),
    (lambda: flow.linalg.multi_dot([flow.ones(2, 3), flow.ones(2, 3)]), RuntimeError, "rows"),
    (lambda: flow.linalg.tensorinv(flow.ones(2, 3), 1), RuntimeError, "'input'"),
    (lambda: flow.linalg.tensorsolve(flow.ones(2, 3), flow.ones(2)), RuntimeError, "'input'"),
    (lambda: flow.linalg.cross(flow.ones(2), flow.ones(2)), RuntimeError, "size 3"),
    (lambda: flow.linalg.householder_product(flow.ones(2, 2), flow.ones(3)), RuntimeError, "'tau'"),
    (lambda: flow.linalg.matrix_power(flow.ones(2, 2), -1), LinAlgError, "singular"),
    (lambda: flow.cdist(flow.ones(2, 2), flow.ones(2, 3)), RuntimeError, "'x2'"),
    (lambda: flow.cdist(flow.ones(2, 2), flow.ones(2, 2), -1), RuntimeError, "'p'"),
    (lambda: flow.pdist(flow.ones(2)), RuntimeError, "2 dimensions"),
    (lambda: flow.cov(flow.ones(2, 3), fweights=flow.ones(3)), RuntimeError, "'fweights'"),
    (lambda: flow.cov(flow.ones(2, 3), aweights=flow.ones(2)), RuntimeError, "'aweights'"),
    (lambda: flow.renorm(flow.ones(2, 3), 0, 0, 1.0), RuntimeError, "'p'"),
    (lambda: flow.pca_lowrank(flow.ones(2, 3), 3), RuntimeError, "'q'"),
    (lambda: flow.inner(flow.ones(2, 3), flow.ones(2)), RuntimeError, "last size of 3"),
]


@pytest.mark.parametrize("number", range(len(ERRORS)))
def test_bad_arguments(number):
    call, kind, text = ERRORS[number]
    with pytest.raises(kind, match=text) as caught:
        call()
    assert isinstance(caught.value, flow.errors.FlowError)


def test_infos_name_the_matrices_that_fail(device):
    x = both(SINGULAR).to(device)
    inverse, info = flow.linalg.inv_ex(x)
    assert info.tolist() == [0, 2] and info.dtype == flow.int32
    assert inverse[0].tolist() == np.eye(2).tolist() and bool(inverse[1].isnan().all())
    result, info = flow.linalg.solve_ex(x, flow.ones(3, 1, 2, 1, device=device).double())
    assert info.tolist() == [0, 2] and result.shape == (3, 2, 2, 1)
    assert flow.linalg.lu_factor_ex(x).info.tolist() == [0, 2]
    assert flow.linalg.cholesky_ex(both(np.diag([1.0, -1.0])).to(device)).info.tolist() == [0, 2]
    assert flow.linalg.cond(x, 1).tolist() == [1.0, np.inf]


# --- Ways through the kernels -------------------------------------------------------------------


@pytest.mark.parametrize("n,batch", [(3, ()), (3, (7,)), (20, (5,)), (40, ())])
@pytest.mark.parametrize("upper,left,unit", itertools.product((False, True), repeat=3))
def test_triangular_solves_read_one_triangle(n, batch, upper, left, unit, device):
    a, b = matrix(*batch, n), array(*batch, n, 2, seed=1)
    kept = np.triu(np.ones((n, n)), int(unit)) if upper else np.tril(np.ones((n, n)), -int(unit))
    hidden = np.where(kept > 0, a / n, np.nan)
    a = np.where(kept > 0, a / n, unit * np.eye(n))
    b = b if left else np.swapaxes(b, -1, -2)
    expected = np.linalg.solve(a, b) if left else b @ np.linalg.inv(a)
    for order in "CF":
        x = flow.linalg.solve_triangular(
            flow.tensor(hidden.copy(order), device=device),
            flow.tensor(b, device=device),
            upper=upper,
            left=left,
            unitriangular=unit,
        )
        np.testing.assert_allclose(x.cpu().numpy(), expected, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("own", [True, False])
@pytest.mark.parametrize("char", "fdFD")
def test_triangles_are_solved_where_they_lie(own, char, monkeypatch):
    if not own:  # a NumPy without an OpenBLAS of its own
        monkeypatch.setattr(lapack, "_own", lambda name, char: None)
    wide = array(5, 8).astype(char)
    if char in "FD":
        wide += 1j * array(5, 8, seed=1).astype(char)
    wide[:, 1:6] += 4 * np.eye(5, dtype=char)
    part, right = wide[:, 1:6], array(5, 3, seed=2).astype(char)
    for a in (part, part.T, part[::-1, ::-1], np.broadcast_to(part[:1, :1], (1, 1))):
        b = right[: len(a)]
        y = linalg_solve_triangular(np, a, b, upper=True)
        np.testing.assert_allclose(np.triu(a) @ y, b, rtol=1e-5, atol=1e-5)
    assert linalg_solve_triangular(np, part, right[:, :0], upper=True).shape == (5, 0)


@pytest.mark.parametrize("char", "fdFD")
def test_inverses_of_many_rows_are_taken_in_blocks(char):
    a = (matrix(2, 70) + (0.1j * array(2, 70, 70, seed=1) if char in "FD" else 0)).astype(char)
    for x in (a, a.swapaxes(1, 2), a[:, ::-1], a[0]):
        kept = x.copy()
        y = flow.linalg.inv(flow.tensor(x)).numpy()
        assert y.dtype == x.dtype and y.flags.c_contiguous
        np.testing.assert_array_equal(x, kept)
        np.testing.assert_allclose(y @ x, np.eye(70) + 0 * x, atol=1e-3 if char in "fF" else 1e-9)
    a[1, 3] = 0
    result, info = flow.linalg.inv_ex(flow.tensor(a.swapaxes(1, 2)))
    assert info.tolist() == [0, 4]
    assert np.isfinite(result[0].numpy()).all() and np.isnan(result[1].numpy()).all()
    with pytest.raises(LinAlgError, match="batch element 1"):
        flow.linalg.inv(flow.tensor(a))


_FACTORING = ("cholesky", "inv", "solve", "slogdet", "det")


def test_a_likelihood_by_a_cholesky_factor_factors_once(monkeypatch):
    routines = {name: mock.Mock(wraps=getattr(np.linalg, name)) for name in _FACTORING}
    for name, routine in routines.items():
        monkeypatch.setattr(np.linalg, name, routine)
    y, spread = flow.tensor(array(20, 1)), flow.tensor(matrix(20) @ matrix(20).T)
    k = spread.clone().requires_grad_()
    half = flow.linalg.cholesky(k)
    fit = (y * flow.cholesky_solve(y, half)).sum() * 0.5 + half.diagonal().log().sum()
    (by_factor,) = flow.autograd.grad(fit, k)
    assert [routine.call_count for routine in routines.values()] == [1, 0, 0, 0, 0]
    normal = flow.distributions.MultivariateNormal(flow.zeros(20).double(), k, validate_args=False)
    (of_density,) = flow.autograd.grad(-normal.log_prob(y[:, 0]), k)
    assert [routine.call_count for routine in routines.values()] == [2, 0, 0, 0, 0]
    plain = (y * flow.linalg.solve(k, y)).sum() * 0.5 + 0.5 * flow.logdet(k)
    (expected,) = flow.autograd.grad(plain, k)
    for gradient in (by_factor, of_density):
        np.testing.assert_allclose(gradient.numpy(), expected.numpy(), rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("batch", [(), (3,)])
def test_a_zero_on_the_diagonal_of_a_triangle_gives_inf(batch):
    a, b = flow.zeros(*batch, 2, 2) + flow.tensor([[1.0, 1.0], [0.0, 0.0]]), flow.ones(*batch, 2, 1)
    x = flow.linalg.solve_triangular(a, b, upper=True)
    assert bool((x[..., 1, 0] == np.inf).all())


@pytest.mark.parametrize("shape", [(4, 4), (3, 2, 5), (5, 3), (2, 0, 0), (0, 3, 2)])
def test_factors_multiply_to_the_matrix(shape, device):
    x = flow.tensor(array(*shape) + 1j * array(*shape, seed=1), device=device)

    def close(y):
        np.testing.assert_allclose(y.cpu().numpy(), x.cpu().numpy(), atol=1e-12)

    P, L, U = flow.linalg.lu(x)
    close(P @ L @ U)
    for name in ("P", "L", "U"):
        packed = flow.lu_unpack(*flow.linalg.lu_factor_ex(x)[:2])
        assert getattr(packed, name).equal(getattr(flow.linalg.lu(x), name))
    for mode in ("reduced", "complete"):
        close(flow.linalg.qr(x, mode).Q @ flow.linalg.qr(x, mode).R)
    U, S, Vh = flow.linalg.svd(x, full_matrices=False)
    close(U * S.unsqueeze(-2) @ Vh)
    if shape[-2] >= shape[-1]:
        a, tau = flow.geqrf(x)
        close(flow.linalg.householder_product(a, tau) @ flow.triu(a)[..., : shape[-1], :])
        close(flow.ormqr(a, tau, flow.triu(a)))


def test_pivots_are_those_of_pytorch():
    torch = pytest.importorskip("torch")
    x = array(3, 6, 4)
    ours, theirs = flow.linalg.lu_factor(flow.tensor(x)), torch.linalg.lu_factor(torch.tensor(x))
    assert ours.pivots.tolist() == theirs.pivots.tolist()
    np.testing.assert_allclose(ours.LU.numpy(), theirs.LU.numpy(), rtol=1e-10)


@pytest.mark.parametrize("size", [0.0, 1e-3, 1.0, 40.0])
def test_exponentials_of_all_norms(size, device):
    scipy_linalg = pytest.importorskip("scipy.linalg")
    x = size * np.stack([array(4, 4) / 4, array(4, 4, seed=1)])
    expected = scipy_linalg.expm(x)
    y = flow.linalg.matrix_exp(flow.tensor(x, device=device)).cpu().numpy()
    np.testing.assert_allclose(y, expected, rtol=1e-9, atol=1e-10 * abs(expected).max())
    single = flow.linalg.matrix_exp(flow.tensor(x, dtype=flow.float32, device=device))
    assert single.dtype == flow.float32
    assert not flow.linalg.matrix_exp(flow.tensor([[np.inf]])).isfinite().any()


def test_distances_of_many_rows_are_computed_by_a_product():
    torch = pytest.importorskip("torch")
    from tests.functors.agreement import compare

    compare(flow.cdist, torch.cdist, array(30, 2), array(4, 2, seed=1), rtol=1e-6)
    x = flow.tensor(array(30, 2))
    assert flow.cdist(x, x, compute_mode="donot_use_mm_for_euclid_dist").diagonal().abs().max() == 0


@pytest.mark.parametrize("p", [0.5, 1.0, 1.5, 2.0, 3.0, np.inf])
def test_gradients_of_distances_between_equal_rows(p):
    torch = pytest.importorskip("torch")
    from tests.functors.agreement import compare

    x = array(3, 3)
    y = np.concatenate([x[:1], x[1:2] + [0, 1, 0]])
    compare(lambda x, y: flow.cdist(x, y, p), lambda x, y: torch.cdist(x, y, p), x, y, orders=1)


@pytest.mark.parametrize(
    "distances",
    [
        lambda x: flow.cdist(x, x),
        lambda x: flow.cdist(x, x, 3.0),
        lambda x: flow.linalg.norm(x.unsqueeze(-2) - x.unsqueeze(-3), dim=-1),
    ],
)
def test_distances_of_rows_to_themselves_count_for_nothing(distances):
    x = flow.tensor(array(4, 3), requires_grad=True)
    energy = lambda x: (distances(x) * 2).tanh().sum()  # noqa: E731
    assert flow.autograd.gradcheck(energy, [x])
    assert flow.autograd.gradgradcheck(energy, [x])


def test_the_rank_and_the_residuals_of_least_squares():
    a, b = flow.tensor(RANK_ONE), flow.tensor(array(3, 2))
    for driver, rank, values in (("gels", 0, 0), ("gelsy", 1, 0), ("gelsd", 1, 3), ("gelss", 1, 3)):
        left = flow.tensor(matrix(3)) if driver == "gels" else a  # it needs the full rank
        solved = flow.linalg.lstsq(left, b, driver=driver)
        assert solved.rank.numel() == min(rank, 1) and solved.singular_values.numel() == values
    tall = flow.linalg.lstsq(flow.tensor(array(4, 2)), flow.tensor(array(4, 2)), driver="gelsd")
    assert tall.residuals.shape == (2,)
    deficient = flow.linalg.lstsq(flow.ones(4, 2), flow.ones(4, 1), driver="gelsd")
    assert deficient.residuals.shape == (0,) and deficient.rank.item() == 1
    assert flow.linalg.lstsq(a, b[:, 0]).solution.shape == (3,)


def test_ranks():
    assert flow.linalg.matrix_rank(flow.tensor(RANK_ONE)).item() == 1
    x = flow.tensor(np.stack([np.diag([4.0, 1.0]), np.diag([4.0, 3.0])]))
    assert flow.linalg.matrix_rank(x, flow.tensor([2.0, 2.0])).tolist() == [1, 2]
    assert flow.linalg.matrix_rank(x, rtol=0.5, hermitian=True).tolist() == [1, 2]
    assert flow.linalg.matrix_rank(x, atol=5.0).tolist() == [0, 0]


def test_a_power_is_a_new_tensor():
    x = flow.eye(2)
    for n in (0, 1, 2, 5):
        y = flow.linalg.matrix_power(x, n)
        assert y is not x and not y.is_view() and y.tolist() == x.tolist()
        assert not np.shares_memory(y.numpy(), x.numpy())


def test_ldl_solve_refuses_pivots_that_are_none():
    x = flow.eye(2)
    for pivots in ([0, 1], [1, 3], [1, -2], [-1, 2]):
        with pytest.raises(ArgumentError, match=r"linalg\.ldl_solve.*pivots.*those of linalg"):
            flow.linalg.ldl_solve(x, flow.tensor(pivots, dtype=flow.int32), x)
    for dtype in (flow.complex64, flow.float32, flow.bool):  # 1j was 0 for LAPACK
        with pytest.raises(DTypeError, match=r"linalg\.ldl_solve.*pivots.*an integer dtype"):
            flow.linalg.ldl_solve(x, flow.tensor([1j, 2.0]).to(dtype), x)


@pytest.mark.parametrize("largest", [True, False])
@pytest.mark.parametrize("b", [False, True])
@pytest.mark.parametrize("batch", [(), (2,)])
def test_few_eigenvalues_by_lobpcg(largest, b, batch):
    torch = pytest.importorskip("torch")
    m, k = 12, 2
    A = array(*batch, m, m) + 4 * np.diag(np.arange(m))
    A = A + A.swapaxes(-1, -2)
    B = matrix(*batch, m)
    B = B @ B.swapaxes(-1, -2)
    found = []
    for lib in (flow, torch):
        leaf = lib.tensor(A, requires_grad=True)
        words = {"B": lib.tensor(B) if b else None, "X": lib.tensor(array(*batch, m, k, seed=1))}
        w, v = lib.lobpcg(leaf, **words, largest=largest, tol=1e-10)
        found.append([w.detach().numpy(), abs(v.detach().numpy())])
        if not b:  # PyTorch has no gradient beside another matrix
            (w.sum() + (v**4 * lib.arange(m).unsqueeze(-1)).sum()).backward()
            found[-1].append(leaf.grad.numpy())
    for mine, theirs in zip(*found, strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-6, atol=1e-7)


def test_lobpcg_has_gradients_of_both_matrices_and_of_second_order():
    def pairs(a, b):
        a, b = (x + x.T for x in (a, b))
        w, v = flow.lobpcg(a, B=b, X=flow.tensor(array(6, 2, seed=3)), tol=1e-14, niter=200)
        return w, v**2

    spread = np.diag(2.0 * np.arange(6) + 4)
    leaves = [flow.tensor(x, requires_grad=True) for x in (array(6, 6) + spread, np.eye(6) * 2)]
    assert flow.autograd.gradcheck(pairs, leaves)
    assert flow.autograd.gradgradcheck(lambda a: pairs(a, leaves[1].detach()), leaves[:1])


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: flow.lobpcg(flow.eye(3), k=2), ValueError, "3 times"),
        (lambda: flow.lobpcg(flow.eye(9), k=2, X=flow.ones(9, 1)), ValueError, "2 columns"),
        (lambda: flow.lobpcg(flow.eye(9) + 0j), RuntimeError, "'A'"),
        (lambda: flow.lobpcg(flow.eye(9), B=flow.eye(8)), RuntimeError, "'B'"),
        (lambda: flow.lobpcg(flow.eye(9), tracker=print), ValueError, "'tracker'"),
    ],
)
def test_what_lobpcg_refuses(call, error, text):
    with pytest.raises(error, match=text):
        call()


def counted(monkeypatch):
    """Count how often LAPACK takes a matrix apart."""
    if lapack._own("getrf", "d") is None:
        pytest.skip("NumPy has another LAPACK")
    calls, own = [], lapack._own

    def watched(name, char):
        routine = own(name, char)
        if name != "getrf":
            return routine
        return lambda *given: (calls.append(char), routine(*given))[1]

    monkeypatch.setattr(lapack, "_own", watched)
    lapack._last.made = ()
    return calls


def likelihood(k, y):
    half = flow.linalg.solve(k, y)
    return 0.5 * (y * half).sum() + 0.5 * flow.logdet(k) + flow.linalg.inv(k).diagonal().sum()


def test_functions_of_one_matrix_and_their_gradients_share_its_factors(monkeypatch):
    torch = pytest.importorskip("torch")
    rng = np.random.default_rng(0)
    k, y = rng.standard_normal((80, 80)) + 20 * np.eye(80), rng.standard_normal((80, 2))
    calls = counted(monkeypatch)
    compiled = flow.compile(lambda k, y: flow.autograd.grad(likelihood(k, y), (k, y)))
    mine = [flow.tensor(x, requires_grad=True) for x in (k, y)]
    found = flow.autograd.grad(likelihood(*mine), mine)
    assert calls == ["d"]
    theirs = [torch.tensor(x, requires_grad=True) for x in (k, y)]
    half = torch.linalg.solve(*theirs)
    loss = 0.5 * (theirs[1] * half).sum() + 0.5 * torch.logdet(theirs[0])
    wanted = torch.autograd.grad(loss + torch.linalg.inv(theirs[0]).diagonal().sum(), theirs)
    for a, b in zip(found, wanted, strict=True):
        np.testing.assert_allclose(a.numpy(), b.numpy(), 1e-10, 1e-12)
    other = flow.tensor(k + np.eye(80), requires_grad=True)
    for _ in range(3):
        del calls[:]
        again = compiled(other, mine[1])
        assert calls in (["d"], [])  # the last call's factors are there
    plain = flow.autograd.grad(likelihood(other, mine[1]), (other, mine[1]))
    for a, b in zip(again, plain, strict=True):
        np.testing.assert_array_equal(a.numpy(), b.numpy())


def test_a_matrix_that_was_written_has_other_factors(monkeypatch):
    calls = counted(monkeypatch)
    a, b = np.eye(70) * 2, np.ones((70, 1))
    x, y = flow.from_numpy(a), flow.from_numpy(b)
    assert flow.linalg.solve(x, y)[0].item() == 0.5
    a[3, 3] = 4  # NumPy counts no version
    assert flow.linalg.solve(x, y)[3].item() == 0.25
    assert flow.linalg.inv(x)[3, 3].item() == 0.25
    assert len(calls) == 2
    a[5, 5] = np.nan
    assert np.isnan(flow.linalg.slogdet(x)[1].item())
    with pytest.raises(LinAlgError, match="singular"):
        flow.linalg.solve(flow.zeros(70, 70, dtype=flow.float64), y)


@pytest.mark.parametrize("dtype", ["f", "d", "F", "D"])
@pytest.mark.parametrize("shape", [(70, 70), (2, 65, 65)])
def test_solutions_by_factors_agree_with_numpy(shape, dtype):
    rng = np.random.default_rng(1)
    a = rng.standard_normal(shape) + 1j * rng.standard_normal(shape) * (dtype in "FD")
    a = (a if dtype in "FD" else a.real).astype(dtype)
    b = (a[..., :3] * 2).copy()
    bound = 2e-3 if dtype in "fF" else 1e-9
    for turned in (False, True):
        given = a.swapaxes(-1, -2) if turned else a
        op = op_expr("linalg_solve_turned" if turned else "linalg_solve_ex").kernel(np)
        found, info = op(a, b, check_errors=True)
        assert found.dtype == b.dtype and found.flags.c_contiguous and not info.any()
        np.testing.assert_allclose(given @ found, b, bound, bound)
    sign, logarithm = op_expr("linalg_slogdet").kernel(np)(a)
    wanted = np.linalg.slogdet(a)
    assert sign.dtype == wanted[0].dtype and logarithm.dtype == wanted[1].dtype
    np.testing.assert_allclose(sign, wanted[0], bound, bound)
    np.testing.assert_allclose(logarithm, wanted[1], 1e-5 if dtype in "fF" else 1e-12)


def test_turned_solutions_have_derivatives_to_second_order():
    op = op_expr("linalg_solve_turned")
    inputs = [flow.tensor(np.eye(3) * 2 + np.sin(np.arange(9.0)).reshape(3, 3) / 2)]
    inputs.append(flow.tensor(np.cos(np.arange(6.0)).reshape(3, 2)))

    def run(a, b):
        return dispatch(op, (a, b), {"check_errors": True})[0]

    given = [x.requires_grad_() for x in inputs]
    np.testing.assert_allclose((given[0].mT @ run(*given)).detach().numpy(), inputs[1].detach())
    assert flow.autograd.gradcheck(run, given, check_forward_ad=True)
    assert flow.autograd.gradgradcheck(run, given)
