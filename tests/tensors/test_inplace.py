"""In-place ops: values, gradients, versions, and every write that autograd could not follow."""

import numpy as np
import pytest

import oneflow_lite as flow
from oneflow_lite.errors import (
    ArgumentError,
    DTypeError,
    FlowError,
    InplaceError,
    ShapeError,
    StaleTensorError,
)
from oneflow_lite.functors.declaring.declare import DECLARATIONS, Declaration
from oneflow_lite.tensors.scalars import number_tensor

A = np.array([[0.3, 0.7, 0.45], [0.6, 0.2, 0.9]])
B = np.array([[0.5, 0.4, 0.8], [0.35, 0.75, 0.1]])
M = np.random.default_rng(0).normal(size=(2, 2))
N = np.random.default_rng(1).normal(size=(2, 3))
MASK = np.array([[True, False, True], [False, True, False]])
INDEX = np.array([[0, 1, 1], [1, 0, 1]])


def on(lib, *arrays):
    return [lib.tensor(a) for a in arrays]


# Arguments after the first, by twin; no entry means none. None: not on these two matrices.
ARGUMENTS = {
    "add": lambda lib: on(lib, B),
    "addcdiv": lambda lib: on(lib, B, B + 1),
    "addcmul": lambda lib: on(lib, B, B + 1),
    "addmm": lambda lib: on(lib, M, N),
    "baddbmm": None,
    "bitwise_and": None,
    "bitwise_or": None,
    "bitwise_xor": None,
    "atan2": lambda lib: on(lib, B),
    "celu": lambda lib: [],
    "clamp": lambda lib: [0.25, 0.65],
    "clamp_max": lambda lib: [0.5],
    "clamp_min": lambda lib: [0.5],
    "cumprod": lambda lib: [1],
    "cumsum": lambda lib: [0],
    "div": lambda lib: on(lib, B),
    "floor_divide": None,
    "fmod": lambda lib: [0.4],
    "hypot": lambda lib: on(lib, B),
    "index_add": lambda lib: [1, lib.tensor([2, 0]), lib.tensor(B[:, :2])],
    "index_fill": lambda lib: [1, lib.tensor([2, 0]), 5.0],
    "lerp": lambda lib: [lib.tensor(B), 0.3],
    "masked_fill": lambda lib: [lib.tensor(MASK), 5.0],
    "masked_scatter": lambda lib: on(lib, MASK, B),
    "mul": lambda lib: on(lib, B),
    "pow": lambda lib: on(lib, B),
    "remainder": lambda lib: [0.4],
    "scatter": lambda lib: [0, lib.tensor(INDEX[:1]), lib.tensor(B)],
    "scatter_add": lambda lib: [0, lib.tensor(INDEX), lib.tensor(B)],
    "sub": lambda lib: on(lib, B),
    "threshold": lambda lib: [0.5, -1.0],
    "xlogy": lambda lib: on(lib, B),
}
WRITES = {
    "add_": lambda v: v.add_(1),
    "mul_": lambda v: v.mul_(2),
    "zero_": lambda v: v.zero_(),
    "fill_": lambda v: v.fill_(1),
    "copy_": lambda v: v.copy_(flow.ones(v.shape, dtype=flow.float64)),
    "setitem": lambda v: v.__setitem__(0, 1.0),
    "uniform_": lambda v: v.uniform_(),
    "normal_": lambda v: v.normal_(),
    "bernoulli_": lambda v: v.bernoulli_(),
}
# Where functions of one real tensor are declared, each with a derivative that PyTorch has twice.
FAMILIES = "activation arithmetic rearranging transcendental".split()


def _is_checked(d: Declaration) -> bool:
    """Return whether the twin of a declared functor runs on the matrices above.

    The others are checked on the samples of their declarations, in test_declared.py.
    """
    if not d.has_twin or d.reshapes or ARGUMENTS.get(d.name, ()) is None:
        return False
    if d.name not in ARGUMENTS and d.family not in FAMILIES:
        return False
    first, *rest = d.parameters
    real = first.domain is None or first.domain.sample in ("", "x(2, 3)")
    return real and (d.name in ARGUMENTS or not any(p.required for p in rest))


CHECKED = [name for name in DECLARATIONS if _is_checked(DECLARATIONS.get(name))]


def arguments(name, lib):
    return ARGUMENTS[name](lib) if name in ARGUMENTS else []


