"""Random Python compiled by `flow.compile`, each call of it judged against the plain function."""

from __future__ import annotations

import collections
import contextlib
import dataclasses
import enum
import functools
import math
import operator
import types
import warnings
from collections import Counter
from typing import Any

import numpy as np

import oneflow_lite as flow
from oneflow_lite import nn
from tests.fuzz import seeds
from tests.fuzz.compiled_world import data
from tests.fuzz.python_programs import write
from tests.fuzz.seeds import Difference
from tests.judge import judge
from tests.texts import named

PRELUDE = {
    module.__name__: module
    for module in (collections, contextlib, dataclasses, enum, functools, math, operator, types)
} | {"flow": flow, "nn": nn, "np": np, "__name__": "a_program"}
# What programs replace in the library.
PATCHED = [(nn.functional, "relu"), (flow, "relu"), (nn.ReLU, "forward")]


def vector(seed: int, requires_grad: bool = False) -> flow.Tensor:
    """Return a tensor of random numbers."""
    return data((3,), seed, requires_grad=requires_grad)


def run(source: str, counts: Counter[str]) -> list[str]:
    """Run a program under the judge; return why calls fell back to running eagerly.

    Raises
    ------
    Difference
        When a call does not do what the plain function does.
    """
    compiled: list[Any] = []

    def compiler(function: Any) -> Any:
        compiled.append(flow.compile(function))
        return compiled[-1]

    def attempt(function: Any, **given: Any) -> None:
        try:
            function(**given)
        except Exception as error:
            counts[f"calls that raised {type(error).__name__}"] += 1

    namespace = {**PRELUDE, "compiled": compiler, "attempt": attempt, "data": vector}
    library = {(place, name): getattr(place, name) for place, name in PATCHED}
    flow.manual_seed(0)
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            with judge(raises=False, recordings=True) as judged:
                exec(compile(source, named(source), "exec", dont_inherit=True), namespace)
        finally:
            for (place, name), value in library.items():
                setattr(place, name, value)
    told = compiled[-1].explain()
    counts["programs"] += 1
    counts["calls judged"] += judged.calls
    counts["calls recorded"] += told.captures
    counts["calls replayed"] += told.hits
    counts["calls run eagerly"] += told.fallbacks
    counts["programs with a replay"] += bool(told.hits)
    if judged.verdicts:
        raise Difference(judged.verdicts[0])
    return list(told.reasons)


attempt = functools.partial(seeds.attempt, write=write, run=run)
