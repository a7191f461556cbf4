"""The DataLoader's workers: what they return, how they fail, and that nothing is left of them."""

import contextlib
import gc
import itertools
import multiprocessing
import os
import pickle
import random
import signal
import subprocess
import sys
import textwrap
import time
import weakref
from pathlib import Path

import numpy as np
import pytest

import oneflow_lite as flow
from oneflow_lite.utils import data
from oneflow_lite.utils.data._utils import worker
from oneflow_lite.utils.data.dataloader import (
    _DatasetKind,
    _MultiProcessingDataLoaderIter,
    _SingleProcessDataLoaderIter,
)

pytestmark = pytest.mark.skipif(
    "fork" not in multiprocessing.get_all_start_methods(), reason="the tests start workers by fork"
)
ROOT = Path(__file__).resolve().parents[2]
SECONDS = 30  # that a test may take


def too_long(number, frame):
    raise TimeoutError(f"the test took more than {SECONDS} seconds")


def descriptors() -> int:
    return len(os.listdir("/proc/self/fd")) if os.path.exists("/proc/self/fd") else 0


@pytest.fixture(autouse=True)
def nothing_is_left():
    """Stop a test that hangs; look for processes and descriptors after it."""
    before, handler = descriptors(), signal.signal(signal.SIGALRM, too_long)
    signal.alarm(SECONDS)
    try:
        yield
        if descriptors() > before or multiprocessing.active_children():
            gc.collect()  # an error that was caught holds frames
        assert descriptors() <= before
        assert multiprocessing.active_children() == []
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, handler)


class Samples(data.Dataset):
    """Samples that a function makes of their index."""

    def __init__(self, make, count=8) -> None:
        self.make, self.count = make, count

    def __getitem__(self, index):
        return self.make(index)

    def __len__(self) -> int:
        return self.count


class Streams(data.IterableDataset):
    """One stream for each worker."""

    def __init__(self, *streams) -> None:
        self.streams = streams

    def __iter__(self):
        return iter(self.streams[data.get_worker_info().id])


def loader(dataset, **options):
    given = {"num_workers": 2, "multiprocessing_context": "fork", **options}
    return data.DataLoader(dataset if callable(dataset) is False else Samples(dataset), **given)


def pid(index=None) -> int:
    return os.getpid()


def gone(number: int) -> bool:
    """Return whether a process has ended; one that nobody has waited for counts."""
    for _ in range(400):
        try:
            os.kill(number, 0)
            with open(f"/proc/{number}/stat") as file:
                if file.read().rpartition(")")[2].split()[0] == "Z":
                    return True
        except OSError:
            return True
        time.sleep(0.01)
    return False


# What comes


@pytest.mark.parametrize(
    "options",
    [
        {"batch_size": 3},
        {"batch_size": 3, "drop_last": True, "prefetch_factor": 1},
        {"batch_size": None},
        {"batch_sampler": [[5, 1], [2], [0, 7, 3]]},
        {"batch_size": 2, "sampler": [6, 6, 1], "collate_fn": sorted, "pin_memory": True},
        {"batch_size": 1, "prefetch_factor": 20, "timeout": 20},
    ],
)
def test_batches_come_in_the_order_of_the_sampler(options):
    dataset = Samples(lambda index: index * 10)
    other = {k: v for k, v in options.items() if k not in ("prefetch_factor", "timeout")}
    expected = list(data.DataLoader(dataset, **other))
    found = loader(dataset, **options)
    assert repr(list(found)) == repr(expected)
    assert len(found) == len(expected)


def test_shuffled_passes():
    def passes(**options):
        generator = flow.Generator().manual_seed(3)
        made = data.DataLoader(range(20), 4, True, generator=generator, **options)
        return [[i for batch in made for i in batch.tolist()] for _ in range(2)]

    with_workers = passes(num_workers=2, multiprocessing_context="fork")
    assert passes() == with_workers
    assert with_workers[0] != with_workers[1]


