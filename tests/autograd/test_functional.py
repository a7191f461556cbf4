"""`autograd.functional` against PyTorch's: values, shapes, nesting, what requires a gradient."""

from collections import Counter

import numpy as np
import pytest

import oneflow_lite as flow
from oneflow_lite.autograd import functional
from oneflow_lite.errors import (
    ArgumentError,
    ArgumentTypeError,
    DTypeError,
    FlowError,
    GradientError,
    OptionError,
    ShapeError,
)
from tests.autograd.leaves import leaf

# PyTorch's own, when it vectorizes.
pytestmark = pytest.mark.filterwarnings("ignore:`torch.jit.script`:DeprecationWarning")

X = np.array([0.5, -1.25, 2.0])
Y = np.array([1.5, 0.25, -0.75])
M = np.array([[0.5, -1.0, 2.0], [1.5, 0.25, -0.75]])
S = np.array(0.75)
ONE = np.array([[1.25]])

# name: (function of lib and tensors, inputs); a bare array stands for inputs that are no tuple.
FUNCTIONS = {
    "square": (lambda lib, x: x * x, X),
    "exp of a matrix": (lambda lib, x: x.exp(), M),
    "sum": (lambda lib, x: x.sum(), M),
    "row sums": (lambda lib, x: (x * x).sum(1), M),
    "0-d": (lambda lib, x: x.sin(), S),
    "0-d to vector": (lambda lib, x: lib.stack([x, x * x, x.exp()]), S),
    "one element": (lambda lib, x: x**3, ONE),
    "one element of three": (lambda lib, x: (x**3).sum().reshape(1, 1), X),
    "identity": (lambda lib, x: x, X),
    "a view": (lambda lib, x: x[1:], X),
    "linear": (lambda lib, x: 3 * x, X),
    "constant": (lambda lib, x: lib.tensor([1.0, 2.0], dtype=lib.float64), X),
    "detached": (lambda lib, x: (x * x).detach(), X),
    "integers": (lambda lib, x: (x > 0).to(lib.int64), X),
    "tuple of one": (lambda lib, x: (x * x,), X),
    "inputs of one": (lambda lib, x: x * x, (X,)),
    "several outputs": (lambda lib, x: (x * x, x.sum(), x[:2].exp()), X),
    "one output constant": (lambda lib, x: (x * x, lib.ones(2)), X),
    "several inputs": (lambda lib, x, y: x * y, (X, Y)),
    "different shapes": (lambda lib, x, y: x @ y, (M, X)),
    "unused input": (lambda lib, x, y: x * x, (X, Y)),
    "several of both": (lambda lib, x, y: (x * y, (x.exp() * y).sum()), (X, Y)),
    "each its own": (lambda lib, x, y: (x * x, y.exp()), (X, Y)),
    "scalar of several": (lambda lib, x, y: (x * y * y).sum(), (X, Y)),
    "scalar of one of two": (lambda lib, x, y: (x**3).sum(), (X, Y)),
    "scalar separable": (lambda lib, x, y: (x**3).sum() + (y * 2).sum(), (X, Y)),
    "scalar linear": (lambda lib, x: (x * 2).sum(), X),
    "scalar quadratic": (lambda lib, x: (x * x).sum(), X),
    "scalar of a product": (lambda lib, x: x.prod() ** 2, X),
    "scalar bilinear": (lambda lib, x, y: (x @ y).sum() * y.sum(), (M, X)),
    "tanh net": (lambda lib, w, x: (w @ x).tanh().pow(2).sum(), (M, X)),
    "softmax": (lambda lib, x: lib.softmax(x, 0).log().sum(), X),
    "sort": (lambda lib, x: lib.sort(x)[0] * x, X),
    "in place": (lambda lib, x: (x * 2).add_(x).exp_() * x, X),
    "float32": (lambda lib, x: x * x, X.astype(np.float32)),
    "mixed dtypes": (lambda lib, x, y: (x * y, x * x), (X.astype(np.float32), Y)),
    "empty input": (lambda lib, x: x.sum(), X[:0]),
    "complex to complex": (lambda lib, x: x * x * (1 + 2j), X + 1j * Y),
    "complex to real": (lambda lib, x: lib.abs(x), X + 1j * Y),
    "complex to a real scalar": (lambda lib, x: (lib.abs(x) ** 3).sum(), X + 1j * Y),
    "real to complex": (lambda lib, x: x * (1 + 2j), X),
}
OPTIONS = [(create_graph, strict) for create_graph in (False, True) for strict in (False, True)]


