"""Names and arguments of public PyTorch scripts: what they do here, and what they do in PyTorch."""

from __future__ import annotations

import copy
import inspect
import pickle
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import oneflow_lite as flow
from oneflow_lite.functors.declaring.declare import DECLARATIONS
from oneflow_lite.tensors.spellings import NUMPY_NAMES
from tests.functors.declared import Call, calls, counterpart

torch = pytest.importorskip("torch")
pytest.importorskip("torch.utils.model_zoo")


def plain(value: Any) -> Any:
    """Return a result in a form in which the two libraries' are equal."""
    if isinstance(value, (flow.Tensor, torch.Tensor)):
        dtype = str(value.dtype).removeprefix("torch.")
        return value.detach().tolist(), tuple(value.shape), dtype, value.requires_grad
    if isinstance(value, (flow.Size, torch.Size)):
        return tuple(value)
    if isinstance(value, (tuple, list)):
        return [plain(each) for each in value]
    return str(value) if isinstance(value, (flow.device, torch.device)) else value


def outcome(lib: Any, text: str, **names: Any) -> Any:
    """Return what an expression gives: a plain result, or the error; warnings are left out."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return plain(eval(text, {"t": lib, "np": np, **{k: v(lib) for k, v in names.items()}}))
        except Exception as error:
            return error


def agree(text: str, **names: Callable[[Any], Any]) -> None:
    """Compare an expression's outcome; an error of ours is one of the class of PyTorch's."""
    ours, theirs = outcome(flow, text, **names), outcome(torch, text, **names)
    if isinstance(theirs, Exception):
        assert isinstance(ours, type(theirs)), f"{text}: {ours!r} and {theirs!r}"
    else:
        assert ours == theirs, text


def lines(text: str) -> list[str]:
    return [line.strip() for line in text.strip().splitlines()]


# --- Names ----------------------------------------------------------------------------------------

# Public names of torch that are not here: of the compiler, of quantization, of single backends.
ABSENT = set(
    """
    AVG AcceleratorError AggregationType AliasDb AnyType Argument ArgumentSpec AwaitType
    BFloat16Storage BenchmarkConfig BenchmarkExecutionStats Block BoolType BufferDict CallStack
    Capsule ClassType Code CompilationUnit CompleteArgumentSpec ComplexType ConcreteModuleType
    ConcreteModuleTypeBuilder DeepCopyMemoTable DeserializationStorageContext DeviceObjType
    DictType DisableTorchFunction DisableTorchFunctionSubclass DispatchKey DispatchKeySet
    EnumType ErrorReport ExcludeDispatchKeyGuard ExecutionPlan FatalError FileCheck FloatType
    FunctionSchema Future FutureType Gradient Graph GraphExecutorState IODescriptor InferredType
    IntType InterfaceType JITException ListType LiteScriptModule LockingLogger LoggerBase
    ModuleDict Node NoneType NoopLogger NumberType OperatorInfo OptionalType OutOfMemoryError
    PRIVATE_OPS ParameterDict PyObjectType PyTorchFileReader PyTorchFileWriter RRefType SUM
    ScriptClass ScriptClassFunction ScriptDict ScriptDictIterator ScriptDictKeyIterator
    ScriptFunction ScriptList ScriptListIterator ScriptMethod ScriptModule
    ScriptModuleSerializer ScriptObject ScriptObjectProperty SerializationStorageContext
    StaticModule StorageBase StreamObjType StringType SymBool SymBoolType SymFloat SymInt
    SymIntType TYPE_CHECKING Tag TensorType ThroughputBenchmark TracingState TupleType Type
    USE_GLOBAL_DEPS
    USE_RTLD_GLOBAL_WITH_LIBTORCH UnionType Use Value ao autocast_decrement_nesting
    autocast_increment_nesting bit bits16 bits1x8 bits2x4 bits4x2 bits8 chalf classes
    classproperty compiled_with_cxx11_abi compiler complex32 cond convolution cpp cpu dequantize
    distributions dsmm e eig embedding_renorm_ empty_permuted empty_quantized export
    fork frobenius_norm func functional futures fx get_autocast_ipu_dtype
    get_autocast_xla_dtype get_device_module get_file_path gru gru_cell has_lapack has_mkl
    has_openmp has_spectral hash_tensor hsmm hspmm hub import_ir_module
    import_ir_module_from_buffer init_num_threads int_repr is_anomaly_check_nan_enabled
    is_anomaly_enabled is_autocast_cache_enabled is_autocast_ipu_enabled is_autocast_xla_enabled
    is_distributed is_vulkan_available jagged legacy_contiguous_format library lstm
    lstm_cell lstsq matrix_rank merge_type_from_type_comment monitor mtia native_channel_shuffle
    native_dropout native_norm nested nuclear_norm ops overrides package parse_ir
    parse_schema parse_type_comment prepare_multiprocessing_environment profiler quantization
    resize_as_sparse_ return_types rnn_relu rnn_relu_cell rnn_tanh rnn_tanh_cell
    saddmm set_anomaly_enabled set_autocast_cache_enabled set_autocast_cpu_dtype
    set_autocast_cpu_enabled set_autocast_dtype set_autocast_enabled set_autocast_gpu_dtype
    set_autocast_ipu_dtype set_autocast_ipu_enabled set_autocast_xla_dtype
    set_autocast_xla_enabled slice_inverse smm solve sspaddmm symeig
    thread_safe_generator to_dlpack torch_version types unify_type_list values_copy
    vitals_enabled wait while_loop windows
    """.split()
)
# Families of them, by how they begin.
FOREIGN = tuple(
    """
    Q bit cudnn_ miopen_ mkldnn_ quantize q_ per_ quantized_ fbgemm_ batch_norm_ fake_ fused_
    float4 float8 int1 int2 int3 int4 int5 int6 int7 uint1 uint2 uint3 uint4 uint5 uint6 uint7
    sparse_ sym_ qint qscheme quint choose_ profiler_ ccol crow col_ row_ indices_
    """.split()
)


def test_public_names_of_pytorch() -> None:
    modules = (type(sys), type(None))
    names = {
        name
        for name in dir(torch)
        if not name.startswith("_")
        and not (isinstance(getattr(torch, name), modules) and not _is_public(name))
        and not name.startswith(FOREIGN)
    }
    missing = {name for name in names if not hasattr(flow, name)}
    assert missing <= ABSENT, sorted(missing - ABSENT)


def _is_public(name: str) -> bool:
    return f"torch.{name}" in sys.modules


@pytest.mark.parametrize(
    "place",
    """
    amp cuda.amp backends.cudnn backends.mps backends.cuda.matmul backends.mkldnn mps accelerator
    random nn.modules.utils utils.model_zoo autograd.variable
    """.split(),
)
def test_modules_have_what_scripts_take_of_them(place: str) -> None:
    ours, theirs = flow, torch
    for part in place.split("."):
        ours, theirs = getattr(ours, part), getattr(theirs, part)
    told = getattr(theirs, "__all__", None)
    wanted = told if told is not None else [n for n in vars(theirs) if n[0] != "_" and n != "m"]
    found = {n for n in wanted if not hasattr(ours, n) and n != "amp_definitely_not_available"}
    assert found <= set(_LACKING.get(place, "").split()), sorted(found)


# Of Apple's devices, of memory that CuPy does not count, and of imports in those modules.
_LACKING = {
    "backends.mps": "get_core_count get_name is_macos13_or_newer",
    "mps": """
        Event compile_shader current_allocated_memory driver_allocated_memory get_rng_state
        load_metallib profiler recommended_max_memory seed set_per_process_memory_fraction
        set_rng_state
    """,
    "accelerator": """
        Graph current_device_idx current_stream device_index empty_host_cache
        get_device_capability get_memory_info max_memory_allocated max_memory_reserved
        memory_allocated memory_reserved memory_stats reset_accumulated_memory_stats
        reset_peak_memory_stats set_device_idx set_stream
    """,
    "random": "thread_safe_generator",
    "utils.model_zoo": "tqdm",
}


def test_the_main_files_know_nothing_of_old_names() -> None:
    assert not {"FloatTensor", "DataParallel", "jit", "GradScaler"} & set(dir(flow))
    code = """if True:
        import sys, oneflow_lite as flow
        x = flow.ones(2)
        assert hasattr(x, "shape") and not hasattr(x, "shapely")
        assert "oneflow_lite.compatibility" not in sys.modules
        assert not hasattr(flow, "no_such_thing") and getattr(flow, "nothing_at_all", 3) == 3
        flow.FloatTensor, flow.nn.DataParallel
        assert "oneflow_lite.interop.cuda" not in sys.modules
    """
    subprocess.run([sys.executable, "-c", code], check=True)
    assert not hasattr(flow.Tensor, "__getattr__")  # it would make each look-up slower


@pytest.mark.parametrize(
    "module, name, hint",
    [
        (flow, "softmaxx", "did you mean 'softmax'"),
        (flow.nn, "Liner", "did you mean 'Linear'"),
        (flow.nn.functional, "cross_entropi", "did you mean 'cross_entropy'"),
        (flow.linalg, "eigv", "did you mean 'eig"),
        (flow, "LongTensr", "did you mean 'LongTensor'"),
        (flow.distributed.fsdp, "fully_shar", "did you mean 'fully_shard'"),
        (flow, "symeig", "flow.linalg.eigh"),
        (flow.compiler, "is_compilin", "did you mean 'is_compiling'"),
        (flow.cuda, "memory_alocated", "did you mean 'memory_allocated'"),
        (flow.autograd, "Varible", "did you mean 'Variable'"),
    ],
)
def test_absent_names_have_a_substitute(module: Any, name: str, hint: str) -> None:
    with pytest.raises(AttributeError, match=f"{module.__name__}.*{name}.*{hint}"):
        getattr(module, name)


def test_modules_of_other_names() -> None:
    assert flow.nn.modules.module.Module is flow.nn.Module
    assert flow.nn.modules.batchnorm._BatchNorm is flow.nn.BatchNorm2d.__mro__[1]
    assert flow.nn.modules.container.Sequential is flow.nn.Sequential
    assert flow.nn.modules.ModuleList is flow.nn.ModuleList
    assert flow.autograd.inference_mode is flow.inference_mode
    assert issubclass(flow.optim.lr_scheduler._LRScheduler, flow.optim.lr_scheduler.LRScheduler)
    assert flow.autograd.variable.Variable is flow.autograd.Variable
    for text in lines(
        """
        t.nn.modules.utils._pair(3)
        t.nn.modules.utils._triple((1, 2, 3))
        t.nn.modules.utils._ntuple(5)(0)
        t.nn.modules.utils._reverse_repeat_tuple((1, 2), 2)
        t.nn.modules.utils._list_with_default([None, 3], [7, 8])
        t.version.cuda
        """
    ):
        agree(text)
    state = {"module.a": 1, "b": 2}
    flow.nn.modules.utils.consume_prefix_in_state_dict_if_present(state, "module.")
    assert state == {"a": 1, "b": 2}


@pytest.mark.parametrize(
    "text",
    lines(
        """
        t.pi
        t.inf
        t.nan != t.nan
        t.newaxis
        t.get_num_interop_threads() >= 1
        t.set_num_threads(t.get_num_threads())
        t.set_num_threads(0)
        (t.use_deterministic_algorithms(True), t.are_deterministic_algorithms_enabled())
        (t.use_deterministic_algorithms(True, warn_only=True), t.get_deterministic_debug_mode())
        (t.set_deterministic_debug_mode("default"), t.are_deterministic_algorithms_enabled())
        t.set_deterministic_debug_mode("often")
        (t.set_float32_matmul_precision("high"), t.get_float32_matmul_precision())
        (t.set_float32_matmul_precision("highest"), t.get_float32_matmul_precision())
        t.get_default_device()
        t.set_default_device("cpu")
        t.set_default_device(None)
        t.set_default_tensor_type(t.LongTensor)
        t.cuda.memory_allocated()
        t.cuda.max_memory_reserved()
        t.cuda.empty_cache()
        t.cuda.manual_seed(3)
        t.cuda.manual_seed_all(3)
        t.backends.cudnn.benchmark
        t.backends.cudnn.deterministic
        t.backends.cudnn.allow_tf32
        t.backends.cudnn.version()
        t.backends.cuda.matmul.allow_tf32
        t.backends.cpu.get_cpu_capability()
        t.backends.mps.is_available()
        t.mps.is_available()
        t.xpu.is_available()
        t.accelerator.is_available()
        t.accelerator.current_accelerator()
        t.accelerator.device_count()
        t.typename(1)
        t.typename("a")
        t.typename(t.ones(1).double())
        t.typename(t.LongTensor)
        t.is_storage(t.ones(1).storage())
        t.is_storage(t.ones(1))
        t.ones(2).volatile
        t.ones(2).is_sparse
        t.ones(2).share_memory_()
        """
    ),
)
def test_settings_and_constants(text: str) -> None:
    if flow.cuda.is_available():
        pytest.skip("there is a CUDA device")
    try:
        agree(text)
    finally:
        for lib in (flow, torch):
            lib.use_deterministic_algorithms(False)
            if "device(" in text:
                lib.set_default_device(None)


def test_default_tensor_type() -> None:
    try:
        flow.set_default_tensor_type("torch.DoubleTensor")
        assert flow.ones(1).dtype == flow.tensor(1.0).dtype == flow.float64
        flow.set_default_tensor_type(flow.FloatTensor)
        assert flow.ones(1).dtype == flow.float32
    finally:
        flow.set_default_dtype(flow.float32)


def test_default_device(device: str) -> None:
    try:
        flow.set_default_device(device)
        made = [flow.ones(2), flow.tensor([1.0]), flow.arange(3), flow.Tensor(2), flow.rand(2)]
        assert {x.device.type for x in made} == {device}
        assert flow.get_default_device().type == device
        copied = pickle.loads(pickle.dumps(flow.ones(2, device="cpu")))
        assert copied.device.type == "cpu"
    finally:
        flow.set_default_device(None)


def test_switches_can_be_set() -> None:
    cudnn = flow.backends.cudnn
    with cudnn.flags(enabled=False, benchmark=True):
        assert cudnn.benchmark and not cudnn.enabled
    assert cudnn.enabled and not cudnn.benchmark
    cudnn.deterministic = True
    assert flow.backends.cudnn.deterministic
    cudnn.deterministic = False


def test_cuda_names(device: str) -> None:
    if device == "cpu":
        if flow.cuda.is_available():
            pytest.skip("there is a device")
        for call in (flow.cuda.Event, flow.cuda.Stream, flow.cuda.get_device_name, flow.cuda.init):
            with pytest.raises(flow.errors.DeviceError, match="CUDA"):
                call()
        assert flow.cuda.FloatTensor.dtype == flow.float32
        return
    x = flow.ones(2, device=device)
    assert isinstance(x, flow.cuda.FloatTensor) and not isinstance(x, flow.FloatTensor)
    assert x.type() == "torch.cuda.FloatTensor"
    assert flow.LongTensor([1]).type(flow.cuda.FloatTensor).is_cuda
    with flow.cuda.device(0), flow.cuda.device_of(x):
        assert flow.cuda.current_device() == 0
    flow.cuda.manual_seed_all(5)
    first = flow.rand(2, device=device)
    flow.cuda.manual_seed(5)
    assert flow.rand(2, device=device).tolist() == first.tolist()


# --- Typed tensors, Variable, new, storage --------------------------------------------------------


def x_(lib: Any) -> Any:
    return lib.tensor([1.0, 2.0], requires_grad=True)


@pytest.mark.parametrize(
    "text",
    lines(
        """
        t.LongTensor([1, 2])
        t.LongTensor([1.5])
        t.LongTensor(2, 3).shape
        t.LongTensor(t.Size([2, 3])).shape
        t.LongTensor((2, 3))
        t.LongTensor()
        t.LongTensor(np.array([1.5]))
        t.LongTensor(np.array([1, 2], np.int32))
        t.FloatTensor([[1, 2], [3, 4]])
        t.FloatTensor(np.array([1.0, 2.0]))
        t.FloatTensor(x)
        t.FloatTensor(t.LongTensor([1]))
        t.FloatTensor(5).shape
        t.FloatTensor(2.0)
        t.FloatTensor(t.tensor(2), 3).shape
        t.FloatTensor(np.int64(2)).shape
        t.FloatTensor(range(3))
        t.ByteTensor([True, False])
        t.ByteTensor([300])
        t.BoolTensor([1, 0, 2])
        t.DoubleTensor([1]).dtype == t.float64
        isinstance(x, t.FloatTensor)
        isinstance(x, t.DoubleTensor)
        isinstance(x, t.LongTensor)
        isinstance([1.0], t.FloatTensor)
        isinstance(x, t.cuda.FloatTensor)
        t.LongTensor.__name__
        t.autograd.Variable(x)
        t.autograd.Variable(x, requires_grad=True)
        t.autograd.Variable(x, volatile=True)
        t.autograd.Variable(x, True, True)
        t.autograd.Variable([1.0])
        t.autograd.Variable()
        isinstance(x, t.autograd.Variable)
        isinstance(1.0, t.autograd.Variable)
        x.new(2, 3).shape
        x.new([1, 2])
        x.new(x.size()).shape
        x.new(x.detach())
        x.new()
        x.new(t.LongTensor([1]))
        x.new(np.array([1.0, 2.0]))
        x.new([1.5], device="cpu")
        t.Tensor(t.Size([2])).shape
        t.Tensor((2, 3))
        t.Tensor(t.tensor(2), 3).shape
        x.type()
        x.long().type()
        x.type("torch.DoubleTensor")
        x.type(t.DoubleTensor)
        x.double().type(t.Tensor)
        x.type(t.int32)
        x.type("torch.FooTensor")
        x.detach().type(t.LongTensor).type()
        x.storage().size()
        len(x.untyped_storage())
        x.storage().nbytes()
        x.storage().tolist()
        list(x.storage())
        x.storage()[1]
        x.storage().type()
        x[1:].storage().data_ptr() == x.storage().data_ptr()
        x.clone().storage().data_ptr() == x.storage().data_ptr()
        x.storage().element_size()
        x.storage().is_cuda
        t.ones(2, 3).t()[1:].storage().tolist()
        t.FloatStorage([1.0, 2.0]).tolist()
        t.embedding_bag(t.ones(3, 2), t.tensor([0, 1, 2]), t.tensor([0, 2]), mode=1)[0]
        t.addmv_(t.zeros(2), t.ones(2, 3), t.ones(3), beta=2)
        """
    ),
)
def test_typed_tensors_and_storages(text: str) -> None:
    agree(text, x=x_)


def test_a_storage_is_the_memory_of_its_tensors() -> None:
    x = flow.zeros(2, 3)
    x.storage()[4] = 5
    x.storage().copy_(flow.FloatStorage([0, 1, 2, 3, 4, 5]))
    assert x.tolist() == [[0, 1, 2], [3, 4, 5]]
    y = flow.ones(2, requires_grad=True)
    z = y.exp()
    z.detach().storage().fill_(0)
    with pytest.raises(flow.errors.StaleTensorError):
        z.sum().backward()


@pytest.mark.parametrize(
    "text",
    lines(
        """
        t.arange(6.0).untyped_storage()[4:12].tolist()
        t.arange(6.0).untyped_storage()[4:12].nbytes()
        t.arange(6.0).bfloat16()[2:].storage().tolist()
        t.arange(6.0)[2:].view(t.int32).untyped_storage().nbytes()
        t.UntypedStorage(8).nbytes()
        t.UntypedStorage([1, 2, 3]).tolist()
        t.TypedStorage(wrap_storage=t.ones(2).untyped_storage(), dtype=t.int32).tolist()
        t.empty(0).set_(t.arange(12.0).storage(), 2, (2, 3), (3, 1))
        t.empty(0).set_(t.arange(12.0).untyped_storage(), 2, (2, 3))
        t.empty(0).set_(t.arange(12.0), 1, (2,), (2,))
        t.empty(0).set_(t.arange(12.0).untyped_storage())
        t.empty(0).set_(t.arange(3).storage())
        t.empty(2, device="meta").untyped_storage().nbytes()
        t.empty(2, device="meta").untyped_storage().data_ptr()
        t.empty(2, device="meta").storage()[0]
        len(t.arange(6.0).storage().resize_(8) or t.ones(8))
        """
    ),
)
def test_parts_of_storages(text: str) -> None:
    agree(text)


def test_a_slice_of_a_storage_shares_its_memory() -> None:
    x = flow.zeros(4)
    x.untyped_storage()[4:8].copy_(flow.ones(1).untyped_storage())
    assert x.tolist() == [0, 1, 0, 0]
    assert x[2:].untyped_storage()._cdata == x.untyped_storage()._cdata


def test_storages_of_files(tmp_path: Any) -> None:
    path = str(tmp_path / "numbers")
    shared = flow.UntypedStorage.from_file(path, True, nbytes=16)
    x = flow.empty(0).set_(shared)
    x[1] = 2.5
    assert flow.from_file(path, size=3).tolist() == [0, 2.5, 0]
    own = flow.FloatStorage.from_file(path, False, 4)
    own[0] = 7
    assert (own[0], x[0].item()) == (7, 0)
    assert flow.from_file(path, True, 3, dtype=flow.float64).storage().nbytes() == 24
    with pytest.raises(flow.errors.ArgumentError, match="24 bytes"):
        flow.from_file(path, size=7)
    with pytest.raises(FileNotFoundError):
        flow.from_file(path + "2", size=1)


def test_warnings_of_variable() -> None:
    with pytest.warns(UserWarning, match="volatile"):
        flow.autograd.Variable(flow.ones(1), volatile=False)


# --- Size -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    lines(
        """
        x.shape
        x.size()
        x.shape.numel()
        x.size().numel()
        x.shape[1:].numel()
        x.shape[:0].numel()
        type(x.shape[1:]) is t.Size
        type(x.shape + (1,)) is t.Size
        type((1,) + x.shape) is t.Size
        type(x.shape * 2) is t.Size
        (1,) + x.shape
        x.shape + (4,)
        x.shape + [1]
        x.shape == (2, 3, 4)
        x.shape == t.Size([2, 3, 4])
        (2, 3, 4) == x.size()
        isinstance(x.shape, t.Size)
        isinstance(x.shape, tuple)
        hash(x.shape) == hash((2, 3, 4))
        x.shape[-1]
        t.Size()
        t.Size([2.0])
        t.Size(t.tensor([1, 2]))
        t.Size([t.tensor(2), np.int64(3)])
        t.Size(np.array([1, 2]))
        t.zeros(x.shape[:2]).shape
        t.zeros(*x.shape).shape
        x.new_zeros(x.shape[1:]).shape
        x.reshape(x.shape[:1] + (-1,)).shape
        x.view(x.shape[0], x.shape[1:].numel()).shape
        """
    ),
)
def test_size(text: str) -> None:
    agree(text, x=lambda lib: lib.ones(2, 3, 4))


def test_sizes_are_copied_pickled_saved_and_compiled() -> None:
    size = flow.ones(2, 3).shape
    for found in (copy.deepcopy(size), pickle.loads(pickle.dumps(size))):
        assert found == size and type(found) is flow.Size

    class Reshaped(flow.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.size = flow.ones(2, 3).shape

        def forward(self, x: flow.Tensor) -> Any:
            return x.reshape(self.size) * x.shape[1:].numel(), x.shape

    compiled = flow.compile(Reshaped(), fullgraph=True)
    for _ in range(3):
        y, size = compiled(flow.ones(3, 2))
        assert y.tolist() == [[2.0] * 3] * 2 and type(size) is flow.Size and size == (3, 2)


# --- Arguments ------------------------------------------------------------------------------------


def _given(call: Call, lib: Any) -> tuple[list[Any], dict[str, Any]]:
    args, kwargs = call._map(lib.tensor, lib.tensor, lib)
    return list(args), dict(kwargs)


def same(a: Any, b: Any) -> bool:
    if isinstance(a, (tuple, list)):
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, flow.Tensor):
        return np.allclose(a.numpy(), b.numpy(), equal_nan=True)
    return bool(a == b)


def renamed() -> Iterator[Any]:
    """Yield the functors that take NumPy's names."""
    for name in DECLARATIONS:
        if set(NUMPY_NAMES.values()) & set(DECLARATIONS.get(name).spellings):
            yield name


