"""`nn.Graph`: a graph's calls do what the eager loop does."""

from __future__ import annotations

import pytest

import oneflow_lite as flow
from oneflow_lite.errors import ArgumentTypeError, MissingMethodError

nn = flow.nn


def parts(momentum=0.0):
    flow.manual_seed(3)
    model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.BatchNorm1d(8), nn.Linear(8, 3))
    optimizer = flow.optim.SGD(model.parameters(), lr=0.5, momentum=momentum)
    return model, optimizer, flow.optim.lr_scheduler.StepLR(optimizer, 2, gamma=0.5)


def batches():
    generator = flow.Generator().manual_seed(5)
    for _ in range(8):
        x = flow.randn(6, 4, generator=generator)
        yield x, flow.randint(0, 3, (6,), generator=generator)


class Training(nn.Graph):
    def __init__(self, model, optimizer, scheduler=None):
        super().__init__()
        self.model, self.loss = model, nn.CrossEntropyLoss()
        self.add_optimizer(optimizer, lr_sch=scheduler)

    def build(self, x, y):
        logits = self.model(x)
        loss = self.loss(logits, y)
        loss.backward()
        return loss, logits


@pytest.mark.parametrize("momentum", [0.0, 0.9])
def test_a_graph_trains_as_the_eager_loop_does(momentum):
    model, optimizer, scheduler = parts(momentum)
    graph = Training(*parts(momentum))
    for x, y in batches():
        optimizer.zero_grad()
        logits = model(x)
        loss = nn.functional.cross_entropy(logits, y)
        loss.backward()
        optimizer.step()
        scheduler.step()
        found = graph(x, y)
        assert found[0].item() == loss.item()
        assert found[1].tolist() == logits.tolist()
        assert scheduler.get_last_lr() == graph._schedulers[0].get_last_lr()
    for (name, mine), (_, theirs) in zip(
        model.state_dict().items(), graph.model.state_dict().items(), strict=True
    ):
        assert mine.tolist() == theirs.tolist(), name
    told = graph.explain()
    assert told.fallbacks == 0 and told.hits >= 5, told


def test_a_graph_without_optimizer_evaluates():
    class Evaluation(nn.Graph):
        def __init__(self, model):
            super().__init__()
            self.model = model

        def build(self, x):
            with flow.no_grad():
                return self.model(x)

    model = nn.Linear(4, 2)
    graph = Evaluation(model)
    for x, _ in batches():
        assert graph(x).tolist() == model(x).tolist()
    assert graph.explain().hits == 7
    assert repr(graph).startswith("Evaluation(\n  (model): Linear(in_features=4")


def test_states_go_from_graph_to_graph():
    first, second = Training(*parts(0.9)), Training(*parts(0.9))
    data = list(batches())
    for x, y in data[:4]:
        first(x, y)
    second.load_state_dict(first.state_dict())
    for x, y in data[4:]:
        assert first(x, y)[0].item() == second(x, y)[0].item()


def test_what_is_wrong_is_said():
    graph = nn.Graph()
    with pytest.raises(MissingMethodError, match="Graph is missing the required"):
        graph(1)
    with pytest.raises(ArgumentTypeError, match="add_optimizer.*'optim'.*Linear"):
        graph.add_optimizer(nn.Linear(1, 1))
    optimizer = parts()[1]
    with pytest.raises(ArgumentTypeError, match="'lr_sch'"):
        graph.add_optimizer(optimizer, lr_sch=3)
