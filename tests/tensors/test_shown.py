"""Objects of the package print as their class and options, in a line and without addresses."""

from __future__ import annotations

from typing import Any

import pytest

import oneflow_lite as flow
from oneflow_lite.autograd import trace
from oneflow_lite.utils import data

X = flow.ones(4, 2)


def _objects() -> dict[str, Any]:
    net = flow.nn.Linear(2, 1)
    optimizer = flow.optim.SGD(net.parameters(), lr=0.5)
    samples = data.TensorDataset(X, X[:, 0])
    schedulers = flow.optim.lr_scheduler
    step = schedulers.StepLR(optimizer, 3)
    with flow.profiler.profile() as profile, trace() as log:
        net(X).sum().backward()
    later = flow.futures.Future()
    later.set_result(3)
    loader = data.DataLoader(samples, batch_size=2, shuffle=True)
    return {
        "samples": samples,
        "subset": data.Subset(samples, [0, 1]),
        "loader": loader,
        "iterator": iter(loader),
        "sampler": data.RandomSampler(samples, replacement=True),
        "batches": data.BatchSampler(data.SequentialSampler(samples), 2, True),
        "step": step,
        "sequence": schedulers.SequentialLR(optimizer, [step], []),
        "plateau": schedulers.ReduceLROnPlateau(optimizer, patience=3),
        "generator": flow.Generator().manual_seed(7),
        "compiled": flow.compile(_objects),
        "handle": net.register_forward_hook(print),
        "no_grad": flow.no_grad(),
        "autocast": flow.autocast("cpu", dtype=flow.bfloat16),
        "scaler": flow.amp.GradScaler("cpu", growth_interval=5),
        "executor": flow.static.Executor(mode="numpy"),
        "profile": profile,
        "averages": profile.key_averages(),
        "event": profile.key_averages()[0],
        "events": profile.events()[0],
        "log": log,
        "later": later,
    }


OBJECTS = _objects()


@pytest.mark.parametrize("name", OBJECTS)
def test_a_repr_is_a_line_without_an_address(name: str) -> None:
    text = repr(OBJECTS[name])
    assert text.startswith(f"{type(OBJECTS[name]).__name__}(")
    assert "0x" not in text
    assert "\n" not in text
    assert len(text) < 160


def test_reprs_name_the_options() -> None:
    assert {name: repr(value) for name, value in OBJECTS.items() if name in EXPECTED} == EXPECTED


EXPECTED = {
    "samples": "TensorDataset(tensors=(float32[4, 2], float32[4]))",
    "sampler": "RandomSampler(data_source=TensorDataset, replacement=True)",
    "step": "StepLR(optimizer=SGD, step_size=3, last_epoch=0, lr=[0.5])",
    "generator": "Generator(device='cpu', seed=7)",
    "compiled": "CompiledFunction(_objects, "
    "Explanation(captures=0, hits=0, fallbacks=0, reasons=[]))",
    "autocast": "autocast(device_type='cpu', dtype=dtype(bfloat16))",
    "scaler": "GradScaler(growth_interval=5)",
    "later": "Future(done)",
}


def test_a_users_dataset_shows_its_options_and_runs_no_code() -> None:
    class Files(data.Dataset[int]):
        def __init__(self, folder: str, transform: Any = None) -> None:
            self.folder, self.transform = folder, transform

        def __getattr__(self, name: str) -> Any:
            raise KeyError(name)

    assert repr(Files("digits")) == "Files(folder='digits')"
    assert repr(Files("digits", flow.relu)) == "Files(folder='digits', transform=relu)"


def test_a_removed_hook_is_shown_as_removed() -> None:
    handle = flow.ones(1, requires_grad=True).register_hook(print)
    assert repr(handle).endswith("removed=False)")
    handle.remove()
    assert repr(handle).endswith("removed=True)")