def tupled(value):
    return value if isinstance(value, tuple) else (value,)


def tensors(lib, arrays, requires_grad):
    made = tuple(
        lib.tensor(a, requires_grad=requires_grad and a.dtype.kind in "fc") for a in tupled(arrays)
    )
    return made if isinstance(arrays, tuple) else made[0]


def vectors(arrays, seed=0):
    """Return a vector of the shape and dtype of each array."""
    rng = np.random.default_rng(seed)

    def one(a):
        v = rng.uniform(0.5, 1.5, a.shape)
        return (v + 1j * rng.uniform(0.5, 1.5, a.shape) if a.dtype.kind == "c" else v).astype(
            a.dtype if a.dtype.kind in "fc" else np.float64
        )

    return tuple(map(one, arrays)) if isinstance(arrays, tuple) else one(arrays)


def flat(result):
    if isinstance(result, (tuple, list)):  # PyTorch's vectorized ones mix them
        for part in result:
            yield from flat(part)
    else:
        yield result


def describe(result, array_of):
    """Return nested lists of what there is to know of each tensor."""
    if isinstance(result, (tuple, list)):
        return [describe(part, array_of) for part in result]
    return (tuple(result.shape), str(array_of(result).dtype))


def arrays_of(lib, tensor):
    tensor = tensor.detach()
    return tensor.numpy() if lib is flow else tensor.resolve_conj().numpy()


def outcome(call):
    try:
        return call(), None
    except Exception as error:
        return None, error


def agree(torch, call, recorded=list):
    """Compare `call(lib, functional)` of both libraries; return the results.

    `recorded` says what is compared of the list of `requires_grad` of the results.
    """
    ours, our_error = outcome(lambda: call(flow, functional))
    theirs, their_error = outcome(lambda: call(torch, torch.autograd.functional))
    if their_error is not None:
        assert our_error is not None, f"PyTorch raises {their_error!r}, we return {ours}"
        builtin = type(their_error)
        assert isinstance(our_error, FlowError), repr(our_error)
        assert isinstance(our_error, builtin), f"{our_error!r} against {their_error!r}"
        return None
    if our_error is not None:
        raise our_error
    assert describe(ours, lambda t: arrays_of(flow, t)) == describe(
        theirs, lambda t: arrays_of(torch, t)
    )
    flags = [recorded(y.requires_grad for y in flat(result)) for result in (ours, theirs)]
    assert flags[0] == flags[1]
    for a, b in zip(flat(ours), flat(theirs), strict=True):
        tolerance = 1e-5 if a.dtype in (np.float32, np.complex64) else 1e-10
        np.testing.assert_allclose(
            arrays_of(flow, a), arrays_of(torch, b), rtol=tolerance, atol=tolerance
        )
    return ours, theirs


def differentiate(torch, results, inputs):
    """Compare the gradients of the results, which create_graph=True has recorded."""
    found = []
    for lib, result, given in zip((flow, torch), results, inputs, strict=True):
        terms = [y for y in flat(result) if y.requires_grad]
        if not terms:
            found.append([np.zeros(x.shape) for x in tupled(given)])
            continue
        total = sum((lib.real(y) * 1.5).sum() for y in terms)
        wanted = [x for x in tupled(given) if x.requires_grad]
        grads = lib.autograd.grad(total, wanted, allow_unused=True)
        found.append(
            [
                np.zeros(tuple(x.shape)) if g is None else arrays_of(lib, g)
                for g, x in zip(grads, wanted, strict=True)
            ]
        )
    for a, b in zip(*found, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-8)


