"""bfloat16: creation, promotion, arithmetic and gradients, next to PyTorch's."""

import copy
import pickle
import subprocess
import sys

import numpy as np
import pytest

import oneflow_lite as flow
from oneflow_lite.errors import DTypeError
from oneflow_lite.kernels import bfloat16_products
from oneflow_lite.ops import eager_loops

pytest.importorskip("ml_dtypes")
torch = pytest.importorskip("torch")

B, TB = flow.bfloat16, torch.bfloat16
A = np.array([[0.3, -1.7, 2.2], [1.1, 0.7, -0.4]], np.float32)


def both(array=A, **options):
    """The array in bfloat16, as a tensor of ours and of PyTorch's."""
    return flow.tensor(array, dtype=B, **options), torch.tensor(array, dtype=TB, **options)


def same(ours, theirs):
    """Return whether two results hold the same bits."""
    assert ours.dtype == flow.as_tensor(theirs.float().numpy()).dtype or ours.dtype == B
    assert (ours.dtype == B) == (theirs.dtype == TB)
    np.testing.assert_array_equal(ours.detach().float().numpy(), theirs.detach().float().numpy())


class TestDtype:
    def test_names(self):
        assert flow.ones(2, dtype=B).dtype is B and flow.ones(2, dtype="bfloat16").dtype is B
        import ml_dtypes

        assert flow.ones(2, dtype=ml_dtypes.bfloat16).dtype is B
        assert np.dtype(ml_dtypes.bfloat16) == B and flow.float16 != B and B == "bfloat16"
        assert repr(B) == "dtype(bfloat16)" and str(B) == "bfloat16" and B.itemsize == 2
        assert pickle.loads(pickle.dumps(B)) is B and len({B, flow.bfloat16}) == 1

    def test_limits(self):
        ours, theirs = flow.finfo(B), torch.finfo(TB)
        assert repr(ours) == repr(theirs)
        for name in ("bits", "eps", "max", "min", "tiny", "resolution", "smallest_normal"):
            assert getattr(ours, name) == getattr(theirs, name)

    @pytest.mark.parametrize(
        "other",
        "bool uint8 int8 int16 int32 int64 float16 float32 float64 complex64 complex128".split(),
    )
    def test_promotion(self, other):
        expected = torch.promote_types(TB, getattr(torch, other))
        expected = str(expected).removeprefix("torch.")
        assert str(flow.promote_types(B, other)) == expected == str(flow.promote_types(other, B))
        for shapes in ([(2,), (2,)], [(), (2,)], [(2,), ()], [(), ()]):
            x = flow.ones(shapes[0], dtype=B) + flow.ones(shapes[1], dtype=other)
            t = torch.ones(shapes[0], dtype=TB) + torch.ones(shapes[1], dtype=getattr(torch, other))
            assert str(x.dtype) == str(t.dtype).removeprefix("torch.")
        assert flow.promote_types(B, B) is B

    @pytest.mark.parametrize("number", [2, 2.5, True])
    def test_numbers(self, number):
        x, t = both()
        for call in (lambda x: x + number, lambda x: number * x, lambda x: x / number):
            same(call(x), call(t))
        assert (x * 1j).dtype == flow.complex64

    def test_the_default_dtype(self):
        try:
            flow.set_default_dtype(B)
            assert flow.ones(2).dtype is B and flow.tensor([1.5]).dtype is B
            assert (flow.tensor([1]) / 2).dtype is B and flow.get_default_dtype() is B
        finally:
            flow.set_default_dtype(flow.float32)

    def test_without_the_package(self):
        run = (
            "import sys; sys.modules['ml_dtypes'] = None\n"
            "import oneflow_lite as flow\n"
            "for ask in (lambda: flow.bfloat16, lambda: flow.ones(1).bfloat16(),\n"
            "            lambda: flow.ones(1, dtype='bfloat16')):\n"
            "    try:\n"
            "        ask()\n"
            "    except flow.errors.DTypeError as error:\n"
            "        assert 'ml_dtypes' in str(error) and '[bfloat16]' in str(error), error\n"
            "    else:\n"
            "        raise AssertionError\n"
        )
        subprocess.run([sys.executable, "-c", run], check=True)

    def test_it_is_not_imported_before(self):
        run = "import sys, oneflow_lite as f; f.ones(2) * 2; sys.exit('ml_dtypes' in sys.modules)"
        subprocess.run([sys.executable, "-c", run], check=True)


