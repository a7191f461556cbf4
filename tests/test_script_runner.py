"""The runner of public scripts: both libraries run the same text with the same numbers."""

from pathlib import Path

import pytest

from tests.scripts import run
from tests.scripts.sources import SOURCES, Source

pytest.importorskip("torch")

SCRIPT = """
import random
import torch
from torch import nn, optim
import torch.nn.functional as F
from torch.utils.data import DataLoader
from torchvision import datasets, transforms

layers = [nn.Flatten(), nn.Linear(784, 16), nn.Dropout(0.3), nn.ReLU(), nn.Linear(16, 10)]
model = nn.Sequential(*layers)
optimizer = optim.Adam(model.parameters(), lr=1e-2)
data = datasets.MNIST("data", transform=transforms.ToTensor())
for x, y in DataLoader(data, batch_size=16, shuffle=True, num_workers=2):
    loss = F.cross_entropy(model(x) + 0.1 * torch.randn(len(x), 10), y) * SCALE
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""


def outcome(tmp_path: Path, text: str) -> run.Outcome:
    folder = tmp_path / "somebody+something"
    folder.mkdir()
    (folder / "train.py").write_text(text)
    source = Source("somebody/something", "0", "train.py")
    return run.run(source, tmp_path, steps=4, seconds=60, limit=120)


@pytest.mark.slow
def test_both_sides_record_the_same(tmp_path: Path) -> None:
    found = outcome(tmp_path, SCRIPT.replace("SCALE", "1"))
    assert found.verdict == "agrees", (found.theirs, found.ours)
    assert len(found.theirs["values"]) == 4 and found.difference < 1e-5
    assert "somebody/something" in run.table([found]) and "100%" in run.table([found])


@pytest.mark.slow
def test_a_difference_is_seen(tmp_path: Path) -> None:
    scale = '(1.01 if hasattr(torch, "register_op") else 1)'
    found = outcome(tmp_path, SCRIPT.replace("SCALE", scale))
    assert found.verdict.startswith("differs") and 0.005 < found.difference < 0.02


def test_an_error_is_told(tmp_path: Path) -> None:
    found = outcome(tmp_path, SCRIPT.replace("SCALE", "torch.no_such_name"))
    assert "no_such_name" in found.verdict and found.theirs["error"]


def test_the_list_is_long_enough() -> None:
    assert len(SOURCES) >= 120 and sum(source.aside for source in SOURCES) >= 30
    assert all(len(source.commit) == 40 for source in SOURCES)