RENAMED = list(renamed())
CALLS = list(calls())


@pytest.mark.parametrize("name", RENAMED)
def test_numpys_names_of_parameters(name: str) -> None:
    declaration = DECLARATIONS.get(name)
    listed = [p.name for p in declaration.parameters if p.kind == "positional"]
    used = 0
    for call in (c for c in CALLS if c.declaration is declaration):
        args, kwargs = _given(call, flow)
        if len(args) > len(listed):
            continue
        wanted = declaration.function(*args, **kwargs)
        spelled = dict(zip(listed, args, strict=False)) | kwargs
        for old, new in NUMPY_NAMES.items():
            if spelled.get(old) is not None:
                spelled[new] = spelled.pop(old)
                used += 1
        # What stands before the first renamed argument may stay where it is.
        found = declaration.function(**spelled)
        assert same(found, wanted) or name in ("gumbel_softmax",), str(call)
    assert used or all("dim" not in p.name for p in declaration.parameters if p.required), (
        "no sample names a dimension"
    )


def test_a_dimension_is_given_once() -> None:
    x = flow.ones(2, 3)
    with pytest.raises(TypeError, match="axis.*both"):
        x.sum(0, axis=1)
    with pytest.raises(
        TypeError, match=r"gather\(\): argument 'dim': expected an int, got nothing"
    ):
        x.gather(index=flow.tensor([[0]]))
    with pytest.raises(TypeError, match=r"gather\(\): argument 'index'"):
        flow.gather(x, 0)
    assert x.unsqueeze_(axis=1).shape == (2, 1, 3)
    with pytest.raises(TypeError):
        x.sum(axes=1)


