"""The parts of a backward call by name: GraphTask, NodeTask, ReadyQueue, exec_info, numbers."""

import threading

import pytest

import oneflow_lite as flow
from oneflow_lite.autograd.engine import graph_task
from oneflow_lite.autograd.engine.graph_task import ExecInfo, GraphTask
from oneflow_lite.autograd.engine.queued_run import QueuedRun
from oneflow_lite.autograd.engine.ready_queue import NodeTask, ReadyQueue
from oneflow_lite.ops.registry import FUNCTORS, GRAD_FUNCS, KERNELS
from oneflow_lite.tensors.mode import local
from oneflow_lite.tensors.node import AccumulateGrad, GraphRoot, next_sequence_nr
from tests.autograd.leaves import leaf


@pytest.fixture
def sine_and_cosine():
    """An op whose two outputs share a node."""
    name = "sine_and_cosine_of_a_test"

    @flow.register_op(name)
    def op(xp, x):
        return xp.sin(x), xp.cos(x)

    @op.grad(saves="y0, y1")
    def op_grad(F, ctx, dsine, dcosine):
        return dsine * ctx.y1 - dcosine * ctx.y0

    yield op
    for registry in (FUNCTORS, GRAD_FUNCS, KERNELS):
        registry.remove(name)


def node_of(tensor):
    return tensor.grad_fn_node


def counted(*roots, inputs=()):
    """A task that has counted dependencies, and the node it starts from."""
    task = GraphTask(retain_graph=True, create_graph=False, accumulate=not inputs)
    root = task.set_roots([r._edge for r in roots], [flow.ones_like(r.detach()) for r in roots])
    if inputs:
        task.compute_dependencies_and_prune_node(root, [x._edge for x in inputs])
    else:
        task.compute_dependencies(root)
    return task, root


@pytest.fixture
def tasks(monkeypatch):
    """Every task that starts, in order."""
    started = []
    run = GraphTask.run

    def watched(self, root):
        started.append((self, root))
        run(self, root)

    monkeypatch.setattr(GraphTask, "run", watched)
    return started


@pytest.fixture
def queued_runs(monkeypatch):
    """Every run through ready queues that starts, in order; all tasks go through them."""
    started = []
    run = QueuedRun.run

    def watched(self, root):
        started.append(self)
        run(self, root)

    monkeypatch.setattr(GraphTask, "always_queued", True)
    monkeypatch.setattr(QueuedRun, "run", watched)
    return started


class TestNumbers:
    def test_sequence_nr_is_the_order_of_creation_over_all_threads(self):
        x = leaf([1.0])
        first = x * 2
        made = []
        thread = threading.Thread(target=lambda: made.append(x * 3))
        thread.start()
        thread.join()
        last = x * 4
        numbers = [node_of(t).sequence_nr for t in (x, first, made[0], last)]
        assert numbers == sorted(set(numbers)) and next_sequence_nr() > numbers[-1]

    def test_edges_lead_to_smaller_numbers(self):
        x, w = leaf([1.0, 2.0]), leaf([3.0, 4.0])
        y = x * w
        y[0] = w[1]
        y.exp_()
        total = (y + x).sum()
        stack, seen = [total.grad_fn], set()
        while stack:
            node = stack.pop()
            for following, _ in node.edges:
                if following is not None:
                    assert following.sequence_nr < node.sequence_nr
                    assert following.topological_nr < node.topological_nr
                    seen.add(following)
                    stack.append(following)
        assert len(seen) > 5

    def test_topological_nr_is_the_longest_way_to_a_leaf(self):
        x, w = leaf([1.0]), leaf([2.0])
        a = x * 2
        b = a * a
        c = b + w
        d = flow.cat([c, x])
        assert [node_of(t).topological_nr for t in (x, w, a, b, c, d)] == [0, 0, 1, 2, 3, 4]
        a.mul_(w)
        assert node_of(a).topological_nr == 2
        late = (d * 1).sum()
        assert node_of(late).topological_nr == 6


