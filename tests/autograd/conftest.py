"""The engine's tests run twice: along the list of nodes, and through the ready queues."""

from __future__ import annotations

import pytest

from oneflow_lite.autograd.engine.graph_task import GraphTask

EITHER_WAY = {
    "test_anomaly",
    "test_engine",
    "test_errors",
    "test_function",
    "test_grad",
    "test_hooks",
    "test_lifetime",
    "test_node_hooks",
    "test_orders",
    "test_reentrant",
    "test_saved_hooks",
    "test_threads",
}


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if metafunc.module.__name__.rpartition(".")[2] in EITHER_WAY:
        metafunc.parametrize("run_mode", ["in order", "queued"], indirect=True)


@pytest.fixture(autouse=True)
def run_mode(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """The way in which tasks with nodes on the CPU alone run."""
    mode = getattr(request, "param", "in order")
    monkeypatch.setattr(GraphTask, "always_queued", mode == "queued")
    return str(mode)