class TestCreation:
    def test_values(self):
        x, t = both()
        same(x, t)
        assert x.tolist() == t.tolist() and x[0, 0].item() == t[0, 0].item()
        assert isinstance(x[0, 0].item(), float) and float(x[0, 0]) == float(t[0, 0])
        assert repr(x) == repr(t).replace("torch.", "")
        for name in ("zeros", "ones", "empty", "rand", "randn"):
            assert getattr(flow, name)(2, 3, dtype=B).dtype is B
        same(flow.full((2,), 1.1, dtype=B), torch.full((2,), 1.1, dtype=TB))
        same(flow.arange(0, 2, 0.25, dtype=B), torch.arange(0, 2, 0.25, dtype=TB))
        same(flow.linspace(0, 1, 5, dtype=B), torch.linspace(0, 1, 5, dtype=TB))
        same(flow.eye(2, dtype=B), torch.eye(2, dtype=TB))
        for like in (flow.zeros_like, flow.ones_like, flow.rand_like, flow.empty_like):
            assert like(x).dtype is B

    def test_casts(self):
        for dtype in "bool int32 int64 float16 float32 float64 complex64".split():
            source = flow.tensor([0.3, -1.7, 2.2]).to(dtype)
            theirs = torch.tensor([0.3, -1.7, 2.2]).to(getattr(torch, dtype))
            if dtype != "complex64":
                same(source.bfloat16(), theirs.bfloat16())
                same(source.to(B), theirs.to(TB))
            assert both()[0].to(dtype).tolist() == both()[1].to(getattr(torch, dtype)).tolist()
        x = flow.ones(2, dtype=B)
        assert x.to(B) is x and x.bfloat16() is x and x.type() == "torch.BFloat16Tensor"

    def test_arrays_of_ml_dtypes(self):
        x, _ = both()
        array = x.numpy()
        assert type(array) is np.ndarray and array.dtype.name == "bfloat16"
        array[0, 0] = 5
        assert x[0, 0].item() == 5
        assert np.asarray(x).dtype == array.dtype
        y = flow.from_numpy(array)
        assert y.dtype is B and np.shares_memory(y.numpy(), array)
        assert flow.tensor(array).dtype is B

    def test_copies(self):
        x, _ = both(requires_grad=True)
        for y in (copy.deepcopy(x), pickle.loads(pickle.dumps(x)), x.detach().clone()):
            assert y.dtype is B and y.tolist() == x.tolist()

    def test_cuda(self, device):
        if device == "cuda":
            with pytest.raises(DTypeError, match="CuPy"):
                flow.ones(2, dtype=B).to(device)


OPS = """
    x + x    x - 2 * x    x * x    x / (x + 5)    x ** 2    -x    x.abs()    x.exp()    x.sin()
    x.tanh()    x.sigmoid()    x.relu()    (x * x).sqrt()    (x * x + 1).log()    x.sum()
    x.sum(1)    x.mean(0)    x.amax(1)    x.t() @ x    x.softmax(1)    x.reshape(3, 2)    x.t()
    x[0]    x[:, 1:]    x.clamp(-1, 1)    x.prod()    x.cumsum(1)    x.var(1)    x.norm()
    x.expand(2, 2, 3)    lib.cat([x, x], 1)    lib.stack([x, x])    lib.where(x > 0, x, -x)
    lib.maximum(x, -x)    lib.nn.functional.gelu(x)    lib.nn.functional.softplus(x)
    x.masked_fill(x > 1, 0.5)    x.flip(0)    x.sort(1)[0]    x.max(1)[0]    x.log_softmax(0)
    x.gather(1, (x > 0).long())    lib.einsum('ij,kj->ik', x, x)
"""
OPS = [op.strip() for line in OPS.splitlines() for op in line.split("    ") if op.strip()]


@pytest.mark.parametrize("op", OPS)
def test_values_and_gradients(op):
    x, t = both(requires_grad=True)
    y, z = eval(op, {"x": x, "lib": flow}), eval(op, {"x": t, "lib": torch})
    assert y.dtype is B and z.dtype == TB
    tolerance = {"rtol": 2**-7, "atol": 2**-8}
    np.testing.assert_allclose(y.detach().float().numpy(), z.detach().float().numpy(), **tolerance)
    (y.float() ** 2).sum().backward()
    (z.float() ** 2).sum().backward()
    assert x.grad.dtype is B
    np.testing.assert_allclose(
        x.grad.float().numpy(), t.grad.float().numpy(), rtol=2**-5, atol=2**-5
    )


