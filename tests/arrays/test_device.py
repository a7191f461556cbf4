"""Devices: without CuPy, and through it (a real card or the strict stand-in): no hidden copies."""

import inspect
import subprocess
import sys
import threading
from typing import ClassVar

import numpy as np
import pytest

import oneflow_lite as flow
from oneflow_lite.errors import ArgumentTypeError, DeviceError, FlowError, GradientError
from tests import strict_cupy


@pytest.fixture
def cuda():
    """A name of a device, on the stand-in or on a real card."""
    if strict_cupy.real_device_present():
        yield "cuda"
    else:
        with strict_cupy.installed(device_count=2):
            yield "cuda"


@pytest.fixture
def stand_in():
    """Two devices on the stand-in, which writes down what is copied."""
    if strict_cupy.real_device_present():
        pytest.skip("a real device is here, and it writes no log")
    with strict_cupy.installed(device_count=2):
        yield


@pytest.fixture
def no_cupy(monkeypatch):
    monkeypatch.setitem(sys.modules, "cupy", None)  # import raises ImportError


class TestDevice:
    @pytest.mark.parametrize(
        ("name", "type", "index"),
        [("cpu", "cpu", None), ("cuda", "cuda", None), ("cuda:1", "cuda", 1)],
    )
    def test_is_read_from_its_name(self, name, type, index):
        device = flow.device(name)
        assert (device.type, device.index) == (type, index)
        assert str(device) == name

    def test_type_and_index_apart(self):
        assert flow.device("cuda", 1) == flow.device("cuda:1")

    def test_equality_and_hash(self):
        assert flow.device("cpu") == flow.device("cpu")
        assert flow.device("cuda:0") != flow.device("cuda:1")
        assert flow.device("cpu") != "gpu"
        assert len({flow.device("cuda:1"), flow.device("cuda:1"), flow.device("cpu")}) == 2

    def test_a_device_of_a_device(self):
        assert flow.device(flow.device("cuda:1")) == flow.device("cuda:1")

    def test_repr_as_pytorchs(self):
        torch = pytest.importorskip("torch")
        for name in ("cpu", "cuda", "cuda:1", "mps", "xpu:1", "meta"):
            assert repr(flow.device(name)) == repr(torch.device(name))

    @pytest.mark.parametrize("place", ["mps", "xpu:1", flow.device("hpu")])
    def test_other_devices_can_be_named_and_not_used(self, place):
        assert flow.device(place) != flow.device("cpu")
        for use in (lambda: flow.ones(2, device=place), lambda: flow.ones(2).to(place)):
            with pytest.raises(DeviceError, match=f"device '{place}' is not supported"):
                use()

    @pytest.mark.parametrize("bad", ["gpu", "", "cuda:x", "cuda:-1", "cpux", 3.5, None])
    def test_what_is_no_device(self, bad):
        with pytest.raises(FlowError, match="'cpu', 'cuda'") as caught:
            flow.device(bad)
        assert isinstance(caught.value, (RuntimeError, TypeError))

    @pytest.mark.parametrize("bad", [3.5, ["cpu"], object()])
    def test_what_names_no_device(self, bad):
        with pytest.raises(ArgumentTypeError, match="device"):
            flow.ones(2, device=bad)

    def test_of_a_cpu_tensor(self):
        x = flow.ones(2)
        assert x.device == flow.device("cpu")
        assert x.device.type == "cpu" and x.device.index is None
        assert not x.is_cuda
        assert x.cpu() is x
        assert x.to("cpu") is x and x.to(device="cpu") is x


