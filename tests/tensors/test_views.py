"""Views: what they know of their base, what a write to either does to both, what is refused."""

import numpy as np
import pytest

import oneflow_lite as flow
from oneflow_lite.arrays.array_spec import overlaps as overlap
from oneflow_lite.errors import ArgumentTypeError, InplaceError
from oneflow_lite.ops.registry import FUNCTORS, GRAD_FUNCS, KERNELS
from oneflow_lite.tensors.views import same_memory

A = np.arange(24.0).reshape(2, 3, 4)


def leaf(data, dtype=flow.float64, device="cpu"):
    return flow.tensor(data, dtype=dtype, device=device, requires_grad=True)


def lib_of(x):
    if isinstance(x, flow.Tensor):
        return flow
    import torch

    return torch


# Each of these is asked of PyTorch too.
CALLS = {
    "[0]": lambda x: x[0],
    "[...]": lambda x: x[...],
    "[()]": lambda x: x[()],
    "[None]": lambda x: x[None],
    "[1:, ::2]": lambda x: x[1:, ::2],
    "[[0, 1]]": lambda x: x[[0, 1]],
    "[0, [1]]": lambda x: x[0, [1]],
    "[mask]": lambda x: x[x.real > 3],
    "view": lambda x: x.view(6, 4),
    "view of the same shape": lambda x: x.view(2, 3, 4),
    "reshape": lambda x: x.reshape(-1),
    "reshape to the same shape": lambda x: x.reshape(2, 3, 4),
    "reshape that copies": lambda x: x.transpose(0, 2).reshape(-1),
    "transpose": lambda x: x.transpose(0, 1),
    "transpose of one dimension": lambda x: x.transpose(0, 0),
    "permute": lambda x: x.permute(2, 0, 1),
    "t": lambda x: x[0].t(),
    "t of a vector": lambda x: x[0, 0].t(),
    "t of a number": lambda x: x[0, 0, 0].t(),
    "T": lambda x: x[0].T,
    "mT": lambda x: x.mT,
    "squeeze": lambda x: x.squeeze(),
    "squeeze(0)": lambda x: x[:1].squeeze(0),
    "unsqueeze": lambda x: x.unsqueeze(1),
    "expand": lambda x: x[:1].expand(5, 3, 4),
    "expand to the same shape": lambda x: x.expand(2, 3, 4),
    "expand in front": lambda x: x.expand(1, 2, 3, 4),
    "expand_as": lambda x: x.expand_as(x),
    "broadcast_to": lambda x: x.broadcast_to((5, 2, 3, 4)),
    "narrow": lambda x: x.narrow(1, 0, 2),
    "select": lambda x: x.select(1, 2),
    "split": lambda x: x.split(1)[1],
    "split in one": lambda x: x.split(2)[0],
    "split by sizes": lambda x: x.split([1, 2], 1)[1],
    "chunk": lambda x: x.chunk(2)[0],
    "unbind": lambda x: x.unbind(1)[1],
    "iteration": lambda x: list(x)[1],
    "diagonal": lambda x: x.diagonal(),
    "diagonal(1, 1, 2)": lambda x: x.diagonal(1, 1, 2),
    "unfold": lambda x: x.unfold(2, 2, 1),
    "unfold of a number": lambda x: x[0, 0, 0].unfold(0, 1, 1),
    "view_as": lambda x: x.view_as(x.reshape(6, 4)),
    "view_as itself": lambda x: x.view_as(x),
    "reshape_as": lambda x: x.reshape_as(x),
    "movedim": lambda x: x.movedim(0, 2),
    "movedim to its place": lambda x: x.movedim(0, 0),
    "moveaxis": lambda x: x.moveaxis(0, 1),
    "flatten": lambda x: x.flatten(),
    "flatten(1)": lambda x: x.flatten(1),
    "flatten of a vector": lambda x: x[0, 0].flatten(),
    "flatten that copies": lambda x: x.transpose(0, 2).flatten(),
    "ravel": lambda x: x.ravel(),
    "unflatten": lambda x: x.unflatten(2, (2, 2)),
    "swapaxes": lambda x: x.swapaxes(0, 1),
    "swapdims": lambda x: x.swapdims(0, 1),
    "real": lambda x: x.real,
    "real of a view": lambda x: x[1].real,
    "imag": lambda x: x.imag if x.is_complex() else x,
    "detach": lambda x: x.detach(),
    "view of detach": lambda x: x.detach()[0],
    "contiguous": lambda x: x.contiguous(),
    "clone": lambda x: x.clone(),
    "to its dtype": lambda x: x.to(x.dtype),
    "view as another dtype": lambda x: (
        x if x.is_complex() else x.view(lib_of(x).int64)
    ),
    "view of a view": lambda x: x[0].t()[1:].unsqueeze(0),
}  # fmt: skip


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("requires_grad", [False, True])
@pytest.mark.parametrize("dtype", ["float64", "complex128"])
def test_base_and_version_are_those_of_pytorch(call, requires_grad, dtype):
    torch = pytest.importorskip("torch")
    facts = []
    for lib in (flow, torch):
        x = lib.tensor(A.astype(dtype), requires_grad=requires_grad)
        x = x * 1 if requires_grad else x
        y = CALLS[call](x)
        is_view = y.is_view() if lib is flow else y._is_view()
        seen = [y is x, is_view, y._base is x, y._base is None, tuple(y.shape), y.requires_grad]
        with lib.no_grad():
            x.zero_()
        facts.append([*seen, x._version, y._version])
    assert facts[0] == facts[1]