def test_values_arrive_as_they_were():
    big = np.arange(300_000.0).reshape(3, 1000, 100)
    grad = flow.ones(2).requires_grad_()
    values = [
        flow.from_numpy(big),
        flow.from_numpy(big).permute(2, 0, 1)[::2],
        flow.ones(1000, 1).expand(1000, 100),
        {"empty": flow.zeros(0, 3), "scalar": flow.tensor(2.5), "none": None},
        [grad, flow.tensor([1 + 2j]), flow.tensor([True]), flow.ones(3, dtype=flow.bfloat16)],
        ("text" * 20_000, b"\0" * 50_000, np.float32(3), big.astype(np.int16), 10**30),
        np.array(["a", None], dtype=object),
        big[:, :50].T,
    ]
    found = list(loader(values, batch_size=None, collate_fn=lambda value: value))
    assert found[4][0].requires_grad
    assert found[4][3].dtype == flow.bfloat16

    def compare(a, b):
        assert type(a) is type(b)
        if isinstance(b, flow.Tensor | np.ndarray):
            assert a.dtype == b.dtype
            assert a.shape == b.shape
            assert (a == b).all()
        elif isinstance(b, list | tuple | dict):
            assert len(a) == len(b)
            for key in b if isinstance(b, dict) else range(len(b)):
                compare(a[key], b[key])
        else:
            assert a == b

    compare(found, values)
    found[0].fill_(1)
    found[3]["scalar"].add_(1)
    assert found[0].sum().item() == 300_000


def test_batches_of_growing_size_share_no_memory():
    sizes = [10, 9000, 50, 40_000, 40_000, 9001, 200_000, 3, 200_000, 40_000]
    made = loader(lambda i: flow.full((sizes[i],), float(i)), batch_size=None, prefetch_factor=3)
    made.dataset.count = len(sizes)
    found = list(made)
    assert [(x.shape[0], x.min().item(), x.max().item()) for x in found] == [
        (size, float(i), float(i)) for i, size in enumerate(sizes)
    ]


@pytest.mark.skipif(not os.path.exists("/proc/self/fd"), reason="descriptors are counted there")
def test_memory_is_used_again():
    made = loader(lambda i: (flow.zeros(20_000), descriptors()), batch_size=None)
    made.dataset.count = 60
    kept, here = zip(*[(sample, descriptors()) for sample in made], strict=True)
    there = [number for _, number in kept]
    for counts in (here, there):  # one or two for each slot: the tasks ahead and one more
        assert max(counts) <= counts[0] + 6


def test_large_tasks_and_large_replies_do_not_block_each_other():
    many = list(range(60_000))
    made = loader(range(60_000), batch_sampler=[many] * 8, collate_fn=list, prefetch_factor=4)
    assert all(batch == many for batch in made)


def test_grad_mode_and_interpreters_stay_in_the_main_process():
    class Deaf(flow.Interpreter):
        def apply(self, op_expr, inputs, attrs):
            raise AssertionError("a worker's op")

    with flow.no_grad(), flow.push_interpreter(Deaf()):
        made = iter(loader(lambda i: flow.is_grad_enabled() and (flow.ones(1) + 1).item(), **ONE))
    assert next(made) == 2.0


ONE = {"batch_size": None, "num_workers": 1}


# Streams


def test_each_worker_has_its_share_of_a_stream():
    made = loader(Streams(range(5), range(10, 12)), batch_size=2)
    assert [b.tolist() for b in made] == [[0, 1], [10, 11], [2, 3], [4]]
    made = loader(Streams(range(5), range(10, 13)), batch_size=2, drop_last=True)
    assert [b.tolist() for b in made] == [[0, 1], [10, 11], [2, 3]]
    made = loader(Streams([], range(4)), batch_size=None, prefetch_factor=1)
    assert list(made) == [0, 1, 2, 3]
    made = loader(Streams(range(3), range(10, 17)), batch_size=None, in_order=False)
    assert sorted(made) == [0, 1, 2, *range(10, 17)]


def test_a_stream_that_is_not_divided_comes_from_each_worker():
    class Same(data.IterableDataset):
        def __iter__(self):
            return iter(range(3))

        def __len__(self):
            return 3

    made = loader(Same(), batch_size=None)
    assert [*made] == [0, 0, 1, 1, 2, 2]
    assert len(made) == 3
    with pytest.warns(UserWarning, match="reported to be 3, but [456]"):
        assert len(list(made)) == 6


def test_what_a_worker_is_told():
    def look(number):
        info = data.get_worker_info()
        started.append(number)
        assert info.dataset is dataset
        return info.id, info.num_workers, info.seed, flow.initial_seed(), started

    started = []
    dataset = Samples(look, 4)
    assert data.get_worker_info() is None
    flow.manual_seed(11)
    found = list(loader(dataset, batch_size=None, worker_init_fn=started.append))
    flow.manual_seed(11)
    base = int(flow.empty((), dtype=flow.int64).random_())
    assert [tuple(f[:4]) for f in found] == [
        (i % 2, 2, base + i % 2, base + i % 2) for i in range(4)
    ]
    assert [f[4] for f in found] == [[0, 0], [1, 1], [0, 0, 2], [1, 1, 3]]