class TestReadyQueue:
    class Node:
        edges = ((None, 0),)  # no leaf

        def __init__(self, sequence_nr):
            self.sequence_nr = sequence_nr

    def test_the_latest_node_comes_first(self):
        ready_queue = ReadyQueue()
        for number in (3, 1, 5, 2, 4):
            ready_queue.push(NodeTask(None, self.Node(number), 0))
        assert [t.node.sequence_nr for t in ready_queue.waiting()] == [5, 4, 3, 2, 1]
        assert [ready_queue.pop().node.sequence_nr for _ in range(5)] == [5, 4, 3, 2, 1]
        assert ready_queue.waiting() == []

    def test_the_innermost_call_comes_first(self):
        ready_queue = ReadyQueue()
        ready_queue.push(NodeTask(None, self.Node(9), 0))
        ready_queue.push(NodeTask(None, self.Node(1), 2))
        ready_queue.push(NodeTask(None, self.Node(2), 1))
        assert [ready_queue.pop().node.sequence_nr for _ in range(3)] == [1, 2, 9]

    def test_what_wakes_a_thread_comes_before_nodes(self):
        ready_queue = ReadyQueue()
        ready_queue.push(NodeTask(None, self.Node(9), 0))
        ready_queue.push(NodeTask(None, None, 0))
        wake = ready_queue.pop()
        assert wake.node is None
        wake.run()  # does nothing

    def test_pop_waits(self):
        ready_queue, got = ReadyQueue(), []
        thread = threading.Thread(target=lambda: got.append(ready_queue.pop()))
        thread.start()
        task = NodeTask(None, None, 0)
        ready_queue.push(task)
        thread.join(10)
        assert got == [task]


class TestDependencies:
    def test_counts_edges_that_send_a_gradient(self):
        x, w = leaf([1.0]), leaf([2.0])
        a = x * w
        b = a * a
        c = a + b
        task, root = counted(c)
        assert root is c.grad_fn
        assert task.dependencies == {
            node_of(c): 0, node_of(b): 1, node_of(a): 3, node_of(x): 1, node_of(w): 1,
        }  # fmt: skip
        assert task.exec_info is None and task.captured_grads == []

    def test_the_root_has_its_gradient_in_not_ready(self):
        x = leaf([1.0, 2.0])
        y = x * 2
        task, root = counted(y)
        assert list(task.not_ready) == [root] and task.not_ready[root].tolist() == [1.0, 1.0]

    def test_of_a_chain_only_what_follows_is_counted(self):
        x, w = leaf([1.0]), leaf([1.0])
        a = x * 2
        b = a * a
        c = (b * w).exp() * 3
        task = GraphTask(True, False, accumulate=True)
        chain = task.compute_dependencies_of_chain(c.grad_fn)
        steps = [c.grad_fn]
        while len(steps) < 5:
            steps.append(steps[-1].edges[0][0])
        assert chain == steps[:5] and steps[4] is a.grad_fn
        assert task.dependencies == {node_of(w): 1, node_of(x): 1}

    def test_of_a_fork_all_is_counted(self):
        x = leaf([1.0])
        a, b = x * 2, x * 3
        c = a + b
        d = c * 4
        task = GraphTask(True, False, accumulate=True)
        assert task.compute_dependencies_of_chain(d.grad_fn) == [d.grad_fn]
        assert task.dependencies == {
            c.grad_fn: 0, a.grad_fn: 1, b.grad_fn: 1, node_of(x): 2,
        }  # fmt: skip

    def test_sums_wait_in_not_ready(self, queued_runs):
        x = leaf([1.0])
        a, b = x * 2, x * 3
        c = a + b
        seen = []

        def hook(grad):
            sums = {node: grad.tolist() for node, grad in local.task.not_ready.items()}
            (run,) = queued_runs
            seen.append((sums, dict(local.task.dependencies), run.outstanding_tasks))

        b.register_hook(hook)
        a.register_hook(hook)
        c.backward()
        waiting = {a.grad_fn: 0, b.grad_fn: 0, c.grad_fn: 0}
        assert seen == [
            ({a.grad_fn: [1.0]}, {**waiting, node_of(x): 2}, 2),
            ({node_of(x): [3.0]}, {**waiting, node_of(x): 1}, 1),
        ]


