"""Bad input to every op: an error of ours that names op and argument, and nothing has changed."""

import inspect

import numpy as np
import pytest

import oneflow_lite as flow
from oneflow_lite.errors import FlowError
from oneflow_lite.ops.registry import FUNCTORS

RNG = np.random.default_rng(0)
X = RNG.uniform(0.2, 0.8, (2, 3))
Y = RNG.uniform(0.2, 0.8, (2, 3))
SQUARE = RNG.normal(size=(3, 3))
V = RNG.normal(size=3)
IMAGE = RNG.normal(size=(2, 4, 6, 6))
SIGNAL = RNG.normal(size=(2, 4, 8))
INDEX = np.array([[0, 2, 1]])
MASK = X > 0.5
UNARY = (
    "abs asin acos asinh atan atanh ceil celu cos cosh elu erf erfc exp exp2 expm1 floor frac "
    "gelu hardsigmoid hardswish hardtanh leaky_relu log log10 log1p log2 logsigmoid mish neg "
    "reciprocal relu relu6 round rsqrt selu sigmoid sign silu sin sinc sinh softplus softsign sqrt "
    "square tan tanh tanhshrink trunc clone nan_to_num"
).split()
BINARY = (
    "add sub mul div pow fmod remainder floor_divide atan2 hypot logaddexp xlogy maximum minimum "
    "eq ne lt le gt ge"
).split()
ALONG = (
    "sum mean prod amax amin var std logsumexp argmax argmin norm all any std_mean var_mean".split()
)

