"""Shapes, dtypes and devices: values, views, derivatives and errors, against PyTorch's."""

import operator

import numpy as np
import pytest

import oneflow_lite as flow
from oneflow_lite.testing import Sample, check_op

RNG = np.random.default_rng(0)
A = RNG.normal(size=(2, 3, 4))
ONES = RNG.normal(size=(1, 2, 1, 3, 1))
SCALAR, EMPTY, HOLLOW = np.array(0.7), np.zeros((0, 3)), np.zeros((2, 0, 4))
C = A[0] + 1j * A[1]

# method, its arguments (positional, or by name), an input
CALLS = [
    *[(m, a, A) for m in ("reshape", "view") for a in [
        (4, 6), ((2, -1),), (-1,), ([24],), (1, 24, 1), (2, 3, 4)]],
    *[(m, a, SCALAR) for m in ("reshape", "view") for a in [((),), (1,), (1, 1), (-1,)]],
    *[(m, a, EMPTY) for m in ("reshape", "view") for a in [(3, 0), (-1,), (5, 0, 2), (-1, 3)]],
    ("view", {"size": (6, 4)}, A), ("reshape", {"shape": (6, 4)}, A),
    *[("flatten", a, A) for a in [(), (1,), (0, 1), (-2, -1), (1, 1), {"end_dim": 1}]],
    *[("flatten", (), x) for x in (SCALAR, EMPTY, HOLLOW, A[0, 0])],
    *[("ravel", (), x) for x in (A, SCALAR, HOLLOW)],
    *[("unflatten", a, A) for a in [
        (0, (1, 2)), (1, (-1, 3)), (-1, (2, 2)), (-1, [2, -1, 1]), (0, (-1,))]],
    *[("unflatten", a, HOLLOW) for a in [
        (1, (0, 5)), (1, (-1, 5)), (1, (2, 0)), (0, (2, 1)), (0, (-1, 2)), (-1, (2, 2)),
        (2, (-1, 1)), (1, (-1,))]],
    *[("squeeze", a, ONES) for a in [(), (0,), (1,), (-1,), ((0, 2),), ((0, 1, -1),), {"dim": 4}]],
    *[("squeeze", a, SCALAR) for a in [(), (0,), (-1,)]], ("squeeze", ((),), ONES),
    *[("unsqueeze", (d,), A) for d in (0, 2, 3, -1, -4)], ("unsqueeze", (-1,), SCALAR),
    ("unsqueeze", {"dim": 1}, HOLLOW),
    *[("transpose", a, A) for a in [(0, 1), (-1, 0), (1, 1), {"dim0": 2, "dim1": -2}]],
    ("transpose", (0, -1), SCALAR), ("swapaxes", (0, 2), A), ("swapdims", (1, 2), HOLLOW),
    *[("t", (), x) for x in (A[0], A[0, 0], SCALAR, EMPTY)],
    *[("permute", a, A) for a in [(2, 0, 1), ((-1, 0, 1),), ([1, 0, 2],), {"dims": (2, 1, 0)}]],
    ("permute", ((),), SCALAR), ("permute", (1, 2, 0), HOLLOW),
    ("permute", (3, 0, 4, 2, 1), ONES),
    *[("movedim", a, A) for a in [(0, 2), (-1, 0), ((0, 1), (1, 0)), ((0, 2), (-1, 0)), ((), ())]],
    ("movedim", ((3, 0, 1), (0, 4, -2)), ONES), ("moveaxis", (1, 0), A),
    ("movedim", (0, 0), SCALAR),
    *[("expand", a, ONES) for a in [
        (4, 2, 5, 3, 2), ((-1, 2, 2, -1, -1),), (6, 1, 2, 1, 3, 1), {"size": (1, 2, 0, 3, 1)}]],
    *[("expand", a, SCALAR) for a in [(2, 3), ((),), (0,), ((1,),)]], ("expand", (5, 0, 3), EMPTY),
    ("broadcast_to", ((2, 2, 3),), A[:1, :1, :3]), ("broadcast_to", {"size": (2, 0)}, SCALAR),
    *[("sum_to_size", a, A) for a in [(1, 3, 1), (4,), ((3, 4),), ((),), (2, 3, 4), (1, 1, 4)]],
    ("sum_to_size", (2, 1, 4), HOLLOW), ("sum_to_size", (1, 3), EMPTY),
    ("clone", (), A), ("clone", (), SCALAR), ("contiguous", (), HOLLOW), ("contiguous", (), A),
]  # fmt: skip
IDS = [f"{m} {a} of {x.shape}" for m, a, x in CALLS]


