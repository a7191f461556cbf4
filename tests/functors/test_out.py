"""`out=`: which functions take it, what is written, and what is refused."""

import inspect
import itertools
import re
import types
import warnings

import numpy as np
import pytest

import oneflow_lite as flow
from oneflow_lite.errors import (
    ArgumentTypeError,
    DeviceError,
    DTypeError,
    GradientError,
    InplaceError,
    ShapeError,
    StaleTensorError,
)
from oneflow_lite.functors.declaring.declare import DECLARATIONS
from oneflow_lite.functors.declaring.samples import samples
from oneflow_lite.testing import Fixed
from tests.functors.declared import exposures

A = np.array([[0.1, 0.2, 0.3], [0.4, 0.5, 0.6]], np.float32)
V = np.array([1.0, 2.0, 3.0], np.float32)
I = np.array([[0, 1, 0], [1, 0, 1]])  # noqa: E741


def _calls():
    """Name to arguments: one call of each function for which PyTorch could have `out=`."""
    calls = {
        "empty": ((2, 3), {}),
        "empty_like": ((A,), {}),
        "empty_strided": (((2,), (1,)), {}),
        "sparse_coo_tensor": (([[0, 1]], [1.0, 2.0], (2,)), {}),
        "histogramdd": ((A, 2), {}),
        "from_file": ((__file__, False, 4), {"dtype": np.dtype(np.uint8)}),
        "argsort": ((A,), {"stable": True}),
        "affine_grid_generator": ((A[None], [1, 1, 2, 2], True), {}),
        "bernoulli": ((np.eye(2),), {}),  # these have one possible outcome
        "randint": ((3, 4, (2,)), {}),
        "randperm": ((1,), {}),
    }
    for place, name, function in exposures():
        given = samples(function.__name__) if function.__name__ in DECLARATIONS else []
        if given and place in ("flow", "functional"):
            args = tuple(_plain(each) for each in given[0].args)
            kwargs = {key: _plain(each) for key, each in given[0].kwargs.items()}
            calls.setdefault(name, (args, kwargs))
    return calls


def _plain(value):
    if isinstance(value, (list, tuple)):
        return type(value)(map(_plain, value))
    return np.asarray(value.array) if isinstance(value, Fixed) else value


CALLS = _calls()
RANDOM = ("empty", "rand", "randn", "multinomial", "normal")


def _made(library, value):
    if isinstance(value, np.ndarray):
        return library.tensor(value)
    if isinstance(value, (list, tuple)):
        return type(value)(_made(library, each) for each in value)
    return getattr(library, str(value)) if isinstance(value, np.dtype) else value


def _arguments(library, name):
    args, kwargs = CALLS[name]
    return [_made(library, x) for x in args], {n: _made(library, x) for n, x in kwargs.items()}


def _public():
    for module, place in ((flow, ""), (flow.nn.functional, "nn.functional")):
        for name in sorted(dir(module)):
            function = getattr(module, name)
            if isinstance(function, types.FunctionType) and not name.startswith("_"):
                yield place, name, function


WITH_OUT = [
    pytest.param(name, function, id=f"{place}.{name}".strip("."))
    for place, name, function in _public()
    if "out" in inspect.signature(function).parameters
]


def _in_c(torch, name, function):
    """Return whether PyTorch's schemas, overridable signatures or docs speak of an `out`."""
    schemas = torch._C._jit_get_schemas_for_operator(f"aten::{name}")
    overridable = torch.overrides.get_testing_overrides().get(function)
    return (
        any(argument.is_out for schema in schemas for argument in schema.arguments)
        or (overridable is not None and "out" in inspect.signature(overridable).parameters)
        or re.search(r"\bout(: [^=,]*)?=", function.__doc__ or "") is not None
    )


