"""`autograd.grad` with every combination of its arguments, against PyTorch, and that it is pure.

Pure: each `.grad` is the same object with the same bits before and after, of leaves and of values
that retain theirs. (PyTorch's `grad` fills the latter; that is not copied.)
"""

import itertools

import numpy as np
import pytest

import oneflow_lite as flow
from oneflow_lite.errors import ArgumentTypeError, FlowError, GradientError

X = np.array([0.5, -1.25, 2.0])
Y = np.array([1.5, 0.25, -0.75])

OUTPUTS = [("s",), ("b",), ("s", "b"), ("a",), ("x",), ("s", "s"), ("p", "e"), ("e", "x", "a"), ()]
INPUTS = [
    ("x",),
    ("x", "y"),
    ("x", "x"),
    ("a",),
    ("a", "x", "a"),
    ("s",),
    ("b", "s"),
    ("unused",),
    ("x", "unused"),
    ("p",),
    ("q", "x"),
    ("late",),
    ("constant",),
    (),
]
GRAD_OUTPUTS = ["none", "given", "some none", "all none", "too few"]
USES = list(itertools.product(GRAD_OUTPUTS, (None, False, True), (False, True)))
MODES = list(itertools.product((False, True), (None, False, True)))  # create_graph, retain_graph
CASES = list(itertools.product(OUTPUTS, INPUTS, (False, True)))


class Program:
    """The same graph in either library; `tensors` has its values by name."""

    def __init__(self, lib, hooks):
        self.lib = lib
        x, y, unused = (self.leaf(v) for v in (X, Y, X))
        a = x * y
        a.retain_grad()
        a.sum().backward(retain_graph=True)  # x, y and a have a `.grad`; b has none
        self.seen = []
        if hooks:
            a.register_hook(self.hook("a", 2.0))
            x.register_hook(self.hook("x", 3.0))
            y.register_hook(self.hook("y", None))
        b = a.sin()
        b.retain_grad()
        s = (a * b).sum()
        p, q, _ = x.unbind()
        e = p * q * s
        late = s * 2
        constant = lib.tensor(1.0)
        self.tensors = {
            name: value
            for name, value in locals().items()
            if name not in ("self", "lib", "hooks", "_")
        }

    def leaf(self, values):
        return self.lib.tensor(values, requires_grad=True)

    def hook(self, name, factor):
        def run(grad):
            self.seen.append((name, array(grad).tolist()))
            return None if factor is None else grad * factor

        return run

    def grad_outputs(self, kind, outputs):
        if kind == "none":
            return None
        given = [self.lib.tensor(1.5 + array(y) ** 2) for y in outputs]
        if kind == "some none":
            given = [None if y.numel() == 1 else g for g, y in zip(given, outputs, strict=True)]
        elif kind == "all none":
            given = [None for _ in given]
        elif kind == "too few":
            given = given[1:]
        return given

    def run(self, outputs, inputs, kind, **options):
        """Return the gradients, or the error."""
        roots = [self.tensors[name] for name in outputs]
        wanted = [self.tensors[name] for name in inputs]
        try:
            return self.lib.autograd.grad(roots, wanted, self.grad_outputs(kind, roots), **options)
        except Exception as error:
            return error


def array(tensor):
    return tensor.detach().numpy().copy()


def grads_of(program):
    """Return every `.grad`, the object and its bits."""
    return {
        name: (g, None if g is None else (g.numpy().tobytes(), g._version))
        for name, value in program.tensors.items()
        for g in [value.grad]
    }


def same(before, after):
    return all(
        before[name][0] is after[name][0] and before[name][1:] == after[name][1:] for name in before
    )


def compare(ours, theirs, case):
    if isinstance(theirs, Exception):
        assert isinstance(ours, FlowError), f"{case}: {ours!r}, PyTorch {theirs!r}"
        builtin = ValueError if isinstance(theirs, ValueError) else RuntimeError
        assert isinstance(ours, builtin), f"{case}: {ours!r}, PyTorch {theirs!r}"
        return
    assert isinstance(ours, tuple), f"{case}: {ours!r}, PyTorch {theirs!r}"
    assert len(ours) == len(theirs), case
    for a, b in zip(ours, theirs, strict=True):
        assert (a is None) == (b is None), case
        if a is not None:
            assert a.requires_grad == b.requires_grad, case
            np.testing.assert_allclose(array(a), array(b), rtol=1e-12, err_msg=str(case))