def method(name, arguments):
    named = arguments if isinstance(arguments, dict) else {}
    given = () if named else arguments
    return lambda x: getattr(x, name)(*given, **named)


@pytest.mark.parametrize("index", range(len(CALLS)), ids=IDS)
def test_agrees_with_pytorch(index):
    pytest.importorskip("torch")
    from tests.functors.agreement import compare

    name, arguments, x = CALLS[index]
    call = method(name, arguments)
    for cast in (float, np.float32, complex):
        orders = 1 if cast is complex else 2
        compare(lambda x: call(x * x), lambda x: call(x * x), x.astype(cast), orders=orders)
    if name != "view":
        transposed = x.transpose()
        if name != "expand" and x.shape[:1] == x.shape[-1:]:
            compare(lambda x: call(x * x), lambda x: call(x * x), transposed.copy())


@pytest.mark.parametrize("index", range(len(CALLS)), ids=IDS)
def test_views_are_those_of_pytorch(index):
    torch = pytest.importorskip("torch")
    name, arguments, array = CALLS[index]
    found = []
    for lib in (flow, torch):
        x = lib.tensor(array)
        y = method(name, arguments)(x)
        found.append([y is x, y._base is x, y.is_contiguous(), tuple(y.stride())])
    if name == "sum_to_size":
        assert found[0][1:3] == found[1][1:3]  # it always sums, if only one element each
    elif {0, 1} & {*array.shape, *y.shape} or "expand" in name:
        assert found[0][:3] == found[1][:3]  # NumPy puts other strides where nothing is stepped
    else:
        assert found[0] == found[1]


@pytest.mark.slow(but=80)
@pytest.mark.parametrize("index", range(len(CALLS)), ids=IDS)
def test_derivatives(index, device):
    name, arguments, x = CALLS[index]
    call = method(name, arguments)
    check_op(lambda x: call(flow.clone(x)), [Sample(x)], device=device, degenerate=False)


def test_attributes(device):
    x = flow.tensor(A, device=device)
    for turned, axes in ((x.T, (2, 1, 0)), (x.mT, (0, 2, 1))):
        assert turned._base is x
        np.testing.assert_array_equal(turned.cpu().numpy(), A.transpose(axes))
    check_op(lambda x: x.T * x.mT.sum(), [Sample(A)], device=device)
    other = flow.zeros(4, 6, device=device)
    assert x.view_as(other).shape == x.reshape_as(other).shape == (4, 6)
    assert x[:1].expand_as(x).shape == flow.broadcast_to(x[:, :1], x.shape).shape == (2, 3, 4)
    assert flow.permute(x, (2, 0, 1)).shape == flow.movedim(x, -1, 0).shape == (4, 2, 3)


# --- Memory -------------------------------------------------------------------------------------


@pytest.mark.parametrize("call", [
    lambda x: x.reshape(6, 4), lambda x: x.view(-1), lambda x: x.flatten(1), lambda x: x.ravel(),
    lambda x: x.unflatten(2, (2, 2)), lambda x: x[:1].squeeze(0), lambda x: x.unsqueeze(1),
    lambda x: x.transpose(0, 2), lambda x: x[0].t(), lambda x: x.permute(2, 0, 1),
    lambda x: x.movedim(0, 1), lambda x: x.T, lambda x: x.mT,
    lambda x: x.transpose(0, 1).transpose(1, 0).view(24),
])  # fmt: skip
def test_views_share_memory_and_version(call, device):
    x = flow.tensor(A, device=device)
    y = call(x)
    assert y.is_view() and y._base is x
    y.zero_()
    assert x._version == y._version == 1
    assert (x == 0).sum().item() == y.numel()


@pytest.mark.parametrize("call", [
    lambda x: x.transpose(0, 1).reshape(-1), lambda x: x.T.flatten(), lambda x: x.mT.contiguous(),
    lambda x: x.clone(), lambda x: x.mT.ravel(), lambda x: x.sum_to_size(2, 3, 4),
    lambda x: x.to(flow.float64, copy=True), lambda x: x.to(flow.float64, False, True),
    lambda x: x.expand(2, 2, 3, 4).reshape(-1),
])  # fmt: skip
def test_copies_share_nothing(call, device):
    x = flow.tensor(A, device=device)
    y = call(x)
    assert not y.is_view() and y._base is None and y.is_contiguous()
    y.zero_()
    np.testing.assert_array_equal(x.cpu().numpy(), A)


