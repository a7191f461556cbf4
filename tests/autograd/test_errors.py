"""The state that a failed backward call leaves: the exception, `.grad`, the graph, the modes."""

import contextlib
import subprocess
import sys
import threading

import numpy as np
import pytest

import oneflow_lite as flow
from oneflow_lite import errors
from oneflow_lite.autograd.engine.graph_task import GraphTask
from oneflow_lite.autograd.engine.ready_queue import ReadyQueue
from oneflow_lite.ops.registry import FUNCTORS, GRAD_FUNCS, KERNELS
from oneflow_lite.tensors.mode import local
from oneflow_lite.tensors.node import AccumulateGrad
from tests.autograd.leaves import leaf


class Mine(Exception):
    pass


def fail(kind=Mine):
    """A hook that raises."""

    def hook(*grads):
        raise kind("mine")

    return hook


@pytest.fixture
def broken():
    """Registers an op `x * 2` with a given gradient rule."""
    names = []

    def register(rule, kernel=lambda xp, x: x * 2):
        names.append(f"broken_of_a_test_{len(names)}")
        op = flow.register_op(names[-1])(kernel)
        op.grad()(rule)
        return op

    yield register
    for name in names:
        for registry in (FUNCTORS, GRAD_FUNCS, KERNELS):
            registry.remove(name)


class TestTypeAndNote:
    @pytest.mark.parametrize("kind", [KeyError, Mine, ValueError, StopIteration, MemoryError])
    def test_except_works_as_around_any_call(self, kind):
        x = leaf([1.0])
        y = x.exp()
        y.register_hook(fail(kind))
        with pytest.raises(kind, match="mine") as caught:
            (y * 2).backward()
        assert type(caught.value) is kind and caught.value.args == ("mine",)
        assert caught.value.__notes__ == ["in the backward pass, at exp_backward"]
        assert caught.value.__cause__ is None and caught.value.__context__ is None

    @pytest.mark.parametrize("kind", [KeyboardInterrupt, SystemExit, GeneratorExit])
    def test_what_is_no_error_passes_untouched(self, kind):
        x = leaf([1.0])
        y = x.exp()
        y.register_hook(fail(kind))
        with pytest.raises(kind) as caught:
            (y * 2).backward()
        assert not hasattr(caught.value, "__notes__")

    @pytest.mark.parametrize(
        ("place", "at"),
        [
            (lambda x, y: x.register_hook(fail()), "accumulate_grad"),
            (lambda x, y: x.register_post_accumulate_grad_hook(fail()), "accumulate_grad"),
            (lambda x, y: x.grad_fn_node.register_prehook(fail()), "accumulate_grad"),
            (lambda x, y: y.register_hook(fail()), "exp_backward"),
            (lambda x, y: y.grad_fn.register_hook(fail()), "exp_backward"),
            (lambda x, y: y.grad_fn.register_prehook(fail()), "exp_backward"),
        ],
    )
    def test_the_note_names_the_node(self, place, at):
        x = leaf([1.0])
        y = x.exp()
        place(x, y)
        with pytest.raises(Mine) as caught:
            (y * 2).backward()
        assert caught.value.__notes__ == [f"in the backward pass, at {at}"]

    def test_of_a_rule(self, broken):
        op = broken(lambda F, ctx, dy: {}["missing"])
        with pytest.raises(KeyError) as caught:
            op(leaf([1.0])).backward()
        assert caught.value.__notes__ == [f"in the backward pass, at {op.__name__}_backward"]

    def test_of_a_kernel_in_a_recorded_pass(self):
        """The op of the backward pass that failed, and the forward op whose gradient it was for."""
        x = leaf([1.0, 2.0])
        y = x.exp()
        y.register_hook(lambda g: g @ flow.ones(3))
        with pytest.raises(RuntimeError) as caught:
            y.sum().backward()
        assert caught.value.__notes__[-1] == "in the backward pass, at exp_backward"

    def test_with_the_forward_line_in_anomaly_mode(self):
        x = leaf([1.0])
        with flow.autograd.detect_anomaly():
            y = x.exp()  # the line that is shown
            y.register_hook(fail())
            with pytest.raises(Mine) as caught:
                y.backward()
        assert caught.value.__notes__[0] == "in the backward pass, at exp_backward"
        assert "the line that is shown" in caught.value.__notes__[1]

    def test_is_printed(self):
        script = (
            "import oneflow_lite as flow\n"
            "x = flow.ones(1, requires_grad=True)\n"
            "y = x.exp()\n"
            "y.register_hook(lambda g: {}['missing'])\n"
            "y.backward()\n"
        )
        done = subprocess.run(
            [sys.executable, "-c", script], capture_output=True, text=True, timeout=60
        )
        assert done.stderr.endswith("KeyError: 'missing'\nin the backward pass, at exp_backward\n")