def test_workers_draw_from_seeds_of_their_own():
    def draw(index):
        return random.random(), np.random.random(), flow.rand(()).item()

    def passes():
        generator = flow.Generator().manual_seed(5)
        return [list(loader(draw, batch_size=None, generator=generator)) for _ in range(2)]

    once = passes()
    assert once == passes()
    assert len({tuple(sample) for one in once for sample in one}) == 16
    assert len({number for one in once for sample in one for number in sample}) == 48


# Passes


def test_persistent_workers():
    made = loader(lambda i: (os.getpid(), i), batch_size=None, persistent_workers=True)
    first = list(made)
    assert [i for _, i in first] == list(range(8))
    iterator = iter(made)
    next(iterator)
    assert iter(made) is iterator  # begun again, in the middle
    assert list(made) == first
    assert len({pid for pid, _ in first}) == 2
    copied = pickle.loads(pickle.dumps(data.DataLoader(range(2), num_workers=1)))
    assert len(list(copied)) == 2
    with pytest.raises(NotImplementedError, match="pickled"):
        pickle.dumps(iterator)
    del iterator
    made.dataset.make = None  # for pickle; the workers have their copy
    assert pickle.loads(pickle.dumps(made))._iterator is None
    assert list(made) == first


class Wrapped:
    """An iterator around a loader's, as packages write them."""

    def __init__(self, inner):
        self.inner = inner

    def __iter__(self):
        return self

    def __next__(self):
        return -next(self.inner)

    def _reset(self, loader, first_iter=False):
        self.inner._reset(loader, first_iter)

    def __del__(self):
        if isinstance(self.inner, _MultiProcessingDataLoaderIter):
            self.inner.__del__()


class Negative(data.DataLoader):
    def _get_iterator(self):
        return Wrapped(super()._get_iterator())


@pytest.mark.parametrize("persistent", [False, True])
def test_a_loader_may_wrap_its_iterator(persistent):
    options = {"batch_size": None, "num_workers": 2, "persistent_workers": persistent}
    made = Negative(range(4), **options)
    assert list(made) == list(made) == [0, -1, -2, -3]
    iterator = iter(made)
    assert next(iterator) == 0
    iterator.inner._shutdown_workers()
    with pytest.raises(RuntimeError, match="have ended"):
        next(iterator)
    assert list(made) == [0, -1, -2, -3]


def test_persistent_streams_begin_again():
    made = loader(Streams(range(2), range(5, 6)), batch_size=None, persistent_workers=True)
    assert list(made) == list(made) == [0, 5, 1]
    dead = loader(lambda i: os._exit(1) if i == 7 else pid(), **ONE, persistent_workers=True)
    for _ in range(2):  # a loader whose workers died starts others
        with pytest.raises(RuntimeError, match="exit code 1"):
            list(dead)


def test_a_sampler_is_asked_as_often_as_pytorch_asks_it():
    class Noted:
        def __iter__(self):
            asked.append(1)
            return iter([1, 0])

    for options, counts in (
        ({"num_workers": 0, "multiprocessing_context": None}, [1, 2]),
        ({"num_workers": 1}, [2, 4]),
        ({"num_workers": 1, "persistent_workers": True}, [2, 3]),
    ):
        asked = []
        made = loader(range(2), batch_size=None, sampler=Noted(), **options)
        assert [(list(made), len(asked)) for _ in range(2)] == [([1, 0], n) for n in counts]


def test_nested_passes():
    made = loader(range(3), batch_size=None)
    assert [(a, b) for a in made for b in made] == [(a, b) for a in range(3) for b in range(3)]


def test_results_as_they_are_made():
    def wait(index):
        if index == 0:
            while not os.path.exists(flag):
                time.sleep(0.005)
        return index

    flag = f"/tmp/{os.getpid()}.{time.monotonic_ns()}"
    iterator = iter(loader(wait, batch_size=None, in_order=False, prefetch_factor=1))
    try:
        assert {next(iterator) for _ in range(7)} == set(range(1, 8))
    finally:
        Path(flag).touch()
    assert list(iterator) == [0]
    os.remove(flag)


# Errors


class Two(Exception):
    def __init__(self, a, b):
        super().__init__(a, b)


class Worded(Exception):
    message = "a default"

    def __init__(self, *, message):
        super().__init__(message)


def broken(index):
    class Inner(Exception):
        pass

    if index in ERRORS:
        raise {"local": Inner("here")}.get(ERRORS[index], ERRORS[index])
    return index


ERRORS = {
    0: ValueError("bad value"), 2: KeyError("key"), 3: Two(1, 2), 4: Worded(message="said"),
    5: "local", 6: flow.errors.ShapeError("a shape"),
}  # fmt: skip