# A valid call of each op: positional and keyword arguments. Arrays become tensors.
CALLS = {name: ((X,), {}) for name in UNARY}
CALLS |= {name: ((X, Y), {}) for name in BINARY}
CALLS |= {name: ((X,), {"dim": 1}) for name in ALONG}
CALLS |= {
    "acosh": ((X + 1,), {}),
    "addcdiv": ((X, Y, Y), {}),
    "addcmul": ((X, Y, Y), {}),
    "addmm": ((SQUARE, SQUARE, SQUARE), {}),
    "addmv": ((V, SQUARE, V), {}),
    "adaptive_avg_pool2d": ((IMAGE, 2), {}),
    "avg_pool1d": ((SIGNAL, 2), {}),
    "avg_pool2d": ((IMAGE, 2), {}),
    "baddbmm": ((SQUARE[None], SQUARE[None], SQUARE[None]), {}),
    "batch_norm": ((IMAGE, np.zeros(4), np.ones(4)), {"training": True}),
    "binary_cross_entropy": ((X, Y), {}),
    "binary_cross_entropy_with_logits": ((X, Y), {}),
    "bmm": ((SQUARE[None], SQUARE[None]), {}),
    "broadcast_to": ((V, (2, 3)), {}),
    "cat": (([X, Y],), {"dim": 0}),
    "chunk": ((X, 2), {"dim": 1}),
    "clamp": ((X,), {"min": 0.3, "max": 0.6}),
    "clamp_max": ((X, 0.5), {}),
    "clamp_min": ((X, 0.5), {}),
    "conv1d": ((SIGNAL, RNG.normal(size=(5, 4, 3))), {}),
    "conv2d": ((IMAGE, RNG.normal(size=(5, 4, 3, 3))), {}),
    "cosine_similarity": ((X, Y), {"dim": 1}),
    "cross_entropy": ((X, np.array([0, 2])), {}),
    "cumprod": ((X,), {"dim": 1}),
    "cumsum": ((X,), {"dim": 1}),
    "diag": ((SQUARE,), {}),
    "diagonal": ((SQUARE,), {}),
    "dot": ((V, V), {}),
    "dropout": ((X,), {"p": 0.5}),
    "einsum": (("ij,jk->ik", SQUARE, SQUARE), {}),
    "embedding": ((np.array([0, 2]), SQUARE), {}),
    "expand": ((V, 2, 3), {}),
    "flatten": ((X,), {"start_dim": 0}),
    "flip": ((X,), {"dims": (0,)}),
    "gather": ((X, 0, np.array([[0, 1, 1]])), {}),
    "group_norm": ((IMAGE, 2), {}),
    "hstack": (([X, Y],), {}),
    "huber_loss": ((X, Y), {}),
    "index_add": ((X, 1, np.array([2, 0]), Y[:, :2]), {}),
    "index_fill": ((X, 1, np.array([2, 0]), 1.0), {}),
    "index_select": ((X, 1, np.array([2, 0])), {}),
    "kl_div": ((X, Y), {"reduction": "batchmean"}),
    "l1_loss": ((X, Y), {}),
    "layer_norm": ((X, (3,)), {}),
    "lerp": ((X, Y, 0.3), {}),
    "linear": ((X, SQUARE), {}),
    "log_softmax": ((X,), {"dim": 1}),
    "masked_fill": ((X, MASK, 1.0), {}),
    "masked_scatter": ((X, MASK, Y), {}),
    "masked_select": ((X, MASK), {}),
    "matmul": ((SQUARE, SQUARE), {}),
    "max": ((X,), {"dim": 1}),
    "max_pool1d": ((SIGNAL, 2), {}),
    "max_pool2d": ((IMAGE, 2), {}),
    "meshgrid": ((V, V), {"indexing": "ij"}),
    "min": ((X,), {"dim": 1}),
    "mm": ((SQUARE, SQUARE), {}),
    "movedim": ((X, 0, 1), {}),
    "mse_loss": ((X, Y), {}),
    "mv": ((SQUARE, V), {}),
    "narrow": ((X, 1, 0, 2), {}),
    "nll_loss": ((X, np.array([0, 2])), {}),
    "normalize": ((X,), {"dim": 1}),
    "one_hot": ((np.array([0, 2]),), {"num_classes": 3}),
    "outer": ((V, V), {}),
    "pad": ((X, (1, 1)), {}),
    "permute": ((X, 1, 0), {}),
    "repeat": ((X, 2, 1), {}),
    "reshape": ((X, 3, 2), {}),
    "rms_norm": ((X, (3,)), {}),
    "roll": ((X, 1), {"dims": 1}),
    "scatter": ((X, 0, INDEX * 0, Y), {}),
    "scatter_add": ((X, 0, INDEX * 0, Y), {}),
    "select": ((X, 1, 0), {}),
    "smooth_l1_loss": ((X, Y), {}),
    "softmax": ((X,), {"dim": 1}),
    "sort": ((X,), {"dim": 1}),
    "split": ((X, 2), {"dim": 1}),
    "squeeze": ((X,), {"dim": 0}),
    "stack": (([X, Y],), {"dim": 0}),
    "t": ((X,), {}),
    "take_along_dim": ((X, np.array([[0, 1, 1]])), {"dim": 0}),
    "tile": ((X, (2, 1)), {}),
    "topk": ((X, 2), {"dim": 1}),
    "trace": ((SQUARE,), {}),
    "transpose": ((X, 0, 1), {}),
    "tril": ((X,), {}),
    "triu": ((X,), {}),
    "unbind": ((X,), {"dim": 1}),
    "unflatten": ((X, 1, (3, 1)), {}),
    "unsqueeze": ((X, 0), {}),
    "view": ((X, 3, 2), {}),
    "vstack": (([X, Y],), {}),
    "where": ((MASK, X, Y), {}),
}
NAMES = sorted(CALLS)

