"""The mutator makes the changes it promises, and tells a test that looks from one that does not."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from oneflow_lite.ops.registry import FUNCTORS, GRAD_FUNCS, KERNELS
from tests.gradient_mutants import RuleFunction, find_rules, mutants
from tests.mutate_gradients import concerns, load_families, read_equivalents

ROOT = Path(__file__).resolve().parents[1]

needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="children are forked")

RULES = """
import oneflow_lite as flow
from oneflow_lite.interpreter.dispatch import dispatch2
from oneflow_lite.ops.op_expr import op_expr


OP = op_expr("toy_product")
flow.register_kernel("toy_product")(lambda xp, x, y: x * x * x * y)
toy_product = flow.register_functor("toy_product")(lambda x, y: dispatch2(OP, x, y))


@flow.register_grad_func("toy_product", wrt="x", saves="x, y")
def toy_dx(F, ctx, dz):
    if ctx.x.ndim < -1:
        return None
    return dz * ctx.x * (ctx.x * ctx.y + ctx.x * ctx.y * 2)


@flow.register_grad_func("toy_product", wrt="y", saves="x")
def toy_dy(F, ctx, dz):
    return dz * F.pow(ctx.x, 3)
"""

STRONG = """
import numpy as np
import toy_rules
from oneflow_lite.testing import Sample, check_op

def test_toy():
    check_op(toy_rules.toy_product, [Sample(np.array([0.5, -1.5]), np.array([2.0, 3.0]))])
"""

# The first derivatives at (1, 1): no second order, and x and y cannot be told apart.
WEAK = """
import oneflow_lite as flow
import toy_rules

def test_toy():
    x, y = (flow.tensor(1.0, requires_grad=True) for _ in range(2))
    toy_rules.toy_product(x, y).backward()
    assert (x.grad.item(), y.grad.item()) == (3, 1)
"""

# What makes no difference for real: the branch is never taken, and rules see plain multiplication.
EQUIVALENT = """
# a comment
toy_rules.toy_dx | compare: ctx.x.ndim < -1 -> ctx.x.ndim <= -1
    no tensor has fewer dimensions
toy_rules.toy_dx | replace gradient: None -> dz
    the branch is
    never taken
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "toy_rules.py").write_text(RULES)
    (tmp_path / "test_strong.py").write_text(STRONG)
    (tmp_path / "test_weak.py").write_text(WEAK)
    (tmp_path / "nothing.txt").write_text("")
    (tmp_path / "listed.txt").write_text(EQUIVALENT)
    return tmp_path


@pytest.fixture
def toy(folder: Path) -> Iterator[ModuleType]:
    """Load the toy rules; take them out of the registries again."""
    (module,) = load_families([str(folder / "toy_rules.py")])
    yield module
    del sys.modules["toy_rules"]
    for registry in (FUNCTORS, GRAD_FUNCS, KERNELS):
        registry.remove("toy_product")