def _accepts_out(torch, name, function):
    args, kwargs = _arguments(torch, name)
    if function is torch.embedding:  # which has its arguments the other way round
        args.reverse()
    if name in ("sum", "prod"):
        args.append(0)  # the overload without a dimension has no `out`
    plain = function(*args, **kwargs)
    parts = plain if isinstance(plain, tuple) else (plain,)
    if not all(isinstance(y, torch.Tensor) for y in parts):
        return False
    outs = tuple(torch.empty_like(y) for y in parts)
    try:
        function(*args, **kwargs, out=outs if len(outs) > 1 else outs[0])
    except TypeError:
        return False
    return True


def test_every_function_has_it_that_has_it_in_pytorch():
    torch = pytest.importorskip("torch")
    missing, asked = [], 0
    for place, name, function in _public():
        theirs = getattr(torch.nn.functional if place else torch, name, None)
        if theirs is None or not _in_c(torch, name, theirs):
            continue
        assert name in CALLS, f"add a call of {name} to this file"
        asked += 1
        if _accepts_out(torch, name, theirs):
            parameter = inspect.signature(function).parameters.get("out")
            if parameter is None or parameter.default is not None:
                missing.append(f"{place}.{name}")
    assert not missing
    assert asked > 190


@pytest.mark.parametrize(("name", "function"), WITH_OUT)
def test_the_result_is_written_into_out(name, function):
    args, kwargs = _arguments(flow, name)
    plain = function(*args, **kwargs)
    several = isinstance(plain, tuple)
    expected = plain if several else (plain,)
    for shape_of in (lambda y: y.shape, lambda y: (0,)):
        outs = tuple(flow.full(shape_of(y), 7, dtype=y.dtype) for y in expected)
        before = [x._version for x in outs]
        result = function(*args, **kwargs, out=outs if several else outs[0])
        assert type(result) is type(plain)
        for x, y, given, version in zip(
            result if several else (result,), expected, outs, before, strict=True
        ):
            assert x is given
            assert (x.shape, x.dtype) == (y.shape, y.dtype)
            assert x._version == version + 1
            if name not in RANDOM:
                np.testing.assert_array_equal(x.numpy(), y.numpy())
            assert not np.shares_memory(x.numpy(), y.numpy())
            assert not any(
                np.shares_memory(x.numpy(), arg.numpy())
                for arg in args
                if isinstance(arg, flow.Tensor)
            )


# PyTorch gives no shape to the parts.
NO_SHAPE = ("split_copy", "split_with_sizes_copy", "unbind_copy")


@pytest.mark.parametrize(
    ("name", "function"), [p for p in WITH_OUT if p.values[0] not in (*RANDOM, *NO_SHAPE)]
)
def test_agrees_with_pytorch(name, function, request):
    torch = pytest.importorskip("torch")
    place = torch.nn.functional if "nn.functional" in request.node.callspec.id else torch
    theirs = getattr(place, name)
    args, kwargs = _arguments(torch, name)
    if not _accepts_out(torch, name, theirs):
        pytest.skip("a second name or place of a function that PyTorch has with out")
    if name in ("sum", "prod"):
        args.append(0)
    plain = theirs(*args, **kwargs)
    outs = tuple(
        torch.empty(0, dtype=y.dtype) for y in (plain if isinstance(plain, tuple) else (plain,))
    )
    theirs(*args, **kwargs, out=outs if len(outs) > 1 else outs[0])
    args = _arguments(flow, name)[0] + args[len(CALLS[name][0]) :]
    ours = tuple(flow.empty(0, dtype=y.numpy().dtype) for y in outs)
    function(*args, **kwargs, out=ours if len(ours) > 1 else ours[0])
    for x, y in zip(ours, outs, strict=True):
        np.testing.assert_allclose(x.numpy(), y.numpy(), rtol=1e-6, strict=True)