def call(lib, name, x):
    """Our twin, or PyTorch's op itself: several of its twins have no derivative."""
    given = arguments(name, lib)
    if lib is flow:
        return flow.ops.registry.FUNCTORS.get(f"{name}_")(x, *given)
    if name == "sgn":
        name = "sign"  # the same of real numbers; the gradient of sgn has no memory to look at
    op = getattr(x, name, None) or (lambda *a: getattr(lib.nn.functional, name)(x, *a))
    return op(*given)


def shifted(name):
    return A + 1.2 if name == "acosh" else A


class TestTwins:
    @pytest.mark.slow(but=20)
    @pytest.mark.parametrize("name", CHECKED)
    def test_writes_what_the_functor_returns(self, name):
        x = flow.tensor(shifted(name))
        functor = flow.ops.registry.FUNCTORS.get(name)
        expected = functor(x, *arguments(name, flow)).numpy()
        memory, version = x.numpy(), x._version
        result = flow.ops.registry.FUNCTORS.get(f"{name}_")(x, *arguments(name, flow))
        assert result is x
        assert x.numpy() is memory
        assert x._version == version + 1
        np.testing.assert_allclose(memory, expected, rtol=1e-12)

    @pytest.mark.parametrize("name", CHECKED)
    def test_value_and_gradients_against_pytorch(self, name):
        torch = pytest.importorskip("torch")
        results = []
        for lib in (flow, torch):
            x = lib.tensor(shifted(name), requires_grad=True)
            y = x * 1.0
            y = call(lib, name, y)
            z = y * lib.tensor(B) + y * y
            (g,) = lib.autograd.grad(z.sum(), x, create_graph=True)
            if g.requires_grad and name != "hardsigmoid":  # PyTorch has no second derivative of it
                (h,) = lib.autograd.grad(g.sum(), x, allow_unused=True)
            else:
                h = None
            zeros = np.zeros_like(A)
            results.append(
                [np.array(zeros if t is None else t.detach().tolist()) for t in (y, g, h)]
            )
        for ours, theirs in zip(*results, strict=True):
            np.testing.assert_allclose(ours, theirs, rtol=1e-6, atol=1e-8)

    @pytest.mark.parametrize("name", CHECKED)
    def test_is_a_method_where_pytorch_has_it(self, name):
        torch = pytest.importorskip("torch")
        assert hasattr(flow.Tensor, f"{name}_") or not hasattr(torch.Tensor, f"{name}_")

    @pytest.mark.slow(but=20)
    @pytest.mark.parametrize("name", CHECKED)
    def test_on_a_leaf_that_requires_a_gradient(self, name):
        x = flow.tensor(shifted(name), requires_grad=True)
        twin = flow.ops.registry.FUNCTORS.get(f"{name}_")
        with pytest.raises(InplaceError, match=f"{name}_.*leaf"):
            twin(x, *arguments(name, flow))
        assert x.numpy().tolist() == shifted(name).tolist()
        assert x._version == 0 and x.is_leaf
        with flow.no_grad():
            assert twin(x, *arguments(name, flow)) is x
        assert x._version == 1 and x.requires_grad and x.is_leaf

    def test_bits(self):
        x = flow.tensor([5, 12])
        x.bitwise_and_(flow.tensor([4, 4])) if hasattr(x, "bitwise_and_") else (
            flow.ops.registry.FUNCTORS.get("bitwise_and_")(x, flow.tensor([4, 4]))
        )
        assert x.tolist() == [4, 4]

    def test_batched_products(self):
        x = flow.zeros(2, 2, 2)
        x.baddbmm_(flow.ones(2, 2, 3), flow.ones(2, 3, 2))
        assert (x.numpy() == 3).all()

    def test_floor_divide(self):
        x = flow.tensor([7, -7])
        assert x.floor_divide_(2).tolist() == [3, -4]