def test_numpys_names_are_those_that_pytorch_takes() -> None:
    def taken(lib: Any, name: str) -> bool:
        where, _, tail = name.partition("_")
        home = getattr(lib, where, lib) if where in ("linalg", "fft", "special") else lib
        function = getattr(home, tail if home is not lib else name, None)
        try:
            function(lib.ones(2, 2), axis=0)
        except TypeError as error:
            return "axis" not in str(error)
        except Exception:
            pass
        return True

    one = [n for n in RENAMED if hasattr(torch, n) and "axis" in DECLARATIONS.get(n).spellings]
    assert not [n for n in one if taken(torch, n) and not taken(flow, n)]


def numbers() -> Iterator[Any]:
    """Yield samples with a number, and where it stands."""
    for call in CALLS:
        args, kwargs = _given(call, flow)
        for place, value in [*enumerate(args), *kwargs.items()]:
            if type(value) in (int, float):
                yield call, place


@pytest.mark.parametrize("kind", ["tensor", "numpy"])
def test_numbers_may_be_0d_tensors_wherever_pytorch_takes_them(kind: str) -> None:
    def swapped(call: Call, place: Any, lib: Any) -> Any:
        args, kwargs = _given(call, lib)
        target: Any = args if isinstance(place, int) else kwargs
        value = target[place]
        wrapped = np.int64(value) if type(value) is int else np.float64(value)
        target[place] = lib.tensor(value) if kind == "tensor" else wrapped
        return args, kwargs

    refused, count = [], 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for call, place in numbers():
            args, kwargs = swapped(call, place, flow)
            try:
                call.declaration.function(*args, **kwargs)
                count += 1
            except Exception as error:
                args, kwargs = swapped(call, place, torch)
                try:
                    counterpart(torch, call.declaration)(*args, **kwargs)
                except Exception:
                    continue
                refused.append(f"{call}: {error}")
    assert count > 500
    # A tensor of bins is taken for their edges.
    assert not [text for text in refused if not text.startswith("histogram-")]