@pytest.mark.parametrize(
    "function",
    [  # without those that create: they work in the dtype of `out` and have no second call
        pytest.param(p.values[1], id=p.id)
        for p in WITH_OUT
        if "write_out" in p.values[1].__code__.co_names
    ],
)
def test_every_argument_is_handed_on(function, monkeypatch):
    module = inspect.getmodule(function)
    monkeypatch.setattr(module, "write_out", lambda *args, **kwargs: (args, kwargs))
    if hasattr(module, "out_dtype"):
        monkeypatch.setattr(module, "out_dtype", lambda op, out, dtype: dtype)
    given = {parameter: object() for parameter in inspect.signature(function).parameters}
    (op, out, functor, *args), kwargs = function(**given)
    assert (op, functor, out) == (function.__name__, function, given.pop("out"))
    assert inspect.signature(function).bind(*args, **kwargs).arguments == given


# Dtypes


@pytest.mark.parametrize("target", ["bool", "uint8", "int64", "float16", "float64", "complex64"])
@pytest.mark.parametrize("source", ["bool", "int64", "float32", "complex64"])
def test_casts_as_pytorch(source, target):
    torch = pytest.importorskip("torch")
    x = np.array([0, 1, 3]).astype(source)
    ours, theirs = flow.empty(3, dtype=target), torch.empty(3, dtype=getattr(torch, target))
    try:
        torch.mul(torch.tensor(x), torch.tensor(x), out=theirs)
    except RuntimeError:
        ours.zero_()
        with pytest.raises(DTypeError, match=f"mul.*'out'.*{source}.*{target}"):
            flow.mul(flow.tensor(x), flow.tensor(x), out=ours)
        assert ours.tolist() == [0, 0, 0] and ours._version == 1
    else:
        flow.mul(flow.tensor(x), flow.tensor(x), out=ours)
        np.testing.assert_array_equal(ours.numpy(), theirs.numpy())


@pytest.mark.parametrize(
    ("name", "target"),
    [
        *itertools.product(["sum", "prod", "cumsum", "cumprod"], ["int32", "int64", "float64"]),
        ("mean", "float64"),
    ],
)
def test_sums_are_computed_in_the_dtype_of_out(name, target):
    torch = pytest.importorskip("torch")
    x = np.array([3e7, 1.25, 2.5, 1.75], np.float32)
    ours, theirs = flow.empty(0, dtype=target), torch.empty(0, dtype=getattr(torch, target))
    getattr(torch, name)(torch.tensor(x), 0, out=theirs)
    getattr(flow, name)(flow.tensor(x), 0, out=ours)
    np.testing.assert_array_equal(ours.numpy(), theirs.numpy(), strict=True)
    with pytest.raises(DTypeError, match=f"{name}.*'dtype'.*that of out"):
        getattr(flow, name)(flow.tensor(x), 0, dtype="float32", out=ours)


@pytest.mark.parametrize(
    ("name", "args"),
    [
        ("zeros", (2,)),
        ("ones", (2,)),
        ("full", ((2,), 2)),
        ("arange", (0, 3, 0.75)),
        ("linspace", (0, 5, 4)),
        ("eye", (2,)),
        ("randint", (4, 5, (2,))),
        ("randperm", (1,)),
    ],
)
@pytest.mark.parametrize("target", ["int32", "float64"])
def test_creation_takes_dtype_and_device_of_out(name, args, target):
    torch = pytest.importorskip("torch")
    ours, theirs = flow.empty(5, dtype=target), torch.empty(0, dtype=getattr(torch, target))
    getattr(torch, name)(*args, out=theirs)
    with warnings.catch_warnings():  # here a new shape is what one asks for
        warnings.simplefilter("error")
        assert getattr(flow, name)(*args, out=ours) is ours
    np.testing.assert_allclose(ours.numpy(), theirs.numpy(), rtol=1e-15, strict=True)
    version = ours._version
    with pytest.raises(DTypeError, match=f"{name}.*'dtype'.*{target}, that of out.*float32"):
        getattr(flow, name)(*args, dtype=flow.float32, out=ours)
    assert ours._version == version