class TestVersions:
    @pytest.mark.parametrize(
        "write",
        [
            lambda x: x.add_(1),
            lambda x: x.zero_(),
            lambda x: x.fill_(3),
            lambda x: x.copy_(flow.ones(2, 3)),
            lambda x: x.__setitem__(0, 1.0),
            lambda x: x.uniform_(),
            lambda x: x.normal_(),
            lambda x: x.bernoulli_(0.5),
            lambda x: x.detach().add_(1),
            lambda x: x[0].add_(1),
            lambda x: x.t().add_(1),
            lambda x: x.view(-1).add_(1),
        ],
    )
    def test_every_write_counts_once(self, write):
        x = flow.zeros(2, 3)
        write(x)
        assert x._version == 1
        with flow.no_grad():
            write(x)
        assert x._version == 2

    def test_reading_does_not_count(self):
        x = flow.ones(2)
        x + 1, x[0], x.sum(), x.detach(), x.numpy(), x.clone()
        assert x._version == 0

    def test_views_and_aliases_share_it(self):
        x = flow.zeros(2, 3)
        view, alias, copy = x[0], x.detach(), x.clone()
        view.add_(1)
        assert x._version == view._version == alias._version == 1
        assert copy._version == 0

    def test_a_write_through_data_has_a_version_of_its_own(self):
        x = flow.tensor([1.0, 2.0], requires_grad=True)
        w = flow.tensor([3.0, 4.0])
        y = x * w
        alias = w.data
        alias.add_(1)
        assert (alias._version, w._version, w.data._version) == (1, 0, 0)
        y.sum().backward()  # as PyTorch's: with the values that are there now
        assert x.grad.tolist() == w.tolist() == [4, 5]
        y = x * w
        w.detach().add_(1)
        with pytest.raises(flow.errors.StaleTensorError):
            y.sum().backward()

    def test_debug_mode_notices_a_write_through_data(self):
        x = flow.tensor([1.0, 2.0], requires_grad=True)
        w = flow.tensor([3.0, 4.0])
        with flow.autograd.set_debug_mode(True):
            y = x * w
            w.data.add_(1)
            with pytest.raises(flow.errors.StaleTensorError):
                y.sum().backward()


class TestStaleSavedTensors:
    def test_names_op_shape_and_both_versions(self):
        x = flow.ones(2, 3, requires_grad=True)
        w = flow.ones(2, 3)
        y = x * w
        w.add_(1)
        w.add_(1)
        with pytest.raises(StaleTensorError) as caught:
            y.sum().backward()
        text = str(caught.value)
        assert "mul_backward" in text and "(2, 3)" in text
        assert "version 2" in text and "version 0" in text
        assert isinstance(caught.value, RuntimeError)
        assert x.grad is None

    @pytest.mark.parametrize("create_graph", [False, True])
    @pytest.mark.parametrize(
        ("op", "stale"),
        [
            (lambda y: y.exp(), "output"),
            (lambda y: y.tanh(), "output"),
            (lambda y: y.sigmoid(), "output"),
            (lambda y: y.relu(), "output"),
            (lambda y: y.sin(), "input"),
            (lambda y: y * y, "input"),
            (lambda y: y @ y.t(), "input"),
            (lambda y: y.softmax(-1), "output"),
            (lambda y: y + 1, "nothing"),
            (lambda y: y.sum(0), "nothing"),
        ],
    )
    def test_of_input_or_output_whichever_is_saved(self, op, stale, create_graph):
        for written in ("input", "output"):
            x = flow.tensor(A, requires_grad=True)
            y = x * 1
            z = op(y)
            total = z.sum()
            (y if written == "input" else z).detach().add_(1)
            if written == stale:
                with pytest.raises(StaleTensorError):
                    flow.autograd.grad(total, x, create_graph=create_graph)
            else:
                flow.autograd.grad(total, x, create_graph=create_graph)

    def test_a_write_before_the_save_does_no_harm(self):
        x, w = flow.ones(2, requires_grad=True), flow.ones(2)
        w.add_(1)
        (x * w).sum().backward()
        assert x.grad.tolist() == [2.0, 2.0]

    def test_a_write_to_a_tensor_that_is_not_saved(self):
        x, w = flow.ones(2, requires_grad=True), flow.ones(2)
        y = x + w
        w.add_(1)
        y.sum().backward()
        assert x.grad.tolist() == [1.0, 1.0]

    def test_through_a_view(self):
        x, w = flow.ones(2, 2, requires_grad=True), flow.ones(2, 2)
        y = x * w
        w[0].zero_()
        with pytest.raises(StaleTensorError, match="mul_backward"):
            y.sum().backward()

    def test_under_no_grad_too(self):
        x, w = flow.ones(2, requires_grad=True), flow.ones(2)
        y = x * w
        with flow.no_grad():
            w.zero_()
        with pytest.raises(StaleTensorError):
            y.sum().backward()

    def test_an_optimizer_step_between_forward_and_backward(self):
        w = flow.ones(2, requires_grad=True)
        loss = (w * w).sum()
        with flow.no_grad():
            w.sub_(0.1)
        with pytest.raises(StaleTensorError):
            loss.backward()
        assert w.grad is None

    def test_an_in_place_op_that_needs_its_result_invalidated_by_the_next(self):
        x = flow.ones(2, requires_grad=True)
        y = x * 1
        y.exp_()
        y.mul_(2)
        with pytest.raises(StaleTensorError, match="exp_backward"):
            y.sum().backward()

    def test_a_retained_graph_after_a_write(self):
        x, w = flow.ones(2, requires_grad=True), flow.ones(2)
        y = (x * w).sum()
        y.backward(retain_graph=True)
        w.zero_()
        with pytest.raises(StaleTensorError):
            y.backward()
        assert x.grad.tolist() == [1.0, 1.0]