@pytest.mark.parametrize("op", OPS[:14] + ["x.sum()", "x.sum(1)", "x.reshape(3, 2)", "x[0]"])
def test_elementwise_ops_have_pytorchs_bits(op):
    x, t = both()
    same(eval(op, {"x": x}), eval(op, {"x": t}))


class TestAutograd:
    def test_leaves_accumulate(self):
        x, t = both(requires_grad=True)
        for leaf in (x, t):
            for _ in range(3):
                (leaf * leaf).sum().backward()
        same(x.grad, t.grad)

    def test_second_derivatives(self):
        x, t = both(requires_grad=True)
        found = []
        for library, leaf in ((flow, x), (torch, t)):
            (dx,) = library.autograd.grad((leaf**3).sum(), leaf, create_graph=True)
            (d2x,) = library.autograd.grad(dx.sum(), leaf)
            found.append(d2x)
        np.testing.assert_allclose(found[0].float().numpy(), found[1].float().numpy(), rtol=2**-6)

    def test_mixed_dtypes(self):
        x, w = flow.ones(3, dtype=B, requires_grad=True), flow.ones(3, requires_grad=True)
        y = x * w
        assert y.dtype == flow.float32
        y.sum().backward()
        assert x.grad.dtype is B and w.grad.dtype == flow.float32

    def test_a_gradient_given(self):
        x = flow.ones(2, dtype=B, requires_grad=True)
        (x * 2).backward(flow.ones(2, dtype=B))
        (x * 2).backward(flow.ones(2))
        assert x.grad.tolist() == [4.0, 4.0] and x.grad.dtype is B

    def test_hooks_see_it(self):
        x = flow.ones(2, dtype=B, requires_grad=True)
        seen = []
        x.register_hook(lambda g: seen.append(g.dtype))
        (x * 2).sum().backward()
        assert seen == [B]


class TestWrites:
    def test_in_place(self):
        x, t = both()
        for leaf in (x, t):
            leaf += leaf
            leaf.mul_(2.5).sub_(1)
            leaf[0, 1] = 7.7
            leaf[:, 2] = leaf[:, 0]
            leaf.t()[0].add_(1)
            leaf.clamp_(-3, 3)
        same(x, t)
        assert x._version > 0 and x.dtype is B

    def test_in_place_with_gradients(self):
        x, t = both(requires_grad=True)
        for leaf in (x, t):
            y = leaf * 2
            y.mul_(leaf)
            y[0] = 0
            y.sum().backward()
        same(x.grad, t.grad)

    def test_random(self):
        x = flow.empty(200, dtype=B)
        assert x.normal_().dtype is B and 0.5 < x.float().std().item() < 1.5
        assert x.uniform_().min().item() >= 0 and x.max().item() <= 1
        flow.nn.init.kaiming_uniform_(x.view(20, 10))


class TestTraining:
    @pytest.mark.parametrize("name", ["SGD", "Adam"])
    def test_a_module(self, name):
        flow.manual_seed(0)
        net = flow.nn.Sequential(flow.nn.Linear(3, 8), flow.nn.Tanh(), flow.nn.Linear(8, 1)).to(B)
        assert all(p.dtype is B for p in net.parameters())
        optimizer = getattr(flow.optim, name)(net.parameters(), lr=0.05)
        x = flow.randn(32, 3, dtype=B)
        y = x.sum(1, keepdim=True)
        losses = []
        for _ in range(30):
            optimizer.zero_grad()
            loss = flow.nn.functional.mse_loss(net(x), y)
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        assert loss.dtype is B and losses[-1] < losses[0] / 2
        assert all(p.grad.dtype is B for p in net.parameters())


def test_compiled():
    compiled = flow.compile(lambda x: (x * 2 + 1).exp().sum())
    x = flow.tensor(A, dtype=B, requires_grad=True)
    for _ in range(3):
        y = compiled(x)
        assert y.dtype is B and y.item() == (x * 2 + 1).exp().sum().item()
        (dx,) = flow.autograd.grad(y, x)
        (expected,) = flow.autograd.grad((x * 2 + 1).exp().sum(), x)
        assert dx.tolist() == expected.tolist() and dx.dtype is B


