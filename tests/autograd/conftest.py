"""The engine's tests run twice: along the list of nodes, and through the ready queues."""

from __future__ import annotations

import pytest

from oneflow_lite.autograd.graph_task import GraphTask

EITHER_WAY = {"test_engine", "test_grad", "test_hooks", "test_node_hooks", "test_lifetime", "test_orders", "test_threads", "test_saved_hooks", "test_function", "test_reentrant"}


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if metafunc.module.__name__.rpartition(".")[2] in EITHER_WAY:
        metafunc.fixturenames.append("run_mode")
        metafunc.parametrize("run_mode", ["in order", "queued"], indirect=True)


@pytest.fixture
def run_mode(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """How tasks with nodes on the CPU alone run."""
    monkeypatch.setattr(GraphTask, "always_queued", request.param == "queued")
    return str(request.param)