class TestWrongRules:
    """A rule that returns nonsense is named, and nothing is written."""

    @pytest.mark.parametrize(
        ("rule", "said"),
        [
            (lambda F, ctx, dy: F.reshape(dy, shape=(2, 1)), r"of shape \(2, 1\), expected shape"),
            (lambda F, ctx, dy: 3, "of type int, expected type"),
            (lambda F, ctx, dy: F.cast(dy, dtype=flow.float64), "dtype float64, expected dtype"),
            (lambda F, ctx, dy: (dy, dy), r"returned 2 gradient\(s\) for 1 input"),
        ],
    )
    @pytest.mark.parametrize("create_graph", [False, True])
    def test_names_the_culprit(self, broken, rule, said, create_graph):
        op, x = broken(rule), leaf([1.0, 2.0])
        y = op(x).sum()
        with pytest.raises(errors.GradientError, match=said) as caught:
            flow.autograd.grad(y, x, create_graph=create_graph)
        assert str(caught.value).startswith(f"{op.__name__}_backward")
        assert caught.value.__notes__ == [f"in the backward pass, at {op.__name__}_backward"]
        assert x.grad is None

    def test_a_hook_that_returns_nonsense(self):
        x = leaf([1.0, 2.0])
        y = x.exp()
        for wrong in (3, "text", np.ones(2)):
            handle = y.register_hook(lambda g: wrong)
            with pytest.raises((errors.GradientError, errors.ArgumentTypeError, errors.HookError)):
                y.sum().backward(retain_graph=True)
            handle.remove()
        assert x.grad is None
        y.sum().backward()
        assert x.grad is not None


class TestStateAfterwards:
    def test_what_was_accumulated_stays_and_no_more_is(self):
        """Nodes run the latest first: `late` has its gradient when the node before `x` fails."""
        x = leaf([1.0])
        y = x * 2
        late = leaf([1.0])
        z = y * late + y
        y.register_hook(fail())
        with pytest.raises(Mine):
            z.backward()
        assert late.grad.tolist() == [2.0] and x.grad is None

    def test_nodes_that_ran_are_freed_and_others_are_not(self):
        x = leaf([1.0])
        y = x.exp()
        z = y.exp()
        handle = y.register_hook(fail())
        with pytest.raises(Mine):
            z.backward()
        assert z.grad_fn.saved_tensors == () and len(y.grad_fn.saved_tensors) == 1
        handle.remove()
        with pytest.raises(errors.FreedGraphError):
            z.backward()
        y.backward()
        assert x.grad.item() == pytest.approx(np.e)

    def test_with_retain_graph_the_whole_graph_is_there_again(self):
        x = leaf([1.0])
        y = x.exp()
        z = y.exp()
        handle = y.register_hook(fail())
        with pytest.raises(Mine):
            z.backward(retain_graph=True)
        handle.remove()
        z.backward()
        assert x.grad.item() == pytest.approx(np.e * np.exp(np.e))

    def test_modes_and_interpreters_are_the_callers(self):
        class Nothing(flow.Interpreter):
            pass

        x = leaf([1.0])
        y = x.exp()
        y.register_hook(fail())
        for create_graph in (False, True):
            with flow.push_interpreter(Nothing()), flow.no_grad():
                before = local.state
                with pytest.raises(Mine):
                    flow.autograd.grad(y, x, retain_graph=True, create_graph=create_graph)
                assert local.state is before and local.task is None
        assert flow.is_grad_enabled()

    def test_the_next_backward_works(self):
        x = leaf([1.0])
        for _ in range(3):
            y = x * 3
            handle = y.register_hook(fail())
            with contextlib.suppress(Mine):
                y.backward()
            handle.remove()
            (x * 2).backward()
        assert x.grad.tolist() == [6.0]

    def test_a_failed_backward_leaves_no_partial_sums(self):
        x = leaf([1.0])
        y = x * 1
        a, b = y * 2, y * 3
        handle = a.register_hook(fail())
        with pytest.raises(Mine):
            (a + b).backward(retain_graph=True)
        assert y.autograd_meta.current_grad is None
        handle.remove()
        (a + b).backward()
        assert x.grad.tolist() == [5.0]

    def test_a_gradient_that_is_there_is_not_touched(self):
        x = leaf([1.0])
        (x * 2).backward()
        kept = x.grad
        x.register_hook(fail())
        with pytest.raises(Mine):
            (x * 3).backward()
        assert x.grad is kept and kept.tolist() == [2.0] and kept._version == 0


