"""Data sets, samplers, collation and the loader."""

from collections import OrderedDict, UserDict, UserList, defaultdict, namedtuple
from collections.abc import Mapping
from itertools import chain, islice, product
from types import MappingProxyType

import numpy as np
import pytest

import oneflow_lite as flow
from oneflow_lite.utils import data

Point = namedtuple("Point", ["x", "y"])


class Squares(data.Dataset):
    """Samples (i, i squared)."""

    def __init__(self, count: int) -> None:
        self.count = count

    def __getitem__(self, index):
        return flow.tensor(float(index)), index**2

    def __len__(self) -> int:
        return self.count


class Several(data.Dataset):
    """Samples 10 i, several at once; it notes what it was asked for."""

    def __init__(self, count: int) -> None:
        self.count, self.batches = count, []

    def __getitem__(self, index):
        return 10 * index

    def __getitems__(self, indices):
        if self.batches is None:
            return [0]
        self.batches.append(indices)
        return [10 * index for index in indices]

    def __len__(self) -> int:
        return self.count


class Stream(data.IterableDataset):
    def __init__(self, count: int) -> None:
        self.count = count

    def __iter__(self):
        return iter(range(self.count))


class SizedStream(Stream):
    def __len__(self) -> int:
        return self.count


def lists(loader) -> list:
    return [[part.tolist() for part in batch] for batch in loader]


# Data sets


def test_tensor_dataset():
    x, y = flow.arange(6).reshape(3, 2), flow.tensor([1.0, 2.0, 3.0])
    dataset = data.TensorDataset(x, y)
    assert len(dataset) == 3
    sample = dataset[-1]
    assert isinstance(sample, tuple)
    assert sample[0].tolist() == [4, 5]
    assert sample[1].item() == 3.0
    with pytest.raises(IndexError):
        dataset[3]


@pytest.mark.parametrize(
    ("tensors", "error"),
    [
        ((), ValueError),
        ((flow.ones(2), flow.ones(3)), AssertionError),
        ((flow.ones(2), flow.ones(())), IndexError),
        ((flow.ones(()),), IndexError),
        ((flow.ones(2), [1, 2]), TypeError),
    ],
)
def test_tensor_dataset_refuses(tensors, error):
    with pytest.raises(error, match="TensorDataset"):
        data.TensorDataset(*tensors)


def test_concatenated_data_sets():
    joined = Squares(2) + Squares(3) + data.TensorDataset(flow.arange(1))
    assert isinstance(joined, data.ConcatDataset)
    assert len(joined) == 6
    assert [joined[i][1] for i in range(5)] == [0, 1, 0, 1, 4]
    assert joined[-2][1] == 4
    assert joined[5][0].item() == 0
    for index, error in ((6, IndexError), (-7, ValueError)):
        with pytest.raises(error, match="ConcatDataset"):
            joined[index]
    for wrong in ([], [Stream(3)]):
        with pytest.raises(AssertionError, match="datasets"):
            data.ConcatDataset(wrong)
    with pytest.warns(FutureWarning, match="cumulative_sizes"):
        assert joined.cummulative_sizes == joined.cumulative_sizes == [5, 6]


def test_chained_data_sets():
    joined = data.ChainDataset([SizedStream(2), SizedStream(3)])
    assert list(joined) == [0, 1, 0, 1, 2]
    assert len(joined) == 5
    assert list(data.DataLoader(joined, batch_size=None)) == [0, 1, 0, 1, 2]
    summed = SizedStream(2) + SizedStream(3)
    assert isinstance(summed, data.ChainDataset)
    assert list(summed) == list(joined)
    wrong = data.ChainDataset([Stream(1), range(2)])
    for use in (list, len):
        with pytest.raises((AssertionError, TypeError), match="IterableDataset|__len__"):
            use(wrong)


