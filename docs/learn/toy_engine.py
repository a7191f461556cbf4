"""A toy of the engine in one file: NumPy, gradients of any order, and the real engine's names.

    functor ──► dispatch ──► AutogradInterpreter ──► EagerInterpreter ──► kernel
                                   │ leaves a FunctionNode behind
    backward ──► GraphTask ──► the rules of the nodes, whose functors dispatch again

`a_toy_engine.md` walks through it, beside the files of the real one.
"""

from __future__ import annotations

import heapq
import itertools
from contextlib import contextmanager
from types import SimpleNamespace

import numpy as np

# Registries: kernels, functors and gradient rules are found by the name of their op.
KERNELS, FUNCTORS, GRAD_FUNCS = {}, {}, {}


def register_kernel(name):
    """Register arithmetic on arrays, and a functor that hands its arguments on."""
    FUNCTORS.setdefault(name, lambda *inputs, **attrs: dispatch(name, inputs, attrs))
    return lambda kernel: KERNELS.setdefault(name, kernel)


def register_functor(name):
    """Register what users call under the name of an op."""
    return lambda functor: FUNCTORS.update({name: functor}) or functor


def register_grad_func(name, saves=""):
    """Register the gradient rule `rule(F, ctx, dy)`; `saves` says what it reads from ctx."""
    return lambda rule: GRAD_FUNCS.setdefault(name, (saves.split(), rule))


class Functors:
    """The F of the rules: every functor by its name."""

    def __getattr__(self, name):
        return FUNCTORS[name]


F = Functors()


class AutogradMeta:
    """The gradients of one value: a running task's sum so far, and what `.grad` reads."""

    current_grad = acc_grad = None


class Tensor:
    """An array. It has a node when it requires a gradient; the node of a leaf has no edges."""

    def __init__(self, data, requires_grad=False, node=None):
        self.data = np.asanyarray(data, dtype=np.float64)
        self.node = FunctionNode("accumulate_grad", self.data.shape) if requires_grad else node

    shape = property(lambda self: self.data.shape)
    requires_grad = property(lambda self: self.node is not None)
    grad = property(lambda self: self.node and self.node.meta.acc_grad)

    def backward(self, gradient=None, retain_graph=False):
        """Add the gradient of this tensor to `.grad` of the leaves behind it."""
        GraphTask(self, gradient, retain_graph, create_graph=False).run()

    def __repr__(self):
        return f"Tensor({self.data.tolist()}{f', {self.node.name}' if self.node else ''})"


METHODS = {  # attached from one table
    "__add__": lambda x, y: F.add(x, y),
    "__sub__": lambda x, y: F.add(x, F.mul(y, -1)),
    "__rsub__": lambda x, y: F.add(y, F.mul(x, -1)),
    "__mul__": lambda x, y: F.mul(x, y),
    "__neg__": lambda x: F.mul(x, -1),
    "__pow__": lambda x, n: F.power(x, exponent=n),
    "__matmul__": lambda x, y: F.matmul(x, y),
    "relu": lambda x: F.relu(x),
    "sum": lambda x: F.sum_to(x, shape=()),
}
METHODS |= {"__radd__": METHODS["__add__"], "__rmul__": METHODS["__mul__"]}
for _name, _method in METHODS.items():
    setattr(Tensor, _name, _method)


class SavedTensor:
    """A tensor that a node keeps; an output without its node, or the two would hold each other."""

    def __init__(self, tensor, is_output):
        self.data, self.is_output = tensor.data, is_output
        self.node = None if is_output else tensor.node

    def unpack(self, node):
        """Return the tensor at its place in the graph; that of an output is `node` itself."""
        return Tensor(self.data, node=node if self.is_output else self.node)