class TestHistory:
    def test_the_node_moves_on(self):
        x = flow.ones(2, requires_grad=True)
        y = x * 2
        before = y.grad_fn
        y.add_(1)
        assert y.grad_fn.name() == "add_backward"
        assert y.grad_fn.next_functions[0][0] is before
        assert y.grad_fn.sequence_nr > before.sequence_nr
        assert y.grad_fn.output_meta_data[0] is y.autograd_meta

    def test_a_constant_becomes_part_of_the_graph(self):
        x = flow.tensor([2.0, 3.0], requires_grad=True)
        c = flow.ones(2)
        assert c.is_leaf
        c.mul_(x)
        assert c.requires_grad and not c.is_leaf
        c.sum().backward()
        assert x.grad.tolist() == [1.0, 1.0]

    def test_chains(self):
        x = flow.tensor([2.0, 3.0], requires_grad=True)
        y = x * 1
        y.mul_(x).add_(1).mul_(x)
        y.sum().backward()
        assert x.grad.tolist() == [13.0, 28.0]  # x³ + x

    def test_the_tensor_itself_as_operand(self):
        x = flow.tensor([2.0, 3.0], requires_grad=True)
        y = x * 1
        y.mul_(y)
        y.sum().backward()
        assert x.grad.tolist() == [4.0, 6.0]

    def test_in_a_loop(self):
        x = flow.tensor([1.5], requires_grad=True)
        total = flow.zeros(1)
        for _ in range(5):
            total += x * x
        total.backward()
        assert x.grad.item() == 15

    def test_retain_grad_moves_on(self):
        x = flow.tensor([1.0, 2.0], requires_grad=True)
        y = x * 2
        y.retain_grad()
        y.mul_(3)
        assert y.retains_grad
        (y * 5).sum().backward()
        assert y.grad.tolist() == [5.0, 5.0]  # of the value that y has now
        assert x.grad.tolist() == [30.0, 30.0]

    def test_a_gradient_that_was_retained_stays(self):
        x = flow.tensor([1.0, 2.0], requires_grad=True)
        y = x * 2
        y.retain_grad()
        (y * 5).sum().backward(retain_graph=True)
        y.mul_(3)
        assert y.grad.tolist() == [5.0, 5.0]
        y[0].sum().backward()
        assert y.grad.tolist() == [6.0, 5.0]  # and the next one is added

    def test_a_fresh_meta(self):
        x = flow.ones(2, requires_grad=True)
        y = x * 2
        before = y.autograd_meta
        y.add_(1)
        assert y.autograd_meta is not before

    def test_of_ops_that_have_no_history(self):
        x = flow.ones(2)
        x.add_(1)
        assert not x.requires_grad and x.is_leaf

    def test_leaves_no_history_under_no_grad(self):
        x = flow.ones(2, requires_grad=True)
        y = flow.ones(2)
        with flow.no_grad():
            y.mul_(x)
        assert not y.requires_grad

    def test_second_order(self):
        x = flow.tensor([2.0], requires_grad=True)
        y = x * x
        y.mul_(x)
        (g,) = flow.autograd.grad(y, x, create_graph=True)
        assert g.item() == 12
        assert flow.autograd.grad(g, x)[0].item() == 12

    def test_detach_in_place_of_a_written_tensor(self):
        x = flow.ones(2, requires_grad=True)
        y = x * 2
        y.add_(1)
        y.detach_()
        y.add_(1)
        assert y.is_leaf


