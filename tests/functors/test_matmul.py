"""Matrix products of all ranks: values, derivatives and errors."""

import numpy as np
import pytest

import oneflow_lite as flow
from oneflow_lite.testing import Sample, check_op


def array(*shape):
    return np.random.default_rng(len(shape) + sum(shape)).uniform(-1.0, 1.0, shape)


MATMUL = [
    ((3,), (3,)),
    ((2, 3), (3,)),
    ((3,), (3, 4)),
    ((2, 3), (3, 4)),
    ((5, 2, 3), (3,)),
    ((3,), (5, 3, 4)),
    ((5, 2, 3), (3, 4)),
    ((2, 3), (5, 3, 4)),
    ((5, 2, 3), (5, 3, 4)),
    ((1, 2, 3), (5, 3, 4)),
    ((6, 1, 2, 3), (5, 3, 4)),
    ((6, 5, 2, 3), (3, 4)),
    ((1, 3), (3, 1)),
    ((2, 0), (0, 4)),
    ((0, 3), (3, 4)),
    ((5, 2, 0), (0, 4)),
    ((0, 2, 3), (3, 4)),
    ((0, 2, 3), (0, 3, 4)),
]


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("x,y", MATMUL)
def test_matmul_agrees_with_pytorch(x, y, dtype):
    torch = pytest.importorskip("torch")
    from tests.functors.agreement import compare

    x, y = array(*x).astype(dtype), array(*y).astype(dtype)
    compare(flow.matmul, torch.matmul, x, y, orders=3)
    compare(lambda x, y: x @ y, lambda x, y: x @ y, x, y, orders=1)


SAMPLES = {
    "matmul": [
        Sample(array(2, 3), array(3, 2)),
        Sample(array(2, 2, 3), array(3, 2)),
        Sample(array(2, 3), array(2, 3, 2)),
        Sample(array(2, 1, 2, 3), array(2, 3, 2)),
        Sample(array(3), array(3, 2)),
        Sample(array(2, 3), array(3)),
        Sample(array(3), array(3) + 1),
    ],
    "mm": [Sample(array(2, 3), array(3, 2))],
    "bmm": [Sample(array(2, 2, 3), array(2, 3, 2))],
    "mv": [Sample(array(2, 3), array(3))],
    "dot": [Sample(array(3), array(3) + 1)],
    "outer": [Sample(array(3), array(2))],
    "addmm": [Sample(array(2), array(2, 3), array(3, 2), beta=2, alpha=0.5)],
    "addmv": [Sample(array(2), array(2, 3), array(3), beta=2)],
    "baddbmm": [Sample(array(2, 2, 2), array(2, 2, 3), array(2, 3, 2), alpha=3)],
    "linear": [
        Sample(array(2, 3), array(4, 3), array(4)),
        Sample(array(2, 2, 3), array(2, 3), array(2)),
        Sample(array(2, 3), array(4, 3)),
        Sample(array(3), array(4, 3), array(4)),
    ],
}
# What their gradients are made of; nothing is checked there.
INNER = {
    "matmul_nt": [
        Sample(array(2, 3), array(4, 3)),
        Sample(array(2, 2, 3), array(2, 3)),
        Sample(array(2, 2, 3), array(2, 4, 3)),
    ],
    "matmul_tn": [
        Sample(array(3, 2), array(3, 4), merge=False),
        Sample(array(2, 3, 2), array(2, 3, 2), merge=False),
        Sample(array(2, 3, 2), array(2, 3, 2), merge=True),
    ],
}


@pytest.mark.parametrize("op", SAMPLES)
def test_op(op, device):
    check_op(op, SAMPLES[op], device=device)


@pytest.mark.parametrize("op", INNER)
def test_inner_op(op, device):
    check_op(op, INNER[op], device=device, degenerate=False)


OPS = {
    "mm": ((2, 3), (3, 4)),
    "bmm": ((5, 2, 3), (5, 3, 4)),
    "mv": ((2, 3), (3,)),
    "dot": ((3,), (3,)),
    "outer": ((3,), (4,)),
    "addmm": ((2, 4), (2, 3), (3, 4)),
    "addmv": ((2,), (2, 3), (3,)),
    "baddbmm": ((5, 2, 4), (5, 2, 3), (5, 3, 4)),
}


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("name", OPS)
def test_named_products_agree_with_pytorch(name, dtype):
    torch = pytest.importorskip("torch")
    from tests.functors.agreement import compare

    arrays = [array(*shape).astype(dtype) for shape in OPS[name]]
    compare(getattr(flow, name), getattr(torch, name), *arrays)
    compare(
        lambda x, *rest: getattr(x, name)(*rest),
        lambda x, *rest: getattr(x, name)(*rest),
        *arrays,
        orders=1,
    )


