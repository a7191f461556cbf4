"""`utils.tensorboard`: which package writes, and with which arguments; packages are stand-ins."""

from __future__ import annotations

import sys
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

import oneflow_lite as flow
from oneflow_lite.errors import UnsupportedError


@pytest.fixture(autouse=True)
def nothing_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("tensorboardX", "tensorboard"):
        monkeypatch.setitem(sys.modules, name, None)


def test_without_a_package_it_names_them() -> None:
    with flow.mock_torch(), pytest.raises(ImportError, match="tensorboardX, or tensorboard"):
        from torch.utils.tensorboard import SummaryWriter  # noqa: F401


def test_the_writer_of_tensorboardx(monkeypatch: pytest.MonkeyPatch) -> None:
    stand_in = ModuleType("tensorboardX")
    stand_in.SummaryWriter = type("SummaryWriter", (), {})  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "tensorboardX", stand_in)
    assert flow.utils.tensorboard.SummaryWriter is stand_in.SummaryWriter
    assert flow.utils.tensorboard.writer.SummaryWriter is stand_in.SummaryWriter


def test_the_small_writer_on_tensorboard(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    written: list[Any] = []

    def module(name: str, **members: Any) -> None:
        made = ModuleType(name)
        vars(made).update(members)
        monkeypatch.setitem(sys.modules, name, made)

    file = SimpleNamespace(
        add_event=written.append,
        flush=lambda: written.append("flush"),
        close=lambda: written.append("close"),
    )
    module("tensorboard")
    module("tensorboard.summary.writer.event_file_writer", EventFileWriter=lambda folder: file)
    module("tensorboard.compat.proto.event_pb2", Event=lambda **fields: fields)
    for kind in ("scalar", "text", "histogram"):
        module(f"tensorboard.plugins.{kind}.summary_v2", **{f"{kind}_pb": lambda tag, x: (tag, x)})
    with flow.utils.tensorboard.SummaryWriter(str(tmp_path)) as writer:
        writer.add_scalar("loss", flow.tensor(1.5, requires_grad=True), 3, walltime=2.0)
        writer.add_scalars("two", {"a": 1, "b": 2})
        writer.add_text("note", "hello", 1)
        writer.add_histogram("h", flow.ones(2), 2)
        writer.flush()
        with pytest.raises(UnsupportedError, match="add_image.*tensorboardX"):
            writer.add_image("i", None)
    assert written[0] == {"wall_time": 2.0, "step": 3, "summary": ("loss", 1.5)}
    assert [event["summary"] for event in written[1:4]] == [
        ("two/a", 1.0),
        ("two/b", 2.0),
        ("note", "hello"),
    ]
    assert written[4]["summary"][1].tolist() == [1, 1] and written[5:] == ["flush", "close"]
    assert not hasattr(writer, "other")