@pytest.mark.parametrize(
    "text",
    lines(
        """
        t.add(x, x, alpha=t.tensor(2.0))
        t.add(x, x, alpha=t.tensor(2.0, requires_grad=True))
        t.add(x, x, alpha=t.tensor([2.0]))
        t.sub(x, 1, alpha=np.float64(0.5))
        x.clamp(t.tensor(1.5), np.float32(3))
        t.nn.functional.leaky_relu(-x, t.tensor(0.5))
        t.full((2,), t.tensor(3.0))
        t.zeros(t.tensor(2), np.int64(3)).shape
        x.reshape(t.tensor(1), -1).shape
        x.expand(np.int32(3), -1).shape
        x.sum(axis=0, keepdims=True)
        t.autograd.grad(x.sum(), x, only_inputs=True)
        t.tensor([t.tensor(1.0), t.tensor(2.0)])
        t.tensor([t.tensor(1.0, requires_grad=True), 2.0])
        t.tensor([[t.tensor(1), 2.0], [3.0, 4.0]])
        t.tensor([t.tensor([1.0], dtype=t.float64)]).dtype == t.float64
        x.to("cpu", non_blocking=True)
        x.clone(memory_format=t.contiguous_format)
        x.contiguous(memory_format=t.contiguous_format)
        x.float(memory_format=t.preserve_format)
        t.empty_like(x, memory_format=t.preserve_format).shape
        t.rand_like(x, memory_format=t.preserve_format).shape
        t.empty(2, 3, 4, 5, memory_format=t.channels_last).shape
        t.empty(2, 3, memory_format=t.contiguous_format, requires_grad=True).requires_grad
        t.empty(2, 3, memory_format="any")
        """
    ),
)
def test_arguments_in_other_spellings(text: str) -> None:
    agree(text, x=x_)