class FunctionNode:
    """One recorded op: edges to the nodes of its inputs, what it saved, and its AutogradMeta."""

    numbers = itertools.count()

    def __init__(self, name, shape, edges=()):
        self.name, self.shape, self.edges = name, shape, edges
        self.sequence_nr = next(self.numbers)  # an edge always leads to a smaller number
        self.topological_nr = max([e.topological_nr + 1 for e in edges if e], default=0)
        self.meta, self.saved = AutogradMeta(), {}

    def apply(self, dy):
        """Return the gradients of the inputs from that of the output."""
        if self.saved is None:
            raise RuntimeError(f"{self.name} was freed by an earlier backward; use retain_graph")
        tensors = {name: saved.unpack(self) for name, saved in self.saved.items()}
        return self.rule(F, SimpleNamespace(**tensors, **self.attrs), dy)


class EagerInterpreter:
    """Runs the kernel: arrays in, array out."""

    def apply(self, op, inputs, attrs):
        """Run one op."""
        return Tensor(KERNELS[op](*[x.data for x in inputs], **attrs))


class AutogradInterpreter:
    """Lets the inner one run the op, and leaves a node behind when a gradient may be wanted."""

    def __init__(self, inner):
        self.inner = inner

    def apply(self, op, inputs, attrs):
        """Run one op and record it. Rules call its inputs a and b, and its output y."""
        y = self.inner.apply(op, inputs, attrs)
        if grad_mode[-1] and any(x.requires_grad for x in inputs):
            y.node = FunctionNode(f"{op}_backward", y.shape, [x.node for x in inputs])
            saves, y.node.rule = GRAD_FUNCS[op]
            y.node.attrs = attrs
            named = dict(zip("ab", inputs, strict=False), y=y)
            y.node.saved = {name: SavedTensor(named[name], name == "y") for name in saves}
        return y


interpreters = [AutogradInterpreter(EagerInterpreter())]
grad_mode = [True]


@contextmanager
def pushed(stack, value):
    """Put an interpreter, or a grad mode, on top of its stack for a block."""
    stack.append(value)
    try:
        yield value
    finally:
        stack.pop()


def dispatch(op, inputs, attrs):
    """Hand an op to the topmost interpreter; numbers and arrays become tensors first."""
    tensors = [x if isinstance(x, Tensor) else Tensor(x) for x in inputs]
    return interpreters[-1].apply(op, tensors, attrs)


class GraphTask:
    """One backward call: counts who waits for whom, then runs the nodes that wait for nobody."""

    def __init__(self, root, gradient, retain_graph, create_graph, inputs=()):
        self.root, self.retain_graph, self.create_graph = root.node, retain_graph, create_graph
        self.captured_grads = {x.node: None for x in inputs}
        self.dependencies = {self.root: 0}
        self.compute_dependencies()
        if inputs:
            self.prune()
        self.receive(self.root, Tensor(np.ones(root.shape)) if gradient is None else gradient)

    def compute_dependencies(self):
        """Walk depth first; count for each node the edges that will bring it a gradient."""
        lowest = min([node.topological_nr for node in self.captured_grads], default=0)
        stack = [self.root]
        while stack:
            for node in stack.pop().edges:
                if node is None or node.topological_nr < lowest:  # it leads to no input
                    continue
                if node not in self.dependencies:
                    stack.append(node)
                self.dependencies[node] = self.dependencies.get(node, 0) + 1

    def prune(self):
        """Keep the nodes that lead to an input. Inputs come before outputs: one look suffices."""
        kept = {}
        for node in sorted(self.dependencies, key=lambda node: node.sequence_nr):
            if node in self.captured_grads or any(edge in kept for edge in node.edges):
                kept[node] = self.dependencies[node]
        self.dependencies = kept

    def run(self):
        """Run what is ready, the latest created first, until nothing is."""
        ready = [(0, self.root)] if self.root in self.dependencies else []
        with pushed(grad_mode, self.create_graph):
            while ready:
                node = heapq.heappop(ready)[1]
                for next_node, dx in zip(node.edges, self.evaluate(node), strict=False):
                    if next_node in self.dependencies:
                        if dx is not None:
                            self.receive(next_node, F.sum_to(dx, shape=next_node.shape))
                        self.dependencies[next_node] -= 1
                        if self.dependencies[next_node] == 0:
                            heapq.heappush(ready, (-next_node.sequence_nr, next_node))

    def receive(self, node, grad):
        """Add to the sum of a node that is not ready yet."""
        meta = node.meta
        meta.current_grad = grad if meta.current_grad is None else meta.current_grad + grad

    def evaluate(self, node):
        """Take the turn of one node; return what it sends along its edges."""
        dy, node.meta.current_grad = node.meta.current_grad, None
        if node in self.captured_grads:
            self.captured_grads[node] = dy
        elif not node.edges and dy is not None:  # a leaf, in a call that names no inputs
            node.meta.acc_grad = dy if node.meta.acc_grad is None else node.meta.acc_grad + dy
        if dy is None or not any(edge in self.dependencies for edge in node.edges):
            return [None] * len(node.edges)
        in_grads = node.apply(dy)
        if not self.retain_graph:
            node.saved = None
        return in_grads


