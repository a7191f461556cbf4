"""Views over time: hooks, changes of shape in place, lifetimes, and long programs."""

import gc
import weakref

import numpy as np
import pytest

import oneflow_lite as flow
from oneflow_lite.errors import DimError, InplaceError
from tests.tensors.test_views import A, leaf
from tests.tensors.test_views_written import compare


class TestHooks:
    """A hook stays with the value it was registered on; `retain_grad` goes on to the new one."""

    @staticmethod
    def run(lib, write, use):
        seen = []
        x = lib.tensor(np.ones(4), requires_grad=True)
        y = x * 2
        y.retain_grad()
        y.register_hook(lambda g: seen.append(("y", g.tolist())))
        v, w = y[:2], y[1:3]
        v.retain_grad()
        w.retain_grad()
        write(v, y)
        _ = v.grad_fn  # else PyTorch 2.13 dereferences null in register_hook
        v.register_hook(lambda g: seen.append(("v after", g.tolist())))
        y.register_hook(lambda g: seen.append(("y after", g.tolist())))
        used = {"y": y, "v": v, "w": w}[use]
        (used * lib.arange(1.0, 1.0 + used.numel(), dtype=lib.float64)).sum().backward()
        grads = [None if t.grad is None else t.grad.tolist() for t in (x, y, v, w)]
        return sorted(seen), grads, [t.retains_grad for t in (y, v, w)]

    @pytest.mark.filterwarnings("ignore:The .grad attribute")
    @pytest.mark.parametrize("use", ["y", "v", "w"])
    @pytest.mark.parametrize("through", ["view", "base", "both"])
    def test_as_in_pytorch(self, use, through):
        torch = pytest.importorskip("torch")

        def write(v, y):
            if through != "base":
                v.mul_(3)
            if through != "view":
                y.mul_(5)

        assert self.run(flow, write, use) == self.run(torch, write, use)

    def test_a_hook_on_a_view_gets_the_gradient_of_the_old_value(self):
        """PyTorch never calls it: there the history of a base skips the view's old node."""
        seen = []
        x = leaf([1.0, 2.0, 3.0])
        y = x * 2
        v = y[:2]
        v.register_hook(lambda g: seen.append(g.tolist()))
        v.mul_(3)
        y.sum().backward()
        assert seen == [[3.0, 3.0]] and x.grad.tolist() == [6.0, 6.0, 2.0]

    def test_what_retain_grad_leaves_behind(self):
        y = leaf([1.0, 2.0, 3.0]) * 2
        y.retain_grad()
        before = y.autograd_meta
        y[:2].mul_(3)
        y.sum().backward()
        assert not before.retain_grad and before.acc_grad is None
        assert y.grad.tolist() == [1.0, 1.0, 1.0]

    def test_a_hook_that_changes_the_gradient_of_a_base(self):
        x = leaf([1.0, 2.0, 3.0])
        y = x * 2
        y.register_hook(lambda g: g * 10)
        y[:2].mul_(3)
        y.register_hook(lambda g: g + 1)
        y.sum().backward()
        assert x.grad.tolist() == [120.0, 120.0, 40.0]


RESHAPING = {
    "t_": (),
    "transpose_": (0, 1),
    "swapaxes_": (1, 0),
    "swapdims_": (0, 1),
    "squeeze_": (),
    "squeeze_ of one": (0,),
    "unsqueeze_": (1,),
}