def test_stacked_data_sets():
    pair = data.StackDataset(range(3), Several(3))
    assert pair[1] == (1, 10)
    assert pair.__getitems__([2, 0]) == [(2, 20), (0, 0)]
    named = data.StackDataset(x=range(3), y=Several(3))
    assert named[2] == {"x": 2, "y": 20}
    assert named.__getitems__([1]) == [{"x": 1, "y": 10}]
    assert len(pair) == len(named) == 3
    (batch,) = data.DataLoader(named, batch_size=3)
    assert {name: column.tolist() for name, column in batch.items()} == {
        "x": [0, 1, 2],
        "y": [0, 10, 20],
    }
    for args, names in (((), {}), ((range(2), range(3)), {}), ((range(2),), {"x": range(2)})):
        with pytest.raises(ValueError, match="StackDataset"):
            data.StackDataset(*args, **names)


def test_batches_are_asked_of_getitems():
    asked = Several(5)
    assert lists([data.DataLoader(asked, batch_size=2)]) == [[[0, 10], [20, 30], [40]]]
    assert asked.batches == [[0, 1], [2, 3], [4]]
    assert data.Subset(asked, [4, 3]).__getitems__([1, 0]) == [30, 40]
    asked.batches = None  # returns one sample too few
    with pytest.raises(ValueError, match="returned 1 samples for 2"):
        data.Subset(asked, [4, 3]).__getitems__([1, 0])


def test_subsets_that_override_one_method():
    class Half(data.Subset):
        def __getitem__(self, idx):
            return self.dataset[self.indices[idx]] / 2

    with pytest.raises(NotImplementedError, match="__getitems__"):
        data.Subset.__init__(object.__new__(Half), range(3), [1])
    assert data.Subset(flow.arange(4), [3, 1])[[1, 0]].tolist() == [1, 3]


def test_random_split():
    flow.manual_seed(0)
    parts = data.random_split(Squares(10), [3, 5, 2])
    assert [len(part) for part in parts] == [3, 5, 2]
    indices = [i for part in parts for i in part.indices]
    assert sorted(indices) == list(range(10))
    assert indices != list(range(10))
    assert parts[0][1][1] == parts[0].indices[1] ** 2
    assert [len(p) for p in data.random_split(Squares(10), [0.35, 0.35, 0.3])] == [4, 3, 3]
    assert [len(p) for p in data.random_split(Squares(1), [1])] == [1]
    assert [len(p) for p in data.random_split(Squares(4), [0, 4])] == [0, 4]
    with pytest.warns(UserWarning, match="without a sample"):
        assert [len(p) for p in data.random_split(Squares(1), [0.5, 0.5])] == [1, 0]

    def seeded():
        return data.random_split(Squares(10), [0.5, 0.5], flow.Generator().manual_seed(5))

    assert seeded()[0].indices == seeded()[0].indices


@pytest.mark.parametrize("lengths", [[1, 2], [11], [0.5, 0.2], [-1, 11], [2.5, 7.5], []])
def test_random_split_refuses(lengths):
    with pytest.raises(ValueError, match="lengths"):
        data.random_split(Squares(10), lengths)


def test_data_sets_that_miss_a_method():
    with pytest.raises(NotImplementedError, match="__getitem__"):
        data.Dataset()[0]
    with pytest.raises(NotImplementedError, match="__iter__"):
        iter(data.IterableDataset())
    with pytest.raises(TypeError, match="__len__"):
        data.random_split(data.Dataset(), [1])


# Samplers


def test_samplers():
    assert list(data.SequentialSampler(range(3))) == [0, 1, 2]
    flow.manual_seed(0)
    sampler = data.RandomSampler(range(50))
    first, second = list(sampler), list(sampler)
    assert sorted(first) == sorted(second) == list(range(50))
    assert first != second
    assert len(sampler) == 50
    more = list(data.RandomSampler(range(4), num_samples=10))
    assert len(more) == 10
    assert sorted(more[:4]) == sorted(more[4:8]) == [0, 1, 2, 3]
    drawn = list(data.RandomSampler(range(3), replacement=True, num_samples=200))
    assert len(drawn) == 200
    assert set(drawn) == {0, 1, 2}
    subset = data.SubsetRandomSampler([7, 8, 9])
    assert sorted(subset) == [7, 8, 9]
    assert len(subset) == 3


def test_a_generator_fixes_the_order():
    def order(seed):
        return list(data.RandomSampler(range(20), generator=flow.Generator().manual_seed(seed)))

    assert order(1) == order(1)
    assert order(1) != order(2)