def test_memory_formats_are_taken_where_pytorch_takes_them() -> None:
    taken = {
        schema.name.partition("::")[2]
        for schema in torch._C._jit_get_all_schemas()
        if any(a.name == "memory_format" for a in schema.arguments)
    }
    found = {
        (home, name): inspect.signature(function).parameters
        for home in (flow, flow.Tensor)
        for name in taken - {"to", "_foreach_clone"}
        if (function := getattr(home, name, None)) is not None
    }
    assert len(found) > 10
    assert not [name for (_, name), given in found.items() if "memory_format" not in given]


def test_tensors_of_one_element_are_numbers_in_the_data_of_a_tensor() -> None:
    for lib in (torch, flow):
        assert lib.tensor([lib.tensor([1.0])]).shape == (1,)
        assert lib.tensor([[lib.tensor([[2.0]])], [3.0]]).tolist() == [[2.0], [3.0]]
    assert flow.tensor([flow.tensor([1, 2]), flow.tensor([3, 4])]).tolist() == [[1, 2], [3, 4]]


def test_only_inputs_is_always_true() -> None:
    x = flow.ones(1, requires_grad=True)
    with pytest.warns(FutureWarning, match="only_inputs"):
        flow.autograd.grad(x.sum(), x, only_inputs=False)


@pytest.mark.parametrize(
    "text, warns",
    [
        ("x[k]", True),
        ("x[t.tensor([1, 0], dtype=t.uint8)]", True),
        ("t.where(k, x, x * 2)", True),
        ("x.masked_fill(k, 9.0)", False),
        ("x.masked_select(k)", False),
        ("x.masked_scatter(k, x)", False),
        ("t.where(k)", False),
        ("~k", False),
        ("1 - k", False),
    ],
)
def test_masks_of_bytes(text: str, warns: bool) -> None:
    names = {
        "x": lambda lib: lib.tensor([[1.0, 2.0], [3.0, 4.0]]),
        "k": lambda lib: lib.tensor([[1, 0], [0, 1]], dtype=lib.uint8),
    }
    agree(text, **names)
    if warns:
        with pytest.warns(UserWarning, match="uint8") as caught:
            eval(text, {"t": flow, **{k: v(flow) for k, v in names.items()}})
        assert caught[0].filename == "<string>"  # it speaks of the caller's line


def test_a_mask_of_bytes_writes() -> None:
    x = flow.zeros(3)
    with pytest.warns(UserWarning, match="uint8"):
        x[flow.tensor([1, 0, 1], dtype=flow.uint8)] = 2.0
    assert x.tolist() == [2.0, 0.0, 2.0]


# --- Functions ------------------------------------------------------------------------------------

BUFFER = bytearray(range(16))