def test_exceptions_come_back_with_their_class_and_traceback():
    iterator = iter(loader(broken, batch_size=None))
    kinds = [ValueError, None, KeyError, RuntimeError, Worded, RuntimeError, flow.errors.ShapeError]
    for index, kind in enumerate([*kinds, None]):
        if kind is None:
            assert next(iterator) == index
            continue
        with pytest.raises(kind) as caught:
            next(iterator)
        assert type(caught.value) is kind
        text, number = str(caught.value), index % 2
        name = {3: "Two", 5: "Inner"}.get(index, kind.__name__)
        start = f"Caught {name} in DataLoader worker process {number}.\nOriginal Traceback (most"
        assert text.startswith(start)
        assert "in broken\n" in text
    with pytest.raises(StopIteration):
        next(iterator)


def test_errors_before_and_after_the_samples():
    def fails(number):
        raise OSError(f"no disk for {number}")

    for made, kind, text in (
        (loader(range(3), worker_init_fn=fails, **ONE), OSError, "no disk for 0"),
        (
            loader(lambda i: lambda: i, **ONE),
            (AttributeError, pickle.PicklingError),
            "local object",
        ),
        (loader(lambda i: flow.ones(1).requires_grad_() * 2, **ONE), RuntimeError, "detach"),
        (loader(Streams(3), **ONE), TypeError, "iterable"),
        (loader(range(3), collate_fn=lambda s: s[0], **ONE), TypeError, "subscriptable"),
    ):
        iterator = iter(made)
        for _ in range(2):
            with pytest.raises(kind, match=text):
                next(iterator)


@pytest.mark.parametrize("how", ["exit", "kill", "close"])
def test_a_worker_that_dies(how):
    def die(index):
        if index == 3:
            if how == "kill":
                os.kill(os.getpid(), signal.SIGKILL)
            if how == "close":
                os.closerange(3, 60)
                time.sleep(0.2)
            os._exit(5)
        return os.getpid()

    iterator = iter(loader(die, batch_size=None))
    pids = [next(iterator) for _ in range(3)]
    with pytest.raises(RuntimeError, match=r"DataLoader worker \(pid \d+, worker 1\)") as caught:
        next(iterator)
    assert f"pid {pids[1]}," in str(caught.value)
    assert ("signal 9 (Killed" if how == "kill" else "exit code 5") in str(caught.value)
    assert gone(pids[0])
    with pytest.raises(RuntimeError, match="have ended"):
        next(iterator)


def test_a_worker_that_is_too_slow():
    def sleep(index):
        time.sleep(0.3 if index == 1 else 0)
        return index

    iterator = iter(loader(sleep, timeout=0.1, **ONE))
    assert next(iterator) == 0
    with pytest.raises(RuntimeError, match=r"timed out after 0\.1 seconds"):
        next(iterator)
    time.sleep(0.3)
    assert next(iterator) == 1


# Endings


def test_leaving_a_loop_ends_the_workers():
    made = loader(pid, batch_size=None)
    for first in made:
        break
    assert gone(first)
    iterator = iter(made)
    seen = weakref.ref(iterator)
    number = next(iterator)
    del iterator
    assert seen() is None
    assert gone(number)
    with contextlib.suppress(ZeroDivisionError):
        for number in made:
            raise ZeroDivisionError
    assert gone(number)
    gc.disable()
    try:
        stays = loader(pid, batch_size=None, persistent_workers=True)
        number = next(iter(stays))
        del stays
        assert gone(number)
    finally:
        gc.enable()
    cycle = [iter(made)]
    cycle.append(cycle)
    number = next(cycle[0])
    del cycle
    gc.collect()
    assert gone(number)


def test_a_worker_that_does_not_go_is_killed(monkeypatch):
    monkeypatch.setattr(worker, "MP_STATUS_CHECK_INTERVAL", 0.05)

    def stay(index):
        if index == 1:
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            while True:
                time.sleep(1)
        return os.getpid()

    iterator = iter(loader(stay, **ONE))
    number = next(iterator)
    time.sleep(0.1)
    del iterator
    assert gone(number)


def test_another_process_does_not_end_the_workers():
    iterator = iter(loader(lambda i: i, batch_size=None))
    next(iterator)
    child = os.fork()
    if not child:
        iterator._close()
        os._exit(0)
    os.waitpid(child, 0)
    assert list(iterator) == list(range(1, 8))


