"""Kernels of users are watched: what they write, what they return, and the price of that."""

import warnings

import numpy as np
import pytest

import oneflow_lite as flow
from oneflow_lite.errors import InplaceError, KernelError
from oneflow_lite.extend import forget_op
from oneflow_lite.ops.op_expr import op_expr
from oneflow_lite.testing import OpCheckError, Sample, check_op


@pytest.fixture
def name(request):
    chosen = f"watched_{request.node.originalname}"
    yield chosen
    forget_op(chosen)


ALIASES = {
    "itself": lambda xp, x: x,
    "transposed": lambda xp, x: x.T,
    "part": lambda xp, x: x[1:],
    "flat": lambda xp, x: x.reshape(-1),
    "strided": lambda xp, x: np.lib.stride_tricks.as_strided(x, (2,), (8,)),
    "asarray": lambda xp, x: xp.asarray(x),
    "real": lambda xp, x: xp.real(x),
    "view": lambda xp, x: x.view(),
    "broadcast": lambda xp, x: xp.broadcast_to(x, (2, *x.shape)),
    "in a tuple": lambda xp, x: (x[0], x * 2),
}


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("kernel", ALIASES.values(), ids=ALIASES)
def test_an_undeclared_alias_is_copied_with_one_warning(name, kernel, compiled):
    """A write to the result changes neither the input nor a gradient that needs the input."""
    op = flow.register_op(name)(kernel)

    def step(a):
        s = a * a
        z = op(s)
        z = z[0] if isinstance(z, tuple) else z
        z.mul_(10)
        return s

    run = flow.compile(step) if compiled else step
    a = flow.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
    with warnings.catch_warnings(record=True) as given:
        warnings.simplefilter("always")
        for _ in range(3):
            s = run(a)
    (warning,) = given
    assert f"{name}()" in str(warning.message) and "view_of='x'" in str(warning.message)
    assert warning.filename == __file__
    assert s.tolist() == [[1.0, 4.0], [9.0, 16.0]] and s._version == 0
    (g,) = flow.autograd.grad(s.sum(), a)
    assert g.tolist() == [[2.0, 4.0], [6.0, 8.0]]


@pytest.mark.parametrize(
    "kernel", [lambda xp, x: (x * 2,) * 2, lambda xp, x: (y := x * 2, y[:1])], ids=["same", "part"]
)
def test_outputs_that_share_memory_are_copied(name, kernel):
    op = flow.register_op(name)(kernel)
    with pytest.warns(UserWarning, match="output 1 .* shares memory with another output"):
        y, z = op(flow.ones(3))
    z.zero_()
    assert y.tolist() == [2.0, 2.0, 2.0]


def test_a_result_that_cannot_be_written_is_copied_silently(name):
    op = flow.register_op(name)(lambda xp, x: xp.broadcast_to(x.sum(), x.shape))
    y = op(flow.ones(3))
    y.add_(1)
    assert y.tolist() == [4.0, 4.0, 4.0]


def test_a_declared_view_is_a_view(name):
    op = flow.register_op(name, view_of="x")(lambda xp, x: x[1:])
    x = flow.zeros(3)
    op(x).add_(1)
    assert x.tolist() == [0.0, 1.0, 1.0] and x._version == 1


WRITES = {
    "operator": lambda x: x.__imul__(2),
    "index": lambda x: x.__setitem__(0, 5),
    "out": lambda x: np.add(x, 1, out=x),
    "method": lambda x: x.sort(),
    "fill": lambda x: x.fill(0),
    "through a view": lambda x: x.reshape(-1).__setitem__(0, 5),
}


@pytest.mark.parametrize("write", WRITES.values(), ids=WRITES)
def test_an_undeclared_write_raises_before_it_happens(name, write):
    @flow.register_op(name)
    def op(xp, x):
        write(x)
        return x * 1

    x = flow.tensor([3.0, 1.0])
    for run in (op, flow.compile(op)):
        with pytest.raises(InplaceError, match=rf"{name}\(\): .*input 'x'.*mutates="):
            run(x)
        assert x.tolist() == [3.0, 1.0]


def test_an_undeclared_write_to_an_input_that_may_be_viewed(name):
    """It cannot be locked, so it is compared, and put back."""

    @flow.register_op(name, view_of="x")
    def op(xp, x):
        x[0] = 7
        return x[1:]

    x = flow.zeros(3)
    with pytest.raises(InplaceError, match="input 'x'"):
        op(x)
    assert x.tolist() == [0.0, 0.0, 0.0]