WRONG_SHAPES = {
    **{name: [(np.ones((2, 3)), np.ones(2))] for name in BINARY},
    "addcmul": [(X, Y, np.ones(2))],
    "addcdiv": [(X, np.ones(2), Y)],
    "addmm": [(SQUARE, X, X), (np.ones(2), SQUARE, SQUARE), (SQUARE, V, SQUARE)],
    "addmv": [(V, SQUARE, np.ones(2)), (V, V, V)],
    "adaptive_avg_pool2d": [(X[0], 2)],
    "avg_pool1d": [(V, 2), (SIGNAL, 9)],
    "avg_pool2d": [(X, 2), (IMAGE, 7)],
    "baddbmm": [(SQUARE[None], SQUARE, SQUARE), (SQUARE[None], SQUARE[None], X[None])],
    "binary_cross_entropy": [(X, np.ones((2, 2))), (X, Y, np.ones(2))],
    "binary_cross_entropy_with_logits": [
        (X, np.ones((2, 2))),
        (X, Y, np.ones(2)),
        (X, Y, None, None, None, "mean", np.ones(2)),
    ],
    "bmm": [(SQUARE, SQUARE), (SQUARE[None], X[None]), (np.ones((2, 3, 3)), np.ones((3, 3, 3)))],
    "broadcast_to": [(V, (2, 2)), (X, (3,))],
    "cat": [([X, SQUARE[:, :2]],), ([X, V],)],
    "conv1d": [(SIGNAL, np.ones((5, 3, 3))), (V, np.ones((5, 4, 3))), (SIGNAL, np.ones((5, 4, 9)))],
    "conv2d": [
        (IMAGE, np.ones((5, 3, 3, 3))),
        (X, np.ones((5, 4, 3, 3))),
        (IMAGE, np.ones((5, 4, 7, 7))),
        (IMAGE, np.ones((5, 4, 3, 3)), np.ones(4)),
    ],
    "cross_entropy": [(X, np.array([0, 1, 2])), (X, np.ones((2, 2)))],
    "diag": [(IMAGE,)],
    "diagonal": [(V,)],
    "dot": [(V, np.ones(2)), (X, X)],
    "einsum": [("ij,jk->ik", SQUARE, X), ("ij->ij", V), ("i,i->i", V)],
    "embedding": [(np.array([0, 2]), V)],
    "expand": [(V, 2, 2), (X, 3)],
    "gather": [(X, 0, np.array([0, 1])), (X, 0, np.array([[0, 1, 1, 0]]))],
    "group_norm": [(IMAGE, 3), (V, 1)],
    "hstack": [([X, SQUARE],)],
    "index_add": [(X, 1, np.array([2, 0]), Y)],
    "index_select": [(X, 1, np.array([[2, 0]]))],
    "kl_div": [(X, np.ones((2, 2)))],
    "layer_norm": [(X, (2,)), (X, (3,), np.ones(2))],
    "lerp": [(X, np.ones(2), 0.3)],
    "linear": [(X, X.T), (X, SQUARE, np.ones(2))],
    "masked_fill": [(X, np.array([True, False]), 1.0)],
    "masked_scatter": [(X, MASK | True, np.ones(2))],
    "masked_select": [(X, np.array([True, False]))],
    "matmul": [(X, X), (V, X), (np.ones(()), V), (np.ones((2, 3, 3)), np.ones((3, 3, 3)))],
    "max_pool1d": [(V, 2), (SIGNAL, 9)],
    "max_pool2d": [(X, 2), (IMAGE, 7)],
    "mm": [(X, X), (V, SQUARE)],
    "mse_loss": [(X, np.ones((2, 2)))],
    "l1_loss": [(X, np.ones((2, 2)))],
    "mv": [(SQUARE, np.ones(2)), (V, V)],
    "narrow": [(X, 1, 2, 2), (X, 1, 0, 5)],
    "nll_loss": [(X, np.array([0, 1, 2])), (np.ones(()), np.array(0))],
    "outer": [(X, V)],
    "pad": [(X, (1,)), (X, (1, 1, 1, 1, 1, 1)), (X, (-4, -4))],
    "permute": [(X, 0), (X, 0, 0)],
    "reshape": [(X, 4), (X, -1, -1), (X, 5, -1)],
    "rms_norm": [(X, (2,))],
    "scatter": [(X, 0, np.array([0]), Y), (X, 0, np.zeros((3, 3), int), Y)],
    "scatter_add": [(X, 0, np.array([0]), Y), (X, 0, np.zeros((3, 3), int), Y)],
    "smooth_l1_loss": [(X, np.ones((2, 2)))],
    "huber_loss": [(X, np.ones((2, 2)))],
    "split": [(X, [1, 1, 3])],
    "stack": [([X, SQUARE],)],
    "t": [(IMAGE,)],
    "topk": [(X, 4)],
    "trace": [(V,), (IMAGE,)],
    "tril": [(V,)],
    "triu": [(V,)],
    "unflatten": [(X, 1, (2, 2))],
    "view": [(X, 4), (X.T, 6)],
    "vstack": [([X, SQUARE[:, :2]],)],
    "where": [(MASK, X, np.ones(2))],
}