def run(script: str, *arguments: str, tmp_path: Path) -> subprocess.CompletedProcess:
    """Run a script by itself; every warning is an error, but that there are few cores."""
    path = tmp_path / "script.py"
    path.write_text(textwrap.dedent(script))
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    return subprocess.run(
        [sys.executable, "-W", "error", "-W", "ignore:This DataLoader", str(path), *arguments],
        capture_output=True, text=True, timeout=SECONDS - 5, env=environment, check=False,
    )  # fmt: skip


def test_workers_end_with_a_main_process_that_is_killed(tmp_path):
    script = """
        import os, signal
        from oneflow_lite.utils import data

        class Pids(data.Dataset):
            def __getitem__(self, index):
                return os.getpid()

            def __len__(self):
                return 100

        made = data.DataLoader(
            Pids(), None, num_workers=2, multiprocessing_context="fork", persistent_workers=True
        )
        iterator = iter(made)
        print(next(iterator), next(iterator), flush=True)
        os.kill(os.getpid(), signal.SIGKILL)
    """
    done = run(script, tmp_path=tmp_path)
    assert done.returncode == -signal.SIGKILL
    pids = [int(word) for word in done.stdout.split()]
    assert len(pids) == 2
    assert all(gone(number) for number in pids)


def test_an_interrupt_ends_the_workers(tmp_path):
    """One of the main process, and one of a worker; in a process that no other test has used."""
    script = """
        import os, signal, time
        from tests.utils.test_data_workers import ONE, gone, loader, pid

        main = os.getpid()
        # What a shell starts in the background ignores interrupts.
        signal.signal(signal.SIGINT, signal.default_int_handler)

        def interrupt(index):
            if index == 1:
                time.sleep(0.2)
                os.kill(main, signal.SIGINT)
                time.sleep(0.1)
            return os.getpid()

        iterator = iter(loader(interrupt, **ONE))
        try:
            for number in iterator:
                pass
        except KeyboardInterrupt:
            print("interrupted")
        assert gone(number)
        iterator = iter(loader(pid, **ONE))
        number = next(iterator)
        os.kill(number, signal.SIGINT)  # as from a terminal
        assert gone(number)
        print("ended")
    """
    done = run(script, tmp_path=tmp_path)
    assert (done.returncode, done.stdout) == (0, "interrupted\nended\n"), done.stderr


def test_spawned_workers(tmp_path):
    """And one whose tasks are open when the program ends; nothing is written to stderr."""
    script = """
        import multiprocessing, pickle
        import numpy as np
        import oneflow_lite as flow
        from oneflow_lite.utils import data

        class Rows(data.Dataset):
            def __getitem__(self, index):
                if index == 5:
                    raise Wrong(f"sample {index}")
                return flow.full((30_000,), float(index)), data.get_worker_info().seed

            def __len__(self):
                return 9

        class Wrong(ValueError):
            pass

        def prepare(number):
            assert data.get_worker_info().id == number

        if __name__ == "__main__":
            options = {"num_workers": 2, "multiprocessing_context": "spawn"}
            generator = flow.Generator().manual_seed(2)
            made = data.DataLoader(
                Rows(), 2, worker_init_fn=prepare, generator=generator,
                persistent_workers=True, **options,
            )
            base = int(flow.empty((), dtype=flow.int64).random_(
                generator=flow.Generator().manual_seed(2)))
            iterator = iter(made)
            for number in range(2):
                rows, seeds = next(iterator)
                assert rows[:, 7].tolist() == [2.0 * number, 2.0 * number + 1]
                assert seeds.tolist() == [base + number] * 2
            try:
                next(iterator)
            except Wrong as error:
                assert "sample 5" in str(error) and "in __getitem__" in str(error)
            else:
                raise AssertionError("no error")
            try:
                iter(data.DataLoader(Rows(), collate_fn=lambda batch: batch, **options))
            except (AttributeError, pickle.PicklingError) as error:
                assert "top of a module" in error.__notes__[0]
            assert len(multiprocessing.active_children()) == 2
            print("done")
    """
    done = run(script, tmp_path=tmp_path)
    assert (done.stdout, done.stderr, done.returncode) == ("done\n", "", 0)


def test_what_acts_as_a_loader_says_whether_it_streams():
    class Stand:  # as packages do that make batches themselves
        _IterableDataset_len_called, _auto_collation, drop_last, generator = (
            None,
            False,
            False,
            None,
        )
        timeout, num_workers, _dataset_kind = 0, 0, _DatasetKind.Iterable

        def __init__(self):
            self.dataset, self._index_sampler = self, itertools.count()

        def collate_fn(self, x):
            return x * 2

        def __iter__(self):
            return iter([1, 2, 3])

    assert list(_SingleProcessDataLoaderIter(Stand())) == [2, 4, 6]