@pytest.mark.parametrize("number", range(len(CASES)), ids=lambda number: str(CASES[number]))
def test_the_whole_matrix(number):
    """All uses of the arguments for every graph; the modes take turns, so that each use, each
    graph and each mode meet."""
    torch = pytest.importorskip("torch")
    outputs, inputs, hooks = CASES[number]
    for turn, (kind, allow_unused, materialize) in enumerate(USES, start=number // 2):
        create_graph, retain_graph = MODES[turn % len(MODES)]
        case = (outputs, inputs, kind, allow_unused, materialize, create_graph, retain_graph)
        options = {
            "allow_unused": allow_unused,
            "materialize_grads": materialize,
            "create_graph": create_graph,
            "retain_graph": retain_graph,
        }
        ours, theirs = Program(flow, hooks), Program(torch, hooks)
        before = grads_of(ours)
        found = ours.run(outputs, inputs, kind, **options)
        expected = theirs.run(outputs, inputs, kind, **options)
        if hooks:
            expected = after_hooks(expected, inputs)
        compare(found, expected, case)
        if isinstance(found, tuple) and any(np.any(array(g)) for g in found if g is not None):
            # Otherwise PyTorch runs hooks that nothing comes of.
            compare_hooks(ours.seen, theirs.seen, case)
        # Once more: what the first call freed is not there any more, in both.
        again = theirs.run(outputs, inputs, kind, **options)
        again = after_hooks(again, inputs) if hooks else again
        compare(ours.run(outputs, inputs, kind, **options), again, (*case, "again"))
        assert same(before, grads_of(ours)), case
        if create_graph and isinstance(found, tuple):
            second(found, expected, ours, theirs, case)


def after_hooks(expected, inputs):
    """Return what PyTorch gives with the hook of `a` applied wherever `a` is an input.

    PyTorch gives the value before the hook when the graph below `a` is needed as well, and the one
    after it when it is not. Ours is the one after it, always.
    """
    if isinstance(expected, Exception) or not {"x", "y"} & set(inputs):
        return expected
    return tuple(
        g * 2 if name == "a" and g is not None else g
        for name, g in zip(inputs, expected, strict=True)
    )


def compare_hooks(ours, theirs, case):
    """Compare what hooks saw; which of two leaves comes first is not fixed."""
    assert len(ours) == len(theirs), case
    for (name, g), (torch_name, torch_g) in zip(sorted(ours), sorted(theirs), strict=True):
        assert name == torch_name, case
        np.testing.assert_allclose(g, torch_g, rtol=1e-12, err_msg=str(case))


def second(found, expected, ours, theirs, case):
    """Compare the gradients of recorded gradients."""
    results = []
    for program, grads in ((ours, found), (theirs, expected)):
        terms = [(g * g).sum() for g in grads if g is not None and g.requires_grad]
        wanted = [program.tensors["x"], program.tensors["y"]]
        try:
            results.append(
                program.lib.autograd.grad(sum(terms), wanted, allow_unused=True) if terms else ()
            )
        except Exception as error:  # the first call freed the graph
            results.append(error)
    compare(*results, (*case, "second"))


# Batches of gradients. (That they equal a loop for every op is checked by check_op.)

M = np.array([[0.5, -1.25, 2.0], [1.5, 0.25, -0.75]])
N = np.array([[1.25, 0.5, 0.75], [0.4, 1.5, 2.5]])
Z = M + 1j * N
BATCHED = {
    "exp": (lambda lib, x: x.exp(), [M]),
    "log": (lambda lib, x: x.log(), [N]),
    "tanh": (lambda lib, x: x.tanh(), [M]),
    "sigmoid": (lambda lib, x: x.sigmoid(), [M]),
    "relu": (lambda lib, x: x.relu(), [M]),
    "abs": (lambda lib, x: x.abs(), [M]),
    "sqrt": (lambda lib, x: x.sqrt(), [N]),
    "power": (lambda lib, x, y: x**y, [N, M]),
    "a number to the power": (lambda lib, x: x**3, [M]),
    "add, broadcast": (lambda lib, x, y: x + y, [M, N[0]]),
    "mul, broadcast": (lambda lib, x, y: x * y, [M, N[:, :1]]),
    "div": (lambda lib, x, y: x / y, [M, N]),
    "where": (lambda lib, x, y: lib.where(x > 0, x, y), [M, N]),
    "clamp": (lambda lib, x: x.clamp(-1, 1), [M]),
    "maximum": (lambda lib, x, y: lib.maximum(x, y), [M, N]),
    "sum": (lambda lib, x: x.sum(), [M]),
    "sum of rows": (lambda lib, x: x.sum(1), [M]),
    "mean": (lambda lib, x: x.mean(0, keepdim=True), [M]),
    "prod": (lambda lib, x: x.prod(1), [M]),
    "var": (lambda lib, x: x.var(1), [M]),
    "max": (lambda lib, x: x.max(1)[0], [M]),
    "amax": (lambda lib, x: x.amax(0), [M]),
    "logsumexp": (lambda lib, x: lib.logsumexp(x, 1), [M]),
    "softmax": (lambda lib, x: lib.softmax(x, 1), [M]),
    "log_softmax": (lambda lib, x: lib.log_softmax(x, 0), [M]),
    "cumsum": (lambda lib, x: x.cumsum(1), [M]),
    "cumprod": (lambda lib, x: x.cumprod(1), [M]),
    "norm": (lambda lib, x: x.norm(), [M]),
    "matmul": (lambda lib, x, y: x @ y.t(), [M, N]),
    "matrix times vector": (lambda lib, x, y: x @ y, [M, N[0]]),
    "dot": (lambda lib, x, y: x @ y, [M[0], N[0]]),
    "einsum": (lambda lib, x, y: lib.einsum("ij,kj->ik", x, y), [M, N]),
    "transpose": (lambda lib, x: x.transpose(0, 1), [M]),
    "reshape": (lambda lib, x: x.reshape(3, 2), [M]),
    "permute": (lambda lib, x: x.permute(1, 0), [M]),
    "squeeze": (lambda lib, x: x.unsqueeze(0).squeeze(), [M]),
    "expand": (lambda lib, x: x.expand(4, 2, 3), [M]),
    "cat": (lambda lib, x, y: lib.cat([x, y], 1), [M, N]),
    "stack": (lambda lib, x, y: lib.stack([x, y]), [M, N]),
    "split": (lambda lib, x: x.split(2, 1)[1], [M]),
    "unbind": (lambda lib, x: x.unbind()[1], [M]),
    "several outputs": (lambda lib, x: (x.exp(), x.sum(0), x[0]), [M]),
    "flip": (lambda lib, x: x.flip(1), [M]),
    "roll": (lambda lib, x: lib.roll(x, 1, 1), [M]),
    "slices": (lambda lib, x: x[:, ::2], [M]),
    "integer arrays": (lambda lib, x: x[[0, 1, 0], [1, 1, 2]], [M]),
    "masks": (lambda lib, x: x[x > 0], [M]),
    "gather": (lambda lib, x: x.gather(1, lib.tensor([[0, 0], [2, 1]])), [M]),
    "index_select": (lambda lib, x: x.index_select(1, lib.tensor([2, 0, 2])), [M]),
    "scatter_add": (
        lambda lib, x, y: x.scatter_add(1, lib.tensor([[0, 0, 1], [2, 1, 2]]), y),
        [M, N],
    ),
    "masked_fill": (lambda lib, x: x.masked_fill(x > 0, 2.0), [M]),
    "sort": (lambda lib, x: lib.sort(x, 1)[0], [M]),
    "tril": (lambda lib, x: x.tril(), [M]),
    "diagonal": (lambda lib, x: x.diagonal(), [M]),
    "in place": (lambda lib, x: (x * 2).mul_(3).exp_(), [M]),
    "identity": (lambda lib, x: x, [M]),
    "unused": (lambda lib, x, y: x * 2, [M, N]),
    "linear layer": (lambda lib, x, w: lib.nn.functional.linear(x, w).tanh(), [M, N]),
    "layer_norm": (lambda lib, x: lib.nn.functional.layer_norm(x, (3,)), [M]),
    "gelu": (lambda lib, x: lib.nn.functional.gelu(x), [M]),
    "mse_loss": (lambda lib, x, y: lib.nn.functional.mse_loss(x, y), [M, N]),
    "conv1d": (
        lambda lib, x, w: lib.nn.functional.conv1d(x[None], w[None, :, :2]),
        [M, N],
    ),
    "complex mul": (lambda lib, x, y: x * y, [Z, Z[0]]),
    "complex exp": (lambda lib, x: x.exp(), [Z]),
    "complex abs": (lambda lib, x: lib.abs(x), [Z]),
    "complex parts": (lambda lib, x: x.real * x.imag, [Z]),
}


def batches(outputs, size=3):
    rng = np.random.default_rng(0)
    for y in outputs:
        shape = (size, *array(y).shape)
        g = rng.uniform(0.5, 1.5, shape)
        yield g + 1j * rng.uniform(0.5, 1.5, shape) if array(y).dtype.kind == "c" else g


def run_batch(lib, function, arrays, create_graph, loop=False):
    """Return gradients of a batch, and the second derivatives where they are recorded."""
    wanted = [lib.tensor(a, requires_grad=True) for a in arrays]
    result = function(lib, *wanted)
    outputs = list(result) if isinstance(result, tuple) else [result]
    given = [lib.tensor(g) for g in batches(outputs)]
    options = {"allow_unused": True, "create_graph": create_graph, "retain_graph": True}
    if loop:
        rows = [
            lib.autograd.grad(outputs, wanted, [g[k] for g in given], **options)
            for k in range(len(given[0]))
        ]
        found = [None if c[0] is None else lib.stack(c) for c in zip(*rows, strict=True)]
    else:
        found = lib.autograd.grad(outputs, wanted, given, is_grads_batched=True, **options)
    live = [g for g in found if g is not None and g.requires_grad]
    total = sum((lib.real(g) ** 2).sum() for g in live)
    if live:
        return [*found, *lib.autograd.grad(total, wanted, materialize_grads=True)]
    return [*found, *map(lib.zeros_like, wanted)]


def equal(ours, theirs, rtol):
    assert len(ours) == len(theirs)
    for a, b in zip(ours, theirs, strict=True):
        assert (a is None) == (b is None)
        if a is not None:
            assert tuple(a.shape) == tuple(b.shape)
            np.testing.assert_allclose(plain(a), plain(b), rtol=rtol, atol=rtol * 10)


def plain(tensor):
    return tensor.detach().numpy() if isinstance(tensor, flow.Tensor) else tensor.numpy(force=True)


@pytest.mark.parametrize("create_graph", [False, True], ids=["", "recorded"])
@pytest.mark.parametrize("name", BATCHED)
class TestBatches:
    def test_equals_a_loop(self, name, create_graph):
        function, arrays = BATCHED[name]
        found = run_batch(flow, function, arrays, create_graph)
        # One product for all rows adds up in another order than a product for each.
        equal(found, run_batch(flow, function, arrays, create_graph, loop=True), 1e-13)

    def test_equals_pytorchs_vmap(self, name, create_graph):
        torch = pytest.importorskip("torch")
        function, arrays = BATCHED[name]
        found = run_batch(flow, function, arrays, create_graph)
        equal(found, run_batch(torch, function, arrays, create_graph), 1e-11)


class TestBatchArguments:
    def refuses(self, kind, match, outputs=None, **arguments):
        x = flow.tensor(X, requires_grad=True)
        y = x * x
        before = flow.tensor(Y)
        x.grad = before
        with pytest.raises(kind, match=match):
            flow.autograd.grad(
                (y,) if outputs is None else [y] * outputs, x, is_grads_batched=True, **arguments
            )
        assert x.grad is before and before.tolist() == Y.tolist()
        y.sum().backward()  # the graph is still there

    @pytest.mark.parametrize(
        "given",
        [flow.tensor(1.0, dtype=flow.float64), flow.ones(0, 3, dtype=flow.float64)],
        ids=["0-d", "empty"],
    )
    def test_no_batch(self, given):
        self.refuses(GradientError, "grad_outputs.*leading dimension", grad_outputs=given)

    def test_batches_of_different_sizes(self):
        given = [flow.ones(2, 3, dtype=flow.float64), flow.ones(4, 3, dtype=flow.float64)]
        self.refuses(GradientError, r"leading dimension.*\[2, 4\]", 2, grad_outputs=given)

    @pytest.mark.parametrize("shape", [(3,), (4, 2), (2, 3, 1)])
    def test_rows_of_the_wrong_shape(self, shape):
        given = flow.ones(shape, dtype=flow.float64)
        self.refuses(GradientError, r"grad_outputs.*shape \(3,\)", grad_outputs=given)

    def test_no_tensors(self):
        for bad in (None, [None], 3.0):
            self.refuses(ArgumentTypeError, "grad_outputs.*Tensor", grad_outputs=bad)

    def test_the_wrong_number(self):
        given = flow.ones(2, 3, dtype=flow.float64)
        self.refuses(GradientError, "grad_outputs.*2 gradient", 2, grad_outputs=given)

    def test_unused_inputs(self):
        x, unused = (flow.tensor(X, requires_grad=True) for _ in range(2))
        y, given = x * x, flow.ones(2, 3, dtype=flow.float64)
        options = {"retain_graph": True, "is_grads_batched": True}
        with pytest.raises(GradientError, match=r"inputs\[1\]"):
            flow.autograd.grad(y, (x, unused), given, **options)
        assert flow.autograd.grad(y, (x, unused), given, allow_unused=True, **options)[1] is None
        zeros = flow.autograd.grad(y, (x, unused), given, materialize_grads=True, **options)[1]
        assert zeros.tolist() == [[0.0] * 3] * 2  # stacked, as all results are