def test_an_undeclared_write_on_each_device(name, device):
    @flow.register_op(name)
    def op(xp, x, y):
        y += 1
        return x + y

    y = flow.zeros(3, device=device)
    with pytest.raises(InplaceError, match="input ('x' or )?'y'"):
        op(flow.ones(3, device=device), y)
    assert y.tolist() == [0.0, 0.0, 0.0]


def test_one_of_two_inputs_is_written(name):
    @flow.register_op(name, mutates="x")
    def op(xp, x, y):
        x += y
        return x

    x, y = flow.ones(2), flow.ones(2)
    assert op(x, y) is x and x.tolist() == [2.0, 2.0] and x._version == 1

    @flow.register_op(f"{name}_wrong", mutates="x")
    def wrong(xp, x, y):
        y += x
        return x

    with pytest.raises(InplaceError, match="input 'y'"):
        wrong(x, y)
    forget_op(f"{name}_wrong")


RETURNS = {
    "None": (lambda xp, x: None, "got None; is a `return` missing"),
    "list": (lambda xp, x: [x * 2, x * 3], "got a list; return a tuple"),
    "float": (lambda xp, x: 2.0, r"got a float; return an array: xp\.asarray"),
    "int": (lambda xp, x: len(x), "got an int; return an array"),
    "bool": (lambda xp, x: True, "got a bool; return an array"),
    "str": (lambda xp, x: "text", "got a str; compute with `xp`"),
    "Tensor": (lambda xp, x: flow.ones(2), "got a Tensor; compute with `xp`"),
    "objects": (lambda xp, x: x.astype(object), "array of dtype object; tensors have no such"),
    "dates": (lambda xp, x: x.astype("M8[s]"), "array of dtype datetime64"),
    "longdouble": (lambda xp, x: x.astype(np.longdouble), "array of dtype float128"),
    "number in a tuple": (lambda xp, x: (x * 2, 3.0), "got a float as output 1"),
    "None in a tuple": (lambda xp, x: (None, x * 2), "got None as output 0"),
    "tuple in a tuple": (lambda xp, x: (x * 2, (x * 1,)), "got a tuple as output 1"),
    "masked": (lambda xp, x: np.ma.masked_array(x * 2, x > 1), "got a MaskedArray; return a plain"),
    "record": (lambda xp, x: np.zeros(2, "f,i"), "array of dtype"),
}


@pytest.mark.parametrize(("kernel", "said"), RETURNS.values(), ids=RETURNS)
def test_a_kernel_that_returns_no_array(name, kernel, said):
    op = flow.register_op(name)(kernel)
    x = flow.tensor([1.0, 2.0], requires_grad=True)
    with pytest.raises(KernelError, match=rf"^{name}\(\): its kernel has to return .*{said}"):
        op(x)
    with pytest.raises(OpCheckError, match=rf"Sample.*{name}"):
        check_op(op, [Sample(np.array([1.0, 2.0]))])


def test_results_that_become_arrays(name):
    """Scalars of NumPy, named tuples, and integers under another name."""

    @flow.register_op(name)
    def op(xp, x):
        values, vectors = xp.linalg.eigh(x)
        return values.max(), vectors.astype(">f8"), xp.linalg.slogdet(x)[1], values.astype("q")

    results = op(flow.eye(2, dtype=flow.float64))
    assert [type(y._data) for y in results] == [np.ndarray] * 4
    assert [y.dtype for y in results] == [flow.float64] * 3 + [flow.int64]
    pair = flow.register_op(f"{name}_pair")(lambda xp, x: xp.linalg.slogdet(x))
    assert [y.item() for y in pair(flow.eye(2))] == [1.0, 0.0]
    forget_op(f"{name}_pair")