def test_batch_sampler():
    batches = data.BatchSampler(range(7), 3, drop_last=False)
    assert list(batches) == [[0, 1, 2], [3, 4, 5], [6]]
    assert len(batches) == 3
    whole = data.BatchSampler(range(7), 3, drop_last=True)
    assert list(whole) == [[0, 1, 2], [3, 4, 5]]
    assert len(whole) == 2
    with pytest.raises(ValueError, match="batch_size"):
        data.BatchSampler(range(3), 0, False)
    with pytest.raises(ValueError, match="drop_last"):
        data.BatchSampler(range(3), 1, "no")
    with pytest.raises(ValueError, match="num_samples"):
        data.RandomSampler(range(3), num_samples=0)
    with pytest.raises(ValueError, match="num_samples"):
        data.RandomSampler([])
    with pytest.raises(TypeError, match="replacement"):
        data.RandomSampler(range(3), replacement=1)
    with pytest.raises(NotImplementedError, match="__iter__"):
        iter(data.Sampler())


def test_weighted_sampler():
    flow.manual_seed(3)
    sampler = data.WeightedRandomSampler([0.0, 3.0, 1.0], 400)
    drawn = list(sampler)
    assert len(drawn) == len(sampler) == 400
    assert set(drawn) == {1, 2}
    assert 260 < drawn.count(1) < 340
    generator = flow.Generator().manual_seed(1)
    order = list(data.WeightedRandomSampler(flow.ones(5), 5, False, generator))
    assert sorted(order) == [0, 1, 2, 3, 4]
    expected = flow.multinomial(
        flow.ones(5, dtype=flow.float64), 5, False, generator=flow.Generator().manual_seed(1)
    )
    assert order == expected.tolist()
    for wrong in (([1.0], 0), ([1.0], True), ([1.0], 1.5), ([[1.0]], 1), ([1.0], 1, 1)):
        with pytest.raises(ValueError, match="WeightedRandomSampler"):
            data.WeightedRandomSampler(*wrong)


def test_samples_are_drawn_as_they_are_asked_for():
    for replacement in (True, False):
        sampler = data.RandomSampler(range(4), replacement, num_samples=10**10)
        assert len(sampler) == 10**10
        assert set(islice(sampler, 100)) == {0, 1, 2, 3}
    batches = iter(data.DataLoader(range(4), batch_size=3, sampler=sampler))
    assert next(batches).shape == (3,)


def test_shares_of_a_distributed_sampler_are_pytorchs():
    torch = pytest.importorskip("torch")
    for count, replicas, drop_last in product((1, 3, 8, 10), (1, 2, 3, 7), (False, True)):
        for rank in range(replicas):
            options = {"num_replicas": replicas, "rank": rank, "drop_last": drop_last}
            ours, theirs = (
                lib.utils.data.DistributedSampler(range(count), shuffle=False, **options)
                for lib in (flow, torch)
            )
            assert list(ours) == list(theirs)
            assert len(ours) == len(theirs) == len(list(ours))
            assert ours.total_size == theirs.total_size


def test_distributed_sampler_shuffles_by_epoch():
    parts = [data.DistributedSampler(range(10), 2, rank, seed=4) for rank in (0, 1)]
    first = [list(part) for part in parts]
    assert sorted(first[0] + first[1]) == list(range(10))
    assert [list(part) for part in parts] == first
    for part in parts:
        part.set_epoch(1)
    second = [list(part) for part in parts]
    assert second != first
    assert sorted(second[0] + second[1]) == list(range(10))
    order = flow.randperm(10, generator=flow.Generator().manual_seed(5)).tolist()
    assert second == [order[::2], order[1::2]]
    for wrong in ((None, 0), (2, None), (2, 2), (2, -1)):
        with pytest.raises(ValueError, match="DistributedSampler"):
            data.DistributedSampler(range(3), *wrong)


