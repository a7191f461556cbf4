"""`torch.hub`: weights by URL, and models of folders."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

import oneflow_lite as flow
from oneflow_lite.compatibility import hub
from oneflow_lite.errors import ArgumentError, UnsupportedError


def test_weights_are_fetched_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TORCH_HOME", str(tmp_path / "home"))
    flow.save(flow.nn.Linear(2, 1).state_dict(), tmp_path / "weights.pt")
    digest = hashlib.sha256((tmp_path / "weights.pt").read_bytes()).hexdigest()
    named = tmp_path / f"net-{digest[:8]}.pt"
    (tmp_path / "weights.pt").rename(named)
    state = hub.load_state_dict_from_url(named.as_uri(), check_hash=True)
    assert set(state) == {"weight", "bias"}
    named.unlink()
    assert set(flow.utils.model_zoo.load_url(named.as_uri())) == {"weight", "bias"}
    assert (Path(hub.get_dir()) / "checkpoints" / named.name).exists()


def test_a_wrong_hash_leaves_no_file(tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.write_bytes(b"other bytes")
    with pytest.raises(ArgumentError, match="begins with abc"):
        hub.download_url_to_file(source.as_uri(), str(tmp_path / "target"), "abc")
    assert [path.name for path in tmp_path.iterdir()] == ["source"]
    hub.download_url_to_file(source.as_uri(), str(tmp_path / "target"))
    assert (tmp_path / "target").read_bytes() == b"other bytes"


def test_models_of_a_folder(tmp_path: Path) -> None:
    (tmp_path / "part.py").write_text("SIZE = 3\n")
    (tmp_path / "hubconf.py").write_text(
        "import oneflow_lite\nfrom part import SIZE\n\n"
        "def small(width=1):\n    'A small net.'\n"
        "    return oneflow_lite.nn.Linear(SIZE, width)\n"
    )
    assert "small" in hub.list(tmp_path, source="local")
    assert hub.help(tmp_path, "small", source="local") == "A small net."
    assert hub.load(tmp_path, "small", width=2, source="local").weight.shape == (2, 3)
    with pytest.raises(UnsupportedError, match="source='local'"):
        hub.load("pytorch/vision", "resnet18")


def test_the_folder_can_be_set(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hub, "_folder", [])
    hub.set_dir(tmp_path)
    assert hub.get_dir() == str(tmp_path)