def test_views_share_memory_and_version_on_each_device(device):
    for call in (lambda x: x[0], lambda x: x.unfold(2, 2, 2), lambda x: x.unfold(2, 2, 2)[1].mT):
        x = flow.tensor(A + 1, device=device)
        y = call(x)
        assert y._base is x
        y.zero_()
        assert x._version == y._version == 1
        assert (x == 0).sum().item() == y.numel()


class TestRefreshed:
    """A view whose base was written has the base's new history."""

    def test_every_use(self, device):
        for use in (
            lambda v: v + 1,
            lambda v: v.exp(),
            lambda v: v * v,
            lambda v: flow.cat([v, v]),
            lambda v: v[1:],
            lambda v: v.reshape(-1).sum(),
            lambda v: v,
        ):
            x = leaf(A[0], device=device)
            y = x * 2
            v = y[0]
            y.mul_(3)
            use(v).sum().backward()
            grad = x.grad.cpu().numpy()
            assert (grad[0] != 0).any() and (grad[1:] == 0).all()
            again = leaf(A[0], device=device)
            use((again * 6)[0]).sum().backward()
            np.testing.assert_allclose(grad, again.grad.cpu().numpy())

    def test_attributes(self):
        x = leaf(A[0])
        y = x * 2
        v = y[0]
        before = v.grad_fn
        assert v.grad_fn is before and before.next_functions[0][0] is y.grad_fn
        y.mul_(3)
        assert v.grad_fn is not before and v.grad_fn.name() == "getitem_backward"
        assert v.grad_fn.next_functions == ((y.grad_fn, 0),)
        assert v.grad_fn is v.grad_fn_node and v.output_nr == 0 and not v.is_leaf
        assert v.grad_fn.sequence_nr > y.grad_fn.sequence_nr

    @pytest.mark.parametrize("look", ["requires_grad", "is_leaf", "grad_fn_node", "sum", "retain"])
    def test_a_constant_that_joins_the_graph_takes_its_views_along(self, look):
        x = leaf(A[0])
        c = flow.zeros(3, 4, dtype=flow.float64)
        v, w = c[0], c[:, 1]
        assert v.is_leaf and not v.requires_grad
        w.copy_(x[:, 2])
        if look == "requires_grad":
            assert v.requires_grad and c.requires_grad
        elif look == "is_leaf":
            assert not v.is_leaf and not c.is_leaf
        elif look == "grad_fn_node":
            assert v.grad_fn_node.next_functions[0][0] is c.grad_fn
        elif look == "retain":
            v.retain_grad()
            assert v.retains_grad
        (v * v).sum().backward()
        expected = np.zeros((3, 4))
        expected[0, 2] = 2 * A[0, 0, 2]
        assert x.grad.tolist() == expected.tolist()

    def test_as_input_of_autograd_grad(self):
        x = leaf(A[0])
        y = x * 2
        v = y[0]
        y.mul_(3)
        total = (v * 5).sum()
        assert flow.autograd.grad(total, v)[0].tolist() == [5.0] * 4
        (unused,) = flow.autograd.grad((y * 1).sum(), v, allow_unused=True)
        assert unused is None  # y was not made from v

    def test_a_write_without_history_leaves_the_views_leaves(self):
        c = flow.ones(2, 3)
        v = c[0]
        c.mul_(2)
        assert (v + 1).tolist() == [3.0, 3.0, 3.0] and v.is_leaf and not v.requires_grad

    def test_requires_grad_of_the_base_after_a_view_was_taken(self):
        """PyTorch calls the view a leaf then, whose gradients go nowhere."""
        c = flow.zeros(3, dtype=flow.float64)
        v = c[:2]
        c.requires_grad_()
        assert not v.requires_grad and v.is_leaf
        with flow.no_grad():
            c.add_(1)
        assert v.requires_grad and not v.is_leaf
        (v * 2).sum().backward()
        assert c.grad.tolist() == [2.0, 2.0, 0.0]

    def test_detached_base(self):
        x = leaf(A[0])
        y = x * 2
        v = y[0]
        y.detach_()
        assert v.requires_grad and v.grad_fn.name() == "getitem_backward"
        with pytest.raises(InplaceError, match="leaf"):
            v.mul_(2)
        y.mul_(2)
        assert not v.requires_grad

    def test_a_base_that_was_detached_after_a_write_through_a_view(self):
        x = leaf(A[0])
        y = x * 2
        v = y[0]
        v.mul_(3)
        y.detach_()
        v.sum().backward()
        assert x.grad.tolist() == [[6.0] * 4, [0.0] * 4, [0.0] * 4]

    def test_a_view_that_is_a_leaf_of_its_own(self):
        c = flow.zeros(2, 2, dtype=flow.float64)
        v = c[0].requires_grad_()
        c.mul_(2)
        assert v.is_leaf and v.requires_grad and not c.requires_grad
        for write in (lambda: v.add_(1), lambda: v[0].add_(1)):
            with pytest.raises(InplaceError, match="leaf"):
                write()
        x = leaf([[1.0, 2.0], [3.0, 4.0]])
        c.add_(x)
        assert not v.is_leaf
        v.sum().backward()
        assert x.grad.tolist() == [[1.0, 1.0], [0.0, 0.0]]

    def test_new_memory_for_the_base(self):
        x = leaf(A[0])
        y = x * 2
        v = y[0]
        y.data = flow.zeros(3, 4, dtype=flow.float64)
        v.mul_(3)
        assert v._base is None and v.tolist() == (A[0, 0] * 6).tolist()
        assert y.sum().item() == 0 and y.grad_fn.name() == "mul_backward"
        v.sum().backward()
        assert x.grad.tolist() == [[6.0] * 4, [0.0] * 4, [0.0] * 4]

    def test_looked_at_under_no_grad(self):
        x = leaf(A[0])
        y = x * 2
        v = y[0]
        y.mul_(3)
        with flow.no_grad():
            assert v.requires_grad and v.grad_fn.next_functions == ((y.grad_fn, 0),)
        v.sum().backward()
        assert x.grad.sum().item() == 24

    def test_new_memory_for_a_view(self):
        y = leaf(A[0]) * 2
        v = y[0]
        v.data = y[1].data
        assert not v.is_view()
        v.zero_()
        assert y[1].sum().item() == 0 and y.grad_fn.name() == "mul_backward"

    def test_under_interpreters_and_no_grad(self):
        x = leaf(A[0])
        y = x * 2
        v = y[0]
        with flow.push_interpreter(flow.Interpreter()):
            y.mul_(3)
            z = v * 1
        with flow.no_grad():
            assert v.requires_grad and v.grad_fn is not None
        z.sum().backward()
        assert x.grad.sum().item() == 24

    def test_a_view_op_of_ones_own(self):
        @flow.register_op("every_other", view_of="x")
        def every_other(xp, x, *, start):
            return x[start::2]

        @every_other.grad(saves="x.shape")
        def every_other_grad(F, ctx, dy):
            return F.getitem_grad(dy, index=(slice(ctx.start, None, 2),), shape=ctx.x_shape)

        try:
            x = leaf([1.0, 2.0, 3.0, 4.0])
            y = x * 1
            v = every_other(y, start=1)
            v.mul_(v.detach().clone())
            y.mul_(10)
            assert v.tolist() == [40.0, 160.0]
            (v * flow.tensor([1.0, 2.0], dtype=flow.float64)).sum().backward()
            assert x.grad.tolist() == [0.0, 20.0, 0.0, 80.0]
        finally:
            for registry in (KERNELS, FUNCTORS, GRAD_FUNCS):
                registry.remove("every_other")