@pytest.mark.parametrize("name", FUNCTIONS)
class TestAgainstPyTorch:
    @pytest.mark.parametrize(("create_graph", "strict"), OPTIONS)
    @pytest.mark.parametrize("product", ["vjp", "jvp", "vhp", "hvp"])
    def test_products(self, name, product, create_graph, strict):
        torch = pytest.importorskip("torch")
        function, arrays = FUNCTIONS[name]
        with np.errstate(all="ignore"):
            outputs = function(flow, *tensors(flow, tupled(arrays), False))
        like = arrays
        if product == "vjp":
            like = outputs.numpy() if not isinstance(outputs, tuple) else None
            like = tuple(y.numpy() for y in outputs) if like is None else like
        given = []

        def call(lib, api):
            inputs = tensors(lib, arrays, True)
            given.append(inputs)
            v = tensors(lib, vectors(like), create_graph)
            return getattr(api, product)(
                lambda *x: function(lib, *x), inputs, v, create_graph=create_graph, strict=strict
            )

        if name == "integers" and product == "jvp" and not strict:
            assert call(flow, functional)[1].tolist() == [0, 0, 0]  # PyTorch raises
            return
        results = agree(torch, call)
        if results is not None and create_graph:
            differentiate(torch, results, given)

    @pytest.mark.parametrize("vectorize", [False, True])
    @pytest.mark.parametrize(("create_graph", "strict"), OPTIONS)
    @pytest.mark.parametrize("whole", ["jacobian", "hessian"])
    def test_whole(self, name, whole, create_graph, strict, vectorize):
        torch = pytest.importorskip("torch")
        function, arrays = FUNCTIONS[name]
        given = []

        def call(lib, api):
            inputs = tensors(lib, arrays, True)
            given.append(inputs)
            return getattr(api, whole)(
                lambda *x: function(lib, *x),
                inputs,
                create_graph=create_graph,
                strict=strict,
                vectorize=vectorize,
            )

        if name == "empty input" and whole == "hessian" and not (strict or vectorize):
            assert call(flow, functional).shape == (0, 0)  # PyTorch cannot stack nothing
            return
        # PyTorch takes all outputs together with vectorize, so that a constant block of the
        # Jacobian is recorded too where another one is not constant.
        results = agree(torch, call, any if vectorize else list)
        if results is not None and create_graph:
            differentiate(torch, results, given)

    @pytest.mark.parametrize("whole", ["jacobian", "hessian"])
    def test_forward_mode(self, name, whole):
        torch = pytest.importorskip("torch")
        function, arrays = FUNCTIONS[name]
        option = "strategy" if whole == "jacobian" else "outer_jacobian_strategy"

        def call(lib, api):
            return getattr(api, whole)(
                lambda *x: function(lib, *x),
                tensors(lib, arrays, False),
                vectorize=True,
                **{option: "forward-mode"},
            )

        if name == "empty input":
            shape = (0,) if whole == "jacobian" else (0, 0)
            assert call(flow, functional).shape == shape  # PyTorch cannot batch nothing
            return
        # PyTorch leaves some results joined to its own graph, although that is not asked for.
        results = agree(torch, call, recorded=lambda flags: None)
        assert results is None or not any(y.requires_grad for y in flat(results[0]))


class TestForwardMode:
    """The options that PyTorch has no forward mode for."""

    @pytest.mark.parametrize("vectorize", [False, True])
    def test_is_recorded_with_create_graph(self, vectorize):
        x, y = leaf(X.tolist()), leaf([1.0, 2.0, 3.0])
        options = {"create_graph": True, "vectorize": vectorize}
        columns = functional.jacobian(
            lambda x, y: x * y * y, (x, y), strategy="forward-mode", **options
        )
        rows = functional.jacobian(lambda x, y: x * y * y, (x, y), **options)
        for a, b in zip(columns, rows, strict=True):
            assert a.tolist() == b.tolist() and a.requires_grad
        for a, b in zip(
            flow.autograd.grad(sum((c * c).sum() for c in columns), (x, y)),
            flow.autograd.grad(sum((r * r).sum() for r in rows), (x, y)),
            strict=True,
        ):
            np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-6)

    def test_strict(self):
        def function(x, y):
            return x * x, x * y

        x = flow.tensor(X)
        with pytest.raises(GradientError, match="does not depend"):
            functional.jacobian(function, (x, x), strict=True, strategy="forward-mode")
        found = functional.jacobian(lambda x: x * x, x, strict=True, strategy="forward-mode")
        assert found.numpy().tolist() == np.diag(2 * X).tolist()


