"""The facts that a bug report needs: `python -m oneflow_lite.info`, or `print(flow.info())`.

Libraries are asked in processes of their own, so that a broken library cannot end this process.
Paths begin with ~ instead of the home folder, and the user's name is left out.
"""

from __future__ import annotations

import getpass
import importlib.util
import os
import platform
import re
import subprocess
import sys
import sysconfig
from collections.abc import Callable, Iterator
from importlib import metadata
from pathlib import Path
from types import ModuleType

import numpy as np

from oneflow_lite.arrays.dtype import get_default_dtype
from oneflow_lite.ops import eager_loops
from oneflow_lite.ops.exposure import expose

expose(globals())

# Environment variables that the package reads, or that libraries under it read; * is any ending.
ENVIRONMENT = """
    ONEFLOW_LITE_* TORCH_DISTRIBUTED_DEBUG TORCH_HOME XDG_CACHE_HOME OMP_* GOMP_* KMP_* MALLOC_*
    GLIBC_TUNABLES PMI_RANK PMI_SIZE PMIX_RANK OMPI_COMM_WORLD_* MPI_LOCAL* SLURM_PROCID
    SLURM_NTASKS SLURM_LOCALID RANK WORLD_SIZE LOCAL_RANK LOCAL_WORLD_SIZE OPENBLAS_* MKL_* BLIS_*
    CI DISPLAY WAYLAND_DISPLAY PYTEST_CURRENT_TEST PYTEST_VERSION VECLIB_* NUMBA_*
    CUDA_VISIBLE_DEVICES CUDA_PATH CUPY_* NCCL_* PYTHON_GIL PYTHONOPTIMIZE
""".split()
_SECONDS = 60  # that a library may take to answer
# By library the expression that its process evaluates after the import.
_PROBES = {
    "scipy": "scipy.__version__",
    "safetensors": "safetensors.__version__",
    "attrs": "__import__('importlib.metadata').metadata.version('attrs')",
    "ml_dtypes": "ml_dtypes.__version__",
    "numba": "f'{numba.__version__}, llvmlite {__import__(\"llvmlite\").__version__}'",
    "cupy": "_cuda(cupy)",
    "cudnn": "f'frontend {cudnn.__version__}, cuDNN {cudnn.backend_version_string()}'",
    "mpi4py": "_mpi(mpi4py)",
    "onnx": "onnx.__version__",
    "onnxruntime": "onnxruntime.__version__",
}
_MODULES = {"attrs": "attr"}  # where the package is called otherwise
_HELPERS = """
def _cuda(cupy):
    runtime = cupy.cuda.runtime
    text = f"{cupy.__version__}, CUDA runtime {_number(runtime.runtimeGetVersion())}"
    try:
        text += f", driver for CUDA {_number(runtime.driverGetVersion())}"
        for i in range(runtime.getDeviceCount()):
            found = runtime.getDeviceProperties(i)
            memory = found["totalGlobalMem"] / 2**30
            text += f"; device {i}: {found['name'].decode()}, {memory:.0f} GiB"
    except Exception as error:
        text += f"; no device ({type(error).__name__}: {error})"
    return text

def _number(version):
    return f"{version // 1000}.{version % 1000 // 10}"

def _mpi(mpi4py):
    mpi4py.rc.initialize = False
    from mpi4py import MPI
    lines = MPI.Get_library_version().split("\\0")[0].split("\\n")
    words = [" ".join(line.split()) for line in lines if line.strip()]
    return f"{mpi4py.__version__}, {', '.join(words[:2])}"
"""


def info() -> str:
    """Return the facts for a bug report, a fact in each line.

    Versions, the interpreter, the machine, the environment variables that matter, the cache and
    the settings of this process. Missing and broken libraries are named. It takes a few
    seconds, as libraries are imported in other processes.
    """
    lines = []
    for name, find in _facts():
        try:
            text = find()
        except Exception as error:
            text = f"not known ({type(error).__name__}: {error})"
        lines.append(f"{name}: {without_names(text)}")
    return "\n".join(lines)