def test_captured():
    with flow.static.program_guard(flow.static.Program()):
        with pytest.raises(DTypeError, match="eagerly"):
            flow.static.data("x", (2,), "bfloat16")
        x = flow.static.data("x", (2,), "float32")
        with pytest.raises(flow.errors.CaptureError, match="eagerly"):
            x.bfloat16()


def test_numpys_functions():
    x = flow.tensor(A, dtype=B, requires_grad=True)
    y = np.exp(x) + np.ones(3, np.float32)
    assert y.requires_grad and np.sin(x).dtype is B
    assert np.sum(x, axis=0).dtype is B


def test_a_pushed_interpreter():
    class Names(flow.Interpreter):
        def apply(self, op_expr, inputs, attrs):
            names.append(op_expr.op_type_name)
            return self.inner.apply(op_expr, inputs, attrs)

    names = []
    with flow.push_interpreter(Names()):
        y = flow.ones(2, dtype=B).exp()
    assert y.dtype is B and "exp" in names and "cast" in names


class TestNorms:
    """Norms of bfloat16 take parameters and statistics of float32, as PyTorch's do."""

    CALLS = {
        "layer": lambda F, x, w, b, m, v, training: F.layer_norm(x, (3,), w, b),
        "group": lambda F, x, w, b, m, v, training: F.group_norm(x, 1, w, b),
        "rms": lambda F, x, w, b, m, v, training: F.rms_norm(x, (3,), w) + b * 0,
        "batch": lambda F, x, w, b, m, v, training: F.batch_norm(x, m, v, w, b, training),
        "instance": lambda F, x, w, b, m, v, training: F.instance_norm(x, m, v, w, b, training),
    }

    @pytest.mark.parametrize("training", [True, False])
    @pytest.mark.parametrize("name", CALLS)
    @pytest.mark.parametrize("half", ["bfloat16", "float16"])
    def test_with_parameters_of_float32(self, name, half, training):
        x = np.sin(np.arange(27, dtype=np.float32) * 7).reshape(3, 3, 3)
        weight, bias = np.array([[0.3, -1.7, 2.2], [1.1, 0.7, -0.4]], np.float32)
        results = []
        for lib in (flow, torch):
            make = flow.tensor if lib is flow else torch.tensor
            leaves = [make(a, requires_grad=True) for a in (weight, bias)]
            leaves.insert(0, make(x, dtype=getattr(lib, half), requires_grad=True))
            mean, var = lib.zeros(3), lib.ones(3)
            y = self.CALLS[name](lib.nn.functional, *leaves, mean, var, training)
            grads = lib.autograd.grad((y.float() * make(x + 1)).sum(), leaves)
            results.append([y, *grads, mean, var])
        for ours, theirs in zip(*results, strict=True):
            assert str(ours.dtype) == str(theirs.dtype).removeprefix("torch.")
            close = theirs.detach().float().numpy()
            np.testing.assert_allclose(ours.detach().float().numpy(), close, rtol=0.02, atol=0.02)

    def test_other_dtypes_are_refused(self):
        x = flow.ones(2, 3, dtype=B)
        with pytest.raises(DTypeError, match="weight"):
            flow.nn.functional.layer_norm(x, (3,), flow.ones(3, dtype=flow.float64))


class TestOpsThatDependOnTheDtype:
    def test_nextafter(self):
        x, t = both()
        same(flow.nextafter(x, x + 1), torch.nextafter(t, t + 1))
        same(flow.nextafter(x * 0, -x), torch.nextafter(t * 0, -t))
        for lib, leaf in ((flow, x), (torch, t)):
            lib.nextafter(leaf.requires_grad_(), leaf.detach() * 1.5).sum().backward()
        same(x.grad, t.grad)

    def test_as_strided(self):
        x, t = both()
        same(x.as_strided((2, 2), (1, 2), 1), t.as_strided((2, 2), (1, 2), 1))
        for leaf in (x, t):
            leaf.requires_grad_()
            (leaf.as_strided((2, 2), (1, 1)) * 2).sum().backward()
        same(x.grad, t.grad)
        assert x.as_strided((2,), (1,))._base is x
        x, t = both()
        for leaf in (x, t):
            leaf.as_strided((2,), (2,)).add_(1)
            leaf.as_strided_((3,), (1,), 1)
        same(x, t)

    def test_random_(self):
        x = flow.empty(2000, dtype=B)
        assert x.random_().max().item() <= 256 and x.float().std().item() > 50
        assert sorted(set(x.random_(3).tolist())) == [0, 1, 2]

    @pytest.mark.parametrize("mode", ["trunc", "floor"])
    def test_a_quotient_by_a_number_is_rounded_once(self, mode):
        x, t = both(np.linspace(-40, 40, 999, dtype=np.float32))
        for number in (0.7, 3):
            same(flow.div(x, number, rounding_mode=mode), torch.div(t, number, rounding_mode=mode))
        if mode == "trunc":  # a quotient of two tensors first becomes bfloat16
            same(
                flow.div(x, x.flip(0) * 0.3, rounding_mode=mode),
                torch.div(t, t.flip(0) * 0.3, rounding_mode=mode),
            )
        x, t = x.half(), t.half()
        ours, theirs = (lib.div(y, 0.7, rounding_mode=mode) for lib, y in ((flow, x), (torch, t)))
        assert ours.tolist() == theirs.tolist()