def run(folder: Path, test: str, listed: str) -> tuple[int, str]:
    done = subprocess.run(
        [
            *(sys.executable, "-m", "tests.mutate_gradients"),
            *("--family", folder / "toy_rules.py", "--tests", folder / test),
            *("--equivalent", folder / listed, "--report", folder / "report.txt"),
        ],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode in (0, 1), done.stdout + done.stderr
    return done.returncode, (folder / "report.txt").read_text()


def test_each_kind_of_change_is_made(toy: ModuleType) -> None:
    rules = {rule.name: rule for rule in find_rules(toy)}
    assert set(rules) == {"toy_dx", "toy_dy"}
    assert rules["toy_dx"].ops == ("toy_product",)
    assert rules["toy_dx"].saves == {"x", "y"}
    found = {m.key.removeprefix("toy_rules.") for m in mutants(rules["toy_dy"])}
    assert found == {
        "toy_dy | negate gradient: dz * F.pow(ctx.x, 3) -> -(dz * F.pow(ctx.x, 3))",
        "toy_dy | replace gradient: dz * F.pow(ctx.x, 3) -> None",
        "toy_dy | replace gradient: dz * F.pow(ctx.x, 3) -> F.zeros_like(dz * F.pow(ctx.x, 3))",
        "toy_dy | drop factor: dz * F.pow(ctx.x, 3) -> dz",
        "toy_dy | drop factor: dz * F.pow(ctx.x, 3) -> F.pow(ctx.x, 3)",
        "toy_dy | swap arguments: F.pow(ctx.x, 3) -> F.pow(3, ctx.x)",
        "toy_dy | drop call: F.pow(ctx.x, 3) -> ctx.x",
    }
    made = mutants(rules["toy_dx"])
    assert {"drop term", "swap saved", "negate condition", "compare"} <= {m.kind for m in made}
    assert len({m.key for m in made}) == len(made)
    lines = RULES.splitlines()
    assert all("ctx" in lines[m.line - 1] or "None" in lines[m.line - 1] for m in made)


def test_a_mutant_changes_the_registered_function(toy: ModuleType) -> None:
    (rule,) = [rule for rule in find_rules(toy) if rule.name == "toy_dy"]
    (mutant,) = [m for m in mutants(rule) if m.key.endswith("-> dz")]
    registered = GRAD_FUNCS.get("toy_product").by_name["y"][0]
    assert mutant.rule.function is registered
    mutant.apply()
    assert registered(None, None, "what arrives") == "what arrives"


def test_an_op_is_chosen_with_its_own_gradients() -> None:
    rules = [rule for module in load_families(["transcendental"]) for rule in find_rules(module)]
    assert {r.name for r in rules if concerns(r, "tanh")} == {
        "tanh",
        "tanh_grad_ddy",
        "tanh_grad_dy",
    }
    assert sum(concerns(r, None) for r in rules) == len(rules)


@pytest.mark.slow
def test_every_rule_has_mutants() -> None:
    """At least three where there is an expression to change."""
    nothing = {"None", "F.zeros_like(dy)", "F.zeros_like(dz)"}
    nothing |= {f"({', '.join(['None'] * n)})" for n in (2, 3, 4)}
    for module in load_families([]):
        for rule in find_rules(module):
            if rule.ops and not _returns(rule) <= nothing:
                assert len(mutants(rule)) >= 3, rule.where


def _returns(rule: RuleFunction) -> set[str]:
    return {
        ast.unparse(node.value)
        for node in ast.walk(rule.tree)
        if isinstance(node, ast.Return) and node.value is not None
    }


@pytest.mark.slow
@needs_fork
def test_a_strong_test_kills_all_but_the_equivalent(folder: Path) -> None:
    status, text = run(folder, "test_strong.py", "nothing.txt")
    assert status == 1
    survivors = [line for line in text.splitlines() if line.startswith("  ")]
    assert len(survivors) == 2
    line = RULES.splitlines().index("    if ctx.x.ndim < -1:") + 1
    assert f"toy_rules.py:{line} [toy_product] toy_rules.toy_dx | compare" in text
    status, text = run(folder, "test_strong.py", "listed.txt")
    assert (status, text.count("\n")) == (0, 5)
    assert "2 equivalent, 0 survivors" in text


@needs_fork
def test_a_weak_test_lets_mutants_survive_and_a_wrong_list_is_reported(folder: Path) -> None:
    with (folder / "listed.txt").open("a") as file:
        file.write(
            "toy_rules.toy_dx | negate condition: ctx.x.ndim < -1 -> not ctx.x.ndim < -1\n r\n"
        )
        file.write("toy_rules.toy_dx | drop term: long -> gone\n    r\n")
    status, text = run(folder, "test_weak.py", "listed.txt")
    assert status == 1
    assert "toy_dy | drop factor: dz * F.pow(ctx.x, 3) -> F.pow(ctx.x, 3)" in text
    assert "toy_dx | replace gradient" not in text.partition("killed")[0]
    assert "listed as equivalent, but killed:\n  " in text
    assert "there is no such mutant:\n  toy_rules.toy_dx | drop term: long -> gone" in text


def test_an_entry_without_a_reason_or_twice_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "list.txt"
    path.write_text("a | b\n  why\n  so\nc | d\n")
    with pytest.raises(ValueError, match=r"no reason is given for 'c \| d'"):
        read_equivalents(path)
    path.write_text("a | b\n  why\n  so\nc | d\n  because\n")
    assert read_equivalents(path) == {"a | b": "why so", "c | d": "because"}
    path.write_text("a | b\n  why\na | b\n  why\n")
    with pytest.raises(ValueError, match="is listed twice"):
        read_equivalents(path)
