"""Properties of `.grad`: its own memory, dense, writable, one object; retain_grad and detach."""

import numpy as np
import pytest

import oneflow_lite as flow
from oneflow_lite.errors import (
    GradientError,
    StaleTensorError,
)
from oneflow_lite.ops.registry import FUNCTORS, GRAD_FUNCS, KERNELS
from tests.autograd.leaves import leaf


@pytest.fixture
def several():
    """An op of two inputs and two outputs, without a gradient yet."""
    yield flow.register_op("several")(lambda xp, x, y: (x + y, x * y))
    for registry in (KERNELS, FUNCTORS, GRAD_FUNCS):
        registry.remove("several")


MANY_WAYS = {
    "clone": lambda x: x.clone(),
    "add": lambda x: x + 0,
    "add itself": lambda x: x + x,
    "transpose": lambda x: x.t(),
    "reshape": lambda x: x.reshape(-1),
    "expand": lambda x: x.expand(3, 2, 2),
    "sum": lambda x: x.sum(),
    "sum of one dimension": lambda x: x.sum(0),
    "index": lambda x: x[0],
    "strided": lambda x: x[:, ::2],
    "cat": lambda x: flow.cat([x, x]),
    "flip": lambda x: x.flip(0),
    "mul by a scalar": lambda x: x * 2,
    "mul by itself": lambda x: x * x,
    "matmul": lambda x: x @ x,
    "permute": lambda x: x.permute(1, 0),
    "the leaf itself": lambda x: x,
}