@pytest.mark.parametrize("factors", [{"beta": 2, "alpha": 0.5}, {"beta": 0}, {"alpha": -1}])
@pytest.mark.parametrize(
    "name,shapes",
    [
        ("addmm", ((4,), (2, 3), (3, 4))),
        ("addmm", ((), (2, 3), (3, 4))),
        ("addmm", ((2, 4), (2, 3), (3, 4))),
        ("addmv", ((1,), (2, 3), (3,))),
        ("baddbmm", ((2, 1), (5, 2, 3), (5, 3, 4))),
    ],
)
def test_factors_and_broadcast_of_the_addend(name, shapes, factors):
    torch = pytest.importorskip("torch")
    from tests.functors.agreement import compare

    compare(
        lambda *x: getattr(flow, name)(*x, **factors),
        lambda *x: getattr(torch, name)(*x, **factors),
        *[array(*shape) for shape in shapes],
    )


def test_with_beta_zero_the_addend_is_ignored():
    y = flow.addmm(flow.full((2, 2), float("nan")), flow.ones(2, 3), flow.ones(3, 2), beta=0)
    assert y.tolist() == [[3, 3], [3, 3]]


LINEAR = [
    ((2, 3), (4, 3), (4,)),
    ((2, 3), (4, 3)),
    ((3,), (4, 3), (4,)),
    ((5, 2, 3), (4, 3), (4,)),
    ((6, 5, 2, 3), (4, 3), (4,)),
    ((2, 3), (3,)),
    ((2, 3), (4, 3), ()),
    ((0, 3), (4, 3), (4,)),
    ((5, 0, 3), (4, 3), (4,)),
]


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("shapes", LINEAR)
def test_linear_agrees_with_pytorch(shapes, dtype):
    torch = pytest.importorskip("torch")
    from tests.functors.agreement import compare

    compare(
        flow.nn.functional.linear,
        torch.nn.functional.linear,
        *[array(*shape).astype(dtype) for shape in shapes],
        orders=3,
    )


def test_linear_with_a_vector_and_a_bias():
    x, w = flow.tensor(array(2, 3)), flow.tensor(array(3))
    y = flow.nn.functional.linear(x, w, flow.tensor(2.0, dtype=flow.float64))
    np.testing.assert_allclose(y.numpy(), array(2, 3) @ array(3) + 2)


LAYOUTS = {
    "transposed": lambda x: x.transpose(-1, -2).clone().transpose(-1, -2),
    "batch_last": lambda x: x.permute(1, 2, 0).clone().permute(2, 0, 1),
    "reversed": lambda x: x.flip(0).flip(-1),
    "broadcast": lambda x: x[:1].expand(x.shape),
    "strided": lambda x: x.repeat(1, 2, 2)[:, ::2, ::2],
}


@pytest.mark.parametrize("left", LAYOUTS)
@pytest.mark.parametrize("right", LAYOUTS)
def test_layouts(left, right):
    x, y = flow.tensor(array(5, 4, 6)), flow.tensor(array(5, 6, 4))
    x, y = LAYOUTS[left](x), LAYOUTS[right](y)
    a, b = x.numpy(), y.numpy()
    np.testing.assert_allclose((x @ y).numpy(), np.einsum("bij,bjk->bik", a, b))
    np.testing.assert_allclose((x[0] @ y[0]).numpy(), np.einsum("ij,jk->ik", a[0], b[0]))
    np.testing.assert_allclose((x @ y[0]).numpy(), np.einsum("bij,jk->bik", a, b[0]))


@pytest.mark.parametrize("dtype", ["int64", "float16", "complex128"])
def test_other_dtypes(dtype):
    x = (10 * array(5, 2, 3)).astype(dtype)
    y = (10 * array(3, 4)).astype(dtype)
    z = flow.matmul(flow.tensor(x), flow.tensor(y)).numpy()
    assert z.dtype == dtype
    np.testing.assert_allclose(z, np.matmul(x, y), rtol=1e-2 if dtype == "float16" else 1e-12)


