"""Methods that ask or set what a tensor is made of, next to PyTorch's."""

import numpy as np
import pytest

import oneflow_lite as flow
from oneflow_lite.errors import ArgumentError, DTypeError, GradientError, ShapeError

A = np.arange(6.0, dtype=np.float32).reshape(2, 3)


@pytest.fixture
def torch():
    return pytest.importorskip("torch")


ANSWERS = """
    ndimension() get_device() is_conj() is_inference() is_neg() is_pinned() is_shared() is_signed()
    is_distributed() sparse_dim() dense_dim() dim_order() element_size() nelement() is_complex()
    is_floating_point() type() is_cpu is_cuda is_ipu is_maia is_meta is_mkldnn is_mps is_mtia
    is_nested is_quantized is_sparse is_sparse_csr is_vulkan is_xla is_xpu itemsize nbytes
""".split()


@pytest.mark.parametrize("ask", ANSWERS)
@pytest.mark.parametrize("dtype", ["float32", "int64", "bool", "uint8", "complex64"])
def test_answers(torch, ask, dtype):
    ours, theirs = flow.tensor(A).to(dtype), torch.tensor(A).to(getattr(torch, dtype))
    for x, t in ((ours, theirs), (ours.t(), theirs.t())):
        assert eval(f"x.{ask}", {"x": x}) == eval(f"x.{ask}", {"x": t})


def test_functions(torch):
    x, t = flow.tensor(A), torch.tensor(A)
    for name in ("get_device", "is_conj", "is_inference", "is_neg", "is_signed"):
        assert getattr(flow, name)(x) == getattr(torch, name)(t)
    assert flow.is_same_size(x, x + 1) and not flow.is_same_size(x, x.t())
    assert flow.is_nonzero(flow.tensor([2])) and not flow.tensor(0.0).is_nonzero()
    with pytest.raises(ShapeError):
        x.is_nonzero()
    assert x.layout is flow.strided and isinstance(x.layout, flow.layout)


class TestType:
    def test_names(self, torch):
        for dtype in "bool uint8 int8 int16 int32 int64 float16 float32 float64 complex64".split():
            x = flow.zeros(1, dtype=dtype)
            t = torch.zeros(1, dtype=getattr(torch, dtype))
            assert x.type() == t.type()
            assert flow.ones(1).type(x.type()).dtype == x.dtype
            assert flow.ones(1).type(dtype).dtype == x.dtype
        with pytest.raises(ArgumentError, match="FloatTensor"):
            flow.ones(1).type("torch.NoTensor")

    def test_gradient(self):
        x = flow.ones(2, requires_grad=True)
        x.type(flow.float64).sum().backward()
        assert x.grad.dtype == flow.float32

    def test_devices(self, device):
        x = flow.ones(2, device=device)
        place = "cuda." if device == "cuda" else ""
        assert x.type() == f"torch.{place}FloatTensor"
        assert x.type(f"torch.{place}DoubleTensor").device == x.device


def test_data_ptr():
    x = flow.tensor(A)
    assert x.data_ptr() == x.numpy().ctypes.data
    assert x[1].data_ptr() == x.data_ptr() + 3 * 4
    assert flow.empty(0).data_ptr() == 0
    assert x.is_set_to(x.detach()) and not x.is_set_to(x.clone()) and not x.is_set_to(x.t())