@pytest.mark.parametrize(
    "text",
    lines(
        """
        t.frombuffer(b, dtype=t.int32)
        t.frombuffer(b, dtype=t.int32, offset=4, count=2)
        t.frombuffer(b, dtype=t.int32, offset=1, count=3)
        t.frombuffer(b, dtype=t.int32, offset=3)
        t.frombuffer(b, dtype=t.int32, count=5)
        t.frombuffer(b, dtype=t.int32, offset=16)
        t.frombuffer(b, dtype=t.int32, offset=-1)
        t.frombuffer(b, dtype=t.int32, count=0)
        t.frombuffer(bytearray(), dtype=t.int32)
        t.frombuffer(bytes(8), dtype=t.float32)
        t.frombuffer(5, dtype=t.float32)
        t.frombuffer(b)
        t.frombuffer(b, dtype=t.float32, requires_grad=True)
        t.frombuffer(b, dtype=t.int32, requires_grad=True)
        t.asarray(b)
        t.asarray(b, dtype=t.int32)
        t.asarray(b, dtype=t.int32, copy=True)
        t.asarray([1.0], copy=False)
        t.asarray([1.0, 2.0], dtype=t.float64)
        t.asarray(x)
        t.asarray(x, requires_grad=True)
        t.asarray(x, requires_grad=False)
        t.asarray(x * 2)
        t.asarray(x * 2, requires_grad=True)
        t.asarray(x, dtype=t.float64, copy=False)
        t.asarray(x.detach(), dtype=t.float64, requires_grad=True)
        t.asarray(np.float64(2))
        t.asarray(np.float64(2), copy=False)
        t.asarray(np.ones(2), dtype=t.float32, copy=False)
        t.asarray(np.ones(2), dtype=t.float32)
        t.asarray(np.ones(2), copy=False)
        t.asarray(3)
        t.asarray([1], requires_grad=True)
        t.asarray("ab")
        t.empty_strided((2, 3), (1, 2)).stride()
        t.empty_strided((2, 3), (1, 2), dtype=t.int8, requires_grad=False).dtype == t.int8
        t.empty_strided((2,), (1, 1))
        t.empty_strided((2,), (-1,))
        t.empty_strided((2, 0), (1, 1)).shape
        t.empty_strided((2, 3), (0, 1)).fill_(1.0).sum()
        t.range(1, 3)
        t.range(1, 2, 0.25)
        t.range(3, 1, -1, dtype=t.int64)
        t.range(3, 1)
        t.range(2)
        t.scalar_tensor(3)
        t.scalar_tensor(3, dtype=t.int32)
        t.scalar_tensor(t.tensor(2.0))
        t.nonzero_static(t.tensor([[0, 1], [2, 0]]), size=1)
        t.nonzero_static(t.tensor([0, 1, 2]), size=4, fill_value=7)
        t.tensor([0, 1, 2]).nonzero_static(size=3)
        t.norm_except_dim(t.arange(12.0).reshape(2, 3, 2), 2, 1)
        t.norm_except_dim(t.arange(4.0), 2, 0)
        t.norm_except_dim(t.ones(2, 2), 2, -1)
        t.unsafe_split_with_sizes(t.arange(5), (2, 3))
        t.arange(6).reshape(2, 3).unsafe_split_with_sizes([1, 2], dim=1)
        t.broadcast_shapes((2, 1), (3,), 1)
        t.broadcast_shapes((2,), (3,))
        t.broadcast_shapes()
        t.zeros(3, 3).fill_diagonal_(5)
        t.zeros(2, 4).fill_diagonal_(5)
        t.zeros(7, 3).fill_diagonal_(5, wrap=True)
        t.zeros(12, 3).fill_diagonal_(5, wrap=True)
        t.zeros(4, 3).fill_diagonal_(5, True)
        t.zeros(3, 3, 3).fill_diagonal_(5)
        t.zeros(4, 4).t()[1:, 1:].fill_diagonal_(2)
        t.zeros(3).fill_diagonal_(5)
        t.zeros(2, 3, 3).fill_diagonal_(5)
        t.zeros(0, 3).fill_diagonal_(5)
        issubclass(t.linalg.LinAlgError, RuntimeError)
        """
    ),
)
def test_functions(text: str) -> None:
    agree(text, b=lambda lib: bytearray(BUFFER), x=x_)


def test_asarray_and_frombuffer_share_memory() -> None:
    array = np.zeros(2)
    shared = flow.asarray(array)
    copied = flow.asarray(array, copy=True)
    array[0] = 1
    assert shared.tolist() == [1.0, 0.0] and copied.tolist() == [0.0, 0.0]
    data = bytearray(8)
    numbers = flow.frombuffer(data, dtype=flow.int32)
    data[4] = 7
    assert numbers.tolist() == [0, 7]
    x = flow.ones(2)
    assert flow.asarray(x) is x and flow.asarray(x, copy=True) is not x
    theirs = torch.zeros(2)
    flow.asarray(theirs)[0] = 3.0
    assert theirs.tolist() == [3.0, 0.0]


def test_the_diagonal_is_filled_in_the_graph() -> None:
    def run(lib: Any) -> Any:
        x = lib.ones(4, 2, requires_grad=True)
        y = (x * 3).fill_diagonal_(0.0, wrap=True)
        return lib.autograd.grad((y * y).sum(), x)

    assert plain(run(flow)) == plain(run(torch))


def test_functions_are_compiled() -> None:
    def step(x: flow.Tensor) -> Any:
        square = (x @ x.t()).fill_diagonal_(2.0)
        first, second = flow.unsafe_split_with_sizes(x, (1, 1))
        rows = flow.vmap(flow.dot)(x, x)
        return (
            square,
            first * 2,
            flow.norm_except_dim(x),
            x.sum(axis=0, keepdims=True),
            rows,
            second,
        )

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        compiled = flow.compile(step)
        for k in range(3):
            x = flow.arange(6.0).reshape(2, 3) + k
            assert plain(compiled(x)) == plain(step(x))


def test_fork_rng() -> None:
    flow.manual_seed(0)
    with flow.random.fork_rng():
        inside = flow.rand(3)
    assert flow.rand(3).tolist() == inside.tolist()
    with flow.random.fork_rng(enabled=False):
        drawn = flow.rand(3)
    assert flow.rand(3).tolist() != drawn.tolist()


# --- torch.func -----------------------------------------------------------------------------------


def data(lib: Any) -> Any:
    values = [[0.5, -1.0, 2.0], [1.5, 0.25, -0.75]]
    x = lib.tensor(values, dtype=lib.float64)
    return SimpleNamespace(
        x=x,
        v=x[0],
        w={"a": x.t() + 1, "b": [x[1] * 2]},
        f=lambda x: (x.sin() * x.flip(0)).sum(),
        g=lambda x: {"s": x.exp(), "p": (x.prod().reshape(1), x * 2)},
        h=lambda w, x: ((x @ w["a"]).tanh() * w["b"][0][:2]).sum(),
        two=lambda x, y: (x * y.cos()).sum(),
    )