@pytest.mark.parametrize("write", [lambda y: y.fill_(2.0), lambda y: y.copy_(flow.ones(3))])
@pytest.mark.parametrize("create_graph", [False, True])
def test_what_is_overwritten_has_a_gradient_of_zeros(write, create_graph):
    x = flow.tensor([1.0, 2.0, 3.0], requires_grad=True)
    (dx,) = flow.autograd.grad(write(x * x).sum(), x, create_graph=create_graph)
    assert dx.tolist() == [0, 0, 0]


def test_expanded_memory_is_not_written(device):
    x = flow.tensor([[1.0], [2.0]], device=device)
    y = x.expand(2, 3)
    assert y._base is x and y.stride() == (1, 0)
    if device == "cpu":
        with pytest.raises(RuntimeError, match="expand"):
            y.zero_()
    x.zero_()
    assert not y.any()


@pytest.mark.parametrize(
    "sizes", [(6, 2), (2, 6), (2, 3, 2), (-1,), (3, 2, 2), (2, 3, 1, 2), (12,)]
)
@pytest.mark.parametrize("layout", ["narrow", "step", "turned", "expanded", "expanded rows"])
def test_view_raises_where_pytorch_does(layout, sizes):
    torch = pytest.importorskip("torch")
    outcomes = []
    for lib in (flow, torch):
        x = lib.tensor(A)
        base = {
            "narrow": lambda x: x[..., 1:3],
            "step": lambda x: x[..., ::2],
            "turned": lambda x: x[..., :2].transpose(0, 1),
            "expanded": lambda x: x[0, 0, 0].expand(2, 3, 2),
            "expanded rows": lambda x: x[0, 0, :2].expand(2, 3, 2),
        }[layout](x)
        try:
            y = base.view(*sizes)
        except RuntimeError:
            outcomes.append(None)
        else:
            assert y._base is x
            outcomes.append(y.numpy())
    np.testing.assert_equal(*outcomes)


def test_a_view_of_another_dtype(device):
    x = flow.tensor([1.0, -2.0], device=device, requires_grad=True)
    bits = x.view(flow.int32)
    assert bits.tolist() == [0x3F800000, -0x40000000] and not bits.requires_grad
    assert bits.view(dtype=flow.float32).tolist() == [1, -2]
    same = x.detach().view("int32")  # as detach(): shares memory and version, and is no view
    assert not same.is_view() and same.zero_()._version == x._version == 1
    assert x.tolist() == [0, 0]


# --- Parts of complex numbers -------------------------------------------------------------------


@pytest.mark.parametrize("part", ["real", "imag"])
def test_parts(part, device):
    pytest.importorskip("torch")
    from tests.functors.agreement import compare

    call = operator.attrgetter(part)
    check_op(call, [Sample(C), Sample(np.array(1 - 2j))], device=device)
    compare(lambda z: call(z * z), lambda z: call(z * z), C)
    compare(lambda z: call(z * z), lambda z: call(z * z), C.astype(np.complex64))
    z = flow.tensor(C, device=device)
    x = call(z)
    assert x._base is z and x.dtype == flow.float64
    x.zero_()
    assert not call(z).any() and z._version == 1
    r = flow.ones(2, device=device)
    assert r.real is r and flow.real(r) is r


# --- Dtypes and devices -------------------------------------------------------------------------

DTYPES = "bool uint8 int8 int16 int32 int64 float16 float32 float64 complex64 complex128".split()


@pytest.mark.filterwarnings("ignore::UserWarning", "ignore::RuntimeWarning")
@pytest.mark.parametrize("dtype", DTYPES)
def test_casts_agree_with_pytorch(dtype):
    torch = pytest.importorskip("torch")
    x = np.array([0, 1.75, -2.5, 100])
    x = (x - 1j * x[::-1] if dtype[0] == "c" else abs(x) if dtype == "uint8" else x).astype(dtype)
    for target in DTYPES:
        ours = flow.tensor(x).to(getattr(flow, target))
        if target == "uint8" and x.dtype.kind in "fc":
            continue  # a negative float has no uint8; the result depends on the processor
        theirs = torch.tensor(x).to(getattr(torch, target)).numpy()
        assert ours.dtype == theirs.dtype == target
        np.testing.assert_array_equal(ours.numpy(), theirs)
    for name in "bool char short int long half float double cfloat cdouble".split():
        ours, theirs = (getattr(lib.tensor(x), name)().numpy() for lib in (flow, torch))
        assert ours.dtype == theirs.dtype
    assert flow.tensor(x).byte().dtype == flow.uint8