class TestBeforeAnythingRuns:
    """These are found before a hook is called or a `.grad` changes."""

    @pytest.fixture
    def graph(self):
        """Two leaves, and hooks that say who ran."""
        x, w = leaf([1.0, 2.0]), leaf([3.0, 4.0])
        ran = []
        for tensor in (x, w):
            tensor.register_hook(ran.append)
        yield x, w
        assert ran == [] and x.grad is None and w.grad is None

    def test_a_second_backward(self, graph):
        x, w = graph
        inner = leaf([1.0, 2.0])
        y = inner * inner
        y.sum().backward()
        with pytest.raises(errors.FreedGraphError, match="mul_backward"):
            (w * 2 + x + y).sum().backward()
        assert inner.grad.tolist() == [2.0, 4.0]

    @pytest.mark.parametrize("retain_graph", [False, True])
    def test_a_gradient_that_does_not_fit(self, graph, retain_graph):
        x, w = graph
        y = x * w
        for wrong in (flow.ones(3), flow.ones(2, dtype=flow.complex64), None, 1.0):
            with pytest.raises((errors.GradientError, errors.ArgumentTypeError)):
                y.backward(wrong, retain_graph=retain_graph)
        assert len(y.grad_fn.saved_tensors) == 2

    def test_inputs_that_are_not_used(self, graph):
        x, w = graph
        y = x.exp()
        with pytest.raises(errors.GradientError, match=r"inputs\[1\]"):
            flow.autograd.grad(y.sum(), [x, w])
        assert len(y.grad_fn.saved_tensors) == 1

    def test_nothing_requires_a_gradient(self, graph):
        with pytest.raises(errors.GradientError, match="does not require a gradient"):
            flow.ones(2).sum().backward()


def test_errors_are_of_pytorchs_types():
    torch = pytest.importorskip("torch")

    def freed(xp):
        x = xp.ones(2, requires_grad=True)
        y = (x * x).sum()
        y.backward()
        y.backward()

    def key_error(xp):
        x = xp.ones(2, requires_grad=True)
        x.register_hook(lambda g: {}["missing"])
        (x * x).sum().backward()

    def no_scalar(xp):
        (xp.ones(2, requires_grad=True) * 2).backward()

    def no_graph(xp):
        xp.ones(()).backward()

    def stale(xp):
        x = xp.ones(2, requires_grad=True)
        y = x.exp()
        y.mul_(2)
        y.sum().backward()

    def unused(xp):
        x, w = xp.ones(2, requires_grad=True), xp.ones(2, requires_grad=True)
        xp.autograd.grad(x.sum(), w)

    def wrong_shape(xp):
        (xp.ones(2, requires_grad=True) * 2).backward(xp.ones(3))

    for call in (freed, key_error, no_scalar, no_graph, stale, unused, wrong_shape):
        with pytest.raises(Exception) as theirs:
            call(torch)
        with pytest.raises(type(theirs.value)):
            call(flow)


def test_an_interrupt_while_a_node_is_queued(monkeypatch):
    """It may come between any two lines; the call must not wait for what was never queued."""
    monkeypatch.setattr(GraphTask, "always_queued", True)
    push, ended = ReadyQueue.push, []

    def interrupted(self, node_task):
        if type(node_task.node) is AccumulateGrad:
            raise KeyboardInterrupt
        push(self, node_task)

    def work():
        with contextlib.suppress(KeyboardInterrupt):
            (leaf([1.0]) * 2).backward()
        ended.append(local.task)

    monkeypatch.setattr(ReadyQueue, "push", interrupted)
    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    thread.join(10)
    assert ended == [None]


@pytest.mark.parametrize(
    ("change", "kind", "text"),
    [
        (lambda w: w.grad.t_(), errors.ShapeError, r"add\(\).*\(3, 2\) and \(2, 3\)"),
        (
            lambda w: setattr(w, "grad", flow.ones(3, dtype=flow.float64).expand(2, 3)),
            errors.InplaceError,
            r"add_\(\).*read-only",
        ),
    ],
    ids=["transposed", "expanded"],
)
def test_a_gradient_that_nothing_can_be_added_to(change, kind, text):
    w = leaf(np.ones((2, 3)))
    (w * w).sum().backward()
    change(w)
    kept, values = w.grad, w.grad.numpy().copy()
    with pytest.raises(kind, match=text) as caught:
        (w * w).sum().backward()
    assert "accumulate_grad" in caught.value.__notes__[0]
    assert w.grad is kept and np.array_equal(kept.numpy(), values)