class TestWritesThatCannotBeFollowed:
    @pytest.fixture
    def x(self):
        return flow.tensor(A, requires_grad=True)

    @pytest.mark.parametrize("write", WRITES)
    def test_a_leaf(self, x, write):
        with pytest.raises(InplaceError, match="leaf") as caught:
            WRITES[write](x)
        assert isinstance(caught.value, RuntimeError)
        assert write.rstrip("_") in str(caught.value)
        assert x.numpy().tolist() == A.tolist() and x._version == 0

    @pytest.mark.parametrize("write", WRITES)
    @pytest.mark.parametrize("view", [lambda x: x[0], lambda x: x.t(), lambda x: x.view(-1)])
    def test_a_view_of_a_leaf(self, x, write, view):
        with pytest.raises(InplaceError, match="leaf"):
            WRITES[write](view(x))
        assert x.numpy().tolist() == A.tolist() and x._version == 0
        with flow.no_grad():
            WRITES[write](view(x))
        assert x._version == 1

    def test_what_expand_made(self):
        x = flow.ones(1, 2)
        y = x.expand(3, 2)
        with pytest.raises(InplaceError, match="clone"):
            y.add_(1)
        assert x.tolist() == [[1.0, 1.0]]
        with flow.no_grad(), pytest.raises(FlowError, match=r"clone|expand"):
            y.add_(1)
        y.clone().add_(1)

    def test_a_read_only_array(self):
        a = np.ones(2)
        a.flags.writeable = False
        x = flow.from_numpy(a)
        for mode in (flow.enable_grad, flow.no_grad):
            with mode(), pytest.raises(InplaceError, match="read-only"):
                x.add_(1)
            with mode(), pytest.raises(InplaceError, match="read-only"):
                x.zero_()
        assert x.tolist() == [1.0, 1.0] and x._version == 0

    def test_a_cached_scalar_is_never_written(self):
        y = flow.tensor([1.0]) * 2.5
        assert (flow.tensor([1.0]) * 2.5).tolist() == y.tolist() == [2.5]
        with pytest.raises(InplaceError, match="read-only"):
            number_tensor(2.5).add_(1)
        assert (flow.tensor([2.0]) * 2.5).tolist() == [5.0]


class TestResultsThatDoNotFit:
    @pytest.mark.parametrize(
        ("x", "write"),
        [
            (np.ones(3), lambda x: x.add_(flow.ones(2, 3, dtype=flow.float64))),
            (np.ones((1, 3)), lambda x: x.mul_(flow.ones(2, 3, dtype=flow.float64))),
            (np.ones(3), lambda x: x.add_(flow.ones(2, dtype=flow.float64))),
            (np.ones((2, 3)), lambda x: x.copy_(flow.ones(3, 2))),
            (np.ones(3), lambda x: x.copy_(flow.ones(2, 3))),
            (np.ones((2, 3)), lambda x: x.__setitem__(0, flow.ones(2))),
        ],
    )
    def test_shape(self, x, write):
        x = flow.tensor(x)
        before = x.tolist()
        with pytest.raises(ShapeError):
            write(x)
        assert x.tolist() == before and x._version == 0
        x.add_(1)  # and it is still usable

    @pytest.mark.parametrize(
        ("dtype", "write"),
        [
            ("int64", lambda x: x.add_(0.5)),
            ("int64", lambda x: x.mul_(flow.ones(2))),
            ("int64", lambda x: x.div_(2)),
            ("int64", lambda x: x.exp_()),
            ("int64", lambda x: x.sqrt_()),
            ("bool", lambda x: x.add_(1)),
            ("bool", lambda x: x.add_(flow.tensor([1, 2]))),
            ("float32", lambda x: x.add_(1j)),
            ("float32", lambda x: x.mul_(flow.tensor([1j, 1j]))),
        ],
    )
    def test_dtype(self, dtype, write):
        x = flow.ones(2, dtype=dtype)
        with pytest.raises(DTypeError, match=dtype):
            write(x)
        assert (x.numpy() == 1).all() and x._version == 0 and x.dtype == np.dtype(dtype)

    def test_a_wider_result_is_narrowed(self):
        x = flow.ones(2)
        x.add_(flow.full((2,), 0.5, dtype=flow.float64))
        assert x.dtype == flow.float32 and x.tolist() == [1.5, 1.5]
        n = flow.ones(2, dtype=flow.int8)
        n.add_(flow.tensor([1, 2]))
        assert n.dtype == flow.int8 and n.tolist() == [2, 3]

    def test_the_gradient_of_a_narrowed_result(self):
        x = flow.ones(2, dtype=flow.float64, requires_grad=True)
        y = flow.ones(2)
        y.add_(x * 3)
        y.sum().backward()
        assert x.grad.dtype == flow.float64 and x.grad.tolist() == [3.0, 3.0]

    def test_a_failed_op_leaves_the_graph_as_it_was(self):
        x = flow.ones(2, requires_grad=True)
        y = x * 2
        node = y.grad_fn
        with pytest.raises(ShapeError):
            y.mul_(flow.ones(3, 2))
        with pytest.raises(DTypeError):
            y.mul_(1j)
        assert y.grad_fn is node and y._version == 0
        y.sum().backward()
        assert x.grad.tolist() == [2.0, 2.0]

    @pytest.mark.parametrize("bad", ["text", None, object()])
    def test_no_number(self, bad):
        x = flow.ones(2)
        for write in (x.add_, x.mul_, x.fill_, x.copy_):
            with pytest.raises(FlowError):
                write(bad)
        assert x.tolist() == [1.0, 1.0] and x._version == 0