def test_creation_with_requires_grad():
    out = flow.empty(2)
    assert flow.zeros(2, out=out, requires_grad=True).requires_grad and out.is_leaf
    whole = flow.ones(2, dtype=flow.int64)
    with pytest.raises(DTypeError):
        flow.zeros(2, out=whole, requires_grad=True)
    assert whole.tolist() == [1, 1]


# Shapes


def test_another_shape_gets_new_memory_and_a_warning():
    out = flow.zeros(4)
    out.zero_()
    old = out.numpy()
    alias = out.detach()
    with pytest.warns(
        UserWarning, match=r"add\(\): 'out' of shape \(4,\) was resized to \(2,\)"
    ) as seen:
        flow.add(flow.ones(2), 1, out=out)
    assert seen[0].filename == __file__
    assert out.tolist() == [2, 2] and out._version == 2
    assert old.tolist() == alias.tolist() == [0, 0, 0, 0]
    alias.add_(1)
    assert out.tolist() == [2, 2] and out._version == 2  # they share nothing any more


def test_empty_out_is_resized_silently():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for shape in [(0,), (0, 2)]:
            assert flow.add(flow.ones(2), 1, out=flow.empty(*shape)).tolist() == [2, 2]


def test_a_warning_made_an_error_leaves_out_alone():
    values, indices = flow.zeros(2), flow.zeros(0, dtype=flow.int64)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(UserWarning):
            flow.max(flow.tensor(A), 1, keepdim=True, out=(values, indices))
    assert (values.shape, indices.shape, values._version, indices._version) == ((2,), (0,), 0, 0)


def test_a_view_is_not_resized():
    base = flow.zeros(4)
    for view in (base[:2], base[:0]):
        with pytest.raises(ShapeError, match=r"'out'.*\(3,\).*of a view"):
            flow.exp(flow.zeros(3), out=view)
    assert base.tolist() == [0, 0, 0, 0] and base._version == 0
    flow.exp(flow.zeros(2), out=base[1:3])
    assert base.tolist() == [0, 1, 1, 0] and base._version == 1


def test_a_leaf_is_resized_under_no_grad_and_an_inner_node_is_not():
    leaf = flow.zeros(0, requires_grad=True)
    inner = flow.zeros(2, requires_grad=True) * 1
    with flow.no_grad():
        flow.add(flow.ones(3), 1, out=leaf)
        with pytest.raises(ShapeError, match="inner node"):
            flow.add(flow.ones(3), 1, out=inner)
    (leaf * leaf).sum().backward()
    assert leaf.grad.tolist() == [4, 4, 4]


# Autograd


@pytest.mark.parametrize("name", ["exp", "sign", "max", "cat"])
def test_what_is_recorded_refuses_out(name):
    args, kwargs = _arguments(flow, name)
    x = args[0][0] if name == "cat" else args[0]
    if name == "max":
        args.append(0)
    outs = flow.full((7,), 1.0, dtype=x.dtype), flow.full((7,), 1)
    out = outs if name == "max" else outs[0]
    x.requires_grad = True
    with pytest.raises(GradientError, match=rf"{name}\(\): argument 'out'.*not recorded.*no_grad"):
        getattr(flow, name)(*args, out=out)
    assert outs[0].tolist() == [1] * 7 and [y._version for y in outs] == [0, 0]
    with flow.no_grad(), pytest.warns(UserWarning, match="resized"):
        getattr(flow, name)(*args, out=out)
    assert not outs[0].requires_grad and outs[0]._version == 1


def test_an_out_that_requires_grad_is_refused():
    x, out = flow.ones(2), flow.zeros(2, requires_grad=True)
    with pytest.raises(GradientError, match="argument 'out'.*got one that requires a gradient"):
        flow.add(x, x, out=out)
    with pytest.raises(GradientError, match=r"argument 'out\[0\]'"):
        flow.max(x, 0, out=(out, flow.zeros(2, dtype=flow.int64)))
    with pytest.raises(GradientError, match="ones"):
        flow.ones(2, out=out)
    assert out.tolist() == [0, 0] and out._version == 0
    with flow.no_grad():
        assert flow.add(x, x, out=out) is out
    assert out.requires_grad and out.is_leaf and out._version == 1