@pytest.mark.parametrize(
    "text",
    lines(
        """
        t.func.grad(d.f)(d.v)
        t.func.grad(lambda x: t.func.grad(d.f)(x).cos().sum())(d.v)
        t.func.grad(d.two, argnums=1)(d.v, d.v + 1)
        t.func.grad(d.two, argnums=(0, 1))(d.v, d.v + 1)
        t.func.grad(d.two, argnums=-1)(d.v, d.v + 1)
        t.func.grad(d.two, argnums=2)(d.v, d.v)
        t.func.grad(lambda x: (d.f(x), x * 2), has_aux=True)(d.v)
        t.func.grad_and_value(d.f)(d.v)
        t.func.grad_and_value(lambda x: (d.f(x), x * 2), has_aux=True)(d.v)
        t.func.grad(d.h)(d.w, d.x)["a"]
        t.func.grad(d.h)(d.w, d.x)["b"]
        t.func.grad(lambda x: x)(d.v)
        t.func.grad(lambda x: 3.0)(d.v)
        t.func.grad(d.f)(d.v.long())
        t.func.grad(lambda x: t.ones((), dtype=t.float64))(d.v)
        t.func.vjp(d.f, d.v)[0]
        t.func.vjp(d.f, d.v)[1](t.tensor(2.0, dtype=t.float64))
        t.func.vjp(lambda x, y: x * y, d.v, d.v + 1)[1](d.v)
        t.func.vjp(lambda x: (x * 2, x[0]), d.v, has_aux=True)[2]
        t.func.jvp(d.f, (d.v,), (d.v + 1,))
        t.func.jvp(lambda x, y: x * y.exp(), (d.v, d.v), (d.v, d.v + 1))
        t.func.jvp(lambda x: (x * 2, x[0]), (d.v,), (d.v,), has_aux=True)
        t.func.jacrev(lambda x: x * x.sum())(d.v)
        t.func.jacfwd(lambda x: x * x.sum())(d.v)
        t.func.jacrev(d.two, argnums=(0, 1))(d.v, d.v)
        t.func.jacrev(d.g)(d.v)["p"]
        t.func.jacrev(lambda x: (x * x, x.sum()), has_aux=True)(d.v)
        t.func.hessian(d.f)(d.v)
        t.func.hessian(d.two, argnums=1)(d.v, d.v)
        t.vmap(t.dot)(d.x, d.x)
        t.vmap(t.dot, in_dims=(0, None))(d.x, d.v)
        t.vmap(t.dot, in_dims=1)(d.x, d.x)
        t.vmap(lambda x: x * 2, out_dims=1)(d.x)
        t.vmap(lambda x: (x, x.sum()), out_dims=(1, 0))(d.x)
        t.vmap(lambda w, x: x @ w["a"] + w["b"][0][:2], in_dims=(None, 0))(d.w, d.x)
        t.vmap(lambda w, x: w["a"].sum() + x.sum(), in_dims=({"a": 1, "b": [None]}, 0))(d.w, d.x)
        t.vmap(t.vmap(t.mul, in_dims=(0, None)), in_dims=(None, 0))(d.v, d.v)
        t.vmap(t.func.grad(d.f))(d.x)
        t.func.vmap(t.func.jacrev(lambda x: x * x))(d.x)
        t.vmap(lambda x, scale: x * scale, in_dims=(0, None))(d.x, 3.0)
        t.vmap(t.dot)(d.x, d.v)
        t.vmap(t.dot, in_dims=2)(d.x, d.x)
        t.vmap(lambda x: 3)(d.x)
        t.vmap(lambda x: x + t.rand(3))(d.x)
        t.vmap(lambda x: x, randomness="some")(d.x)
        t.vmap(t.rand_like, randomness="different")(d.x).shape
        """
    ),
)
def test_functions_of_functions(text: str) -> None:
    ours, theirs = outcome(flow, text, d=data), outcome(torch, text, d=data)
    if isinstance(theirs, Exception):
        assert isinstance(ours, Exception), text
        assert isinstance(ours, flow.errors.FlowError), repr(ours)
        return
    assert not isinstance(ours, Exception), f"{text}: {ours!r}"
    np.testing.assert_equal(str(ours)[:1], str(theirs)[:1])
    _close(ours, theirs)


def _close(ours: Any, theirs: Any) -> None:
    if isinstance(ours, list):
        assert len(ours) == len(theirs)
        for a, b in zip(ours, theirs, strict=True):
            _close(a, b)
    elif isinstance(ours, tuple):
        np.testing.assert_allclose(ours[0], theirs[0], rtol=1e-12, atol=1e-12)
        assert ours[1:] == theirs[1:]  # shape, dtype, whether it requires a gradient
    else:
        assert ours == theirs


def test_the_same_random_numbers_for_each_entry() -> None:
    drawn = flow.vmap(flow.rand_like, randomness="same")(flow.ones(2, 3))
    assert drawn[0].tolist() == drawn[1].tolist()
    drawn = flow.vmap(flow.rand_like, randomness="different")(flow.ones(2, 3))
    assert drawn[0].tolist() != drawn[1].tolist()


def test_gradients_of_what_a_function_closes_over() -> None:
    w = flow.tensor(3.0, requires_grad=True)
    found = flow.func.grad(lambda x: w * x * x)(flow.tensor(2.0))
    found.backward()
    assert w.grad.item() == 4.0


def test_functional_call() -> None:
    def run(lib: Any) -> Any:
        net = lib.nn.Sequential(lib.nn.Linear(2, 2), lib.nn.BatchNorm1d(2)).double()
        for x in net.parameters():
            x.data.fill_(0.5)
        given = {n: (x.detach() * 2).requires_grad_() for n, x in net.named_parameters()}
        x = lib.tensor([[1.0, 2.0], [3.0, 5.0]], dtype=lib.float64)
        y = lib.func.functional_call(net, given, (x,))
        grads = lib.autograd.grad((y * y).sum(), list(given.values()))
        return [y, *grads, *net.parameters(), net[1].running_mean]

    _close(plain(run(flow)), plain(run(torch)))


def test_functional_call_with_wrong_names() -> None:
    layer = flow.nn.Linear(1, 1)
    before = layer.weight
    with pytest.raises(flow.errors.StateDictError, match="wight"):
        given = {"wight": flow.ones(1, 1)}
        flow.func.functional_call(layer, given, flow.ones(1), strict=True)
    with pytest.raises(RuntimeError, match="bias"):
        flow.func.functional_call(layer, {"weight": flow.ones(1, 1)}, flow.ones(1), strict=True)
    with pytest.raises(ValueError, match="weight"):
        flow.func.functional_call(layer, [{"weight": before}, {"weight": before}], flow.ones(1))
    with pytest.raises(flow.errors.FlowError):
        flow.func.functional_call(layer, {"weight": flow.ones(1, 2)}, flow.ones(1))
    assert layer.weight is before


def test_shared_parameters_in_a_functional_call() -> None:
    net = flow.nn.Sequential(flow.nn.Linear(1, 1, bias=False), flow.nn.Linear(1, 1, bias=False))
    net[1].weight = net[0].weight
    given = {"0.weight": flow.tensor([[3.0]])}
    assert flow.func.functional_call(net, given, flow.ones(1)).item() == 9.0
    own = net[0].weight.item()
    found = flow.func.functional_call(net, given, flow.ones(1), tie_weights=False).item()
    assert found == pytest.approx(3.0 * own)


def test_stacked_modules() -> None:
    nets = [flow.nn.Linear(2, 1) for _ in range(3)]
    parameters, buffers = flow.func.stack_module_state(nets)
    x = flow.ones(2)
    found = flow.vmap(lambda p, b: flow.func.functional_call(nets[0], (p, b), (x,)), in_dims=(0, 0))
    np.testing.assert_allclose(
        found(parameters, buffers or {"none": flow.ones(3)}).detach().numpy()
        if buffers
        else flow.vmap(lambda p: flow.func.functional_call(nets[0], p, (x,)))(parameters)
        .detach()
        .numpy(),
        [net(x).detach().numpy() for net in nets],
        rtol=1e-6,
    )