class TestResize:
    @pytest.mark.parametrize("shape", [(3,), (6,), (3, 2), (2, 4), (0,), ()])
    def test_elements(self, torch, shape):
        x, t = flow.tensor(A), torch.tensor(A)
        assert x.resize_(shape) is x and x.shape == tuple(t.resize_(shape).shape)
        kept = min(x.numel(), 6)
        assert x.reshape(-1)[:kept].tolist() == t.reshape(-1)[:kept].tolist()
        assert x._version == 1

    def test_spellings(self):
        assert flow.tensor(A).resize_(3, 2).shape == (3, 2)
        assert flow.tensor(A).resize_as_(flow.ones(1, 6)).shape == (1, 6)

    def test_what_is_refused(self):
        for x in (flow.ones(2, requires_grad=True), flow.ones(2, requires_grad=True) * 1):
            for call in (lambda x: x.resize_(3), lambda x: x.set_(flow.ones(3))):
                with pytest.raises(GradientError, match="detach"):
                    call(x)
        with pytest.raises(ShapeError, match="clone"):
            flow.ones(4)[:2].resize_(1)

    def test_a_graph_notices(self):
        x, w = flow.ones(2), flow.ones(2, requires_grad=True)
        y = (x * w).sum()
        x.resize_(3)
        with pytest.raises(flow.errors.StaleTensorError):
            y.backward()

    def test_on_devices(self, device):
        x = flow.tensor(A, device=device)
        x.resize_(2, 4)
        assert x.device.type == device and x.cpu().reshape(-1)[:6].tolist() == A.ravel().tolist()


class TestSet:
    def test_shares_memory(self):
        x, source = flow.ones(2), flow.tensor(A)
        assert x.set_(source) is x and x.shape == (2, 3)
        source[0, 0] = 9
        assert x[0, 0].item() == 9
        x.set_()
        assert x.shape == (0,)

    def test_dtype(self):
        with pytest.raises(DTypeError, match="float32"):
            flow.ones(2).set_(flow.ones(2, dtype=flow.float64))


class TestPythonFunctions:
    def test_apply(self, torch):
        x, t = flow.tensor(A), torch.tensor(A)
        assert x.apply_(lambda v: v * v).tolist() == t.apply_(lambda v: v * v).tolist()
        assert x._version == 1

    def test_map(self, torch):
        x, t = flow.tensor(A), torch.tensor(A)
        add = lambda a, b: a + 2 * b  # noqa: E731
        assert x.map_(x.clone(), add).tolist() == t.map_(t.clone(), add).tolist()

    def test_gradients_are_refused(self):
        with pytest.raises(GradientError, match="detach"):
            flow.ones(2, requires_grad=True).apply_(lambda v: v)


class TestMemoryFormat:
    FORMATS = ("contiguous_format", "preserve_format", "channels_last")

    @pytest.mark.parametrize("name", FORMATS)
    def test_it_is_accepted(self, torch, name):
        x, form = flow.ones(2, 3, 4, 5), getattr(flow, name)
        for call in (
            lambda: x.clone(memory_format=form),
            lambda: flow.clone(x, memory_format=form),
            lambda: x.contiguous(memory_format=form),
            lambda: x.to(flow.float64, memory_format=form),
            lambda: x.to(memory_format=form),
            lambda: x.float(memory_format=form),
            lambda: x.cpu(memory_format=form),
            lambda: flow.zeros_like(x, memory_format=form),
            lambda: flow.ones_like(x, memory_format=form),
            lambda: flow.empty_like(x, memory_format=form),
            lambda: flow.full_like(x, 2, memory_format=form),
            lambda: flow.rand_like(x, memory_format=form),
            lambda: flow.randint_like(x, 3, memory_format=form),
        ):
            assert call().shape == x.shape
        assert flow.nn.Conv2d(1, 1, 1).to(memory_format=form)
        assert repr(form) == f"oneflow_lite.{name}" and isinstance(form, flow.memory_format)

    def test_is_contiguous(self, torch):
        for library in (flow, torch):
            x = library.ones(2, 3, 4, 5)
            assert x.is_contiguous(memory_format=library.contiguous_format)
            assert not x.is_contiguous(memory_format=library.channels_last)
            y = library.ones(2, 4, 5, 3).permute(0, 3, 1, 2)
            assert y.is_contiguous(memory_format=library.channels_last)
            assert not y.is_contiguous()

    def test_something_else(self):
        for call in (flow.Tensor.clone, flow.Tensor.contiguous, flow.zeros_like, flow.Tensor.float):
            with pytest.raises(TypeError, match="memory_format"):
                call(flow.ones(2), memory_format="channels_last")