class TestRoots:
    def test_one_root_has_no_graph_root(self, tasks):
        x = leaf([1.0])
        y = x * 2
        y.backward()
        assert tasks[0][1] is y.grad_fn

    def test_several_roots_have_one(self, tasks):
        x = leaf([1.0])
        y, z = x * 2, x * 3
        flow.autograd.backward([y, z], [flow.ones(1), flow.ones(1) * 10])
        task, root = tasks[0]
        assert type(root) is GraphRoot and root.name() == "graph_root"
        assert root.next_functions == ((y.grad_fn, 0), (z.grad_fn, 0))
        assert root.sequence_nr > z.grad_fn.sequence_nr and root.topological_nr == 2
        assert x.grad.tolist() == [32.0]

    def test_one_root_twice(self):
        x = leaf([1.0])
        y = x * 2
        flow.autograd.backward([y, y], [flow.ones(1), flow.ones(1) * 10])
        assert x.grad.tolist() == [22.0]

    @pytest.mark.parametrize("queued", [False, True])
    def test_roots_that_lead_to_one_another(self, queued, monkeypatch):
        monkeypatch.setattr(GraphTask, "always_queued", queued)
        x = leaf([3.0])
        y = x * x
        z = y * y
        flow.autograd.backward([y, z, x], [flow.ones(1)] * 3)
        assert x.grad.item() == 6.0 + 4 * 27.0 + 1.0

    def test_different_outputs_of_one_node(self, sine_and_cosine):
        x = leaf([0.0])
        parts = sine_and_cosine(x)
        flow.autograd.backward(parts, [flow.ones(1) * 2, flow.ones(1) * 3])
        assert x.grad.tolist() == [2.0]


class TestExecInfo:
    def test_holds_what_leads_to_an_input(self):
        x, w = leaf([1.0]), leaf([2.0])
        a, b = x * 2, w * 3
        c = a * b
        task, _ = counted(c, inputs=[x])
        info = task.exec_info
        assert set(info) == {node_of(t) for t in (x, a, c)}
        assert info[c.grad_fn].needed and info[a.grad_fn].needed
        assert not info[node_of(x)].needed and info[node_of(x)].captures == ((0, 0),)
        assert isinstance(info[node_of(x)], ExecInfo) and task.captured_grads == [None]

    def test_an_input_before_an_input(self):
        x = leaf([1.0])
        a = x * 2
        c = a * 3
        task, _ = counted(c, inputs=[x, a, a])
        info = task.exec_info[a.grad_fn]
        assert info.needed and info.captures == ((0, 1), (0, 2))

    def test_an_input_that_leads_to_no_other_does_not_run(self):
        x = leaf([1.0])
        a = x.exp()
        c = a * 3
        task, _ = counted(c, inputs=[a])
        assert not task.exec_info[a.grad_fn].needed and node_of(x) not in task.exec_info
        calls = []
        a.grad_fn.register_hook(lambda *grads: calls.append(grads))
        assert flow.autograd.grad(c, a)[0].tolist() == [3.0] and calls == []

    def test_outputs_of_one_node(self, sine_and_cosine):
        a, b = sine_and_cosine(leaf([1.0]))
        task, _ = counted(a * b, inputs=[b, a])
        assert task.exec_info[a.grad_fn].captures == ((1, 0), (0, 1))

    def test_is_there_for_inputs_only(self, tasks):
        x = leaf([1.0])
        (x * 2).backward()
        (x * 2).backward(inputs=[x])
        flow.autograd.grad(x * 2, x)
        assert [task.exec_info is None for task, _ in tasks] == [True, False, False]
        assert [task.accumulate for task, _ in tasks] == [True, True, False]

    def test_captured_grads_are_what_grad_returns(self, tasks):
        x, w = leaf([1.0]), leaf([2.0])
        found = flow.autograd.grad(x * 5, [w, x, x], allow_unused=True)
        assert found[0] is None and [g.tolist() for g in found[1:]] == [[5.0], [5.0]]
        captured = tasks[0][0].captured_grads
        assert captured[0] is None and captured[1] is found[1]._data is not captured[2]