@pytest.mark.parametrize("source", ["float16", "float32", "float64", "complex64", "complex128"])
@pytest.mark.parametrize("target", ["float16", "float32", "float64", "complex64", "complex128"])
def test_gradients_through_casts_agree_with_pytorch(source, target):
    torch = pytest.importorskip("torch")
    grads = []
    for lib in (flow, torch):
        x = lib.tensor([0.5, -2.0, 3.0], dtype=getattr(lib, source), requires_grad=True)
        y = (x * x).to(getattr(lib, target))
        weights = lib.tensor([1.0, 2.0, -1.5]).to(y.dtype)
        (g,) = lib.autograd.grad((y * weights).sum().real, x, create_graph=True)
        (h,) = lib.autograd.grad((g * g).sum().real, x)
        grads += [g.detach().numpy(), h.numpy()]
    for ours, theirs in zip(grads[:2], grads[2:], strict=True):
        assert ours.dtype == theirs.dtype == source
        np.testing.assert_allclose(ours, theirs, rtol=1e-3)


def test_to(device):
    x = flow.ones(2, 3, dtype=flow.float64, device=device)
    for same in (
        x.to(),
        x.to(flow.float64),
        x.to(device),
        x.to(x),
        x.to(device, flow.float64),
        x.double(),
        x.type_as(x),
        x.to(dtype=None, device=device, non_blocking=True),
    ):
        assert same is x  # fmt: skip
    for cast in (
        x.to(flow.int32),
        x.to(device, flow.int32),
        x.to(dtype="int32"),
        x.int(),
        x.to(device=device, dtype=flow.int32),
        x.to(flow.zeros(1, dtype=flow.int32, device=device)),
        x.to(flow.int32, True, True),
        x.to(np.int32),
    ):
        assert (cast.dtype, cast.device, cast.is_view()) == (flow.int32, x.device, False)
        assert cast.tolist() == [[1] * 3] * 2  # fmt: skip
    assert x.cpu().device.type == "cpu" and (x.cpu() is x) == (device == "cpu")


def test_moving_between_devices(device):
    x = flow.tensor(A, requires_grad=True)
    y = (x * 2).to(device).to("cpu", flow.float32)
    assert y.device.type == "cpu" and y.dtype == flow.float32
    y.sum().backward()
    assert x.grad.dtype == flow.float64 and (x.grad == 2).all()


# --- Errors -------------------------------------------------------------------------------------

