"""Names of older PyTorch scripts, and of what this library has no use for.

Nothing here is imported before somebody asks for a name that is not there: the `__getattr__` of the
modules and the names of Tensor end in `find`, which looks into the tables below. A name in none of
them raises AttributeError with the nearest name that exists.
"""

from __future__ import annotations

import difflib
import importlib
import sys
from typing import Any

_TYPED = """
    BFloat16Tensor BoolTensor ByteTensor CharTensor ComplexDoubleTensor ComplexFloatTensor
    DoubleTensor FloatTensor HalfTensor IntTensor LongTensor ShortTensor
"""
# Per module: the file of this package that has the name. A file of the name itself is a submodule.
NAMES = {
    "": {
        "tensors": f"""
            {_TYPED} {_TYPED.replace("Tensor", "Storage")} Storage TypedStorage UntypedStorage
            addmv_ detach detach_ embedding_bag is_storage typename
        """,
        "settings": """
            are_deterministic_algorithms_enabled get_deterministic_debug_mode
            get_float32_matmul_precision get_num_interop_threads get_num_threads
            is_deterministic_algorithms_warn_only_enabled set_default_tensor_type
            set_deterministic_debug_mode set_float32_matmul_precision set_flush_denormal
            set_num_interop_threads set_num_threads set_warn_always is_warn_always_enabled
            use_deterministic_algorithms
        """,
        "amp": """
            autocast get_autocast_cpu_dtype get_autocast_dtype get_autocast_gpu_dtype
            is_autocast_cpu_enabled is_autocast_enabled GradScaler clear_autocast_cache
        """,
        "cuda": "Event Stream",
    },
    "cuda": {
        "cuda": """
            CudaError Event OutOfMemoryError Stream current_stream default_stream device device_of
            empty_cache get_arch_list get_device_capability get_device_name get_device_properties
            get_rng_state get_rng_state_all has_half init initial_seed ipc_collect
            is_bf16_supported is_initialized manual_seed manual_seed_all max_memory_allocated
            max_memory_cached max_memory_reserved mem_get_info memory_allocated memory_cached
            memory_reserved memory_stats memory_summary reset_accumulated_memory_stats
            reset_max_memory_allocated reset_max_memory_cached reset_peak_memory_stats seed
            seed_all set_device set_rng_state set_rng_state_all set_stream stream
        """,
        "cuda_tensors": _TYPED,
    },
    "autograd": {"tensors": "Variable"},
    "nn": {"parallel": "DataParallel", ".compiler.graph": "Graph"},
    "nn.parallel": {"parallel": "DataParallel data_parallel"},
    "nn.modules": {"parallel": "DataParallel"},
    "distributed.checkpoint": {
        ".files.sharded_files": "FileSystemReader FileSystemWriter load remove_old save saved"
    },
    "distributed": {".nn.parallel.reducer": "GradBucket"},
    "distributed.optim": {".optim.zero": "ZeroRedundancyOptimizer"},
}
# Submodules that are files of this package, or other modules of the library.
MODULES = {
    "": """
        accelerator amp backends futures=.futures jit mps serialization=.files.serialization
        storage=.tensors.storage version xpu
    """,
    "cuda": "amp=cuda_amp random=cuda memory=cuda streams=cuda",
    "autograd": """
        anomaly_mode=.autograd.engine.anomaly grad_mode=.tensors.mode profiler=autograd_profiler
        variable=tensors
    """,
    "nn": "parallel=.nn.parallel",
    "nn.modules": """
        container=.nn.containers module=.nn.modules.module
        batchnorm=.nn.modules.normalization instancenorm=.nn.modules.normalization
        sparse=.nn.modules.embedding
    """,
    "utils": "model_zoo",
}
ELSEWHERE = {"multiprocessing": "multiprocessing"}
# What a script that asks for an absent name is looking for.
HINTS = {
    "hub": "build the module in Python and read its weights with flow.load",
    "utils.tensorboard": "write numbers with the csv module, or install tensorboardX",
    "export": "flow.compile and flow.static capture programs",
    "fx": "flow.compile and flow.static capture programs",
    "_dynamo": "flow.compile captures programs",
    "distributed.fsdp": "use nn.parallel.DistributedDataParallel and ZeroRedundancyOptimizer",
    "distributed.rpc": "use send and recv, or broadcast_object_list",
    "distributed.elastic": "start the processes with mpiexec",
    "distributed.launch": "start the processes with mpiexec",
    **dict.fromkeys(
        ["distributed.TCPStore", "distributed.FileStore", "distributed.HashStore"],
        "MPI knows who is there; use broadcast_object_list",
    ),
    "distributed.DeviceMesh": "flow.placement(type, ranks=[[0, 1], [2, 3]]) is a grid of ranks",
    "distributed.init_device_mesh": "flow.placement(type, ranks=[[0, 1], [2, 3]]) is a grid",
    "distributed.tensor": "tensor.to_global(placement, sbp) makes a tensor of several ranks",
    "distributed.split_group": "use new_group or new_subgroups",
    "distributed.rendezvous": "MPI knows who is there; call init_process_group()",
    "quantization": "there are no quantized dtypes",
    "ao": "there are no quantized dtypes",
    "nested": "pad the tensors, as nn.utils.rnn.pad_sequence does",
    "sparse_csr_tensor": "use flow.sparse_coo_tensor",
    "symeig": "use flow.linalg.eigh",
    "eig": "use flow.linalg.eig",
    "solve": "use flow.linalg.solve",
    "lstsq": "use flow.linalg.lstsq",
    "matrix_rank": "use flow.linalg.matrix_rank",
    "rfft": "use flow.fft.rfft",
    "ifft": "use flow.fft.ifft",
    "quantize_per_tensor": "there are no quantized dtypes",
}


def find(module: str, name: str) -> Any:
    """Return what an old name in a module of the library stands for.

    Raises
    ------
    AttributeError
        With the nearest substitute, when there is no such name.
    """
    place = module.removeprefix("oneflow_lite").lstrip(".")
    if not name.startswith("__"):
        for word in MODULES.get(place, "").split():
            old, _, home = word.partition("=")
            if old == name:
                home = home or old
                inside = f"oneflow_lite.compatibility.{home}"
                return importlib.import_module(
                    f"oneflow_lite{home}" if home.startswith(".") else inside
                )
        for home, names in NAMES.get(place, {}).items():
            if name in names.split():
                home = home if home.startswith(".") else f".compatibility.{home}"
                file = importlib.import_module(f"oneflow_lite{home}")
                return getattr(file, name)
        if not place and name in ELSEWHERE:
            return importlib.import_module(ELSEWHERE[name])
    raise AttributeError(absent(module, name), name=name)


def absent(module: str, name: str) -> str:
    """Return the text of the error for a name that is not there, with the nearest substitute."""
    text = f"module {module!r} has no attribute {name!r}"
    if name.startswith("_") and name not in HINTS:
        return text
    place = module.removeprefix("oneflow_lite").lstrip(".")
    hint = HINTS.get(f"{place}.{name}".lstrip("."))
    if hint is None:
        known = [each for each in dir(sys.modules.get(module)) if not each.startswith("_")]
        known += [word for names in NAMES.get(place, {}).values() for word in names.split()]
        near = difflib.get_close_matches(name, known, 1, 0.75)
        hint = f"did you mean {near[0]!r}?" if near else None
    return text if hint is None else f"{text}; {hint}"