def test_halves_are_accumulated_in_single_precision():
    x = flow.ones(1, 4096, dtype=flow.float16)
    assert (x @ x.transpose(0, 1)).item() == 4096


def test_complex_gradients():
    torch = pytest.importorskip("torch")
    from tests.functors.agreement import compare

    x, y = array(2, 3) + 1j * array(2, 3), array(3, 4) - 1j * array(3, 4)

    def function(lib):
        return lambda x, y: lib.matmul(x, y).real

    compare(function(flow), function(torch), x, y, orders=1)
    compare(flow.dot, torch.dot, x[0], y[:, 0], orders=1)


ERRORS = [
    (lambda x: flow.matmul(x, x), RuntimeError, "matmul", "other"),
    (lambda x: flow.matmul(x, flow.ones(2)), RuntimeError, "matmul", "other"),
    (lambda x: flow.matmul(flow.ones(2), flow.ones(3)), RuntimeError, "matmul", "other"),
    (lambda x: flow.matmul(flow.tensor(1.0), x), RuntimeError, "matmul", "input"),
    (
        lambda x: flow.matmul(flow.ones(2, 2, 3), flow.ones(3, 3, 4)),
        RuntimeError,
        "matmul",
        "other",
    ),
    (lambda x: flow.matmul(x, x.double()), RuntimeError, "matmul", "other"),
    (lambda x: flow.matmul(x, 2.0), TypeError, "matmul", "other"),
    (lambda x: flow.mm(x, flow.ones(3)), RuntimeError, "mm", "mat2"),
    (lambda x: flow.mm(x, flow.ones(2, 3)), RuntimeError, "mm", "mat2"),
    (lambda x: flow.bmm(x, x), RuntimeError, "bmm", "input"),
    (lambda x: flow.bmm(flow.ones(1, 2, 3), flow.ones(5, 3, 4)), RuntimeError, "bmm", "mat2"),
    (lambda x: flow.mv(x, flow.ones(2)), RuntimeError, "mv", "vec"),
    (lambda x: flow.dot(flow.ones(2), flow.ones(3)), RuntimeError, "dot", "tensor"),
    (lambda x: flow.outer(x, flow.ones(3)), RuntimeError, "outer", "input"),
    (lambda x: flow.addmm(flow.ones(3, 3), x, x.t()), RuntimeError, "addmm", "input"),
    (lambda x: flow.addmm(flow.ones(2), x, x), RuntimeError, "addmm", "mat2"),
    (lambda x: flow.addmv(flow.ones(2), x, x), RuntimeError, "addmv", "vec"),
    (lambda x: flow.baddbmm(x, x, x), RuntimeError, "baddbmm", "batch1"),
    (lambda x: flow.nn.functional.linear(x, flow.ones(4, 2)), RuntimeError, "linear", "weight"),
    (
        lambda x: flow.nn.functional.linear(x, flow.ones(4, 3), flow.ones(3)),
        RuntimeError,
        "linear",
        "bias",
    ),
    (
        lambda x: flow.nn.functional.linear(x, flow.ones(4, 3).double()),
        RuntimeError,
        "linear",
        "weight",
    ),
]


@pytest.mark.parametrize("number", range(len(ERRORS)))
def test_bad_arguments(number):
    call, kind, op, argument = ERRORS[number]
    x = flow.ones(2, 3)
    with pytest.raises(kind, match=rf"{op}\(\).*'{argument}'.*;") as caught:
        call(x)
    assert isinstance(caught.value, flow.errors.FlowError)
    assert x.tolist() == [[1.0] * 3] * 2


def test_a_misfit_names_both_shapes():
    with pytest.raises(flow.errors.ShapeError, match=r"\(2, 3\).*\(4, 5\)"):
        flow.ones(2, 3) @ flow.ones(4, 5)


@pytest.mark.parametrize(
    "shapes", [((2, 3), (3,)), ((3,), (3, 2)), ((4, 2, 3), (3,)), ((3,), (3,))]
)
def test_a_product_with_a_vector_is_no_view_and_can_be_written(shapes):
    x, y = (flow.ones(*shape, requires_grad=True) for shape in shapes)
    z = x @ y
    assert not z.is_view()
    z.mul_(2)
    z.sum().backward()
    expected = flow.autograd.grad((x @ y * 2).sum(), [x, y])
    assert [x.grad.tolist(), y.grad.tolist()] == [g.tolist() for g in expected]