class TestMemory:
    """Questions of the framework about arrays; CuPy's carry no flag, so strides decide there."""

    @pytest.mark.parametrize(
        ("shape", "strides", "overlaps"),
        [
            ((3, 2), (16, 8), False),
            ((2, 3), (8, 16), False),  # transposed
            ((3, 2), (-16, 8), False),  # reversed
            ((2, 2), (32, 8), False),  # with gaps
            ((3, 2), (8, 8), True),  # windows of 2, a step of 1
            ((3, 3), (16, 8), True),  # windows of 3, a step of 2
            ((2, 3), (24, 8), False),  # windows of 3, a step of 3
            ((4, 2, 2), (16, 16, 8), True),
            ((3,), (0,), True),  # expanded
            ((1, 2), (0, 8), False),  # a size of 1 has no second element
            ((), (), False),
        ],
    )
    def test_overlap_is_told_from_strides(self, shape, strides, overlaps):
        array = np.lib.stride_tricks.as_strided(np.zeros(64)[32:], shape, strides)
        assert overlap(array) is overlaps

    def test_same_memory(self):
        x = np.arange(6.0)
        assert same_memory(x, x)
        assert same_memory(x[1:4], x[1:4])
        assert same_memory(x[None], x[None][:, ::1])
        assert not same_memory(x[1:4], x[2:5])
        assert not same_memory(x[:4], x[:3])
        assert not same_memory(x[::2], x[:3])
        assert not same_memory(x, x.view(np.int64))
        here, there = np.zeros((0, 2)), np.zeros((0, 2))
        assert same_memory(here, there)  # nothing lies nowhere
        assert not same_memory(x[:0], np.zeros((0, 2)))


@pytest.mark.parametrize("name", ["copy_", "fill_", "zero_", "add_", "t_"])
def test_only_tensors_are_written(name):
    args = {"zero_": (), "t_": ()}.get(name, (1.0,))
    with pytest.raises(ArgumentTypeError, match=rf"^{name}\(\): argument 'input'"):
        FUNCTORS.get(name)(np.zeros((2, 2)), *args)


def test_a_tensor_written_in_place_takes_no_out():
    x, y = flow.zeros(2), flow.zeros(2)
    with pytest.raises(TypeError, match=r"^add_\(\) got an unexpected keyword argument 'out'"):
        x.add_(1, out=y)
    assert x.tolist() == y.tolist() == [0.0, 0.0]


@pytest.mark.parametrize("mode", [flow.no_grad, flow.enable_grad])
def test_memory_shared_between_elements_is_not_filled(mode):
    x = flow.zeros(1).expand(3)
    with mode(), pytest.raises(InplaceError, match=r"^zero_\(\): the memory"):
        x.zero_()
    assert x._version == 0