PRODUCTS = [functional.vjp, functional.jvp, functional.vhp, functional.hvp]
ALL = [*PRODUCTS, functional.jacobian, functional.hessian]


class TestPurity:
    @pytest.mark.parametrize("function", ALL)
    @pytest.mark.parametrize("create_graph", [False, True])
    def test_nothing_is_changed(self, function, create_graph):
        x = flow.tensor(X, requires_grad=True)
        hidden = x * 2
        hidden.retain_grad()
        other = flow.tensor(Y, requires_grad=True)
        x.grad, other.grad = flow.tensor(X), flow.tensor(Y)
        before = x.grad, other.grad, x._version
        args = () if function in ALL[4:] else (flow.tensor(1.0, dtype=flow.float64),)
        if function in (functional.jvp, functional.vhp, functional.hvp):
            args = (flow.tensor(Y),)
        function(lambda h: (h**3 * other).sum(), hidden, *args, create_graph=create_graph)
        assert (x.grad, other.grad, x._version) == before
        assert x.numpy().tolist() == X.tolist() == x.grad.numpy().tolist()
        assert other.grad.numpy().tolist() == Y.tolist()
        assert hidden.grad is None
        hidden.sum().backward()  # its graph is still there
        assert x.grad.numpy().tolist() == (X + 2).tolist()

    @pytest.mark.parametrize("function", ALL)
    def test_works_and_leaves_the_mode_under_no_grad(self, function):
        x = flow.tensor(0.5)
        with flow.no_grad():
            found = function(lambda x: x**3, x)
            assert not flow.is_grad_enabled()
        found = found[1] if isinstance(found, tuple) else found
        assert found.item() == pytest.approx(0.75 if function in ALL[:2] + ALL[4:5] else 3.0)

    def test_a_tensor_the_function_takes_from_elsewhere_is_a_constant(self):
        x = leaf([1.0, 2.0])
        assert functional.jacobian(lambda y: x * y, x, create_graph=True).tolist() == [
            [1.0, 0.0],
            [0.0, 2.0],
        ]

    def test_results_are_cut_off_without_create_graph(self):
        x = leaf([1.0, 2.0])
        y, product = functional.vjp(lambda x: x * x, x, flow.tensor([1.0, 1.0]))
        assert not y.requires_grad and not product.requires_grad
        assert not functional.jacobian(lambda x: x * x, x).requires_grad


class Counting(flow.Interpreter):
    def __init__(self):
        self.calls = Counter()
        self.largest = 0

    def apply(self, op_expr, inputs, attrs):
        outputs = self.inner.apply(op_expr, inputs, attrs)
        self.calls[op_expr.op_type_name] += 1
        for y in outputs if isinstance(outputs, tuple) else (outputs,):
            self.largest = max(self.largest, y.numel())
        return outputs