class TestOpsThatWrite:
    """Only the inputs that are written have a new history, so they are what is returned."""

    def test_two_written_inputs_each_have_a_gradient(self, name):
        @flow.register_op(name, mutates=("x", "y"))
        def swap_(xp, x, y):
            x[...], y[...] = y.copy(), x.copy()
            return x, y

        swap_.grad()(lambda F, ctx, dx, dy: (dy, dx))
        a, b = (flow.tensor([v], requires_grad=True) for v in (2.0, 3.0))
        x, y = a * 1, b * 1
        assert swap_(x, y)[1] is y
        ga, gb = flow.autograd.grad((x * 10 + y).sum(), (a, b))
        assert (x.item(), y.item(), ga.item(), gb.item()) == (3.0, 2.0, 1.0, 10.0)

    @pytest.mark.parametrize(
        ("result", "said"),
        [
            (lambda x, y: x * 1, "another array than it wrote"),
            (lambda x, y: x[:], "another array than it wrote"),
            (lambda x, y: None, "got None"),
            (lambda x, y: (x, y * 2), "a new floating array beside x"),
        ],
    )
    def test_that_return_something_else(self, name, result, said):
        @flow.register_op(name, mutates="x")
        def op(xp, x, y):
            x += 1
            return result(x, y)

        with pytest.raises(KernelError, match=said):
            op(flow.ones(2), flow.ones(2))

    def test_that_return_a_count_besides(self, name):
        @flow.register_op(name, mutates="x")
        def op(xp, x):
            x += 1
            return x, xp.asarray(x.size)

        x = flow.ones(2)
        assert op(x)[0] is x and op(x)[1].item() == 2

    def test_are_certified_by_name(self, name):
        @flow.register_op(name, mutates="x")
        def doubled_(xp, x):
            x *= 2
            return x

        doubled_.grad()(lambda F, ctx, dy: dy * 2)
        check_op(name, [Sample(np.array([1.0, -2.0]))])
        doubled_.op_expr.grad_function = None
        flow.extend.GRAD_FUNCS.remove(name)
        doubled_.grad()(lambda F, ctx, dy: dy * 3)
        with pytest.raises(OpCheckError, match="first derivative"):
            check_op(name, [Sample(np.array([1.0, -2.0]))])


def test_the_packages_own_kernels_run_bare():
    for op in ("relu", "sum", "reshape"):
        kernel = op_expr(op).kernel(np)
        assert "kernel_watch" not in getattr(kernel, "__module__", ""), op


def test_numba_and_scipy_in_a_kernel(name):
    """Their compiled code takes read-only arrays."""
    special = pytest.importorskip("scipy.special")
    numba = pytest.importorskip("numba")
    double = numba.njit(lambda a: a * 2)

    @flow.register_op(name)
    def op(xp, x):
        return double(x) + special.gammaln(x)

    assert op(flow.ones(3)).tolist() == [2.0, 2.0, 2.0]


def test_an_array_that_the_kernel_keeps_is_copied(name):
    """A buffer that the next call writes into, or a cache."""
    buffer = np.zeros(2, np.float32)
    op = flow.register_op(name)(lambda xp, x: np.multiply(x, 2, out=buffer))
    first = op(flow.ones(2))  # compared as a whole, and copied or not, it is the first
    with pytest.warns(UserWarning, match="an array that the kernel keeps"):
        first = op(flow.ones(2))
    op(flow.zeros(2))
    assert first.tolist() == [2.0, 2.0]


def test_compiled_code_that_writes_is_noticed_by_the_first_call(name):
    """It does not ask whether an array is read-only."""

    @flow.register_op(name)
    def op(xp, x):
        import ctypes

        ctypes.memset(x.ctypes.data, 0, 4)
        return x * 2

    x = flow.ones(2)
    with pytest.raises(InplaceError, match="input 'x'"):
        op(x)
    assert x.tolist() == [1.0, 1.0]


def test_check_op_sees_memory_that_two_calls_share(name):
    kept = {}

    def kernel(xp, x):
        out = kept.setdefault(x.dtype.char, np.zeros((3, 2), x.dtype))[: len(x)]
        out[...] = x * 2
        return (out, x * 1)

    op = flow.register_op(name)(kernel)
    op.grad()(lambda F, ctx, dy, dz: dy * 2 + dz)
    with pytest.raises(OpCheckError, match="two calls return the same memory"):
        check_op(op, [Sample(np.ones((2, 2)))])


def test_check_op_holds_the_infer_rule_against_the_kernel(name):
    def infer(x):
        return type(x)((*x.shape[:-1], 1), x.dtype)

    op = flow.register_op(name, infer=infer)(lambda xp, x: x.sum(-1))
    op.grad(saves="x.shape")(lambda F, ctx, dy: dy.unsqueeze(-1).expand(ctx.x_shape))
    with pytest.raises(OpCheckError, match=r"infer rule says float64\[2, 1\], .* float64\[2\]"):
        check_op(op, [Sample(np.ones((2, 3)))], degenerate=False)
