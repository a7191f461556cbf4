"""Averages of models against PyTorch's."""

import copy
import inspect

import numpy as np
import pytest

import oneflow_lite as flow

NAMES = "AveragedModel get_ema_avg_fn get_ema_multi_avg_fn get_swa_avg_fn get_swa_multi_avg_fn"
AVERAGES = {
    "default": lambda s: {},
    "ema": lambda s: {"avg_fn": s.get_ema_avg_fn(0.8)},
    "ema of lists": lambda s: {"multi_avg_fn": s.get_ema_multi_avg_fn(0.8)},
    "equal": lambda s: {"avg_fn": s.get_swa_avg_fn()},
    "equal of lists": lambda s: {"multi_avg_fn": s.get_swa_multi_avg_fn(), "use_buffers": False},
    "buffers": lambda s: {"use_buffers": True},
    "ema of buffers": lambda s: {"multi_avg_fn": s.get_ema_multi_avg_fn(0.8), "use_buffers": True},
    "of one's own": lambda s: {"avg_fn": lambda averaged, current, count: averaged + current},
}


def network(lib):
    net = lib.nn.Sequential(lib.nn.Linear(3, 4), lib.nn.BatchNorm1d(4, momentum=0.3)).double()
    rng = np.random.default_rng(0)
    with lib.no_grad():
        for parameter in net.parameters():
            parameter.copy_(lib.tensor(rng.standard_normal(tuple(parameter.shape))))
    return net


def train(lib, net, step):
    rng = np.random.default_rng(step)
    net(lib.tensor(rng.standard_normal((5, 3))))
    with lib.no_grad():
        for parameter in net.parameters():
            parameter.mul_(0.9).add_(step)


def state(module):
    return {name: value.detach().numpy() for name, value in module.state_dict().items()}


def compare(ours, theirs):
    assert list(ours) == list(theirs)
    for name, value in theirs.items():
        # PyTorch's share of a list's average is float32.
        np.testing.assert_allclose(ours[name], value, rtol=1e-7, err_msg=name)
        assert ours[name].dtype == value.dtype


@pytest.mark.parametrize("name", [*NAMES.split(), "SWALR", "update_bn"])
def test_signatures_are_pytorchs(torch, name):
    assert set(flow.optim.swa_utils.__all__) == set(torch.optim.swa_utils.__all__)
    ours, theirs = (
        inspect.signature(getattr(lib.optim.swa_utils, name)).parameters for lib in (flow, torch)
    )
    assert [(p.name, p.default) for p in ours.values()] == [
        (p.name, p.default) for p in theirs.values()
    ]


@pytest.mark.parametrize("kind", AVERAGES)
def test_averages(torch, kind):
    states, outputs = [], []
    for lib in (flow, torch):
        net = network(lib)
        averaged = lib.optim.swa_utils.AveragedModel(net, **AVERAGES[kind](lib.optim.swa_utils))
        for step in range(1, 5):
            train(lib, net, step)
            averaged.update_parameters(net)
        assert averaged.n_averaged.item() == 4
        states.append(state(averaged))
        twin = lib.optim.swa_utils.AveragedModel(network(lib))
        twin.load_state_dict(averaged.state_dict())
        outputs.append(twin.eval()(lib.ones(2, 3, dtype=lib.float64)).detach().numpy())
    compare(*states)
    np.testing.assert_allclose(outputs[0], outputs[1], rtol=1e-6)


@pytest.mark.parametrize("kind", ["tensors", "pairs"])
def test_batch_norms_are_computed_anew(torch, kind):
    states = []
    for lib in (flow, torch):
        net = network(lib)
        train(lib, net, 1)
        net.eval()
        rng = np.random.default_rng(3)
        batches = [lib.tensor(rng.standard_normal((4, 3))) for _ in range(3)]
        loader = [(batch, 1) for batch in batches] if kind == "pairs" else batches
        lib.optim.swa_utils.update_bn(loader, net, device="cpu" if kind == "pairs" else None)
        assert net[1].momentum == 0.3
        assert not net.training
        states.append(state(net))
    compare(*states)


def test_a_loader_that_fails_leaves_the_model_as_it_was():
    net = network(flow).eval()
    with pytest.raises(RuntimeError):
        flow.optim.swa_utils.update_bn([flow.ones(2, 7, dtype=flow.float64)], net)
    assert net[1].momentum == 0.3
    assert not net.training


def test_bad_arguments(torch):
    for lib in (flow, torch):
        utils, net = lib.optim.swa_utils, lib.nn.Linear(1, 1)
        for build in (utils.get_ema_avg_fn, utils.get_ema_multi_avg_fn):
            with pytest.raises(ValueError, match="decay"):
                build(1.5)
        with pytest.raises(AssertionError, match="avg_fn"):
            utils.AveragedModel(net, avg_fn=max, multi_avg_fn=max)
        optimizer = lib.optim.SGD(net.parameters(), lr=0.1)
        for bad in ({"anneal_strategy": "sin"}, {"anneal_epochs": -1}, {"anneal_epochs": 2.5}):
            with pytest.raises(ValueError, match="anneal"):
                utils.SWALR(optimizer, 0.1, **bad)
        with pytest.raises(ValueError, match="swa_lr"):
            utils.SWALR(optimizer, [0.1, 0.2])
    assert "swa_lr" not in flow.optim.SGD(flow.nn.Linear(1, 1).parameters()).param_groups[0]


def test_the_copy_is_its_own():
    net = network(flow)
    averaged = flow.optim.swa_utils.AveragedModel(net)
    before = copy.deepcopy(state(averaged))
    train(flow, net, 2)
    compare(state(averaged), before)
    averaged.update_parameters(net)
    compare(state(averaged.module), state(net))