class TestCost:
    @pytest.mark.parametrize("function", PRODUCTS)
    def test_products_never_build_a_matrix(self, function):
        """As many ops for 200 elements as for 2, and no array larger than the input."""
        counted = []
        for size in (2, 200):
            x, v = flow.ones(size), flow.ones(size)
            v = flow.tensor(1.0) if function is functional.vjp else v
            with flow.push_interpreter(Counting()) as counting:
                function(lambda x: (x**3).sum() * x.sin().sum(), x, v)
            counted.append(counting.calls)
            assert counting.largest == size
        assert counted[0] == counted[1]

    @pytest.mark.parametrize(("strict", "count"), [(False, 1), (True, 3)])
    def test_backward_passes_of_hvp(self, monkeypatch, strict, count):
        passes = []
        home = "oneflow_lite.autograd.tools.jacobian_products.grad"
        monkeypatch.setattr(home, lambda *a, **k: passes.append(1) or flow.autograd.grad(*a, **k))
        functional.hvp(lambda x: (x**3).sum(), flow.ones(50), flow.ones(50), strict=strict)
        assert len(passes) == count

    @pytest.mark.parametrize(("vectorize", "strict", "count"), [(1, 0, 1), (0, 0, 1), (0, 1, 1)])
    def test_calls_of_the_function(self, vectorize, strict, count):
        """Forward mode calls it once for all columns."""
        calls = []

        def function(x):
            calls.append(x.shape)
            return x * x.sum()

        x, kind = flow.tensor(X), "forward-mode"
        made = functional.jacobian(function, x, False, bool(strict), bool(vectorize), kind)
        assert calls == [x.shape] * count
        np.testing.assert_allclose(made.numpy(), np.diag([X.sum()] * 3) + X[:, None])

    def test_forward_mode_takes_no_backward_pass(self, monkeypatch):
        def refused(*args, **kwargs):
            raise AssertionError("a backward pass")

        home = "oneflow_lite.autograd.tools.jacobian_products.grad"
        monkeypatch.setattr(home, refused)
        x, v = flow.tensor(X), flow.tensor(Y)
        functional.jacobian(lambda x: x.exp(), x, vectorize=True, strategy="forward-mode")
        assert np.allclose(functional.jvp(lambda x: x * x, x, v)[1].numpy(), 2 * X * Y)

    @pytest.mark.parametrize(("vectorize", "count"), [(False, 7), (True, 1)])
    def test_vectorize_is_one_call_of_grad(self, monkeypatch, vectorize, count):
        calls = []
        home = "oneflow_lite.autograd.tools.jacobian_products.grad"
        monkeypatch.setattr(home, lambda *a, **k: calls.append(1) or flow.autograd.grad(*a, **k))
        functional.jacobian(lambda x: x * x, flow.ones(7), vectorize=vectorize)
        assert len(calls) == count