class TestWithoutCupy:
    CALLS: ClassVar = {
        "zeros": lambda: flow.zeros(2, device="cuda"),
        "tensor": lambda: flow.tensor([1.0], device="cuda:0"),
        "to": lambda: flow.ones(2).to("cuda"),
        "cuda": lambda: flow.ones(2).cuda(),
        "an index": lambda: flow.ones(2, device=0),
        "a device": lambda: flow.ones(2).to(flow.device("cuda")),
        "Tensor": lambda: flow.Tensor([1.0], device="cuda"),
        "rand": lambda: flow.rand(2, device="cuda"),
        "synchronize": lambda: flow.cuda.synchronize(),
        "current_device": lambda: flow.cuda.current_device(),
    }

    @pytest.mark.parametrize("call", CALLS)
    def test_the_error_names_cupy_and_the_extra(self, no_cupy, call):
        with pytest.raises(DeviceError) as caught:
            self.CALLS[call]()
        text = str(caught.value)
        assert "CuPy" in text and "cuda12" in text and "cuda13" in text and "pip install" in text
        assert isinstance(caught.value, RuntimeError)

    def test_there_is_no_device(self, no_cupy):
        assert not flow.cuda.is_available()
        assert flow.cuda.device_count() == 0

    def test_naming_a_device_needs_none(self, no_cupy):
        assert str(flow.device("cuda:1")) == "cuda:1"

    def test_importing_the_package_imports_no_cupy_and_starts_no_thread(self):
        code = (
            "import sys, threading; n = threading.active_count(); import oneflow_lite; "
            "x = oneflow_lite.ones(2, requires_grad=True); x.exp().sum().backward(); "
            "oneflow_lite.cuda; oneflow_lite.device('cuda'); "
            "assert not [m for m in sys.modules if m.startswith('cupy')], 'cupy'; "
            "assert threading.active_count() == n, 'threads'"
        )
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr


class TestTransfers:
    def test_there_and_back(self, cuda):
        x = flow.tensor([[1.0, 2.0], [3.0, 4.0]])
        y = x.to(cuda)
        assert y.device == flow.device("cuda:0")
        assert y.is_cuda and not x.is_cuda
        assert (y.shape, y.dtype) == (x.shape, x.dtype)
        z = y.cpu()
        assert z.device == flow.device("cpu")
        assert z.tolist() == x.tolist()

    def test_copies(self, cuda):
        x = flow.ones(2)
        y = x.cuda()
        x.zero_()
        assert y.cpu().tolist() == [1.0, 1.0]
        z = y.cpu()
        y.zero_()
        assert z.tolist() == [1.0, 1.0]

    @pytest.mark.parametrize(
        "move",
        [
            lambda x, d: x.to(d),
            lambda x, d: x.to(device=d),
            lambda x, d: x.to(flow.device(d)),
            lambda x, d: x.to(0),
            lambda x, d: x.cuda(),
            lambda x, d: x.cuda(0),
            lambda x, d: x.cuda("cuda:0"),
            lambda x, d: x.cuda(flow.device("cuda:0")),
            lambda x, d: x.to(flow.ones(1, device=d)),
            lambda x, d: x.to(d, flow.float32),
            lambda x, d: x.to(d, non_blocking=True),
        ],
    )
    def test_every_way(self, cuda, move):
        y = move(flow.ones(2), cuda)
        assert y.device == flow.device("cuda:0")
        assert y.cpu().tolist() == [1.0, 1.0]

    def test_where_it_is_already_nothing_happens(self, cuda):
        x = flow.ones(2, device=cuda)
        assert x.cuda() is x
        assert x.to("cuda") is x and x.to("cuda:0") is x and x.to(x) is x

    def test_device_and_dtype_in_one_call(self, cuda):
        y = flow.ones(2).to(cuda, flow.float64)
        assert y.dtype == flow.float64 and y.is_cuda
        y = flow.ones(2).to(flow.ones(1, device=cuda, dtype=flow.int64))
        assert y.dtype == flow.int64 and y.is_cuda

    def test_every_creation(self, cuda):
        made = [
            flow.zeros(2, device=cuda),
            flow.ones(2, device=cuda),
            flow.full((2,), 3.0, device=cuda),
            flow.empty(2, device=cuda),
            flow.arange(2, device=cuda),
            flow.linspace(0, 1, 2, device=cuda),
            flow.eye(2, device=cuda),
            flow.tensor([1.0], device=cuda),
            flow.as_tensor([1.0], device=cuda),
            flow.Tensor([1.0], device=cuda),
            flow.rand(2, device=cuda),
            flow.randn(2, device=cuda),
            flow.randint(0, 3, (2,), device=cuda),
            flow.randperm(3, device=cuda),
        ]
        x = made[0]
        made += [
            flow.zeros_like(x),
            flow.ones_like(x),
            flow.full_like(x, 2),
            flow.empty_like(x),
            flow.rand_like(x),
            flow.randn_like(x),
        ]
        for y in made:
            assert y.device == flow.device("cuda:0")
        assert flow.zeros_like(x, device="cpu").device == flow.device("cpu")

    def test_the_second_device(self, stand_in):
        x = flow.ones(2, device="cuda:1")
        assert x.device == flow.device("cuda:1") and str(x.device) == "cuda:1"
        assert (x * 2).device == x.device
        y = x.to("cuda:0")
        assert y.device == flow.device("cuda:0")
        assert y.to("cuda:1").device == x.device
        assert flow.cuda.device_count() == 2 and flow.cuda.is_available()

    def test_a_device_that_is_not_there(self, stand_in):
        with pytest.raises(DeviceError, match=r"cuda:7.*2"):
            flow.ones(2, device="cuda:7")

    def test_a_machine_without_a_card(self):
        if strict_cupy.real_device_present():
            pytest.skip("a real device is here")
        with strict_cupy.installed(device_count=0):
            assert not flow.cuda.is_available()
            with pytest.raises(DeviceError, match="0 CUDA"):
                flow.ones(2, device="cuda")

    def test_numpy_copies_to_the_host(self, cuda):
        x = flow.tensor([1.0, 2.0], device=cuda)
        assert type(x.numpy()) is np.ndarray
        assert x.numpy().tolist() == x.tolist() == [1.0, 2.0]
        assert x[1].item() == 2

    def test_array_is_not_implicit(self, cuda):
        x = flow.ones(2, device=cuda)
        with pytest.raises(TypeError, match=r"cuda:0.*cpu\(\)"):
            np.asarray(x)

    def test_repr(self, cuda):
        x = flow.tensor([1.0, 2.0], device=cuda)
        assert repr(x) == "tensor([1., 2.], device='cuda:0')"
        assert "device='cuda:0'" in repr(x.requires_grad_())


