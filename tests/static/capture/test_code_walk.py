"""What code names."""

import dis

import pytest

from oneflow_lite.static.capture import code_walk
from oneflow_lite.static.capture.code_walk import nested_codes, walk

scale = 2.0


def test_global_names_carry_the_attributes_taken_of_them():
    def f(x):
        return flow.nn.functional.relu(x) * scale  # noqa: F821

    assert walk(f.__code__).globals == {("flow", "nn", "functional", "relu"), ("scale",)}


def test_an_attribute_of_a_result_belongs_to_no_path():
    def f(x):
        return (flow if x else other).relu, g(x).weight  # noqa: F821

    facts = walk(f.__code__)
    assert ("g",) in facts.globals and ("flow",) in facts.globals | {("flow",)}
    assert ("g", "weight") not in facts.globals
    assert {"relu", "weight"} <= facts.attributes


def test_a_branch_that_is_not_followed_by_an_attribute_hands_the_module_on():
    def f(x):
        return (left if x else right).sqrt  # noqa: F821

    # From Python 3.13 on, each branch takes the attribute by itself.
    names = walk(f.__code__).globals
    assert names in ({("left",), ("right",)}, {("left", "sqrt"), ("right", "sqrt")})


def test_closure_variables():
    module = dis

    def f():
        return module.dis

    assert walk(f.__code__).free == {("module", "dis")}


def test_stores_count_as_names():
    def f(x):
        global scale
        scale = x
        x.bias = 1
        del x.weight

    facts = walk(f.__code__)
    assert ("scale",) in facts.globals
    assert {"bias", "weight"} <= facts.attributes


def test_nested_functions_lambdas_and_comprehensions_are_found():
    def f(xs):
        def inner():
            return lambda: [W for _ in xs for W in (W1,)]  # noqa: F821

        return inner

    named = {path for code in nested_codes(f.__code__) for path in walk(code).globals}
    assert ("W1",) in named


def test_super_and_method_calls():
    class A:
        def f(self):
            return super().method(self.part.call())

    assert {"method", "part", "call"} <= walk(A.f.__code__).attributes


@pytest.mark.parametrize("name", ["__dict__", "__getattribute__", "__closure__"])
def test_reflection_by_attribute(name):
    scope = {}
    exec(f"def f(x): return x.{name}", scope)
    assert walk(scope["f"].__code__).any_attribute


def test_a_class_pattern_reads_attributes_without_naming_them():
    def f(x):
        match x:
            case complex(a):
                return a

    assert walk(f.__code__).any_attribute


def test_imports():
    def trusted():
        import math
        from collections import OrderedDict

        return math, OrderedDict

    def other():
        import random

        return random

    assert walk(trusted.__code__).reasons == ()
    (reason,) = walk(other.__code__).reasons
    assert "imports random" in reason and "other" in reason


def test_a_relative_import_is_a_users_module():
    scope = {}
    exec("def f():\n    from . import math", scope)
    assert walk(scope["f"].__code__).reasons


def test_coroutines_have_a_reason():
    async def f(x):
        return await x

    assert any("coroutine" in reason for reason in walk(f.__code__).reasons)


def test_ordinary_code_has_none():
    def f(xs, *, flag=True, **rest):
        total = {"a": 1, **rest}
        try:
            with xs as ys:
                a, *b = (y for y in ys if y and flag)
                total["a"] += a[1:2] if b else -1
        except (ValueError, KeyError) as error:
            raise RuntimeError(f"no {error!r:>4}") from error
        finally:
            del total
        assert xs is not None
        for i, x in enumerate(xs):
            while x:
                x -= i
        match xs:
            case {"a": 1}:
                return 1
            case [1, *_]:
                return 2
        yield from xs
        return {-z for z in xs}, {z: z for z in xs}, lambda: f

    assert not [r for code in nested_codes(f.__code__) for r in walk(code).reasons]


def test_an_instruction_that_is_not_known_is_a_reason(monkeypatch):
    def f(x):
        return x + 1

    walk.cache_clear()
    monkeypatch.setattr(code_walk, "_LOCAL", code_walk._LOCAL - {"BINARY_OP"})
    assert walk(f.__code__).reasons[0].endswith("unknown instruction BINARY_OP")
    walk.cache_clear()