@pytest.mark.parametrize("library", ["oneflow_lite", "torch"])
@pytest.mark.parametrize("given", [True, False])
def test_the_order_in_which_numbers_are_drawn(library, given):
    """The base seed first; then the order of the samples, from a seed where no generator is."""
    lib = pytest.importorskip(library)

    def seed(generator):
        return int(lib.empty((), dtype=lib.int64).random_(generator=generator))

    for options in ({}, {"replacement": True, "num_samples": 70}, {"num_samples": 10}):
        lib.manual_seed(8)
        generator = lib.Generator().manual_seed(9) if given else None
        sampler = lib.utils.data.RandomSampler(range(7), generator=generator, **options)
        loader = lib.utils.data.DataLoader(range(7), None, sampler=sampler, generator=generator)
        found = list(loader), seed(None), seed(generator)
        lib.manual_seed(8)
        source = lib.Generator().manual_seed(9) if given else None
        seed(source)
        draws = source if given else lib.Generator().manual_seed(seed(None))
        if "replacement" in options:
            sizes = (32, 32, 6)
            order = [lib.randint(0, 7, (size,), generator=draws).tolist() for size in sizes]
        else:
            rounds = range(1 + options.get("num_samples", 7) // 7)
            order = [lib.randperm(7, generator=draws).tolist() for _ in rounds]
        assert found[0] == list(chain.from_iterable(order))[: options.get("num_samples", 7)]
        assert found[1:] == (seed(None), seed(source))


# Collation


def test_collation_agrees_with_pytorch():
    torch = pytest.importorskip("torch")

    def samples(lib):
        return [
            {
                "tensor": lib.tensor([1.0 * i, 2.0]),
                "array": np.array([i, 2], np.int32),
                "scalar": np.float32(i),
                "float": 1.5 * i,
                "int": i,
                "bool": i > 0,
                "text": "ab"[i],
                "tuple": (i, [i, 2.0]),
                "named": Point(i, 2 * i),
                "flag": np.bool_(i),
                "double": np.float64(i),
                "array of bool": np.array([True, False]),
                "0-d": np.array(i),
                "bytes": b"xy",
                "ordered": OrderedDict(b=i, a=[i]),
                "default": defaultdict(list, a=i),
                "user": UserDict(a=i),
                "list": UserList([i, 2]),
                "proxy": MappingProxyType({"a": i}),
                "range": range(i, i + 2),
            }
            for i in range(2)
        ]

    ours = data.default_collate(samples(flow))
    theirs = torch.utils.data.default_collate(samples(torch))
    assert ours["default"].default_factory is list

    def compare(a, b):
        if isinstance(b, torch.Tensor):
            assert str(a.dtype) == str(b.dtype).removeprefix("torch.")
            np.testing.assert_array_equal(a.numpy(), b.numpy())
        elif isinstance(b, Mapping):
            assert list(a) == list(b)
            assert type(a) is type(b)
            for key in b:
                compare(a[key], b[key])
        elif isinstance(b, (list, tuple, UserList)) and not isinstance(b[0], (str, bytes)):
            assert type(a) is type(b)
            for x, y in zip(a, b, strict=True):
                compare(x, y)
        else:
            assert type(a) is type(b)
            assert a == b

    compare(ours, theirs)
    for sample in (*samples(flow), "text", b"bytes", None, np.str_("x"), np.array(["x"]), 1 + 2j):
        converted = data.default_convert(sample)
        if not isinstance(sample, dict):
            assert converted is sample
            continue
        (same,) = (s for s in samples(torch) if s["int"] == sample["int"])
        compare(converted, torch.utils.data.default_convert(same))
    array = np.zeros(2)
    data.default_convert([array])[0].fill_(1)
    assert array.tolist() == [1, 1]


def test_collation_by_functions_for_types():
    class Word(str):
        pass

    def shout(batch, *, collate_fn_map):
        return "".join(batch).upper()

    collate = data._utils.collate.collate
    functions = {**data._utils.collate.default_collate_fn_map, Word: shout}
    joined = collate([{"a": Word("x"), "b": "u"}] * 2, collate_fn_map=functions)
    assert joined == {"a": "XX", "b": ["u", "u"]}
    assert collate([Word("x")], collate_fn_map={(int, str): shout}) == "X"
    with pytest.raises(TypeError, match="default_collate"):
        collate([1])


def test_collation_refuses():
    with pytest.raises(TypeError, match="collate_fn"):
        data.default_collate([object()])
    for wrong in (None, 1j, np.array(["x"]), np.str_, {1, 2}):
        with pytest.raises(TypeError, match="default_collate"):
            data.default_collate([wrong])
    with pytest.raises(RuntimeError, match="entries"):
        data.default_collate([(1, 2), (1,)])
    with pytest.raises(RuntimeError):
        data.default_collate([flow.ones(2), flow.ones(3)])


# The loader


def test_batches_of_tensors_and_of_samples_are_the_same():
    x, y = flow.arange(14).reshape(7, 2), flow.rand(7)
    whole = data.TensorDataset(x, y)

    class Slow(data.TensorDataset):
        """Samples one by one."""

    for options in ({}, {"batch_size": 3}, {"batch_size": 3, "drop_last": True}):
        fast, slow = (list(data.DataLoader(d, **options)) for d in (whole, Slow(x, y)))
        assert len(fast) == len(slow) == len(data.DataLoader(whole, **options))
        for a, b in zip(fast, slow, strict=True):
            assert type(a) is type(b) is list
            for s, t in zip(a, b, strict=True):
                assert s.dtype == t.dtype
                np.testing.assert_array_equal(s.numpy(), t.numpy())


def test_a_batch_does_not_share_memory_with_the_data_set():
    x = flow.zeros(4, 2)
    for (batch,) in data.DataLoader(data.TensorDataset(x), batch_size=2):
        batch.fill_(1)
    assert not x.any()


def test_subsets_of_tensors():
    dataset = data.TensorDataset(flow.arange(10) * 10)
    subset = data.Subset(data.Subset(dataset, [9, 7, 5, 3]), [2, 0])
    assert lists(data.DataLoader(subset, batch_size=2)) == [[[50, 90]]]


def test_gradients_flow_into_the_data_set():
    x = flow.arange(4.0).requires_grad_()
    for (batch,) in data.DataLoader(data.TensorDataset(x), batch_size=3):
        (batch * batch).sum().backward()
    np.testing.assert_array_equal(x.grad.numpy(), [0.0, 2.0, 4.0, 6.0])


def test_any_sequence_is_a_data_set():
    loader = data.DataLoader([1, 2, 3], batch_size=2)
    assert [batch.tolist() for batch in loader] == [[1, 2], [3]]
    assert [batch.tolist() for batch in loader] == [[1, 2], [3]]


def test_shuffling():
    dataset = data.TensorDataset(flow.arange(30))

    def epochs(seed, count=2):
        generator = flow.Generator().manual_seed(seed)
        loader = data.DataLoader(dataset, batch_size=8, shuffle=True, generator=generator)
        return [[i for (batch,) in loader for i in batch.tolist()] for _ in range(count)]

    first, second = epochs(1)
    assert sorted(first) == sorted(second) == list(range(30))
    assert first != second != list(range(30))
    assert epochs(1) == [first, second]
    assert epochs(2) != [first, second]
    flow.manual_seed(4)
    default = [b.tolist() for (b,) in data.DataLoader(dataset, batch_size=8, shuffle=True)]
    flow.manual_seed(4)
    assert default == [b.tolist() for (b,) in data.DataLoader(dataset, batch_size=8, shuffle=True)]


def test_samplers_and_batch_samplers():
    dataset = Squares(10)
    assert lists(data.DataLoader(dataset, 2, sampler=[3, 1, 2])) == [
        [[3.0, 1.0], [9, 1]],
        [[2.0], [4]],
    ]
    loader = data.DataLoader(dataset, batch_sampler=[[0, 5], [2]])
    assert lists(loader) == [[[0.0, 5.0], [0, 25]], [[2.0], [4]]]
    assert len(loader) == 2


def test_collate_fn():
    loader = data.DataLoader(Squares(4), batch_size=3, collate_fn=lambda batch: len(batch))
    assert list(loader) == [3, 1]
    tensors = data.TensorDataset(flow.arange(3))
    assert list(data.DataLoader(tensors, 2, collate_fn=lambda batch: len(batch))) == [2, 1]


def test_without_batches_samples_are_passed_on():
    loader = data.DataLoader(Squares(3), batch_size=None)
    assert [square for _, square in loader] == [0, 1, 4]
    assert len(loader) == 3
    assert list(data.DataLoader([1, 2], batch_size=None, collate_fn=str)) == ["1", "2"]


def test_streams():
    loader = data.DataLoader(Stream(5), batch_size=2)
    assert [batch.tolist() for batch in loader] == [[0, 1], [2, 3], [4]]
    assert [b.tolist() for b in data.DataLoader(Stream(5), 2, drop_last=True)] == [[0, 1], [2, 3]]
    assert list(data.DataLoader(Stream(2), batch_size=None)) == [0, 1]
    with pytest.raises(TypeError):
        len(loader)
    assert len(data.DataLoader(SizedStream(5), batch_size=2)) == 3
    assert len(data.DataLoader(SizedStream(5), batch_size=2, drop_last=True)) == 2
    assert len(data.DataLoader(SizedStream(5), batch_size=None)) == 5


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"num_workers": -1}, "num_workers"),
        ({"timeout": -1}, "timeout"),
        ({"prefetch_factor": 2}, "prefetch_factor"),
        ({"num_workers": 1, "prefetch_factor": -1}, "prefetch_factor"),
        ({"persistent_workers": True}, "persistent_workers"),
        ({"multiprocessing_context": "fork"}, "multiprocessing_context"),
        ({"num_workers": 1, "multiprocessing_context": "spoon"}, "multiprocessing_context"),
        ({"batch_size": 0}, "batch_size"),
        ({"sampler": [1], "shuffle": True}, "sampler"),
        ({"batch_sampler": [[1]], "batch_size": 2}, "batch_sampler"),
        ({"batch_sampler": [[1]], "shuffle": True}, "batch_sampler"),
        ({"batch_sampler": [[1]], "drop_last": True}, "batch_sampler"),
        ({"batch_size": None, "drop_last": True}, "drop_last"),
    ],
)
def test_options_that_exclude_each_other(options, text):
    with pytest.raises(ValueError, match=text):
        data.DataLoader(Squares(3), **options)