class TestNoHiddenCopies:
    """Computing, differentiating and updating on the device moves nothing to or from the host."""

    WORK: ClassVar = {
        "arithmetic": lambda x: (x * 2 + 1) / 3 - x**2,
        "scalars": lambda x: 2 - x + 1.5,
        "activation": lambda x: flow.relu(x).sigmoid().tanh(),
        "matmul": lambda x: x @ x.t(),
        "reductions": lambda x: x.sum(0) + x.mean(0) + x.amax(0),
        "shapes": lambda x: x.reshape(-1).view(3, 3).permute(1, 0).unsqueeze(0).squeeze(0),
        "softmax": lambda x: x.softmax(-1).log_softmax(0),
        "slices": lambda x: x[1:, ::2] * x[0, 0],
        "joining": lambda x: flow.cat([x, x]) + flow.stack([x[0], x[1]]).sum(),
        "compare": lambda x: flow.where(x > 0, x, -x),
        "clamp": lambda x: x.clamp(-1, 1),
        "broadcast": lambda x: x.sum(0, keepdim=True).expand(3, 3) * x,
    }

    @pytest.mark.parametrize("work", WORK)
    def test_forward(self, stand_in, work):
        x = flow.tensor(np.arange(9.0).reshape(3, 3) - 4, device="cuda")
        self.WORK[work](x)  # constants may go to the device once
        strict_cupy.clear_log()
        self.WORK[work](x)
        assert strict_cupy.transfers("d2h") == []
        assert strict_cupy.transfers("d2d") == []

    @pytest.mark.parametrize("work", WORK)
    @pytest.mark.parametrize("create_graph", [False, True])
    def test_backward(self, stand_in, work, create_graph):
        x = flow.tensor(np.arange(9.0).reshape(3, 3) - 4, device="cuda", requires_grad=True)
        total = self.WORK[work](x).sum()
        strict_cupy.clear_log()
        (g,) = flow.autograd.grad(total, x, create_graph=create_graph)
        assert g.device == x.device
        assert strict_cupy.transfers("d2h") == []
        assert strict_cupy.transfers("d2d") == []

    def test_accumulation(self, stand_in):
        x = flow.ones(3, device="cuda", requires_grad=True)
        strict_cupy.clear_log()
        for _ in range(3):
            (x * x).sum().backward()
        x.grad.zero_()
        with flow.no_grad():
            x.sub_(x.grad)
        assert strict_cupy.transfers("d2h") == []
        assert strict_cupy.transfers("d2d") == []

    def test_a_transfer_is_one_copy(self, stand_in):
        x = flow.ones(3, 2)
        strict_cupy.clear_log()
        y = x.cuda()
        assert [(t.kind, t.shape, t.device) for t in strict_cupy.transfers()] == [
            ("h2d", (3, 2), 0)
        ]
        strict_cupy.clear_log()
        y.cpu()
        assert [(t.kind, t.shape) for t in strict_cupy.transfers()] == [("d2h", (3, 2))]
        strict_cupy.clear_log()
        y.to("cuda:1")
        assert [(t.kind, t.device) for t in strict_cupy.transfers()] == [("d2d", 1)]

    def test_what_has_to_look_at_values_is_the_only_copy(self, stand_in):
        x = flow.tensor([1.0, 2.0], device="cuda")
        for look in (lambda: x[0].item(), lambda: x.tolist(), lambda: bool(x[0]), lambda: repr(x)):
            strict_cupy.clear_log()
            look()
            assert len(strict_cupy.transfers("d2h")) == 1
        strict_cupy.clear_log()
        facts = (x.shape, x.dtype, x.ndim, len(x), x.is_contiguous())
        assert facts == ((2,), flow.float32, 1, 2, True)
        assert strict_cupy.transfers() == []