WRONG_VALUES = {
    "cat": [([],)],
    "chunk": [(X, 0), (X, -1)],
    "conv2d": [(IMAGE, np.ones((5, 4, 3, 3)), None, 0)],
    "dropout": [(X, 1.5), (X, -0.1)],
    "einsum": [("ij,jk", SQUARE), ("i?j", SQUARE), ("ij->k", SQUARE)],
    "embedding": [(np.array([0, 3]), SQUARE), (np.array([-4]), SQUARE), (np.array([0.5]), SQUARE)],
    "gather": [(X, 0, np.array([[2, 0, 0]])), (X, 0, np.array([[0.5, 0, 0]]))],
    "index_select": [(X, 1, np.array([3])), (X, 1, np.array([0.5]))],
    "index_add": [(X, 1, np.array([3, 0]), Y[:, :2])],
    "masked_fill": [(X, np.array([[1, 0, 1]]), 1.0)],
    "masked_select": [(X, np.array([[1, 0, 1]]))],
    "meshgrid": [(V, V, "text")],
    "nll_loss": [(X, np.array([0, 3])), (X, np.array([0.5, 1.0]))],
    "cross_entropy": [(X, np.array([0, 3]))],
    "one_hot": [(np.array([0, 3]), 3), (np.array([-1]), 3), (np.array([0.5]), 3)],
    "repeat": [(X, 2), (X, -1, 1)],
    "scatter": [(X, 0, INDEX + 5, Y)],
    "scatter_add": [(X, 0, INDEX + 5, Y)],
    "select": [(X, 1, 3), (X, 1, -4)],
    "split": [(X, 0), (X, -1)],
    "stack": [([],)],
    "topk": [(X, -1)],
    "where": [(X, X, Y)],
}


def convert(value):
    if isinstance(value, np.ndarray):
        return flow.tensor(value)
    if isinstance(value, list) and value and isinstance(value[0], np.ndarray):
        return [flow.tensor(v) for v in value]
    return value


def tensors_in(values):
    for value in values:
        if isinstance(value, flow.Tensor):
            yield value
        elif isinstance(value, list):
            yield from tensors_in(value)


def valid(name):
    args, kwargs = CALLS[name]
    return [convert(a) for a in args], {n: convert(v) for n, v in kwargs.items()}


def functor_of(name):
    return FUNCTORS.get(name)


def refuses(name, args, kwargs=None, argument=None):
    """Call with bad arguments: the error is ours, names what it should, and nothing has changed."""
    function, kwargs = functor_of(name), kwargs or {}
    given = list(tensors_in([*args, *kwargs.values()]))
    for tensor in given:
        if tensor.is_floating_point():
            tensor.requires_grad_()
    before = [(t.numpy().copy(), t._version, t.grad_fn, t.requires_grad) for t in given]
    with pytest.raises(FlowError) as caught:
        function(*args, **kwargs)
    for tensor, (array, version, node, requires_grad) in zip(given, before, strict=True):
        assert tensor.numpy().tobytes() == array.tobytes()
        assert (tensor._version, tensor.grad_fn, tensor.requires_grad) == (
            version,
            node,
            requires_grad,
        )
        assert tensor.grad is None
        if requires_grad:  # and still usable
            (tensor * 2).sum().backward()
            assert (tensor.grad.numpy() == 2).all()
    text = str(caught.value)
    assert f"{name}()" in text or f"{name}(" in text, text
    assert "argument '" in text, text
    if argument is not None:
        assert f"argument '{argument}" in text, text
    assert flow.is_grad_enabled()