class TestProducts:
    """Large products take an instruction of the processor's own, where it has one."""

    @pytest.fixture(params=[True, False])
    def by_instruction(self, request, monkeypatch):
        monkeypatch.setattr(eager_loops, "enabled", request.param)
        if request.param and bfloat16_products._machine_code() is None:
            pytest.skip("no llvmlite, or no such instruction")

    @pytest.mark.parametrize("turned", [(0, 0), (0, 1), (1, 0), (1, 1)])
    @pytest.mark.parametrize("x, y", [
        ((128, 128), (128, 128)), ((200, 127), (127, 130)), ((3, 1000), (1000, 500)),
        ((16, 128, 64), (16, 64, 128)), ((5, 1, 128, 64), (3, 64, 128)), ((4, 64, 128), (128, 256)),
        ((9, 4000), (4000, 33)), ((4, 3), (3, 2)), ((2, 0), (0, 3)),
    ])  # fmt: skip
    def test_of_shapes_and_layouts(self, x, y, turned, by_instruction):
        pair = [
            flow.randn(*(shape[:-2] + shape[:-3:-1] if t else shape)).to(B)
            for shape, t in zip((x, y), turned, strict=True)
        ]
        x, y = (a.transpose(-1, -2) if t else a for a, t in zip(pair, turned, strict=True))
        z, expected = x @ y, x.double() @ y.double()
        assert (z.dtype, z.shape) == (B, expected.shape)
        np.testing.assert_allclose(z.double().numpy(), expected.numpy(), rtol=2**-8, atol=0.02)

    def test_special_numbers(self, by_instruction):
        x, y = flow.ones(128, 128, dtype=B), flow.ones(128, 128, dtype=B)
        x[0, 0], x[1, 0], y[0, 0] = float("inf"), float("nan"), -1.0
        z = (x @ y).float()
        assert z[0, 0].item() == -np.inf and z[0, 1].item() == np.inf and z[1].isnan().all()
        assert z[2, 0].item() == 126 and z[2, 1].item() == 128

    def test_gradients(self, by_instruction):
        made = [np.cos(np.arange(n)).reshape(shape) for n, shape in ((16384, (2, 64, 128)),) * 2]
        results = []
        for lib in (flow, torch):
            make = flow.tensor if lib is flow else torch.tensor
            x, w = (make(a).to(lib.bfloat16).requires_grad_() for a in made)
            w = w[0].detach().requires_grad_()
            y = lib.nn.functional.linear(x, w)
            grads = lib.autograd.grad((y.float() ** 2).sum(), (x, w))
            results.append([z.detach().float().numpy() for z in (y, *grads)])
        for ours, theirs in zip(*results, strict=True):
            np.testing.assert_allclose(ours, theirs, rtol=0.03, atol=0.02 * np.abs(theirs).max())

    def test_rounding(self, by_instruction):
        bits = np.arange(0, 1 << 32, 65535 * 3, dtype=np.uint32)  # NaN, subnormal numbers, ties
        bits = np.concatenate([bits, bits & 0xFFFF0000 | 0x8000, bits[:5]])
        x = bits.view(np.float32)
        with np.errstate(all="ignore"):
            expected = x.astype(np.dtype(B))
        rounded = bfloat16_products.rounded(x, np.dtype(B))
        np.testing.assert_array_equal(rounded.view(np.ndarray).view("u2"), expected.view("u2"))