class TestFilling:
    def test_zero_(self):
        x = flow.ones(2)
        assert x.zero_() is x and x.tolist() == [0.0, 0.0]

    def test_fill_(self):
        x = flow.ones(2)
        assert x.fill_(2.5) is x and x.tolist() == [2.5, 2.5]
        assert x.fill_(flow.tensor(3)).tolist() == [3.0, 3.0]
        with pytest.raises(ShapeError, match="0-d"):
            x.fill_(flow.ones(2))
        n = flow.ones(2, dtype=flow.int64)
        assert n.fill_(3).tolist() == [3, 3]

    def test_copy_(self):
        x = flow.zeros(2, 3)
        assert x.copy_(flow.tensor([1, 2, 3])) is x
        assert x.tolist() == [[1.0, 2.0, 3.0]] * 2
        assert x.dtype == flow.float32
        assert x.copy_(7).tolist() == [[7.0] * 3] * 2
        x.copy_(x)
        assert x.tolist() == [[7.0] * 3] * 2

    def test_copy_between_overlapping_views(self):
        x = flow.arange(5)
        x[1:].copy_(x[:-1])
        assert x.tolist() == [0, 0, 1, 2, 3]

    @pytest.mark.parametrize("fill", [lambda y: y.zero_(), lambda y: y.fill_(2.0)])
    def test_cuts_the_gradient(self, fill):
        x = flow.ones(2, requires_grad=True)
        y = x * 3
        fill(y)
        (y + x).sum().backward()
        assert x.grad.tolist() == [1.0, 1.0]

    def test_gradient_of_copy_(self):
        x = flow.ones(2, 3, requires_grad=True)
        s = flow.tensor([1.0, 2.0, 3.0], dtype=flow.float64, requires_grad=True)
        y = x * 3
        y.copy_(s)
        (y * y).sum().backward()
        assert s.grad.tolist() == [4.0, 8.0, 12.0] and s.grad.dtype == flow.float64
        assert x.grad is None or (x.grad.numpy() == 0).all()

    def test_gradient_of_fill_(self):
        v = flow.tensor(2.0, requires_grad=True)
        y = flow.zeros(3)
        y.fill_(v)
        (y * y).sum().backward()
        assert v.grad.item() == 12

    def test_setitem_with_a_gradient(self):
        x = flow.ones(3, requires_grad=True)
        v = flow.tensor(5.0, requires_grad=True)
        y = x * 2
        y[1] = v
        (y * y).sum().backward()
        assert x.grad.tolist() == [8.0, 0.0, 8.0] and v.grad.item() == 10


def test_memory_shared_by_expand_is_refused_on_every_device(device):
    x = flow.ones(2, 1).to(device).expand(2, 3)
    with pytest.raises(InplaceError, match="expand"):
        x.add_(1)
    assert x.cpu().tolist() == [[1.0] * 3] * 2


def test_numbers_that_an_integer_dtype_cannot_hold():
    x = flow.tensor([1, 2], dtype=flow.uint8)
    assert (x + (-2)).tolist() == [255, 0]
    for number in (300, -300, 2**70):
        with pytest.raises(ArgumentError, match="0 to 255"):
            x + number
    assert x.tolist() == [1, 2]