def _facts() -> Iterator[tuple[str, Callable[[], str]]]:
    package = sys.modules["oneflow_lite"]  # which names this module, so no import names it
    yield "oneflow_lite", lambda: f"{package.__version__} at {Path(__file__).parent}"
    yield "Python", _python
    yield "system", platform.platform
    yield "CPU", _cpu
    yield "numpy", lambda: f"{np.__version__}, {_blas()}"
    for name in _PROBES:
        yield name, lambda name=name: _asked(name)  # type: ignore[misc]
    yield "torch", lambda: _installed("torch")  # its import is slow, and only tests use it
    yield "default dtype", lambda: get_default_dtype().name
    yield "jit", _jit
    yield "cache", _cache
    for name in sorted(os.environ):
        if any(re.fullmatch(known.replace("*", ".*"), name) for known in ENVIRONMENT):
            yield name, lambda name=name: os.environ[name]  # type: ignore[misc]


def without_names(text: str) -> str:
    """Return a text with ~ for the home folder, and <user> for a folder of the user's name."""
    home = str(Path.home())
    if len(home) > 1:
        text = re.sub(rf"{re.escape(home)}(?![\w.-])", "~", text)
    try:
        user = getpass.getuser()
    except (OSError, KeyError, ImportError):  # a user that the system does not know
        return text
    return re.sub(rf"(?<=[/\\]){re.escape(user)}(?=[/\\\s]|$)", "<user>", text)


def _python() -> str:
    text = f"{platform.python_version()} ({platform.python_implementation()})"
    if sysconfig.get_config_var("Py_GIL_DISABLED"):
        on = getattr(sys, "_is_gil_enabled", lambda: True)()
        return f"{text}, free-threaded, the GIL is {'on' if on else 'off'}"
    return f"{text}, with the GIL"


def _cpu() -> str:
    model = platform.processor()
    listing = Path("/proc/cpuinfo")
    if listing.exists():
        match = re.search(r"^model name\s*:\s*(.*)$", listing.read_text(), re.MULTILINE)
        model = match[1] if match else model
    allowed = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    text = f"{model or 'unknown'} ({platform.machine()}), {os.cpu_count()} cores"
    text += f", {allowed} for this process" if allowed != os.cpu_count() else ""
    if "SC_PHYS_PAGES" in os.sysconf_names:
        memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
        text += f", {memory / 2**30:.1f} GiB of memory"
    return text


def _blas() -> str:
    config = np.show_config(mode="dicts")
    blas = config["Build Dependencies"]["blas"]
    return f"BLAS {blas['name']} {blas['version']}, {_blas_threads()}"


def _blas_threads() -> str:
    """Ask OpenBLAS, as it comes with NumPy's wheels, how many threads it has."""
    import ctypes

    folder = Path(np.__file__).parent
    for libraries in (folder.parent / "numpy.libs", folder / ".dylibs"):
        for file in libraries.glob("*openblas*"):
            library = ctypes.CDLL(str(file))  # it is loaded already
            for name in ("scipy_openblas_get_num_threads64_", "scipy_openblas_get_num_threads"):
                if hasattr(library, name):
                    return f"threads: {getattr(library, name)()}"
    return "threads not known"


def _installed(name: str) -> str:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return "not installed"


def _asked(name: str) -> str:
    """Return the answer of a library that another process imports."""
    module = _MODULES.get(name, name)
    try:
        if importlib.util.find_spec(module) is None:
            return "not installed"
    except (ImportError, ValueError):  # another object stands under that name in sys.modules
        return "not installed"
    code = f"{_HELPERS}\nimport {module}\nprint({_PROBES[name]})"
    path = os.pathsep.join(part or os.getcwd() for part in sys.path)
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code],
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        timeout=_SECONDS,
    )
    if done.returncode == 0:
        return done.stdout.strip()
    said = done.stderr.strip().splitlines()
    why = said[-1] if said else f"its process ended with {done.returncode}"
    return f"cannot be imported ({why})"


def _jit() -> str:
    if not eager_loops.has_numba():
        return "off: numba is not installed"
    return "on" if eager_loops.enabled else "off, by use_jit(False)"


def _cache() -> str:
    folder = eager_loops.cache_folder()
    if folder is None:
        return "none, as ONEFLOW_LITE_CACHE is empty"
    if not folder.exists():
        return f"{folder}, not there yet"
    sizes = [path.stat().st_size for path in folder.rglob("*") if path.is_file()]
    return f"{folder}, {len(sizes)} files, {sum(sizes) / 2**20:.1f} MiB"


class _Callable(ModuleType):
    """Makes the module callable: once imported, it stands where the function `flow.info` was."""

    def __call__(self) -> str:
        return info()


sys.modules[__name__].__class__ = _Callable

if __name__ == "__main__":
    print(info())
