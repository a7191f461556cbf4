"""The table of PyTorch's names: each resolves, in PyTorch too, and does what its kind says."""

from __future__ import annotations

import importlib
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import pytest

import oneflow_lite as flow
from oneflow_lite.compatibility import find, homes, inert
from oneflow_lite.compatibility.names import NAMES
from oneflow_lite.compatibility.refusal import Refusal

PAGE = Path(__file__).resolve().parents[2] / "docs" / "pytorch_names.md"
HEAD = """# Names of PyTorch for the sake of other packages

Does a package that you run on this library ask for a rare name of PyTorch? Look it up here: the
page says whether the name works, does nothing, or raises, and what to use instead.

Packages that are built on PyTorch import names that they hardly use. A name that is neither here
nor in the [reference](reference/index.md) raises `AttributeError`. The table of the names is
`oneflow_lite/compatibility/names.py`; `python -m tests.compatibility.test_names` writes this page.
"""
REAL = "## Names that work\n\n| module | names |\n| --- | --- |"
INERT = """## Names that change nothing

Decorators, functions and context managers.

| module | names |
| --- | --- |"""
REFUSED = """## Names that raise

Each can be imported, annotated with and asked about. Calling it raises
`flow.errors.UnsupportedError` with the hint of the first column.

| hint | names |
| --- | --- |"""


def page() -> str:
    rows: dict[str, dict[str, list[str]]] = {REAL: {}, INERT: {}, REFUSED: {}}
    for path in sorted(NAMES):
        module = f"torch.{path}".rstrip(".")
        for name, (home, _) in sorted(homes(path).items()):
            kind, _, hint = home.partition(": ")
            if kind == "refused":
                rows[REFUSED].setdefault(hint, []).append(f"`{module}.{name}`")
            else:
                table = rows[INERT if home == "compatibility.inert" else REAL]
                table.setdefault(f"`{module}`", []).append(f"`{name}`")
    parts = [HEAD]
    for head, table in rows.items():
        lines = [f"| {first} | {', '.join(names)} |" for first, names in sorted(table.items())]
        parts.append("\n".join([head, *lines, ""]))
    return "\n".join(parts)


def test_the_page_is_current() -> None:
    assert PAGE.read_text("utf-8") == page(), "run python -m tests.compatibility.test_names"


@pytest.mark.parametrize("path", sorted(NAMES))
def test_each_name_is_what_its_kind_says(path: str) -> None:
    with flow.mock_torch():
        module = importlib.import_module(f"torch.{path}".rstrip("."))
        for name, (home, own) in homes(path).items():
            value = getattr(module, name)
            assert isinstance(value, Refusal) is home.startswith("refused"), name
            if home == "compatibility.inert":
                assert value is getattr(inert, own) and value.__doc__
            elif isinstance(value, Refusal):
                assert not isinstance(1, value) and {value: 1} and value.__doc__
                with pytest.raises(NotImplementedError, match=f"{name} is not supported; .+"):
                    value()


# Names that this release of PyTorch lacks: rooms of ours, names of older releases, and names of one
# kind of device, which the table gives all kinds.
MORE = {
    "": "ComplexDoubleTensor ComplexFloatTensor functions functors grad_funcs kernels",
    "_C": "_cuda_getDeviceCount",
    "cpu": "empty_cache manual_seed",
    "cuda": "ComplexDoubleTensor ComplexFloatTensor",
    "func": "*",  # what functorch has besides
    "mps": "*",
    "mtia": "*",
    "nn.modules": "DataParallel",
    "onnx": "dynamo_export",
    "optim.adagrad": "adadelta rmsprop",
    "optim.adam": "adamax adamw nadam radam",
    "optim.optimizer": "*",
    "optim.sgd": "asgd rprop",
    "utils": "tensorboard",
}


@pytest.mark.parametrize("path", sorted(NAMES))
def test_pytorch_has_each_name(path: str) -> None:
    torch = pytest.importorskip("torch")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            module = importlib.import_module(f"torch.{path}".rstrip("."))
        except ImportError:
            module = torch
            for part in path.split("."):  # what C++ defines is no package
                module = getattr(module, part, None)
        if module is None:
            pytest.skip(f"this build has no {path}")
        lacking = [name for name in homes(path) if not has(module, name)]
    more = MORE.get(path, "").split()
    assert set(lacking) <= set(more) or more == ["*"], lacking