class TestMixing:
    OPS: ClassVar = {
        "add": lambda x, y: x + y,
        "matmul": lambda x, y: x @ y,
        "cat": lambda x, y: flow.cat([x, y]),
        "stack": lambda x, y: flow.stack([x, y]),
        "where": lambda x, y: flow.where(x > 0, x, y),
        "maximum": lambda x, y: flow.maximum(x, y),
        "linear": lambda x, y: flow.nn.functional.linear(x, y),
        "mse_loss": lambda x, y: flow.nn.functional.mse_loss(x, y),
        "add_": lambda x, y: x.add_(y),
        "lerp": lambda x, y: flow.lerp(x, y, 0.5),
        "setitem": lambda x, y: x.__setitem__(0, y[0]),
    }

    @pytest.mark.parametrize("op", OPS)
    @pytest.mark.parametrize("swapped", [False, True])
    def test_names_both_devices(self, cuda, op, swapped):
        x, y = flow.ones(2, 2), flow.full((2, 2), 2.0, device=cuda)
        if swapped:
            x, y = y, x
        before = x.tolist(), y.tolist()
        with pytest.raises(DeviceError) as caught:
            self.OPS[op](x, y)
        assert "cuda:0" in str(caught.value) and "cpu" in str(caught.value)
        assert isinstance(caught.value, RuntimeError)
        assert (x.tolist(), y.tolist()) == before
        assert x._version == y._version == 0

    def test_two_cards(self, stand_in):
        x, y = flow.ones(2, device="cuda:0"), flow.ones(2, device="cuda:1")
        with pytest.raises(DeviceError, match=r"cuda:0.*cuda:1"):
            x * y

    def test_numbers_and_cpu_scalars_are_no_mixing(self, cuda):
        x = flow.ones(2, device=cuda)
        for y in (x * 2, 2.5 - x, x / np.float32(2), x + True):
            assert y.device == x.device

    def test_a_0d_cpu_tensor_is_a_tensor_too(self, cuda):
        with pytest.raises(DeviceError, match=r"cuda:0.*cpu"):
            flow.ones(2, device=cuda) * flow.tensor(3.0)

    def test_copy_crosses_devices(self, cuda):
        x, y = flow.zeros(2), flow.ones(2, device=cuda)
        x.copy_(y)
        assert x.tolist() == [1.0, 1.0] and not x.is_cuda
        y.copy_(flow.full((2,), 5.0))
        assert y.tolist() == [5.0, 5.0] and y.is_cuda

    def test_a_gradient_on_another_device(self, cuda):
        x = flow.ones(2, device=cuda, requires_grad=True)
        y = x * 2
        with pytest.raises(GradientError, match=r"device.*cuda:0.*cpu"):
            y.backward(flow.ones(2))
        with pytest.raises(GradientError, match="device"):
            x.grad = flow.ones(2)
        assert x.grad is None
        y.backward(flow.ones(2, device=cuda))
        assert x.grad.cpu().tolist() == [2.0, 2.0]