class TestMemoryOfGradients:
    """`.grad` is nobody else's memory, dense, writable, and one object."""

    @pytest.mark.parametrize("way", MANY_WAYS)
    @pytest.mark.parametrize("broadcast", [False, True])
    def test_is_dense_writable_and_its_own(self, way, broadcast):
        x = leaf([[1.0, 2.0], [3.0, 4.0]])
        y = MANY_WAYS[way](x)
        if broadcast:
            given = flow.from_numpy(np.broadcast_to(np.float32(2), y.shape))
        else:
            given = flow.full(y.shape, 2.0)
        y.backward(given)
        expected = x.grad.numpy().copy()
        array = x.grad.numpy()
        assert array.shape == x.shape and array.dtype == np.float32
        assert array.flags.c_contiguous and array.flags.writeable
        assert array.base is None or array.base.size == array.size
        for other in (x, given, y):
            assert not np.shares_memory(array, other.numpy())
        first = x.grad
        version = first._version
        MANY_WAYS[way](x).backward(given)
        assert x.grad is first
        assert x.grad.numpy() is array
        np.testing.assert_array_equal(array, 2 * expected)
        assert first._version > version
        assert (given.numpy() == 2).all()

    def test_two_leaves_get_their_own(self):
        x, y = leaf([1.0, 2.0]), leaf([3.0, 4.0])
        (x + y).backward(flow.ones(2))
        assert not np.shares_memory(x.grad.numpy(), y.grad.numpy())
        x.grad.zero_()
        assert y.grad.tolist() == [1.0, 1.0]

    @pytest.mark.parametrize(
        "join",
        [
            lambda x, y: x + y,
            lambda x, y: x - y,
            lambda x, y: flow.where(flow.tensor([True, False]), x, y),
            lambda x, y: flow.cat([x, y]),
            lambda x, y: flow.stack([x, y]),
            lambda x, y: flow.maximum(x, y),
            lambda x, y: flow.lerp(x, y, 0.5),
        ],
    )
    def test_two_leaves_of_any_joining_op(self, join):
        x, y = leaf([1.0, 2.0]), leaf([3.0, 4.0])
        join(x, y).sum().backward()
        assert not np.shares_memory(x.grad.numpy(), y.grad.numpy())
        for t in (x, y):
            assert t.grad.numpy().flags.c_contiguous and t.grad.numpy().flags.writeable
        before = y.grad.tolist()
        x.grad.fill_(7)
        assert y.grad.tolist() == before

    @pytest.mark.parametrize(
        "rule",
        {
            "what came": lambda F, ctx, dy, dz: (dy, dz),
            "one twice": lambda F, ctx, dy, dz: (dy, dy),
            "one sum twice": lambda F, ctx, dy, dz: (dy + dz,) * 2,
            "a sum and a view of it": lambda F, ctx, dy, dz: ((total := dy + dz), total[:]),
            "what was saved": lambda F, ctx, dy, dz: (ctx.y0, ctx.y1),
            "sums": lambda F, ctx, dy, dz: (dy + dz, dy + dz),
        }.items(),
        ids=lambda rule: rule[0],
    )
    @pytest.mark.parametrize("backward", [False, True])
    @pytest.mark.parametrize("roots", ["first", "both", "sum"])
    def test_through_an_op_of_several_outputs(self, several, rule, backward, roots):
        several.grad(saves="y0, y1")(rule[1])
        x, y = leaf([1.0, 2.0]), leaf([3.0, 4.0])
        outputs = several(x, y)
        reached = {"first": outputs[:1], "both": outputs, "sum": [outputs[0] + outputs[1]]}[roots]
        given = [flow.ones(2) for _ in reached]
        if backward:
            flow.autograd.backward(reached, given)
            grads = [x.grad, y.grad]
        else:
            grads = list(flow.autograd.grad(reached, [x, y], given))
        held = [tensor.tolist() for tensor in (*outputs, *given)]
        second = grads[1].tolist()
        grads[0].zero_()
        assert grads[1].tolist() == second
        grads[1].zero_()
        assert [tensor.tolist() for tensor in (*outputs, *given)] == held

    def test_of_roots_that_are_leaves(self):
        x, y = leaf([1.0, 2.0]), leaf([3.0, 4.0])
        given = [flow.ones(2), flow.ones(2)]
        for grad in flow.autograd.grad([x, y], [x, y], given):
            grad.zero_()
        flow.autograd.backward([x, y], given)
        x.grad.zero_()
        assert [g.tolist() for g in given] == [[1.0, 1.0]] * 2 and y.grad.tolist() == [1.0, 1.0]

    def test_fresh_gradients_are_not_copied(self, several):
        """An array that a rule made for one leaf becomes that leaf's gradient itself."""
        made = []

        def rule(F, ctx, dy, dz):
            made[:] = [dy + 1, dy + 2]
            return tuple(made)

        rule.__module__ = "oneflow_lite.grad_funcs"  # the package's rules keep nothing
        several.grad()(rule)
        x, y = leaf([1.0, 2.0]), leaf([3.0, 4.0])
        first, second = flow.autograd.grad(several(x, y)[0], [x, y], flow.ones(2))
        assert first.numpy() is made[0] and second.numpy() is made[1]
        several(x, y)[0].backward(flow.ones(2))
        assert x.grad.numpy() is made[0] and y.grad.numpy() is made[1]

    def test_gradients_that_a_users_rule_keeps_are_copied(self, several):
        made = []

        def rule(F, ctx, dy, dz):
            made[:] = [dy + 1, dy + 2]
            return tuple(made)

        several.grad()(rule)
        x, y = leaf([1.0, 2.0]), leaf([3.0, 4.0])
        several(x, y)[0].backward(flow.ones(2))
        several(x, y)[0].backward(flow.ones(2))
        assert x.grad.tolist() == [4.0, 4.0] and made[0].tolist() == [2.0, 2.0]
        assert not np.shares_memory(x.grad.numpy(), made[0].numpy())

    def test_a_gradient_that_reaches_two_leaves_on_long_ways(self):
        x, y, z = leaf([1.0, 2.0]), leaf([1.0, 2.0]), leaf([1.0, 2.0])
        out = (x + 0).reshape(2) + ((y + z) + x)
        out.backward(flow.ones(2))
        arrays = [t.grad.numpy() for t in (x, y, z)]
        assert [a.tolist() for a in arrays] == [[2.0, 2.0], [1.0, 1.0], [1.0, 1.0]]
        for i in range(3):
            for j in range(i):
                assert not np.shares_memory(arrays[i], arrays[j])

    def test_what_the_user_holds_is_not_overwritten(self):
        x = leaf([1.0, 2.0])
        given = flow.ones(2)
        y = x + 0
        (y + y).backward(given, retain_graph=True)
        (y + y).backward(given)
        assert given.tolist() == [1.0, 1.0]
        held = x.grad.numpy().copy()
        (g,) = flow.autograd.grad((x * x).sum(), x)
        kept = g.numpy().copy()
        (x * x).sum().backward()
        assert g.numpy().tolist() == kept.tolist()
        assert (x.grad.numpy() == held + kept).all()

    def test_the_gradient_of_a_saved_tensor_is_not_the_saved_tensor(self):
        """mul's gradient by x at dy = 1 has the values of y: it must not be y."""
        x, y = leaf([1.0, 2.0]), leaf([3.0, 4.0])
        (x * y).sum().backward()
        x.grad.zero_()
        assert y.tolist() == [3.0, 4.0]

    def test_an_assigned_gradient_is_added_to_in_place(self):
        x = leaf([1.0, 2.0])
        mine = flow.tensor([10.0, 20.0])
        x.grad = mine
        assert x.grad is mine
        x.sum().backward()
        assert x.grad is mine
        assert mine.tolist() == [11.0, 21.0]

    def test_grad_may_be_cleared(self):
        x = leaf([1.0])
        x.sum().backward()
        x.grad = None
        assert x.grad is None
        x.sum().backward()
        assert x.grad.tolist() == [1.0]
        del x.grad
        assert x.grad is None

    def test_of_a_broadcast_operand(self):
        x, b = leaf(np.ones((4, 3), np.float32)), leaf([1.0, 2.0, 3.0])
        (x * b).sum().backward()
        assert b.grad.tolist() == [4.0, 4.0, 4.0]
        assert b.grad.numpy().flags.c_contiguous and b.grad.numpy().flags.writeable
        s = leaf(2.0)
        (x.detach() * s).sum().backward()
        assert s.grad.shape == () and s.grad.item() == 12
        assert type(s.grad.numpy()) is np.ndarray

    def test_keeps_the_dtype(self):
        for dtype in (flow.float16, flow.float32, flow.float64):
            x = flow.ones(3, dtype=dtype, requires_grad=True)
            ((x * 2 + 1) / 3).pow(2).sum().backward()
            assert x.grad.dtype == dtype

    def test_of_mixed_dtypes(self):
        x = flow.ones(3, dtype=flow.float32, requires_grad=True)
        y = flow.ones(3, dtype=flow.float64, requires_grad=True)
        (x * y).sum().backward()
        assert x.grad.dtype == flow.float32 and y.grad.dtype == flow.float64


