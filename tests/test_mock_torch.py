"""`import torch` that means this library: imports, packages, other worlds, scripts."""

from __future__ import annotations

import importlib
import importlib.metadata
import importlib.util
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy
import pytest

import oneflow_lite as flow

# What higher and learn2learn do to torch: they subclass, patch, walk modules and copy functions.
PACKAGE = {
    "__init__.py": """
from mocked_package.patch import Patched, clone_module
from . import helpers
""",
    "helpers.py": """
import numpy

AUTHOR = "somebody"


def unrelated(x):
    return x + 1
""",
    "patch.py": """
import copy
import typing as t
import torch as _torch
import torch.nn.functional as F
from torch import nn
from torch.nn import Module
from torch.optim import Optimizer
from torch.optim.lr_scheduler import StepLR
from torch.utils.data import DataLoader, TensorDataset
from torch.autograd import Variable, grad

_Tensors = t.List[_torch.Tensor]
IS_OLD = tuple(int(n) for n in _torch.__version__.split("+")[0].split(".")[:2]) < (1, 6)


class Patched(Module):
    def __init__(self, inner: nn.Module) -> None:
        super().__init__()
        self.inner = inner
        self.fast = {name: p for name, p in inner.named_parameters()}

    def forward(self, x: _torch.Tensor) -> _torch.Tensor:
        for module in self.inner.modules():
            if isinstance(module, nn.Linear):
                assert isinstance(module.weight, _torch.nn.Parameter)
        return F.relu(F.linear(x, self.fast["weight"], self.fast["bias"]))

    def step(self, loss: _torch.Tensor, lr: float) -> None:
        found = grad(loss, list(self.fast.values()), create_graph=True)
        self.fast = {n: p - lr * g for (n, p), g in zip(self.fast.items(), found)}


def clone_module(module: nn.Module) -> nn.Module:
    clone = copy.copy(module)
    clone._parameters = {n: p.clone() for n, p in module._parameters.items() if p is not None}
    return clone
""",
}


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    folder = tmp_path / "mocked_package"
    folder.mkdir()
    for name, text in PACKAGE.items():
        (folder / name).write_text(text)
    (tmp_path / "user_of_it.py").write_text("from mocked_package import Patched\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    yield
    for name in [n for n in sys.modules if n.partition(".")[0] in ("mocked_package", "user_of_it")]:
        del sys.modules[name]


def test_names_are_ours() -> None:
    with flow.mock_torch():
        import torch
        import torch.backends.cudnn as cudnn
        import torch.nn as nn
        import torch.nn.functional as F
        import torch.optim as optim
        from torch import Tensor, cuda
        from torch.autograd import Variable
        from torch.cuda.amp import autocast
        from torch.nn.modules.batchnorm import _BatchNorm
        from torch.nn.parameter import Parameter
        from torch.optim.lr_scheduler import StepLR
        from torch.utils.data import DataLoader, TensorDataset

        assert nn is flow.nn is torch.nn and F is flow.nn.functional and optim is flow.optim
        assert Tensor is flow.Tensor and cuda is flow.cuda and Parameter is flow.nn.Parameter
        assert DataLoader is flow.utils.data.DataLoader and StepLR is optim.lr_scheduler.StepLR
        assert TensorDataset is flow.utils.data.TensorDataset
        assert isinstance(nn.ReLU(), torch.nn.Module) and isinstance(torch.ones(1), Variable)
        assert torch.float32 is flow.float32 and _BatchNorm in nn.BatchNorm2d.__mro__
        assert torch.__version__ == "2.13.0" and torch.__name__ == "torch"
        assert {"nn", "ones", "__version__"} <= set(dir(torch))
        assert cudnn is torch.backends.cudnn and issubclass(autocast, torch.amp.autocast)
        assert not hasattr(torch, "no_such_name")
        import torch.cuda.amp.grad_scaler
        import torch.jit.annotations

        assert torch.jit.annotations.List and torch.cuda.amp.grad_scaler.GradScaler
    assert "grad_scaler" not in vars(flow.cuda.amp)  # modules are as they were
    assert flow.nn.__spec__.name == "oneflow_lite.nn" and flow.nn.__name__ == "oneflow_lite.nn"


def test_tensors_say_that_they_are_of_torch() -> None:
    """opt_einsum and autoray choose functions by the module of a tensor's class."""
    with flow.mock_torch():
        import torch

        model = torch.nn.Linear(2, 2)
        assert type(model.weight).__module__ == "torch.nn.parameter"
        assert str(type(torch.ones(1))) == "<class 'torch.Tensor'>"
        step = torch.compile(lambda x: model(x).sum() * x.shape[0])
        for _ in range(3):
            step(torch.ones(3, 2)).backward()
        assert step.explain().hits == 2 and not step.explain().reasons
    assert flow.Tensor.__module__.startswith("oneflow_lite.")
    assert flow.nn.Parameter.__module__.startswith("oneflow_lite.")


def test_a_name_is_searched_for_once() -> None:
    with flow.mock_torch():
        import torch
        import torch._dynamo

        assert torch.numel is flow.numel and vars(torch)["numel"] is flow.numel
        assert torch._dynamo.is_compiling is vars(torch._dynamo)["is_compiling"]


def test_absent_modules() -> None:
    with flow.mock_torch():
        with pytest.raises(ModuleNotFoundError, match="has no attribute 'no_such'") as caught:
            importlib.import_module("torch.no_such")
        assert caught.value.name == "torch.no_such"
        with pytest.raises(ImportError):
            exec("from torch import no_such_name", {})
        with pytest.raises(ModuleNotFoundError):
            importlib.import_module("torch.nn.no_such_module")
        with pytest.raises(ModuleNotFoundError):
            importlib.import_module("torchvision_of_nobody")


def test_the_version_of_the_distribution() -> None:
    with flow.mock_torch():
        assert importlib.metadata.version("torch") == "2.13.0"
        assert importlib.metadata.version("numpy") == numpy.__version__
        assert importlib.util.find_spec("torch") is not None


def test_a_stand_in_is_written_for_pip(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mock = importlib.import_module("oneflow_lite.mock_torch")
    monkeypatch.setattr(mock.sysconfig, "get_path", lambda name: str(tmp_path))
    folder = mock.write_stand_in()
    assert mock.write_stand_in() == folder
    (found,) = importlib.metadata.distributions(path=[str(tmp_path)])
    assert (found.metadata["Name"], found.version) == ("torch", "2.13.0")
    assert {file.name for file in found.files or ()} == {"METADATA", "INSTALLER", "RECORD"}
    (tmp_path / "torch-1.0.dist-info").mkdir()
    with pytest.raises(FileExistsError, match="uninstall"):
        mock.write_stand_in()


def test_a_notebook_loads_it_as_an_extension() -> None:
    mock = importlib.import_module("oneflow_lite.mock_torch")
    before = sys.modules.get("torch")
    mock.load_ipython_extension(None)
    try:
        assert importlib.import_module("torch").ones is flow.ones
    finally:
        mock.unload_ipython_extension(None)
    mock.unload_ipython_extension(None)  # a second time is nothing
    assert sys.modules.get("torch") is before


def test_the_real_one_is_put_aside() -> None:
    real = pytest.importorskip("torch")
    import torch.nn as real_nn

    with flow.mock_torch():
        import torch as mocked
        import torch.nn as mocked_nn

        assert mocked is not real and mocked_nn is flow.nn
    import torch as again

    assert again is real and sys.modules["torch.nn"] is real_nn
    with flow.mock_torch():
        assert importlib.import_module("torch") is mocked
    assert importlib.import_module("torch") is real


def test_nested_blocks_and_errors() -> None:
    before = [*sys.meta_path], sys.modules.get("torch")
    with pytest.raises(ZeroDivisionError):
        with flow.mock_torch():
            import torch

            with flow.mock_torch():
                assert importlib.import_module("torch") is torch
            assert importlib.import_module("torch") is torch
            raise ZeroDivisionError
    assert ([*sys.meta_path], sys.modules.get("torch")) == before


def test_packages_that_import_torch(package: None) -> None:
    with flow.mock_torch():
        import mocked_package
        import user_of_it

        inner = flow.nn.Linear(2, 1)
        net = mocked_package.Patched(inner)
        x = flow.tensor([[1.0, 2.0]])
        net.step(net(x).sum() + inner.weight.sum(), 0.1)
        net(x).sum().backward()
        assert inner.weight.grad is not None
        assert mocked_package.clone_module(inner)(x).shape == (1, 1)
        assert not mocked_package.patch.IS_OLD and user_of_it.Patched is mocked_package.Patched
    assert not {"mocked_package", "mocked_package.patch", "user_of_it"} & set(sys.modules)
    assert "numpy" in sys.modules and "mocked_package.helpers" not in sys.modules
    with flow.mock_torch():
        assert importlib.import_module("mocked_package") is mocked_package
    pytest.importorskip("torch")
    theirs = importlib.import_module("mocked_package")
    assert theirs is not mocked_package and not issubclass(theirs.Patched, flow.nn.Module)
    with flow.mock_torch():
        assert importlib.import_module("mocked_package") is mocked_package
    assert importlib.import_module("mocked_package") is theirs


def test_modules_that_have_nothing_to_do_with_it_stay(tmp_path: Path, monkeypatch: Any) -> None:
    (tmp_path / "bystander_of_torch.py").write_text("import json\nVALUE = [1]\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    with flow.mock_torch():
        bystander = importlib.import_module("bystander_of_torch")
    assert sys.modules.pop("bystander_of_torch") is bystander


def test_einops_layers() -> None:
    einops = pytest.importorskip("einops")
    with flow.mock_torch():
        from einops.layers.torch import Rearrange

        layer = Rearrange("a b -> b a")
        assert isinstance(layer, flow.nn.Module)
        assert layer(flow.ones(2, 3)).shape == (3, 2)
        assert einops.rearrange(flow.ones(2, 3), "a b -> (a b)").shape == (6,)


SCRIPT = """
import argparse, sys
import torch
import torch.nn as nn
from local_part import Net
from torch.utils.data import DataLoader, TensorDataset

parser = argparse.ArgumentParser()
parser.add_argument("--epochs", type=int)
args = parser.parse_args()
torch.manual_seed(0)
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
net = nn.DataParallel(Net()).to(device)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
loader = DataLoader(TensorDataset(torch.randn(8, 2), torch.randn(8, 1)), batch_size=4)
for epoch in range(args.epochs):
    for x, y in loader:
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(net(x.to(device)), y.to(device))
        loss.backward()
        optimizer.step()
assert __name__ == "__main__" and loss.type() == "torch.FloatTensor"
print(args.epochs, torch.__version__, type(net).__module__, sys.argv[1:])
"""


@pytest.mark.parametrize("as_module", [False, True])
def test_scripts(tmp_path: Path, as_module: bool) -> None:
    (tmp_path / "train.py").write_text(SCRIPT)
    (tmp_path / "local_part.py").write_text(
        "from torch import nn\nclass Net(nn.Linear):\n    def __init__(self):\n"
        "        super().__init__(2, 1)\n"
    )
    command = [sys.executable, "-m", "oneflow_lite.mock_torch"]
    command += ["-m", "train"] if as_module else [str(tmp_path / "train.py")]
    done = subprocess.run(
        [*command, "--epochs", "2"],
        cwd=tmp_path,
        env={"PYTHONPATH": str(Path(flow.__file__).parent.parent), "PATH": ""},
        capture_output=True,
        text=True,
    )
    assert not done.returncode, done.stderr
    words = "2 2.13.0 oneflow_lite.compatibility.parallel ['--epochs', '2']"
    assert done.stdout.strip() == words


def run(*arguments: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "oneflow_lite.mock_torch", *arguments]
    root = str(Path(flow.__file__).parent.parent)
    environment = {**os.environ, "PYTHONPATH": root}
    return subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True)


@pytest.mark.slow
def test_the_command_line_is_that_of_python(tmp_path: Path) -> None:
    done = run("-c", "import sys, torch; print(sys.argv, torch.ones(1).item())", "a", "-b")
    assert done.stdout.strip() == "['-c', 'a', '-b'] 1.0", done.stderr
    assert "--stand-in" in run("--help").stdout
    assert run("nowhere.py").returncode and "can't open file" in run("nowhere.py").stderr
    assert "usage" in run().stderr and "unknown option -q" in run("-q").stderr
    assert "Argument expected for the -c option" in run("-c").stderr
    failing = run("-c", "raise SystemExit(3)")
    assert failing.returncode == 3
    (tmp_path / "test_here.py").write_text(
        "import torch\n\ndef test_it():\n    assert torch.__name__ == 'torch'\n"
    )
    done = run("-m", "pytest", "-q", "-p", "no:cacheprovider", "test_here.py", cwd=tmp_path)
    assert "1 passed" in done.stdout, done.stdout + done.stderr
    package = tmp_path / "folder"
    package.mkdir()
    (package / "__main__.py").write_text("import torch; print('main', torch.__version__)")
    assert run(str(package)).stdout.strip() == "main 2.13.0"
