"""Sizes that no array can have, and sequences without an end, are refused before they are made."""

import os
import subprocess
import sys

import pytest

import oneflow_lite as flow
from oneflow_lite import nn
from oneflow_lite.errors import ArgumentError, FlowError, OutOfMemoryError

SIZES = [2**62, 2**70, -(2**62)]
F = nn.functional
x, v = flow.arange(6.0).reshape(2, 3), flow.arange(6)
OF_SIZE = {
    "zeros": lambda n: flow.zeros(n),
    "full": lambda n: flow.full((n, 2), 1),
    "rand": lambda n: flow.rand(n),
    "arange": lambda n: flow.arange(-abs(n), abs(n)),
    "linspace": lambda n: flow.linspace(0, 1, n),
    "eye": lambda n: flow.eye(n),
    "randperm": lambda n: flow.randperm(n),
    "hann_window": lambda n: flow.hann_window(n),
    "kaiser_window": lambda n: flow.kaiser_window(n),
    "windows.cosine": lambda n: flow.signal.windows.cosine(n),
    "fftfreq": lambda n: flow.fft.fftfreq(n),
    "fft": lambda n: flow.fft.fft(x, n),
    "fftn": lambda n: flow.fft.fftn(x, s=(n, n)),
    "tril_indices": lambda n: flow.tril_indices(n, n),
    "repeat": lambda n: v.repeat(n),
    "tile": lambda n: flow.tile(v, (n, n)),
    "repeat_interleave": lambda n: flow.repeat_interleave(v, n),
    "one_hot": lambda n: F.one_hot(v, abs(n)),
    "bincount": lambda n: flow.bincount(v, minlength=n),
    "tensor_split": lambda n: flow.tensor_split(v, n),
    "chunk": lambda n: flow.chunk(v[:0], n),
    "pad": lambda n: F.pad(x, (n, 0)),
    "interpolate": lambda n: F.interpolate(flow.ones(1, 1, 4), n),
    "adaptive_max_pool1d": lambda n: F.adaptive_max_pool1d(flow.ones(1, 1, 4), n),
    "conv_transpose": lambda n: F.conv_transpose1d(
        flow.ones(1, 1, 3), flow.ones(1, 1, 3), stride=n
    ),
    "nonzero_static": lambda n: flow.nonzero_static(v, size=n),
    "vander": lambda n: flow.vander(v, n),
    "diagflat": lambda n: flow.diagflat(v, n),
    "multinomial": lambda n: flow.multinomial(x[1], n, True),
    "combinations": lambda n: flow.combinations(v, n, True),
    "Embedding": lambda n: nn.Embedding(n, 3),
    "Linear": lambda n: nn.Linear(3, n),
    "Conv2d": lambda n: nn.Conv2d(1, 1, n),
    "histc": lambda n: flow.histc(x, n),
    "clone of expand": lambda n: v[:1].expand(n).clone(),
}


@pytest.mark.parametrize("name", OF_SIZE)
def test_a_size_that_no_array_can_have_is_refused(name):
    for size in SIZES:
        with pytest.raises(FlowError) as caught:
            OF_SIZE[name](size)
        assert isinstance(caught.value, RuntimeError | TypeError)


def test_the_error_names_op_argument_and_number():
    with pytest.raises(
        OutOfMemoryError, match=r"fft\.fftfreq\(\): .* needed for n=4611686018427"
    ) as e:
        flow.fft.fftfreq(2**62)
    assert isinstance(e.value, MemoryError) and isinstance(e.value, RuntimeError)
    with pytest.raises(
        OutOfMemoryError, match=r"pad\(\): .*input shapes \[\(2, 3\)\], .*4611686018"
    ):
        F.pad(x, (2**62, 0))


ROWS = [flow.combinations, lambda v, r: flow.combinations(v, r, with_replacement=True)]


@pytest.mark.parametrize("combinations", ROWS)
def test_combinations_are_counted_before_they_are_listed(combinations):
    with pytest.raises(OutOfMemoryError, match=r"combinations\(\): .*rows=\d{11,}"):
        combinations(flow.arange(50), 25)


def test_no_combination_of_more_than_there_are():
    assert flow.combinations(v, 7).shape == (0, 7)
    assert flow.combinations(flow.arange(0), 2, True).shape == (0, 2)


SCRIPTS = {
    "counts": "flow.repeat_interleave(v, flow.tensor(2**62))",
    "a vector of counts": "flow.repeat_interleave(flow.tensor([2**62] * 4))",
    "sections": "flow.tensor_split(v, flow.tensor(2**62))",
    "a list in itself": "flow.tensor(cyclic)",
    "a list twice in itself": "flow.tensor(twice)",
    "an index": "v[twice]",
    "a tree": "flow.utils._pytree.tree_map(abs, twice)",
    "a batch": "flow.utils.data.default_collate(cyclic)",
    "a sample": "flow.utils.data.default_convert(twice)",
    "many levels": "flow.tensor(deep)",
    "a shape": "v.reshape(deep)",
    "a long range": "flow.tensor(range(2**62))",
    "many samples": "flow.combinations(flow.arange(10**6), 2)",
    "many pools": "flow.nn.functional.adaptive_max_pool2d(flow.ones(1, 1, 3, 3), 2**62)",
}


def test_no_call_crashes_or_hangs():
    """In a child process, which a crash ends, and a limit of time."""
    begin = """
import resource
import oneflow_lite as flow
resource.setrlimit(resource.RLIMIT_AS, (4 << 30, 4 << 30))
v, cyclic, twice, deep = flow.arange(6), [], [], [1.0]
cyclic.append(cyclic)
twice += [twice, twice]
for _ in range(100_000):
    deep = [deep]
"""
    lines = [
        f"print({name!r}, flush=True)\ntry:\n    {call}\nexcept flow.errors.FlowError:\n    pass\n"
        f"else:\n    raise SystemExit({name!r})"
        for name, call in SCRIPTS.items()
    ]
    code = begin + "\n".join(lines) + "\nimport os\nos._exit(0)\n"  # `deep` takes long to drop
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=os.environ | {"OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert not done.returncode, done.stdout + done.stderr


def test_empty_parts_are_allowed_up_to_a_number():
    assert len(flow.tensor_split(v, 1000)) == 1000
    with pytest.raises(ArgumentError, match="'indices_or_sections': expected at most"):
        flow.tensor_split(v, 2**21)