class TestErrors:
    def test_no_tensors(self):
        x = flow.tensor(X)
        for bad in (3.0, [x], (x, 3.0), None, ()):
            with pytest.raises(ArgumentTypeError, match="jacobian.*'inputs'.*tuple"):
                functional.jacobian(lambda *x: x[0], bad)
            with pytest.raises(ArgumentTypeError, match="vjp.*'func'.*tuple"):
                functional.vjp(lambda x, bad=bad: bad, x)
        with pytest.raises(ArgumentTypeError, match="jvp.*'v'"):
            functional.jvp(lambda x: x, x, [x])

    def test_integers(self):
        with pytest.raises(DTypeError):
            functional.jacobian(lambda x: x, flow.tensor([1, 2]))

    @pytest.mark.parametrize("function", PRODUCTS)
    def test_a_missing_vector(self, function):
        with pytest.raises(ArgumentError, match=f"{function.__name__}.*'v'"):
            function(
                lambda x, y: (x * y, x) if function in PRODUCTS[:1] else x.sum(), (leaf(X),) * 2
            )

    @pytest.mark.parametrize("function", PRODUCTS)
    def test_a_vector_of_the_wrong_shape(self, function):
        x = flow.tensor(X)
        for v in (flow.ones(2), (x, x), flow.ones(3, 1)):
            with pytest.raises(ShapeError, match=f"{function.__name__}.*'v'"):
                function(lambda x: x.sum() if function in PRODUCTS[2:] else x * x, x, v)

    def test_a_bad_vector_for_the_inputs_is_found_before_the_function_runs(self):
        for function in PRODUCTS[1:]:
            with pytest.raises(ShapeError):
                function(lambda x: pytest.fail("ran"), flow.ones(3), flow.ones(2))

    def test_vectors_of_another_precision_are_converted(self):
        x = flow.tensor(X, requires_grad=True)
        for v in (flow.tensor([1.0, 2.0, 3.0]), flow.tensor([1, 2, 3])):
            for function in PRODUCTS[:2]:
                product = function(lambda x: x * x, x, v)[1]
                assert product.dtype == flow.float64
                np.testing.assert_allclose(product.numpy(), 2 * X * [1, 2, 3])

    @pytest.mark.parametrize("function", [functional.vhp, functional.hvp, functional.hessian])
    def test_no_scalar_function(self, function):
        x = flow.tensor(S)
        args = () if function is functional.hessian else (flow.tensor(S),)
        with pytest.raises(ArgumentError, match=f"{function.__name__}.*'func'.*tuple"):
            function(lambda x: (x * x,), x, *args)
        with pytest.raises(ArgumentError, match=f"{function.__name__}.*'func'.*\\(2,\\)"):
            function(lambda x: flow.stack([x, x]), x, *args)

    def test_options_that_do_not_exist(self):
        x = flow.tensor(X)
        with pytest.raises(OptionError, match="strategy") as caught:
            functional.jacobian(lambda x: x, x, strategy="sideways")
        assert isinstance(caught.value, AssertionError)
        with pytest.raises(OptionError):
            functional.hessian(lambda x: x.sum(), x, outer_jacobian_strategy="sideways")
        with pytest.raises(OptionError, match="vectorize") as caught:
            functional.jacobian(lambda x: x, x, strict=True, vectorize=True)
        assert isinstance(caught.value, RuntimeError)

    def test_a_complex_output_has_no_row(self):
        z = flow.tensor(X + 1j * Y)
        with pytest.raises(GradientError, match="real outputs.*forward-mode"):
            functional.jacobian(lambda z: z * z, z)
        derivative = functional.jacobian(lambda z: z * z, z, strategy="forward-mode")
        np.testing.assert_allclose(derivative.numpy(), np.diag(2 * (X + 1j * Y)))
        conjugate = functional.jacobian(lambda z: z * z, z, vectorize=True)
        np.testing.assert_allclose(conjugate.numpy(), derivative.numpy().conj())

    @pytest.mark.parametrize("function", ALL)
    def test_what_the_function_raises_comes_out(self, function):
        def broken(x):
            raise KeyError("mine")

        with pytest.raises(KeyError, match="mine"):
            function(broken, flow.tensor(1.0))
        assert flow.is_grad_enabled()


def test_the_hessian_is_symmetric_and_matches_both_products():
    weights = flow.tensor(M)

    def function(x):
        return (weights @ x).tanh().pow(2).sum() + x.prod()

    x, v = flow.tensor(X), flow.tensor(Y)
    hessian = functional.hessian(function, x).numpy()
    np.testing.assert_allclose(hessian, hessian.T, atol=1e-14)
    np.testing.assert_allclose(functional.hvp(function, x, v)[1].numpy(), hessian @ Y)
    np.testing.assert_allclose(functional.vhp(function, x, v)[1].numpy(), Y @ hessian)


def test_products_of_the_jacobian_match_it():
    def function(x):
        return flow.stack([x.prod(), (x * x).sum()]).exp()

    x = flow.tensor(X)
    jacobian = functional.jacobian(function, x).numpy()
    v, w = flow.tensor(Y), flow.tensor([2.0, -1.0], dtype=flow.float64)
    np.testing.assert_allclose(functional.jvp(function, x, v)[1].numpy(), jacobian @ Y)
    np.testing.assert_allclose(functional.vjp(function, x, w)[1].numpy(), w.numpy() @ jacobian)


def test_on_each_device(device):
    x, v = flow.tensor(X, device=device), flow.tensor(Y, device=device)
    for strategy in ("reverse-mode", "forward-mode"):
        for vectorize in (False, True):
            found = functional.jacobian(lambda x: x * x, x, strategy=strategy, vectorize=vectorize)
            assert found.device == x.device
            np.testing.assert_allclose(found.numpy(), np.diag(2 * X))
    np.testing.assert_allclose(functional.hvp(lambda x: (x**3).sum(), x, v)[1].numpy(), 6 * X * Y)