class TestGradients:
    def test_on_the_device(self, cuda):
        x = flow.tensor([1.0, 2.0], device=cuda, requires_grad=True)
        ((x * x).sum() * 3).backward()
        assert x.grad.device == x.device
        assert x.grad.cpu().tolist() == [6.0, 12.0]
        first = x.grad
        (x * x).sum().backward()
        assert x.grad is first
        assert x.grad.cpu().tolist() == [8.0, 16.0]

    def test_flow_through_transfers(self, cuda):
        x = flow.tensor([1.0, 2.0], requires_grad=True)
        y = x.to(cuda)
        assert y.requires_grad and not y.is_leaf
        z = (y * y).cpu() * x
        z.sum().backward()
        assert x.grad.device == flow.device("cpu")
        assert x.grad.tolist() == [3.0, 12.0]

    def test_of_the_second_order_through_transfers(self, cuda):
        x = flow.tensor([2.0], requires_grad=True)
        y = (x.to(cuda) ** 3).cpu()
        (g,) = flow.autograd.grad(y, x, create_graph=True)
        assert g.item() == 12
        assert flow.autograd.grad(g, x)[0].item() == 12

    def test_between_two_cards(self, stand_in):
        x = flow.tensor([1.0, 2.0], device="cuda:0", requires_grad=True)
        y = (x * 2).to("cuda:1") * 5
        strict_cupy.clear_log()
        y.sum().backward()
        assert x.grad.device == flow.device("cuda:0")
        assert strict_cupy.transfers("d2h") == strict_cupy.transfers("h2d") == []
        assert x.grad.cpu().tolist() == [10.0, 10.0]

    def test_on_the_second_card_while_the_first_is_current(self, stand_in):
        x = flow.tensor([1.0, -2.0], device="cuda:1", requires_grad=True)
        (flow.relu(x) * 3).sum().backward()
        assert x.grad.device == flow.device("cuda:1")
        assert x.grad.cpu().tolist() == [3.0, 0.0]
        assert flow.cuda.current_device() == 0

    def test_dtype_and_device_at_once(self, cuda):
        x = flow.tensor([1.0, 2.0], requires_grad=True)
        x.to(cuda, flow.float64).sum().backward()
        assert x.grad.dtype == flow.float32 and not x.grad.is_cuda

    def test_node_infos_name_the_device(self, cuda):
        y = flow.ones(2, device=cuda, requires_grad=True) * 2
        assert y.grad_fn.output_tensor_infos[0].device == flow.device("cuda:0")

    def test_hooks_see_tensors_of_the_device(self, cuda):
        x = flow.ones(2, device=cuda, requires_grad=True)
        seen = []
        x.register_hook(lambda g: seen.append(g.device))
        (x * 2).sum().backward()
        assert seen == [x.device]

    def test_is_dense_and_its_own(self, cuda):
        x = flow.ones(2, 3, device=cuda, requires_grad=True)
        y = flow.ones(2, 3, device=cuda, requires_grad=True)
        (x.t() + y.t()).sum().backward()
        assert x.grad.is_contiguous()
        x.grad.zero_()
        assert y.grad.cpu().tolist() == [[1.0] * 3] * 2

    def test_saved_tensors_notice_writes(self, cuda):
        x = flow.ones(2, device=cuda, requires_grad=True)
        w = flow.ones(2, device=cuda)
        y = x * w
        w.add_(1)
        with pytest.raises(flow.errors.StaleTensorError):
            y.sum().backward()


class TestCopies:
    def test_pickle_and_deepcopy(self, cuda):
        import copy
        import pickle

        x = flow.tensor([1.0, 2.0], device=cuda, requires_grad=True)
        for y in (copy.deepcopy(x), pickle.loads(pickle.dumps(x))):
            assert y.device == x.device
            assert y.requires_grad and y.tolist() == [1.0, 2.0]

    def test_dlpack_names_the_device(self, cuda):
        assert flow.ones(2, device=cuda).__dlpack_device__() == (2, 0)

    def test_synchronize(self, cuda):
        flow.cuda.synchronize()
        flow.cuda.synchronize("cuda:0")
        assert flow.cuda.current_device() == 0