@pytest.mark.parametrize("leaf", [True, False])
def test_a_view_of_a_base_that_requires_grad_is_refused(leaf):
    base = flow.zeros(4, requires_grad=True)
    if not leaf:
        base = base * 2
    with flow.no_grad():
        made_before = base[:2]
    late = flow.zeros(4)
    taken_before = late[:2]
    late.mul_(flow.ones(4, requires_grad=True))
    for view in (base[:2], made_before, taken_before):
        with pytest.raises(GradientError, match="a view of such a one"):
            flow.ones(2, out=view)
        assert view.tolist() == [0, 0]
    alias = base.detach()[:2]
    flow.ones(2, out=alias)
    assert base.tolist() == [1, 1, 0, 0] and base._version == 1


def test_what_has_no_gradient_takes_arguments_that_require_one():
    x = flow.tensor(A, requires_grad=True)
    out = flow.empty(2, dtype=flow.int64)
    assert flow.argmax(x, 1, out=out).tolist() == [2, 2]
    assert flow.ge(x, 0.3, out=flow.empty(2, 3, dtype=flow.bool)).sum().item() == 4


@pytest.mark.parametrize("shape", [(2,), (3,)])
def test_writing_over_what_a_gradient_needs_is_noticed(shape):
    x, w = flow.ones(2, requires_grad=True), flow.tensor([3.0, 4.0])
    y = (x * w).sum()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        flow.zeros(shape, out=w)
    with pytest.raises(StaleTensorError, match="at version 1"):
        y.backward()


def test_the_write_of_a_view_is_seen_by_its_base_and_by_nobody_recorded():
    base = flow.zeros(3)
    flow.mul(flow.ones(2), 5.0, out=base[1:])
    assert base.tolist() == [0, 5, 5] and base._version == 1
    assert base.grad_fn is None and not base.requires_grad


# Memory


def test_out_may_be_an_argument():
    for call in (
        lambda x: flow.add(x, flow.flip(x, [0]), out=x),
        lambda x: flow.matmul(x, x, out=x),
        lambda x: flow.cumsum(x, 0, out=x),
        lambda x: flow.add(x, flow.transpose(x, 0, 1), out=x),
        lambda x: flow.tril(flow.transpose(x, 0, 1), out=x),
        lambda x: flow.sort(x, 0, out=(x, flow.empty(0, dtype=flow.int64))).values,
    ):
        x = flow.arange(9.0).reshape(3, 3).clone()
        expected = call(x.clone())
        assert flow.equal(call(x), expected) and x._version == 1


def test_out_may_overlap_an_argument():
    for call in (
        lambda x, y: flow.add(x, 1, out=y),
        lambda x, y: flow.cat([x], out=y),
        lambda x, y: flow.clamp(x, 0, 9, out=y),
        lambda x, y: flow.sum(x, (), out=y.sum()),
    ):
        base = flow.arange(5.0)
        expected = call(base[:4].clone(), flow.empty(4))
        assert flow.equal(call(base[:4], base[1:]), expected)


@pytest.mark.parametrize(
    "out",
    [
        lambda: flow.zeros(1).expand(3),
        lambda: flow.from_numpy(np.broadcast_to(np.float32(0), 3)),
        lambda: flow.from_numpy(np.frombuffer(bytes(12), np.float32)),
    ],
)
def test_memory_that_cannot_be_written_is_refused(out):
    given = out()
    with pytest.raises(InplaceError, match=r"add\(\).*read-only or shared"):
        flow.add(flow.ones(3), 1, out=given)
    assert given.tolist() == [0, 0, 0] and given._version == 0