def test_options_of_the_wrong_kind():
    with pytest.raises(TypeError, match="multiprocessing_context"):
        data.DataLoader(Squares(3), num_workers=1, multiprocessing_context=3)
    with pytest.raises(AssertionError, match="timeout"):
        iter(data.DataLoader(Squares(3), timeout=1))
    with pytest.raises(AssertionError, match="prefetch_factor"):
        iter(data.DataLoader(Squares(3), num_workers=1, prefetch_factor=0))
    loader = data.DataLoader(Squares(3))
    for name in ("batch_size", "sampler", "dataset", "drop_last", "persistent_workers"):
        with pytest.raises(ValueError, match=name):
            setattr(loader, name, None)
    loader.collate_fn = len
    assert list(loader) == [1, 1, 1]


def test_more_workers_than_cores_warn():
    with pytest.warns(UserWarning, match="4096 worker processes") as caught:
        data.DataLoader(Squares(3), num_workers=4096)
    assert caught[0].filename == __file__


@pytest.mark.parametrize("option", [{"shuffle": True}, {"sampler": [1]}, {"batch_sampler": [[1]]}])
def test_a_stream_cannot_be_ordered(option):
    with pytest.raises(ValueError, match="IterableDataset"):
        data.DataLoader(Stream(3), **option)
    assert len(list(data.DataLoader(Stream(3), shuffle=False))) == 3


def test_a_stream_that_is_longer_than_it_says(monkeypatch):
    loader = data.DataLoader(SizedStream(3), batch_size=None)
    monkeypatch.setattr(SizedStream, "__len__", lambda self: 2)
    assert len(loader) == 2
    with pytest.warns(UserWarning, match="reported to be 2, but 3"):
        assert list(loader) == [0, 1, 2]


def test_an_index_out_of_range_is_named():
    with pytest.raises(IndexError):
        list(data.DataLoader(data.TensorDataset(flow.arange(3)), batch_sampler=[[0, 3]]))


def test_batches_of_tensors_on_a_device(device):
    dataset = data.TensorDataset(flow.arange(5).to(device), flow.arange(5))
    batches = list(data.DataLoader(dataset, batch_size=3))
    assert [x.device.type for x, _ in batches] == [device] * 2
    assert [(x.cpu() == y).all().item() for x, y in batches] == [True] * 2