ERRORS = [
    *[(lambda x, n=n, a=a: getattr(flow, n)([1.0], *a), TypeError, n, "input") for n, a in [
        ("reshape", ((1,),)), ("flatten", ()), ("ravel", ()), ("squeeze", ()), ("unsqueeze", (0,)),
        ("transpose", (0, 1)), ("t", ()), ("permute", ((0,),)), ("movedim", (0, 0)),
        ("broadcast_to", ((1,),)), ("real", ()), ("imag", ()), ("unflatten", (0, (1,))),
        ("clone", ())]],
    *[(lambda x, n=n, a=a: getattr(x, n)(*a), RuntimeError, n, "shape")
      for n in ("reshape", "view") for a in [(5, 5), (-1, -1), (-2, -12), (-1, 5), (0, -1), ((),)]],
    *[(lambda x, n=n: getattr(x, n)(2.0, 12), TypeError, n, "") for n in ("reshape", "view")],
    *[(lambda x, n=n: getattr(x, n)((2, 12), foo=1), TypeError, n, "foo")
      for n in ("reshape", "view", "permute", "expand", "sum_to_size", "to")],
    (lambda x: x.mT.view(24), RuntimeError, "view", "shape"),
    (lambda x: x.mT.view(flow.float32), RuntimeError, "view", "dtype"),
    (lambda x: x.view("shape"), TypeError, "view", "dtype"),
    (lambda x: x.view_as(3), TypeError, "view_as", "other"),
    (lambda x: x.reshape_as(3), TypeError, "reshape_as", "other"),
    (lambda x: x.expand_as(3), TypeError, "expand_as", "other"),
    (lambda x: x.flatten(2, 1), RuntimeError, "flatten", "end_dim"),
    (lambda x: x.flatten(3), IndexError, "flatten", "start_dim"),
    (lambda x: x.flatten(0, -4), IndexError, "flatten", "end_dim"),
    (lambda x: x.unflatten(0, (3, 1)), RuntimeError, "unflatten", "sizes"),
    (lambda x: x.unflatten(1, (-1, -1)), RuntimeError, "unflatten", "sizes"),
    (lambda x: x.unflatten(1, ()), RuntimeError, "unflatten", "sizes"),
    (lambda x: x.unflatten(1, 3), TypeError, "unflatten", "sizes"),
    (lambda x: x.unflatten(3, (1,)), IndexError, "unflatten", "dim"),
    (lambda x: x[0, 0, 0].unflatten(0, (1,)), IndexError, "unflatten", "input"),
    (lambda x: x[:0].unflatten(1, (2, 2)), RuntimeError, "unflatten", "sizes"),
    (lambda x: x[:0].unflatten(0, (-1, 0)), RuntimeError, "unflatten", "sizes"),
    (lambda x: x.squeeze(3), IndexError, "squeeze", "dim"),
    (lambda x: x.squeeze((0, 0)), IndexError, "squeeze", "dim"),
    (lambda x: x.unsqueeze(4), IndexError, "unsqueeze", "dim"),
    (lambda x: x.unsqueeze(0.5), TypeError, "unsqueeze", "dim"),
    (lambda x: x.transpose(0, 3), IndexError, "transpose", "dim1"),
    (lambda x: x.transpose(-4, 0), IndexError, "transpose", "dim0"),
    (lambda x: x.t(), RuntimeError, "t", "input"),
    (lambda x: x.permute(0, 1), RuntimeError, "permute", "dims"),
    (lambda x: x.permute(0, 1, 1), IndexError, "permute", "dims"),
    (lambda x: x.permute(0, 1, 3), IndexError, "permute", "dims"),
    (lambda x: x.movedim(3, 0), IndexError, "movedim", "source"),
    (lambda x: x.movedim(0, 3), IndexError, "movedim", "destination"),
    (lambda x: x.movedim((0, 1), (0,)), RuntimeError, "movedim", "destination"),
    (lambda x: x.movedim((0, 0), (0, 1)), IndexError, "movedim", "source"),
    (lambda x: x.expand(2, 3, 5), RuntimeError, "expand", "size"),
    (lambda x: x.expand(3, 4), RuntimeError, "expand", "size"),
    (lambda x: x.expand(-1, 2, 3, 4), RuntimeError, "expand", "size"),
    (lambda x: x.expand(-2, 3, 4), RuntimeError, "expand", "size"),
    (lambda x: x.broadcast_to((3, 3, 4)), RuntimeError, "broadcast_to", "size"),
    (lambda x: x.sum_to_size(2), RuntimeError, "sum_to_size", "size"),
    (lambda x: x.sum_to_size(1, 2, 3, 4), RuntimeError, "sum_to_size", "size"),
    (lambda x: x.imag, RuntimeError, "imag", "input"),
    (lambda x: x.to("mars"), RuntimeError, "device", "type"),
    (lambda x: x.to(3.5), TypeError, "to", "dtype"),
]  # fmt: skip


@pytest.mark.parametrize(("call", "kind", "name", "argument"), ERRORS)
def test_errors_leave_everything_as_it_was(call, kind, name, argument):
    x = flow.tensor(A, requires_grad=True)
    with pytest.raises(kind, match=rf"(?s)^{name}.*{argument}") as caught:
        call(x)
    assert isinstance(caught.value, flow.errors.FlowError)
    np.testing.assert_array_equal(x.numpy(), A)
    assert x._version == 0 and x.grad is None


def test_ravel_of_a_strided_column_is_contiguous():
    x = flow.arange(12.0).reshape(3, 4)
    for y in (x[:, 1], x[:, 1:2], x[:, ::2]):
        z = y.ravel()
        assert z.is_contiguous() and not np.shares_memory(z.numpy(), x.numpy())
        np.testing.assert_array_equal(z.numpy(), y.numpy().ravel())
    assert np.shares_memory(x[1].ravel().numpy(), x.numpy())