class TestRetainGrad:
    def test_keeps_the_gradient_of_a_non_leaf(self):
        x = leaf([1.0, 2.0])
        y = x * x
        assert not y.retains_grad
        y.retain_grad()
        assert y.retains_grad and y.autograd_meta.retain_grad
        (y * 3).sum().backward()
        assert y.grad.tolist() == [3.0, 3.0]
        assert y.autograd_meta.acc_grad is y.grad

    def test_without_it_there_is_none(self):
        x = leaf([1.0, 2.0])
        y = x * x
        y.sum().backward()
        assert y.grad is None

    def test_on_the_root(self):
        x = leaf(2.0)
        y = x * x
        y.retain_grad()
        y.backward()
        assert y.grad.item() == 1

    def test_accumulates_as_a_leafs(self):
        x = leaf(2.0)
        y = x * 3
        y.retain_grad()
        (y * y).backward(retain_graph=True)
        first = y.grad
        (y * 2).backward()
        assert y.grad.item() == 12 + 2
        assert y.grad is first

    def test_on_a_leaf_it_changes_nothing(self):
        x = leaf(2.0)
        x.retain_grad()
        assert not x.retains_grad
        (x * x).backward()
        assert x.grad.item() == 4

    def test_without_a_gradient(self):
        with pytest.raises(GradientError, match="retain_grad"):
            flow.ones(1).retain_grad()

    def test_one_output_of_several(self):
        x = leaf([1.0, 2.0])
        a, b = x.unbind()
        b.retain_grad()
        (a * b).backward()
        assert b.grad.item() == 1
        assert a.grad is None
        assert x.grad.tolist() == [2.0, 1.0]

    def test_does_not_share_memory_with_another_gradient(self):
        x = leaf([1.0, 2.0])
        y = x.clone()
        y.retain_grad()
        given = flow.ones(2)
        y.backward(given)
        arrays = [x.grad.numpy(), y.grad.numpy(), given.numpy()]
        for i in range(3):
            for j in range(i):
                assert not np.shares_memory(arrays[i], arrays[j])

    def test_is_not_touched_by_autograd_grad(self):
        """PyTorch's fills it; ours is pure: it changes no `.grad` at all."""
        x = leaf(2.0)
        y = x * x
        y.retain_grad()
        assert flow.autograd.grad(y * 3, x)[0].item() == 12.0
        assert y.grad is None and x.grad is None


class TestDetach:
    def test_shares_storage_and_version(self):
        x = leaf([1.0, 2.0])
        y = x * 2
        d = y.detach()
        assert not d.requires_grad and d.grad_fn is None and d.is_leaf
        assert not d.is_view()
        assert np.shares_memory(d.numpy(), y.numpy())
        assert d.memory is y.memory
        d.zero_()
        assert y.tolist() == [0.0, 0.0]
        assert y._version == d._version == 1

    def test_stops_the_gradient(self):
        x = leaf(3.0)
        (x * x.detach()).backward()
        assert x.grad.item() == 3

    def test_a_write_through_it_is_noticed(self):
        x = leaf([1.0, 2.0])
        y = x.exp()
        y.detach().zero_()
        with pytest.raises(StaleTensorError, match="exp_backward"):
            y.sum().backward()
        assert x.grad is None

    def test_data_is_without_history(self):
        x = leaf([1.0])
        assert not x.data.requires_grad
        assert np.shares_memory(x.data.numpy(), x.numpy())

    def test_in_place(self):
        y = leaf([1.0]) * 2
        assert y.detach_() is y
        assert y.is_leaf and not y.requires_grad and y.grad_fn is None