class TestShapesChangedInPlace:
    """t_, transpose_, squeeze_, unsqueeze_: the same memory, and every view of it stays right."""

    @pytest.mark.parametrize("name", RESHAPING)
    def test_like_the_view_of_that_name(self, name, device):
        op, args = name.split()[0], RESHAPING[name]
        x = flow.tensor(A[:1, 0], device=device)
        expected = getattr(x.clone(), op.rstrip("_"))(*args)
        before = x.numpy()
        assert getattr(x, op)(*args) is x
        assert x.shape == expected.shape and (x.cpu() == expected.cpu()).all()
        assert x._version == 1 and x._base is None and not x.is_view()
        assert device != "cpu" or np.shares_memory(x.numpy(), before)

    @pytest.mark.parametrize("name", RESHAPING)
    def test_facts_are_those_of_pytorch(self, name):
        torch = pytest.importorskip("torch")
        op, args = name.split()[0], RESHAPING[name]
        facts = []
        for lib in (flow, torch):
            x = lib.tensor(A[:1, 0], requires_grad=True)
            for source in (x.detach().clone(), x * 1):
                v = source[:, :3]
                getattr(v, op)(*args)
                w = source[:, 1:]
                getattr(source, op)(*args)
                for t in (v, w, source):
                    facts_of = [tuple(t.shape), t._version, t._base is source, t._base is None]
                    facts.append([*facts_of, t.requires_grad, t.is_leaf, t.tolist()])
        assert facts[: len(facts) // 2] == facts[len(facts) // 2 :]

    @pytest.mark.parametrize("name", RESHAPING)
    def test_leaves_are_refused(self, name):
        op, args = name.split()[0], RESHAPING[name]
        x = leaf(A[:1, 0])
        for mode in (flow.enable_grad, flow.no_grad):
            with mode(), pytest.raises(InplaceError, match=r"_\(\).*leaf.*\.grad"):
                getattr(x, op)(*args)
        with pytest.raises(InplaceError, match="leaf"):
            getattr(x[:, 1:], op)(*args)
        with pytest.raises(InplaceError, match="one of several outputs"):
            getattr((x * 1).split(1)[0], op)(*args)
        assert x.shape == (1, 4) and x._version == 0

    @pytest.mark.parametrize("first", RESHAPING)
    @pytest.mark.parametrize("second", ["t_", "squeeze_", "unsqueeze_", "nothing"])
    def test_views_from_before_and_after(self, first, second):
        def change(t, name):
            if name != "nothing" and (name != "t_" or t.ndim <= 2):
                getattr(t, name.split()[0])(*RESHAPING[name])

        def program(lib, a, w):
            y = a * 1
            before = y[:, 1:]
            flat = y.view(-1)
            change(y, first)
            between = y[..., :1]
            before.mul_(w[1:])
            change(before, first)
            change(y, second)
            after = y.reshape(-1)[:3]
            between.mul_(2)
            after.mul_(w[:3])
            before.add_(1)
            flat[2:].sigmoid_()
            return y, before, flat, between, after

        compare(program, [A[:1, 0] / 10, A[1, 0] / 10], (True, True))

    def test_under_no_grad_the_history_follows(self):
        x = leaf([[1.0, 2.0], [3.0, 4.0]])
        y = x * 1
        with flow.no_grad():
            y.t_()
        (y * flow.tensor([[1.0, 2.0], [3.0, 4.0]], dtype=flow.float64)).sum().backward()
        assert x.grad.tolist() == [[1.0, 3.0], [2.0, 4.0]]

    def test_retain_grad_and_errors(self):
        x = leaf(A[0])
        y = x * 1
        y.retain_grad()
        y.t_()
        y.sum().backward()
        assert y.grad.shape == (4, 3)
        y = x * 1
        for call in (lambda: y.transpose_(0, 5), lambda: y.unsqueeze_(4), lambda: y[None].t_()):
            with pytest.raises((DimError, RuntimeError)):
                call()
        assert y.shape == (3, 4) and y._version == 0

    def test_expanded_memory_may_change_its_shape(self):
        x = flow.ones(1, 2).expand(3, 2)
        assert x.t_().shape == (2, 3)

    def test_detach_(self):
        x = leaf([1.0, 2.0])
        x.sum().backward()
        assert x.detach_() is x and not x.requires_grad and x.is_leaf
        assert x.grad.tolist() == [1.0, 1.0] and x._version == 0
        y = leaf([1.0, 2.0]) * 2
        y.detach_()
        assert y.is_leaf and y.grad_fn is None
        with pytest.raises(RuntimeError, match="view"):
            y[:1].detach_()


@pytest.fixture
def no_collector():
    gc.collect()
    gc.disable()
    yield
    gc.enable()


@pytest.mark.usefixtures("no_collector")
class TestLifetimes:
    """Dropping the last reference frees memory and graph at once."""

    def test_base_view_and_nodes(self):
        x = leaf(A[0])
        y = x * 2
        v = y[0]
        v.mul_(3)
        w = y[1:]
        w.t_()
        y.add_(1)
        w[0].sigmoid_()
        things = [weakref.ref(t) for t in (y, v, w, y.grad_fn, v.grad_fn, w.grad_fn)]
        y.sum().backward(retain_graph=True)
        del y, v
        assert things[0]() is not None  # the base of w
        del w
        assert [t() for t in things] == [None] * 6

    def test_a_view_keeps_its_base_and_no_more(self):
        x = leaf(A[0])
        y = x * 2
        v, base = y[0], weakref.ref(y)
        node = weakref.ref(y.grad_fn)
        del y
        v.mul_(2)
        assert base() is not None and v._base is base()
        assert node() is not None
        del v
        assert base() is None and node() is None

    def test_a_recurrence(self):
        x = leaf([1.5, 1.0])
        y = flow.zeros(50, dtype=flow.float64)
        y[0] = x[0]
        for i in range(1, 50):
            y[i] = y[i - 1].clone() * x[1]
        y.sum().backward(retain_graph=True)
        assert x.grad.tolist() == [50.0, 1.5 * 49 * 25]
        things = weakref.ref(y), weakref.ref(y.grad_fn)
        del y
        assert [t() for t in things] == [None, None]

    def test_after_an_error_and_with_create_graph(self):
        x = leaf(A[0])
        y = x * 2
        y[0].mul_(y[1])
        node = weakref.ref(y.grad_fn)
        with pytest.raises(RuntimeError):
            y.sum().backward()
        del y
        assert node() is None
        y = x * 2
        v = y[0]
        v.mul_(x[1])
        (g,) = flow.autograd.grad((y * y).sum(), x, create_graph=True)
        things = weakref.ref(y), weakref.ref(v), weakref.ref(y.grad_fn), weakref.ref(g.grad_fn)
        del y, v, g
        assert [t() for t in things] == [None] * 4


class TestLongPrograms:
    @pytest.mark.slow(but=1)
    @pytest.mark.parametrize("view", [lambda y: y, lambda y: y[1:3]])
    def test_writes(self, view):
        x = leaf([1.0, 2.0, 3.0, 4.0])
        y = x * 1
        v = view(y)
        for _ in range(30_000):
            v.add_(1)
        (v * v).sum().backward()
        expected = np.zeros(4)
        inside = slice(None) if v is y else slice(1, 3)
        expected[inside] = (2 * (x.detach().numpy() + 30_000))[inside]
        assert x.grad.tolist() == expected.tolist()
        node = weakref.ref(y.grad_fn)
        del y, v
        assert node() is None

    def test_setitem(self):
        x = leaf([1.0, 2.0])
        y = flow.zeros(4, dtype=flow.float64)
        for i in range(20_000):
            y[i % 4] = x[i % 2]
        y.sum().backward()
        assert x.grad.tolist() == [2.0, 2.0]

    def test_views_of_views(self):
        x = leaf([1.0, 2.0, 3.0])
        y = x * 1
        v = y
        for _ in range(20_000):
            v = v[...]
        v.mul_(2)
        y.add_(1)
        v.sum().backward()
        assert x.grad.tolist() == [2.0, 2.0, 2.0]

    def test_shapes(self):
        x = leaf(A[0])
        y = x * 1
        v = y[0]
        for _ in range(10_001):
            y.t_()
        v.mul_(2)
        assert y.shape == (4, 3)
        y[:, :1].sum().backward()
        assert x.grad.tolist() == [[2.0] * 4, [0.0] * 4, [0.0] * 4]