# --- Modules, jit, mixed precision ----------------------------------------------------------------


def test_data_parallel() -> None:
    inner = flow.nn.Linear(2, 1)
    net = flow.nn.DataParallel(inner, device_ids=[0, 1])
    assert net.module is inner and list(net.state_dict()) == ["module.weight", "module.bias"]
    x = flow.ones(3, 2)
    assert net(x).tolist() == inner(x).tolist()
    assert flow.nn.parallel.data_parallel(inner, x).tolist() == inner(x).tolist()
    assert flow.nn.parallel.DataParallel is flow.nn.DataParallel


def test_jit_returns_what_it_is_given() -> None:
    @flow.jit.script
    def double(x: flow.Tensor) -> flow.Tensor:
        return x * 2

    @flow.jit.ignore(drop=True)
    def dropped() -> int:
        return 3

    class Net(flow.jit.ScriptModule):
        @flow.jit.script_method
        def forward(self, x: flow.Tensor) -> flow.Tensor:
            return double(x)

        @flow.jit.export
        def other(self) -> int:
            return dropped()

    net = Net()
    assert isinstance(net, flow.nn.Module) and net.other() == 3
    assert flow.jit.trace(net, flow.ones(1)) is net and flow.jit.script(net) is net
    assert flow.jit.annotate(list[int], [1]) == [1] and not flow.jit.is_scripting()
    assert net(flow.ones(1)).item() == 2 and flow.jit.isinstance([1], list)
    with pytest.raises(RuntimeError, match="flow.save"):
        flow.jit.save(net, "file")


def test_autocast_rounds_the_operands_of_products() -> None:
    x = flow.tensor([[1.0001, 0.33333]], requires_grad=True)
    w = flow.tensor([[1.0], [3.0]])
    exact = (x @ w).item()
    with flow.autocast("cpu"):
        assert (x @ w).item() == exact
    with flow.autocast(device_type="cpu", dtype=flow.float16, enabled=False):
        assert (x @ w).item() == exact and not flow.is_autocast_enabled("cpu")
    with flow.amp.autocast("cpu", dtype=flow.float16):
        y = x @ w
        assert flow.is_autocast_enabled("cpu") and flow.is_autocast_cpu_enabled()
        assert flow.get_autocast_dtype("cpu") == flow.float16
        linear = flow.nn.functional.linear(x, w.t())
        assert (x * 1).tolist() == x.tolist()
    wanted = (x.half().double() @ w.half().double()).half().float()
    assert y.dtype == flow.float32 and y.tolist() == linear.tolist() == wanted.tolist()
    (found,) = flow.autograd.grad(y.sum(), x, create_graph=False)
    assert found.tolist() == [[1.0, 3.0]]
    assert (x @ w).item() == exact and not flow.is_autocast_enabled("cpu")

    @flow.autocast("cpu", dtype=flow.float16)
    def product() -> flow.Tensor:
        return x @ w

    assert product().tolist() == y.tolist()
    with pytest.raises(flow.errors.ArgumentError, match="device_type"):
        flow.autocast("tpu")


@pytest.mark.skipif(flow.cuda.is_available(), reason="there is a CUDA device")
def test_mixed_precision_for_cuda_is_off_without_it() -> None:
    with pytest.warns(UserWarning, match="no CUDA device"), flow.cuda.amp.autocast():
        assert not flow.is_autocast_enabled()
    with pytest.warns(UserWarning, match="disabled"):
        scaler = flow.cuda.amp.GradScaler()
    w = flow.ones(1, requires_grad=True)
    optimizer = flow.optim.SGD([w], lr=0.5)
    loss = w.sum()
    assert scaler.scale(loss) is loss and not scaler.is_enabled() and scaler.get_scale() == 1.0
    loss.backward()
    scaler.unscale_(optimizer)
    scaler.step(optimizer)
    scaler.update()
    assert w.item() == 0.5 and scaler.state_dict() == {}
    scaler.load_state_dict({})


def scaled_training(lib: Any, **options: Any) -> Any:
    w = lib.tensor([1.0, 2.0], requires_grad=True)
    optimizer = lib.optim.SGD([w], lr=0.1)
    scaler = lib.amp.GradScaler("cpu", init_scale=8.0, growth_interval=2, **options)
    seen = []
    for step in range(6):
        optimizer.zero_grad()
        loss = (w * w).sum() * (float("inf") if step == 3 else 1.0)
        scaled = scaler.scale([loss])[0]
        scaled.backward()
        if step % 2:
            scaler.unscale_(optimizer)
            seen.append(w.grad.tolist() if step != 3 else None)
        scaler.step(optimizer)
        scaler.update(32.0 if step == 4 else None)
        seen += [w.tolist(), scaler.get_scale(), scaler.state_dict()["_growth_tracker"]]
    return seen, scaler.state_dict()


def test_the_scaler_follows_pytorch() -> None:
    ours, theirs = scaled_training(flow), scaled_training(torch)
    assert ours[1] == theirs[1]
    for a, b in zip(ours[0], theirs[0], strict=True):
        assert a == pytest.approx(b)


def test_errors_of_the_scaler() -> None:
    w = flow.ones(1, requires_grad=True)
    optimizer, scaler = flow.optim.SGD([w], lr=0.5), flow.amp.GradScaler("cpu")
    with pytest.raises(RuntimeError, match="no gradient"):
        scaler.update()
    scaler.scale(w.sum()).backward()
    scaler.unscale_(optimizer)
    with pytest.raises(RuntimeError, match="twice"):
        scaler.unscale_(optimizer)
    scaler.step(optimizer)
    with pytest.raises(RuntimeError, match="twice"):
        scaler.step(optimizer)
    with pytest.raises(RuntimeError, match="update"):
        scaler.unscale_(optimizer)
    state = scaler.state_dict()
    other = flow.amp.GradScaler("cpu", init_scale=2.0)
    other.load_state_dict(state)
    assert other.get_scale() == 65536.0
    with pytest.raises(RuntimeError, match="empty"):
        other.load_state_dict({})
    with pytest.raises(ValueError, match="growth_factor"):
        flow.amp.GradScaler("cpu", growth_factor=0.5)


def test_custom_forward_casts_inside_autocast() -> None:
    class Double(flow.autograd.Function):
        @staticmethod
        @flow.amp.custom_fwd(device_type="cpu", cast_inputs=flow.float16)
        def forward(ctx: Any, x: flow.Tensor) -> flow.Tensor:
            return x * 2

        @staticmethod
        @flow.amp.custom_bwd(device_type="cpu")
        def backward(ctx: Any, dy: flow.Tensor) -> flow.Tensor:
            return dy * 2

    assert Double.apply(flow.ones(1)).dtype == flow.float32
    with flow.autocast("cpu", dtype=flow.float16):
        assert Double.apply(flow.ones(1)).dtype == flow.float16