def grad(output, inputs, gradient=None, retain_graph=None, create_graph=False):
    """Return gradients; with create_graph the backward pass is recorded like any other ops."""
    keep = create_graph if retain_graph is None else retain_graph
    task = GraphTask(output, gradient, keep, create_graph, inputs)
    task.run()
    return [task.captured_grads[x.node] for x in inputs]


register_kernel("add")(lambda a, b: a + b)
register_kernel("mul")(lambda a, b: a * b)
register_kernel("matmul")(lambda a, b: a @ b)
register_kernel("t")(lambda a: np.swapaxes(a, -2, -1))
register_kernel("power")(lambda a, exponent: a**exponent)
register_kernel("exp")(np.exp)
register_kernel("tanh")(np.tanh)
register_kernel("relu")(lambda a: np.maximum(a, 0))
register_kernel("relu_grad")(lambda a, b: a * (b > 0))  # a gradient, and relu's result
register_kernel("expand")(lambda a, shape: np.broadcast_to(a, shape))

register_grad_func("add")(lambda F, ctx, dy: (dy, dy))
register_grad_func("mul", "a b")(lambda F, ctx, dy: (dy * ctx.b, dy * ctx.a))
register_grad_func("matmul", "a b")(lambda F, ctx, dy: (dy @ F.t(ctx.b), F.t(ctx.a) @ dy))
register_grad_func("t")(lambda F, ctx, dy: (F.t(dy),))
register_grad_func("power", "a")(lambda F, c, dy: (dy * c.exponent * c.a ** (c.exponent - 1),))
register_grad_func("exp", "y")(lambda F, ctx, dy: (dy * ctx.y,))
register_grad_func("tanh", "y")(lambda F, ctx, dy: (dy * (1 - ctx.y * ctx.y),))
register_grad_func("relu", "y")(lambda F, ctx, dy: (F.relu_grad(dy, ctx.y),))
register_grad_func("relu_grad", "b")(lambda F, ctx, dy: (F.relu_grad(dy, ctx.b), None))
register_grad_func("expand", "a")(lambda F, ctx, dy: (F.sum_to(dy, shape=ctx.a.shape),))
register_grad_func("sum_to", "a")(lambda F, ctx, dy: (F.expand(dy, shape=ctx.a.shape),))


@register_kernel("sum_to")
def sum_to_kernel(a, shape):
    """Sum over what broadcasting from `shape` repeats."""
    a = a.sum(axis=tuple(range(a.ndim - len(shape))))
    return a.sum(axis=tuple(i for i, n in enumerate(shape) if n == 1), keepdims=True)


@register_functor("sum_to")
def sum_to(x, shape):
    """Sum over what broadcasting from `shape` repeats; that may be nothing."""
    return x if x.shape == shape else dispatch("sum_to", (x,), {"shape": shape})
