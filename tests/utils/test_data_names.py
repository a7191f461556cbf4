"""Every public name of torch.utils.data is here, with its arguments, defaults and attributes."""

import dataclasses
import importlib
import inspect
import random

import numpy as np
import pytest

import oneflow_lite as flow
from oneflow_lite.tensors.shown import Shown

torch = pytest.importorskip("torch")
theirs, ours = torch.utils.data, flow.utils.data

# PyTorch froze its data pipes; no loader needs them.
DATA_PIPES = {
    "DFIterDataPipe", "DataChunk", "IterDataPipe", "MapDataPipe", "argument_validation",
    "functional_datapipe", "guaranteed_datapipes_determinism", "non_deterministic",
    "runtime_validation", "runtime_validation_disabled",
}  # fmt: skip
NAMES = sorted(set(theirs.__all__) - DATA_PIPES)


def parameters(function) -> list:
    def default(value):
        return "a generator" if type(value).__name__ == "Generator" else value

    return [
        (p.name, p.kind, default(p.default))
        for p in inspect.signature(function).parameters.values()
    ]


@pytest.mark.parametrize("name", NAMES)
def test_names_and_their_arguments(name):
    wanted, found = getattr(theirs, name), getattr(ours, name)
    if name == "_DatasetKind":
        assert (found.Map, found.Iterable) == (wanted.Map, wanted.Iterable)
        return
    assert name in ours.__all__
    assert parameters(found) == parameters(wanted)
    if not isinstance(wanted, type):
        return
    bases = [base.__name__ for base in wanted.__mro__ if base.__module__.startswith("torch")]
    own = [b for b in found.__mro__ if b.__module__.startswith("oneflow_lite") and b is not Shown]
    assert [b.__name__ for b in own] == bases
    for attribute in dir(wanted):
        if not attribute.startswith("_") or attribute in vars(wanted):
            if attribute.startswith("_") and not attribute.startswith("__getitem"):
                continue
            member = getattr(wanted, attribute)
            if inspect.isfunction(member):
                names = [parameter[0] for parameter in parameters(member)]
                assert [p[0] for p in parameters(getattr(found, attribute))] == names
            else:
                assert hasattr(found, attribute), attribute


def test_no_name_was_added():
    assert set(ours.__all__) == set(NAMES) - {"_DatasetKind"}


@pytest.mark.parametrize("module", ["dataset", "sampler", "dataloader", "distributed"])
def test_submodules(module):
    wanted, found = (importlib.import_module(f"{lib.__name__}.{module}") for lib in (theirs, ours))
    assert set(found.__all__) == set(wanted.__all__)
    for name in wanted.__all__:
        assert getattr(found, name) is getattr(ours, name, None)


@pytest.mark.parametrize(
    "name",
    [
        "collate.collate", "collate.collate_tensor_fn", "collate.collate_numpy_array_fn",
        "collate.collate_numpy_scalar_fn", "collate.collate_float_fn", "collate.collate_int_fn",
        "collate.collate_str_fn", "collate.default_collate", "collate.default_convert",
        "worker.get_worker_info",
    ],
)  # fmt: skip
def test_private_functions_that_scripts_import(name):
    module, name = name.split(".")
    wanted, found = (
        getattr(importlib.import_module(f"{lib.__name__}._utils.{module}"), name)
        for lib in (theirs, ours)
    )
    assert parameters(found) == parameters(wanted)


def test_attributes_of_instances():
    def attributes(lib):
        dataset = lib.TensorDataset(torch.ones(4) if lib is theirs else flow.ones(4))
        options = {"num_workers": 1, "shuffle": True}
        objects = [
            dataset,
            lib.Subset(dataset, [1]),
            lib.StackDataset(dataset),
            lib.ConcatDataset([dataset]),
            lib.ChainDataset([]),
            lib.DataLoader(dataset, **options),
            lib.DataLoader(dataset, batch_size=None),
            lib.RandomSampler(dataset),
            lib.SequentialSampler(dataset),
            lib.SubsetRandomSampler([1]),
            lib.WeightedRandomSampler([1.0], 1),
            lib.BatchSampler([1], 1, False),
            lib.DistributedSampler(dataset, 1, 0),
        ]
        public = [
            {name: type(value).__name__ for name, value in vars(each).items() if name[0] != "_"}
            for each in objects
        ]
        loader = objects[5]
        fixed = (loader.batch_size, loader.prefetch_factor, loader.timeout, loader.in_order)
        return public, fixed, loader.multiprocessing_context

    assert attributes(ours) == attributes(theirs)


def test_what_a_worker_knows():
    wanted, found = (lib._utils.worker.WorkerInfo for lib in (theirs, ours))
    assert parameters(found) == parameters(wanted)
    info = found(0, 1, 2, None)
    with pytest.raises(dataclasses.FrozenInstanceError):
        info.seed = 3


def test_the_seed_of_numpy_in_a_worker_is_pytorchs(monkeypatch):
    from oneflow_lite.utils.data._utils import worker

    kept = random.getstate(), flow.get_rng_state(), worker.mode.local.state
    seeds = []
    monkeypatch.setattr(np.random, "seed", lambda words: seeds.append(list(words)))
    monkeypatch.setattr(worker, "_worker_info", None)
    try:
        for base, number in ((0, 0), (12345, 3), (2**40 + 7, 1), (2**63 - 1, 200)):
            job = worker.Job(range(3), True, list, False, None, base, 300)
            made = worker._Worker(job, number, None)
            assert made.failure is None
            assert seeds[-1] == theirs._utils.worker._generate_state(base, number)
            assert flow.initial_seed() == worker._worker_info.seed == base + number
    finally:
        random.setstate(kept[0])
        flow.seed()
        worker.mode.local.state = kept[2]