# Arguments


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda x, out: flow.add(x, x, out=out.numpy()), "'out'.*a Tensor, got ndarray"),
        (lambda x, out: flow.add(x, x, out=(out,)), "'out'.*a Tensor, got a tuple of 1"),
        (lambda x, out: flow.max(x, 0, out=out), "'out'.*a tuple of 2, got a Tensor"),
        (lambda x, out: flow.sort(x, out=(out,)), "'out'.*a tuple of 2, got a tuple of 1"),
        (lambda x, out: flow.topk(x, 1, out=(out, None)), r"'out\[1\]'.*a Tensor, got NoneType"),
        (lambda x, out: flow.zeros(2, out=1), "'out'.*a Tensor, got int"),
        (lambda x, out: flow.sum(x, out=1), "'out'.*a Tensor, got int"),
    ],
)
def test_other_things_than_tensors_are_refused(call, message):
    out = flow.zeros(2)
    with pytest.raises(ArgumentTypeError, match=message):
        call(flow.ones(2), out)
    assert out.tolist() == [0, 0] and out._version == 0


def test_nothing_is_written_when_the_second_out_does_not_fit():
    x = flow.tensor(A)
    values, indices = flow.zeros(2), flow.zeros(2, dtype=flow.bool)
    with pytest.raises(DTypeError, match="max.*int64"):
        flow.max(x, 1, out=(values, indices))
    with pytest.raises(ShapeError, match="add"):
        flow.add(x, flow.ones(7), out=values)
    assert values.tolist() == [0, 0] and values._version == indices._version == 0


def test_a_list_of_outs_and_the_forms_of_max():
    x = flow.tensor(A)
    values, indices = flow.empty(0), flow.empty(0, dtype=flow.int64)
    result = flow.max(x, 1, out=[values, indices])
    assert result.values is values and result.indices is indices
    one = flow.empty(())
    assert flow.max(x, out=one) is one and one.item() == A.max()
    assert flow.max(x, x + 1, out=flow.empty(2, 3)).tolist() == (x + 1).tolist()


@pytest.mark.parametrize("device", ["cuda"], indirect=True)
def test_out_of_another_device(device):
    x, out = flow.ones(2, device=device), flow.zeros(2)
    with pytest.raises(DeviceError, match="add.*'out'.*cuda.*cpu"):
        flow.add(x, x, out=out)
    with pytest.raises(DeviceError, match="zeros.*'device'.*cpu, that of out.*cuda"):
        flow.zeros(2, device=device, out=out)
    assert out._version == 0
    there = flow.zeros(2, device=device)
    assert flow.ones(2, out=there).device == x.device


def test_every_kind_on_each_device(device):
    x = flow.tensor(A, device=device)
    out = flow.empty(0, device=device)
    assert flow.mul(x, 2.0, out=out) is out and out.device == x.device
    np.testing.assert_array_equal(out.cpu().numpy(), A * 2)
    flow.add(x, 1, out=out)
    np.testing.assert_array_equal(out.cpu().numpy(), A + 1)
    pair = flow.empty(2, device=device), flow.empty(2, dtype=flow.int64, device=device)
    flow.max(x, 1, out=pair)
    assert pair[1].cpu().tolist() == [2, 2]
    flow.sum(x, 1, out=pair[0])
    np.testing.assert_allclose(pair[0].cpu().numpy(), A.sum(1), rtol=1e-6)


def test_an_interpreter_sees_the_write():
    class Names(flow.Interpreter):
        def apply(self, op_expr, inputs, attrs):
            names.append(op_expr.op_type_name)
            return self.inner.apply(op_expr, inputs, attrs)

    names = []
    out, whole = flow.empty(3), flow.empty(3, dtype=flow.float64)
    with flow.push_interpreter(Names()):
        flow.exp(flow.tensor(V), out=out)
        flow.exp(flow.tensor(V), out=whole)
    assert names == ["exp", "copy_", "exp", "cast", "copy_"]