class TestPruning:
    """Branches whose topological number is below that of every input are not walked."""

    def test_visits_only_what_may_lead_to_an_input(self):
        x = leaf([1.0])
        y = x
        for _ in range(1000):
            y = y * 1.0
        z = y
        for _ in range(10):
            z = z * 2.0
        task, _ = counted(z, inputs=[y])
        assert len(task.dependencies) == 11  # ten nodes, and the input itself
        task, _ = counted(z, inputs=[x])
        assert len(task.dependencies) == 1011

    def test_leaves_out_deep_branches_beside_the_input(self):
        x = leaf([1.0])
        deep, side = x, leaf([1.0])
        for _ in range(50):
            deep = deep * 1.5
        wanted = deep * 2.0
        for _ in range(50):
            side = side * 1.5
        total = wanted + side
        task, _ = counted(total, inputs=[wanted])
        # `side` ends at number 50, one below the input's 51
        assert set(task.dependencies) == {total.grad_fn, wanted.grad_fn}

    def test_goes_by_the_smallest_number_of_the_inputs(self):
        x = leaf([1.0])
        near, far = x * 2, x * 3
        for _ in range(20):
            far = far * 1.5
        total = near + far
        task, _ = counted(total, inputs=[far])
        assert node_of(near) not in task.dependencies
        task, _ = counted(total, inputs=[far, near])
        assert node_of(near) in task.dependencies and node_of(x) not in task.dependencies
        assert flow.autograd.grad(total, [far, near])[1].tolist() == [1.0]

    def test_below_a_graph_root(self):
        x = leaf([1.0])
        y = x * 2
        z = y * 3
        task, root = counted(y, z, inputs=[z])
        assert set(task.dependencies) == {root, z.grad_fn}
        assert flow.autograd.grad([y, z], z, [flow.ones(1)] * 2)[0].tolist() == [1.0]


class TestOrder:
    def test_the_latest_created_runs_first(self):
        ran = []
        x = leaf([1.0])
        first, second, third = x * 1, x * 2, x * 3
        for key, tensor in (("first", first), ("third", third), ("second", second)):
            tensor.register_hook(lambda g, key=key: ran.append(key))
        ((third + first) * second).backward()
        assert ran == ["third", "second", "first"]

    def test_the_ready_queue_runs_nodes_in_the_same_order(self, monkeypatch):
        def run():
            ran = []
            x, w = leaf([1.0, 2.0]), leaf([3.0, 4.0])
            a = x * w
            b, c = a.exp(), a.sin()
            parts = flow.cat([b, c, x]).split(2)
            total = (parts[0] * parts[2] + c).sum()
            for k, t in enumerate((x, w, a, b, c, *parts)):
                t.register_hook(lambda g, k=k: ran.append(k))
            total.backward()
            return ran, x.grad.tolist(), w.grad.tolist()

        in_order = run()
        monkeypatch.setattr(GraphTask, "always_queued", True)
        assert run() == in_order and len(in_order[0]) == 7

    def test_outstanding_tasks_are_none_at_the_end(self, queued_runs):
        x = leaf([1.0])
        (x * x).backward()
        y = x * 2
        y.register_hook(lambda g: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            y.backward()
        assert [run.outstanding_tasks for run in queued_runs] == [0, 0]
        assert [run.dead for run in queued_runs] == [False, True]
        assert queued_runs[1].error is None


def test_a_leaf_alone_is_a_graph(tasks):
    x = leaf([2.0])
    x.backward()
    assert x.grad.tolist() == [1.0] and type(tasks[0][1]) is AccumulateGrad
    assert flow.autograd.grad(x, x)[0].tolist() == [1.0]


def test_the_short_way_needs_no_locks(monkeypatch):
    """A task on the CPU alone takes no part in what threads need."""
    monkeypatch.setattr(graph_task, "QueuedRun", None)
    x = leaf([2.0])
    (x * x).backward()
    assert x.grad.tolist() == [4.0]
