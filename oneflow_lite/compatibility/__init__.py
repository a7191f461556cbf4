"""Names of older PyTorch scripts, and of what this library has no use for.

Nothing here is imported before somebody asks for a name that is not there: `OLD` in `ops/homes.py`
says which file has it. A name that is nowhere raises AttributeError with the nearest that exists.
It imports `nn`, `profiler`, functors and the rooms below, and `oneflow_lite` itself. `mock_torch`
uses it.
"""

from __future__ import annotations

import difflib
import sys

from oneflow_lite.ops import exposure

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


def absent(module: str, name: str) -> str:
    """Return the text of the error for a name that is not there, with the nearest substitute."""
    text = f"module {module!r} has no attribute {name!r}"
    if name.startswith("_") and name not in HINTS:
        return text
    place = exposure.path_of(module)
    hint = HINTS.get(f"{place}.{name}".lstrip("."))
    if hint is None:
        known = [each for each in dir(sys.modules.get(module)) if not each.startswith("_")]
        known += exposure.old(place)
        near = difflib.get_close_matches(name, known, 1, 0.75)
        hint = f"did you mean {near[0]!r}?" if near else None
    return text if hint is None else f"{text}; {hint}"
