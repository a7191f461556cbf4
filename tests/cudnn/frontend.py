"""Graphs in the hands of NVIDIA's own frontend, without a device: a process reads and answers them.

Where cuDNN's library is installed, it makes the descriptors of an operation graph for an H100,
which it knows from a description, and refuses dimensions, dtypes and attributes that do not fit.
Where it is not, a library that only knows its version takes its place: the frontend then checks
names of tensors and attributes, dimensions and strides by itself.
"""

from __future__ import annotations

import importlib.util
import json
import os
import pickle
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from tests.strict_cupy.emulation import COMPILER

ROOT = Path(__file__).parents[2]
# What the libraries ask for before there is work to do.
_STUBS = {
    "libcuda.so.1": """
        int cuGetErrorString() { return 100; } int cuModuleGetFunction() { return 100; }
        int cuModuleLoadData() { return 100; } int cuModuleUnload() { return 100; }
        int cuTensorMapEncodeIm2col() { return 100; } int cuTensorMapEncodeTiled() { return 100; }
    """,
    "libcublasLt.so.12": "unsigned long cublasLtGetVersion() { return 120900; }",
    "libcudnn.so.9": "unsigned long cudnnGetVersion() { return 92800; }",
}
_H100 = """
    deviceVer 900, driverVer 13010, cudaDeviceId 0, totalGlobalMem 85000000000,
    multiProcessorCount 132, smCountOrigin 0, warpSize 32, regsPerBlock 65536,
    maxSharedMemoryPerBlock 49152, maxSharedMemoryPerBlockOptin 232448,
    oversizedSharedMemoryPerBlock 0, reservedSharedMemoryPerBlock 1024, maxRegistersPerSM 65536,
    maxCtasPerSM 32, maxThreadsPerBlock 1024, maxThreadsPerSM 2048, pciDeviceId 0, isTccDriver 0,
    supportCoopLaunch 1, smClockRateKHz 1980000, memClockRateKHz 2619000, memoryBusWidth 5120,
    l2CacheSize 52428800
"""


def installed() -> bool:
    """Return whether the frontend can be tried here."""
    return importlib.util.find_spec("cudnn") is not None and COMPILER is not None


def library_folder() -> Path | None:
    """Return the folder of cuDNN's library; None where it is not installed."""
    try:
        found = importlib.util.find_spec("nvidia.cudnn")
    except ModuleNotFoundError:
        return None
    folders = [] if found is None else list(found.submodule_search_locations or ())
    return next((Path(f, "lib") for f in folders if Path(f, "lib", "libcudnn.so.9").exists()), None)


def problems(keys: Sequence[Any], folder: Path) -> list[str]:
    """Return for the key of each plan what the frontend finds wrong with its graph."""
    found = library_folder()
    for name, source in _STUBS.items():
        if name != "libcudnn.so.9" or found is None:
            text = f'extern "C" {{ {source} }}'
            options = ["-x", "c++", "-", "-shared", "-fPIC", f"-Wl,-soname,{name}", "-o", name]
            subprocess.run([COMPILER, *options], cwd=folder, input=text, text=True, check=True)
    paths = [str(folder), *([str(found)] if found else [])]
    environment = os.environ | {
        "LD_LIBRARY_PATH": os.pathsep.join(paths),
        "PYTHONPATH": os.pathsep.join([str(ROOT), *sys.path]),
        "DESCRIBED": "1" if found else "",
    }
    command = [sys.executable, "-m", __name__]
    done = subprocess.run(
        command, cwd=ROOT, env=environment, input=pickle.dumps(keys), capture_output=True
    )
    assert done.returncode == 0, done.stderr.decode()[-3000:]
    answers: list[str] = json.loads(done.stdout.decode().splitlines()[-1])
    return answers


class _Enough(Exception):
    pass


def _answers(keys: Sequence[Any]) -> list[str]:
    import cudnn

    from oneflow_lite.ops import cudnn as ours

    described: dict[str, Any] = {"handle": cudnn.Handle(1, 0, 0)}
    if os.environ["DESCRIBED"]:
        numbers = [line.split() for line in _H100.split(",")]
        facts: dict[str, Any] = {name: int(number) for name, number in numbers}
        facts |= {"maxGridSize": [2**31 - 1, 65535, 65535], "maxBlockSize": [1024, 1024, 64]}
        facts["deviceName"] = "NVIDIA H100 80GB HBM3"
        described = {"device_property": cudnn.create_device_properties(json.dumps(facts))}

    class Graph(cudnn.pygraph):  # type: ignore[misc]
        def __init__(self, *, handle: Any, **kinds: Any) -> None:
            super().__init__(**described, **kinds)

        def build_operation_graph(self) -> None:
            if "device_property" in described:
                super().build_operation_graph()

        def create_execution_plans(self, modes: Any) -> None:
            raise _Enough

    names = {name: getattr(cudnn, name) for name in dir(cudnn) if name in _USED}
    ours.frontend = lambda: SimpleNamespace(**names, pygraph=Graph)  # type: ignore[assignment]
    answers = []
    for key in keys:
        try:
            ours._Plan(key, None)
        except _Enough:
            answers.append("")
        except Exception as error:
            answers.append(f"{key[0]}: {type(error).__name__}: {error}")
    return answers


_USED = "data_type norm_forward_phase heur_mode numerical_note".split()

if __name__ == "__main__":
    print(json.dumps(_answers(pickle.loads(sys.stdin.buffer.read()))))
