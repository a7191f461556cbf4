"""Views that are not written, or not used after a write; PyTorch refuses nearly all of them too."""

import pytest

import oneflow_lite as flow
from oneflow_lite.errors import InplaceError
from oneflow_lite.ops.registry import FUNCTORS, KERNELS
from tests.tensors.test_inplace import WRITES
from tests.tensors.test_views import A, leaf


class TestRefused:
    """Views that PyTorch does not let be written, or used after a write."""

    @pytest.fixture
    def y(self):
        return leaf(A[0]) * 2

    PARTS = {
        "split": lambda y: y.split(1)[1],
        "split in one": lambda y: y.split(3)[0],
        "chunk": lambda y: y.chunk(2)[0],
        "unbind": lambda y: y.unbind(1)[1],
        "iteration": lambda y: next(iter(y)),
        "a view of a part": lambda y: y.split(2)[0][1],
    }

    @pytest.mark.parametrize("part", PARTS)
    @pytest.mark.parametrize("write", WRITES)
    def test_one_of_several(self, y, part, write):
        v = self.PARTS[part](y)
        with pytest.raises(InplaceError, match=r"one of several outputs.*narrow|clone"):
            WRITES[write](v)
        assert y._version == 0 and y.tolist() == (A[0] * 2).tolist()
        with flow.no_grad():
            WRITES[write](v)
        assert y._version == 1

    @pytest.mark.parametrize("part", PARTS)
    def test_one_of_several_of_a_constant(self, part):
        c = flow.ones(3, 4, dtype=flow.float64)
        v = self.PARTS[part](c)
        v.mul_(2)
        assert c._version == 1
        with pytest.raises(InplaceError, match="one of several outputs"):
            v.mul_(leaf(2.0))
        assert c._version == 1 and not c.requires_grad

    @pytest.mark.parametrize("part", PARTS)
    @pytest.mark.parametrize("mode", [flow.enable_grad, flow.no_grad])
    def test_one_of_several_after_a_write(self, y, part, mode):
        v = self.PARTS[part](y)
        with mode():
            y.mul_(3)
        for use in (
            lambda: v + 1,
            lambda: v * v,
            lambda: v.grad_fn,
            lambda: v.is_leaf,
            lambda: v.sum().backward(),
            lambda: v[..., 0],
            lambda: v.register_hook(print),
            lambda: v.retain_grad(),
            lambda: flow.autograd.grad(y.sum(), v),
        ):
            with pytest.raises(InplaceError, match="out of date"):
                use()
        assert v.requires_grad and "grad_fn=Invalid" in repr(v)
        with flow.no_grad():
            assert (v + 1).shape == v.shape
        y.sum().backward()

    def test_made_under_no_grad(self, y):
        with flow.no_grad():
            v = y[0]
            w = v[1:]
        assert not v.requires_grad  # PyTorch says True, and lets its gradients go nowhere
        for view in (v, w, v[:2]):
            with pytest.raises(InplaceError, match=r"under no_grad\(\)"):
                view.add_(1)
        assert y._version == 0 and (v + 1).sum().item() == (A[0, 0] * 2 + 1).sum()
        with flow.no_grad():
            v.add_(1)
        with pytest.raises(InplaceError, match="out of date"):
            v + 1

    def test_as_out(self, y):
        with flow.no_grad():
            v = y[0]
        a = flow.ones(4, dtype=flow.float64)
        with pytest.raises(RuntimeError, match="a view of such a one"):
            flow.add(a, a, out=v)
        assert y._version == 0

    def test_made_under_no_grad_of_a_constant(self):
        c = flow.ones(2, 3, dtype=flow.float64)
        with flow.no_grad():
            v = c[0]
        v.add_(1)
        with pytest.raises(InplaceError, match=r"under no_grad\(\)"):
            v.add_(leaf(1.0))
        assert c.sum().item() == 9
        c.mul_(leaf(2.0))
        with pytest.raises(InplaceError, match="out of date"):
            v + 1

    def test_parts_under_no_grad(self, y):
        with flow.no_grad():
            v = y.split(1)[0]
        with pytest.raises(InplaceError, match=r"under no_grad\(\)"):
            v.add_(1)

    def test_expanded_memory(self, device):
        x = flow.ones(1, 2, device=device)
        for mode in (flow.enable_grad, flow.no_grad):
            with mode(), pytest.raises(InplaceError, match="clone"):
                x.expand(3, 2).add_(1)
            with mode(), pytest.raises(InplaceError, match="clone"):
                x.expand(3, 2)[:, 0].zero_()
        assert x.tolist() == [[1.0, 1.0]] and x._version == 0
        x.expand(1, 1, 2).add_(1)  # nothing stands twice
        x.expand(1, 2).expand_as(x)[0].add_(1)
        assert x.tolist() == [[3.0, 3.0]] and x._version == 2

    def test_ops_of_several_inputs_that_return_views(self):
        @flow.register_op("first_of", view_of="x")
        def first_of(xp, x, y):
            return x[:1]

        try:
            c = flow.ones(2, dtype=flow.float64)
            v = first_of(c, flow.ones(2, dtype=flow.float64))
            v.add_(1)
            with pytest.raises(InplaceError, match="several inputs"):
                v.mul_(leaf(2.0))
            c.mul_(leaf(2.0))
            with pytest.raises(InplaceError, match="out of date"):
                v * 2
        finally:
            for registry in (KERNELS, FUNCTORS):
                registry.remove("first_of")

    def test_ops_of_several_outputs(self):
        @flow.register_op("halves", view_of="x")
        def halves(xp, x):
            return x[:1], x[1:]

        try:
            v, _ = halves(flow.ones(2, dtype=flow.float64))
            with pytest.raises(InplaceError, match="one of several outputs"):
                v.mul_(leaf(2.0))
        finally:
            for registry in (KERNELS, FUNCTORS):
                registry.remove("halves")

    def test_a_view_that_cannot_be_taken_again(self):
        turns = iter(range(5))

        @flow.register_op("wandering", view_of="x")
        def wandering(xp, x):
            place = next(turns)
            return x[place : place + 1]

        try:
            c = flow.ones(4, dtype=flow.float64)
            v = wandering(c)
            c.mul_(leaf(2.0))
            with pytest.raises(InplaceError, match="taken anew"):
                v * 2
        finally:
            for registry in (KERNELS, FUNCTORS):
                registry.remove("wandering")

    def test_a_view_of_integers_that_reads_them_as_floats(self):
        @flow.register_op("as_floats", view_of="x")
        def as_floats(xp, x):
            return x.view(xp.float64)

        try:
            c = flow.zeros(2, dtype=flow.int64)
            v = as_floats(c)
            v.add_(1)
            assert c[0].item() == 0x3FF0000000000000
            with pytest.raises(InplaceError, match="int64"):
                v.mul_(leaf(2.0))
        finally:
            for registry in (KERNELS, FUNCTORS):
                registry.remove("as_floats")