def test_every_operator_has_a_valid_call():
    for name in NAMES:
        args, kwargs = valid(name)
        functor_of(name)(*args, **kwargs)


@pytest.mark.parametrize("bad", ["text", object(), {}], ids=["str", "object", "dict"])
@pytest.mark.parametrize("name", NAMES)
def test_non_tensors(name, bad):
    args, _ = valid(name)
    for position, value in enumerate(args):
        if isinstance(value, (flow.Tensor, list)):
            fresh, kwargs = valid(name)
            fresh[position] = bad
            refuses(name, fresh, kwargs)


@pytest.mark.parametrize("name", [n for n in NAMES if "dim" in CALLS[n][1]])
@pytest.mark.parametrize("bad", [7, -8, "text", 1.5, {}], ids=str)
def test_dimensions_by_keyword(name, bad):
    args, kwargs = valid(name)
    refuses(name, args, {**kwargs, "dim": bad}, "dim")


POSITIONAL_DIM = {
    name: list(inspect.signature(FUNCTORS.get(name)).parameters).index("dim")
    for name in NAMES
    if name in FUNCTORS
    and "dim" in inspect.signature(FUNCTORS.get(name)).parameters
    and "dim" not in CALLS[name][1]
    and len(CALLS[name][0]) > list(inspect.signature(FUNCTORS.get(name)).parameters).index("dim")
}


@pytest.mark.parametrize("name", sorted(POSITIONAL_DIM))
@pytest.mark.parametrize("bad", [7, -8, "text", 1.5], ids=str)
def test_dimensions_by_position(name, bad):
    args, kwargs = valid(name)
    args[POSITIONAL_DIM[name]] = bad
    refuses(name, args, kwargs, "dim")


@pytest.mark.filterwarnings("ignore:.*broadcast", "ignore:.*batchmean")
@pytest.mark.parametrize(
    ("name", "number"), [(n, i) for n in sorted(WRONG_SHAPES) for i in range(len(WRONG_SHAPES[n]))]
)
def test_wrong_shapes(name, number):
    refuses(name, [convert(a) for a in WRONG_SHAPES[name][number]])


@pytest.mark.parametrize(
    ("name", "number"), [(n, i) for n in sorted(WRONG_VALUES) for i in range(len(WRONG_VALUES[n]))]
)
def test_wrong_values(name, number):
    refuses(name, [convert(a) for a in WRONG_VALUES[name][number]])


LOSSES = (
    "binary_cross_entropy cross_entropy huber_loss kl_div l1_loss mse_loss nll_loss smooth_l1_loss"
).split()


@pytest.mark.parametrize("name", LOSSES)
def test_an_unknown_reduction(name):
    args, kwargs = valid(name)
    refuses(name, args, {**kwargs, "reduction": "most"}, "reduction")


@pytest.mark.parametrize("name", NAMES)
def test_an_unknown_keyword_is_a_type_error(name):
    args, kwargs = valid(name)
    with pytest.raises(TypeError, match="no_such"):
        functor_of(name)(*args, **kwargs, no_such=1)


@pytest.mark.parametrize("dtype", ["int64", "bool", "uint8"])
def test_dtypes_that_cannot_require_gradients(dtype):
    x = flow.ones(2, dtype=dtype)
    with pytest.raises(FlowError, match="requires_grad"):
        x.requires_grad = True
    assert not x.requires_grad and x.tolist() == flow.ones(2, dtype=dtype).tolist()


def test_unknown_ops():
    with pytest.raises(FlowError, match=r"'softmx'.*'softmax'"):
        FUNCTORS.get("softmx")
    with pytest.raises(AttributeError):
        _ = flow.softmx
