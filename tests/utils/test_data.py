"""Data sets, samplers, collation and the loader."""

from collections import namedtuple

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
        ((flow.ones(2), flow.ones(3)), RuntimeError),
        ((flow.ones(2), flow.ones(())), RuntimeError),
        ((flow.ones(()),), RuntimeError),
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
    for index in (6, -7):
        with pytest.raises(IndexError, match="ConcatDataset"):
            joined[index]
    for wrong in ([], [Stream(3)]):
        with pytest.raises(ValueError, match="datasets"):
            data.ConcatDataset(wrong)


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
    assert list(data.RandomSampler([])) == []
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
            }
            for i in range(2)
        ]

    ours = data.default_collate(samples(flow))
    theirs = torch.utils.data.default_collate(samples(torch))

    def compare(a, b):
        if isinstance(b, torch.Tensor):
            assert str(a.dtype) == str(b.dtype).removeprefix("torch.")
            np.testing.assert_array_equal(a.numpy(), b.numpy())
        elif isinstance(b, dict):
            assert list(a) == list(b)
            for key in b:
                compare(a[key], b[key])
        elif isinstance(b, (list, tuple)) and not isinstance(b[0], str):
            assert type(a) is type(b)
            for x, y in zip(a, b, strict=True):
                compare(x, y)
        else:
            assert list(a) == list(b)

    compare(ours, theirs)


def test_collation_refuses():
    with pytest.raises(TypeError, match="collate_fn"):
        data.default_collate([object()])
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
        ({"num_workers": 2}, "num_workers"),
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


def test_a_stream_cannot_be_shuffled():
    with pytest.raises(ValueError, match="IterableDataset"):
        data.DataLoader(Stream(3), shuffle=True)


def test_an_index_out_of_range_is_named():
    with pytest.raises(IndexError):
        list(data.DataLoader(data.TensorDataset(flow.arange(3)), batch_sampler=[[0, 3]]))


def test_batches_of_tensors_on_a_device(device):
    dataset = data.TensorDataset(flow.arange(5).to(device), flow.arange(5))
    batches = list(data.DataLoader(dataset, batch_size=3))
    assert [x.device.type for x, _ in batches] == [device] * 2
    assert [(x.cpu() == y).all().item() for x, y in batches] == [True] * 2