def has(module: Any, name: str) -> bool:
    try:
        return hasattr(module, name) or bool(importlib.import_module(f"{module.__name__}.{name}"))
    except ImportError:
        return False


def test_absent_names_raise_and_say_what_is_near() -> None:
    with pytest.raises(AttributeError, match="did you mean 'disable'"):
        find("compiler", "disabel")
    with flow.mock_torch():
        with pytest.raises(ImportError):
            exec("from torch.compiler import no_such_name", {})
        with pytest.raises(ModuleNotFoundError, match="No module named 'torch.fx.no_such"):
            importlib.import_module("torch.fx.no_such_module")
    assert not hasattr(flow, "no_such_name") and not hasattr(flow.fx, "no_such_name")


def test_refused_names_stand_in_signatures_and_tables() -> None:
    strategy = flow.distributed.fsdp.ShardingStrategy
    path = "torch.distributed.fsdp.ShardingStrategy.FULL_SHARD"
    assert repr(strategy.FULL_SHARD) == f"<refused {path}>"
    assert strategy.FULL_SHARD is strategy.FULL_SHARD is not strategy.NO_SHARD
    assert flow.ones(1).dtype != flow.float8_e4m3fn and not hasattr(strategy, "lower_case")

    class Mode(flow.overrides.TorchFunctionMode):  # type: ignore[name-defined, misc]
        pass

    with pytest.raises(flow.errors.UnsupportedError, match=r"TorchFunctionMode.*push_interpreter"):
        Mode()
    with pytest.raises(flow.errors.FlowError):
        flow.ones(1, dtype=flow.float8_e4m3fn)
    assert int | strategy and not isinstance(flow.nn.Linear(1, 1), flow.jit.ScriptModule)


def test_inert_names_change_nothing() -> None:
    @flow.compiler.disable
    def one() -> int:
        return 1

    @flow.compiler.disable(recursive=False)
    @flow.cuda.nvtx.range("name")
    def two() -> int:
        return 2

    assert (one(), two(), flow.compiler.is_compiling()) == (1, 2, False)
    with flow.nn.attention.sdpa_kernel(flow.nn.attention.SDPBackend.MATH):
        assert flow._dynamo.reset() is None
    flow._dynamo.config.cache_size_limit = 7
    assert flow._dynamo.config.cache_size_limit == 7


def test_helpers() -> None:
    with flow.mock_torch():
        import torch
        from torch._utils import _flatten_dense_tensors, _unflatten_dense_tensors
        from torch.torch_version import TorchVersion
        from torch.utils.weak import WeakIdKeyDictionary
    parts = [flow.ones(2, 3), flow.zeros(4)]
    flat = _flatten_dense_tensors(parts)
    assert flat.tolist() == [1] * 6 + [0] * 4
    back = _unflatten_dense_tensors(flat, parts)
    assert [x.tolist() for x in back] == [x.tolist() for x in parts]
    assert TorchVersion("2.13.0") >= "2.9" and TorchVersion("2.13.0") < (2, 14)
    assert TorchVersion("2.13.0+cpu") == (2, 13) and TorchVersion("2.13.0") != "2.13"
    key, held = flow.ones(2), WeakIdKeyDictionary()
    held[key] = 1
    assert held[key] == 1 and len(held) == 1 and flow.ones(2) not in held
    del key
    assert not len(held)
    with pytest.raises(AssertionError, match="text"):
        torch._assert(flow.zeros(1).sum() > 0, "text")
    with pytest.raises(ValueError, match="late"):
        torch._check_value(False, lambda: "late")
    with pytest.raises(IndexError, match="beyond"):
        torch._check_index(False, lambda: "beyond")
    to = torch._C._nn._parse_to
    assert to("cpu", flow.float64, True)[:3] == (flow.device("cpu"), flow.float64, True)
    assert to(flow.float16)[:2] == (None, flow.float16) and to(flat)[1] is flow.float32
    assert torch.return_types.max is type(flow.ones(2).max(dim=0))


def test_the_library_knows_nothing_of_the_table() -> None:
    code = "import sys, oneflow_lite as f; f.relu(f.ones(1)); f.nn.Linear(1, 1); f.optim.SGD"
    code += "; print([m for m in sys.modules if 'compatibility' in m])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


if __name__ == "__main__":
    PAGE.write_text(page(), "utf-8")
