"""Whose code is whose, and what may be called."""

import functools
import inspect
import json
import operator
import random
import time

import numpy as np
import pytest

import oneflow_lite as flow
from oneflow_lite.kernels import activation
from oneflow_lite.static.capture.trusted import (
    call_reason,
    is_reflective,
    may_enter,
    origin,
    origin_of_class,
    origin_of_module,
)


def test_whose_code_it_is():
    assert origin(flow.relu.__code__) == "own"
    assert origin(inspect.unwrap(activation.gelu).__code__) == "own"
    assert origin(json.dumps.__code__) == "library"
    assert origin(np.linspace.__wrapped__.__code__) == "library"
    assert origin(test_whose_code_it_is.__code__) == "user"
    assert origin(eval("lambda: 0").__code__) == "user"


@pytest.mark.parametrize(
    "name, whose",
    [
        ("oneflow_lite.nn", "own"), ("numpy.random", "library"), ("os.path", "library"),
        ("pytest", "library"), ("__main__", "user"), (__name__, "user"), (None, "user"),
        ("oneflow_lite_of_a_user", "user"),
    ],
)  # fmt: skip
def test_whose_module_it_is(name, whose):
    assert origin_of_module(name) == whose


def test_whose_class_it_is():
    class Mine(flow.nn.Module):
        pass

    assert [origin_of_class(c) for c in (Mine, flow.nn.Module, int)] == ["user", "own", "library"]


@pytest.mark.parametrize(
    "function",
    [len, sorted, [].append, {}.get, "a".join, dict.fromkeys, operator.add, list.append],
)  # fmt: skip
def test_calls_that_a_replay_may_leave_out(function):
    assert call_reason(function) is None


@pytest.mark.parametrize(
    "function",
    [print, open, id, hash, eval, input, random.random, time.time, np.zeros, np.ones(1).sum],
)  # fmt: skip
def test_calls_that_it_may_not(function):
    assert call_reason(function) == f"{function.__name__}()"


def test_reflection():
    assert is_reflective(getattr) and is_reflective(vars) and not is_reflective(len)


def test_library_code_that_users_code_may_enter():
    assert may_enter(functools.wraps.__code__)
    assert not may_enter(json.dumps.__code__)
