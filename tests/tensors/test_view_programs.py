"""Random small programs of views, writes and uses, against PyTorch."""

import random

import numpy as np
import pytest

import oneflow_lite as flow
from tests.tensors.test_views import lib_of
from tests.tensors.test_views_written import derivatives

PROGRAMS = 300


def pick(rng, items):
    return items[rng.randrange(len(items))]


def entry(rng, t):
    return rng.randrange(t.shape[0])


VIEWS = {
    "index": lambda rng, t: t[entry(rng, t)],
    "first rows": lambda rng, t: t[:2],
    "last columns": lambda rng, t: t[..., -2:],
    "steps": lambda rng, t: t[..., ::2],
    "reversed": lambda rng, t: t.permute(tuple(range(t.ndim))[::-1]),
    "flat": lambda rng, t: t.view(-1) if t.is_contiguous() else t,
    "diagonal": lambda rng, t: t.diagonal() if t.ndim > 1 else t,
    "windows": lambda rng, t: t.unfold(0, 1, 2),
    "unsqueeze": lambda rng, t: t.unsqueeze(entry(rng, t) % (t.ndim + 1)),
    "select": lambda rng, t: t.select(-1, 0),
    "part": lambda rng, t: t.split(1)[0] if rng.random() < 0.3 else t[...],
    "detached": lambda rng, t: t.detach() if rng.random() < 0.3 else t[...],
}
TWINS = "add_ sub_ mul_ copy_".split()
UNARY = "exp_ tanh_ sigmoid_ neg_ zero_ square_ relu_".split()


def view(rng, tensors):
    t = pick(rng, [t for t in tensors if t.ndim])
    tensors.append(VIEWS[pick(rng, list(VIEWS))](rng, t))


def use(rng, tensors):
    tensors.append(pick(rng, tensors) * 1.25)


def write_alone(rng, tensors):
    getattr(pick(rng, tensors), pick(rng, UNARY))()


def write_another(rng, tensors):
    t, other = pick(rng, tensors), pick(rng, tensors)
    getattr(t, pick(rng, TWINS))(other * 0.75 if rng.random() < 0.7 else other)


def write_a_part(rng, tensors):
    t = pick(rng, [t for t in tensors if t.ndim])
    value = pick(rng, tensors).sum() * 0.1 if rng.random() < 0.7 else 0.5
    if rng.random() < 0.3:
        t[t > 0.5] = value
    else:
        t[pick(rng, [0, slice(1, None), [0], (..., slice(0, 1))])] = value


def change_shape(rng, tensors):
    t = pick(rng, tensors[2:])
    t.t_() if t.ndim == 2 and rng.random() < 0.7 else t.unsqueeze_(0)


def write_unrecorded(rng, tensors):
    with lib_of(tensors[0]).no_grad():
        pick(rng, tensors[2:]).mul_(0.5)


STEPS = [view] * 5 + [use, write_alone, write_another, write_another, write_a_part] + [
    change_shape, write_unrecorded]  # fmt: skip


def program_of(seed):
    def program(lib, x, w):
        rng = random.Random(seed)
        tensors = [x, w, x * 1, x * w, lib.tensor(np.full((3, 3), 0.4))]
        for _ in range(rng.randint(4, 10)):
            pick(rng, STEPS)(rng, tensors)
        return [t for t in tensors[2:] if t.requires_grad]

    return program


def outcome(lib, seed):
    arrays = np.random.default_rng(seed).uniform(0.2, 0.9, (2, 3, 3))
    try:
        return derivatives(lib, program_of(seed), [arrays[0], arrays[1, 0]], (True, True))
    except RuntimeError as error:
        return error


def test_the_same_numbers_or_an_error():
    torch = pytest.importorskip("torch")
    compared = 0
    for seed in range(PROGRAMS):
        ours, theirs = outcome(flow, seed), outcome(torch, seed)
        if isinstance(theirs, RuntimeError):  # ours may know the gradient where PyTorch gives up
            continue
        assert not isinstance(ours, RuntimeError), (seed, ours)
        compared += 1
        for a, b in zip(ours, theirs, strict=True):
            np.testing.assert_allclose(
                *np.broadcast_arrays(a, b), rtol=1e-8, atol=1e-10, err_msg=f"program {seed}"
            )
    assert compared > PROGRAMS / 5