# A call of each function that takes a device; `c` lies on the CPU.
MAKERS = {
    "Generator": "",
    "Tensor": "2",
    "arange": "3",
    "as_tensor": "[1.0] np.ones(1) c",
    "asarray": "[1.0] np.ones(1) np.float64(1) c",
    "bartlett_window": "3",
    "blackman_window": "3",
    "empty": "2",
    "empty_like": "c",
    "empty_strided": "(2,),(1,)",
    "eye": "2",
    "fft.fftfreq": "3",
    "fft.rfftfreq": "3",
    "full": "(2,),1.0",
    "full_like": "c,1.0",
    "hamming_window": "3",
    "hann_window": "3",
    "kaiser_window": "3",
    "linspace": "0,1,2",
    "logspace": "0,1,2",
    "nn.Linear": "1,1",
    "normal": "0.0,1.0,(2,)",
    "ones": "2",
    "ones_like": "c",
    "rand": "2",
    "rand_like": "c",
    "randint": "3,(2,)",
    "randint_like": "c,3",
    "randn": "2",
    "randn_like": "c",
    "randperm": "3",
    "range": "0,2",
    "scalar_tensor": "1.0",
    "sparse_coo_tensor": "[[0]],[1.0],(1,)",
    "tensor": "[1.0] 1.0 c",
    "tril_indices": "2,2",
    "triu_indices": "2,2",
    "zeros": "2",
    "zeros_like": "c",
    # Without the parameter.
    "cat": "[c]",
    "complex": "c,c",
    "from_numpy": "np.ones(1)",
    "frombuffer": "bytearray(4),dtype=t.float32",
    "nn.Parameter": "t.ones(2)",
    "rand(2).new_ones": "2",
    "c.new_ones": "2",
    "c.clone": "",
}
NO_MAKERS = {"register_kernel", "register_op", "set_default_device", "summary"}
# Of a tensor on the CPU, PyTorch makes one on the default device; a tensor stays here.
# Its Generator, Tensor, normal and range ignore that device.
NOT_AS_PYTORCH = {"as_tensor(c)", "asarray(c)"}
NOT_AS_PYTORCH |= {"Generator()", "Tensor(2)", "normal(0.0,1.0,(2,))", "range(0,2)"}


def _calls():
    return [f"{name}({args})" for name, texts in MAKERS.items() for args in texts.split() or [""]]


class TestDefaultDevice:
    def test_each_function_that_takes_a_device_is_in_the_table(self):
        found = set()
        for place, module in (("", flow), ("fft.", flow.fft), ("linalg.", flow.linalg)):
            for name in dir(module):
                value = getattr(module, name)
                public = not name.startswith("_") and inspect.isfunction(value)
                if public and "device" in inspect.signature(value).parameters:
                    found.add(place + name)
        assert found - NO_MAKERS <= set(MAKERS)

    @pytest.mark.parametrize("call", _calls())
    def test_is_where_tensors_are_made(self, cuda, call):
        torch = pytest.importorskip("torch")

        def is_on(lib, device):
            c = lib.ones(1)
            names = {"c": c, "np": np, "t": lib}
            text = call if call.startswith("c.") else f"t.{call}"
            with lib.device(device) as entered:
                assert entered == lib.device(device)
                made = eval(text, names)
                place = made.weight.device if hasattr(made, "weight") else made.device
            assert c.device.type == lib.ones(1).device.type == "cpu"
            return place.type == device

        expected = is_on(torch, "meta")
        assert is_on(flow, cuda) == (expected != (call in NOT_AS_PYTORCH))

    def test_a_named_device_and_the_device_of_inputs_go_first(self, cuda):
        x = flow.ones(2)
        with flow.device(cuda):
            made = [flow.ones(2, device="cpu"), x + 1, flow.where(x > 0, x, 0.0), x.exp(), x[0]]
        assert {each.device.type for each in made} == {"cpu"}

    def test_blocks_nest_and_end(self, cuda):
        outer = flow.device(cuda)
        seen = []
        with outer:
            with outer, flow.device("cpu"):
                seen.append(flow.get_default_device().type)
            seen.append(flow.get_default_device().type)
            flow.set_default_device("cpu")
            seen.append(flow.ones(1).device.type)
        with pytest.raises(ZeroDivisionError), outer:
            1 / 0  # noqa: B018
        assert seen == ["cpu", "cuda", "cpu"]
        assert flow.get_default_device() == flow.device("cpu")

    def test_a_block_puts_back_the_default_that_was_set(self, cuda):
        try:
            flow.set_default_device(cuda)
            with flow.device("cpu"):
                assert flow.ones(1).device.type == "cpu"
            assert flow.ones(1).device.type == "cuda"
        finally:
            flow.set_default_device(None)

    def test_belongs_to_a_thread(self, cuda):
        seen = []
        thread = threading.Thread(target=lambda: seen.append(flow.ones(1).device.type))
        with flow.device(cuda):
            thread.start()
            thread.join()
        assert seen == ["cpu"]

    def test_a_device_that_is_not_there_is_refused_at_the_door(self, no_cupy):
        with pytest.raises(DeviceError), flow.device("cuda"):
            raise AssertionError
        assert flow.get_default_device().type == "cpu"

    def test_in_a_compiled_function(self, cuda):
        def body():
            with flow.device(cuda):
                x = flow.ones(2)
            return x, flow.ones(2)

        compiled = flow.compile(body)
        for _ in range(3):
            assert [x.device.type for x in compiled()] == ["cuda", "cpu"]
        assert compiled.explain().captures == 1
