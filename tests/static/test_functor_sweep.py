"""Every functor, Tensor method and function, captured: to the bit what eager execution gives."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import pytest

import oneflow_lite as flow
from oneflow_lite.errors import CaptureError, InplaceError
from oneflow_lite.functors.declaring.declare import DECLARATIONS
from oneflow_lite.ops.registry import FUNCTORS
from tests.declared_samples import Sample
from tests.functors.meant import MEANT
from tests.static.functor_calls import SCOPE, in_place, reached, sample, takes_out, with_out
from tests.static.functor_cases import (
    CASES,
    CHECKS_VALUES,
    MAY_FALL_BACK,
    MORE,
    OF_OPS,
    ON_THE_CPU,
    READS_VALUES,
    RESHAPES_ARGUMENT,
    SHOWS_SYMBOLIC,
    reshapes,
)
from tests.static.test_op_sweep import (
    VARIANTS,
    assert_same,
    capture,
    leaves,
    named,
    outer_gradients,
    run_eager,
    with_gradients,
)
from tests.texts import function_of

# A call that stays eager says so once; and a float is cut to an integer, or loses its imaginary
# part, where an expression wants it.
pytestmark = pytest.mark.filterwarnings("ignore")

OF_FUNCTORS = list(dict.fromkeys(e for cases in CASES.values() for e in cases))


def has_twin(name: str) -> bool:
    """Return whether `name_` is made of a functor, and is not one by itself."""
    return f"{name}_" in FUNCTORS and f"{name}_" not in DECLARATIONS


EAGER = {*READS_VALUES, *MAY_FALL_BACK}


def is_captured(expression: str) -> bool | None:
    """Return whether an expression is captured; None where that is not said."""
    return None if expression in MAY_FALL_BACK else expression not in READS_VALUES


CAPTURED = [e for e in [*OF_FUNCTORS, *MORE] if e not in EAGER | OF_OPS]
_TWINS = {
    f"{name}_": found
    for name, cases in CASES.items()
    if name != "float_power"  # whose result is float64, and does not fit into float32
    if has_twin(name) and (found := in_place(cases[0], name)) is not None
}
FRESH_WRITTEN = [fresh for fresh, _ in _TWINS.values()]
ARGUMENT_WRITTEN = [argument for _, argument in _TWINS.values() if argument is not None] + [
    "setitem(x, (0, slice(1, None)), 2.5)", "setitem(x, pick[:1] * 0, v)", "setitem(x, mask, 1.5)",
    "copy_(x, y)", "copy_(x, i)", "fill_(x, s)", "zero_(x)", "normal_(x)", "uniform_(x)",
    "bernoulli_(x, 0.5)", "x.t().add_(tall)", "x[:, 1].mul_(2)", "c.transpose(0, 2)[1].zero_()",
    "x.add_(y).mul_(2).sub_(x)", "(x.add_(y), y.mul_(x))", "x.add_(x)", "x.mul_(x.t()[0, 0])",
    "F.relu(u, inplace=True)", "F.batch_norm(x, v, r, None, None, True)", "x.detach().add_(1)",
    "x.data.add_(1) * 1", "x.copy_(x.flip(0))", "wide.add_(x)", "i.clamp_(-3, 3)",
    "mask.logical_not()",
]  # fmt: skip
_OUTS = {
    name: found
    for name, cases in CASES.items()
    if cases
    and takes_out(FUNCTORS.get(name))
    and name != "empty"
    and (found := with_out(cases[0], name)) is not None
}


# --- Nothing is left out --------------------------------------------------------------------------

# What has no call here, by reason.
ELSEWHERE = {
    name: reason
    for reason, names in {
        "classes and decorators": """
            AutoGradCaptureState AutogradInterpreter EagerInterpreter Generator Interpreter
            compile explain
            OpExprGradFunction current_interpreter dtype register_functor register_grad_func
            register_kernel register_op push_interpreter""",
        "grad modes: tests/compiler/capture": "enable_grad no_grad set_grad_enabled",
        "state of a process or thread; ends a recording": """
            initial_seed manual_seed seed get_rng_state set_rng_state set_default_dtype""",
        "how tensors are printed": "get_printoptions printoptions set_printoptions",
        "an optional package: tests/arrays/test_bfloat16.py": "bfloat16",
        "files and foreign memory: what ends a recording": """
            load save from_dlpack from_file from_numpy""",
        "a look at the graph, which ends a recording or has no captured form": """
            autograd_meta grad_fn grad_fn_node is_inference is_pinned is_shared output_nr name
            is_view memory storage storage_offset retain_grad retains_grad untyped_storage""",
        "old names, and what is said in other functions: tests/test_compatibility.py": """
            asarray broadcast_shapes empty_strided fill_diagonal_ frombuffer get_default_device
            mock_torch new norm_except_dim pin_memory set_default_device share_memory_
            as_subclass storage_type vmap volatile""",
        "refuses float32, which its result does not fit: tests/functors/test_out_dtypes.py": """
            float_power_""",
        "a look from outside: tests/explore, tests/test_info.py, tests/nn/test_summarize.py": """
            explore info summary""",
        "global tensors: tests/distributed": """
            global_to_global is_global is_local local_to_global placement sbp to_global to_local""",
        "sparse tensors: tests/test_sparse.py": "sparse_coo_tensor spmm to_sparse",
        "hooks: tests/compiler/capture": "register_hook register_post_accumulate_grad_hook",
        "the package's own: views follow writes, tests/tensors/test_views_written.py": """
            refresh_view replay_view set_history""",
        "other devices: tests/static/runtime/test_transfers.py": "cuda",
        "other memory, or Python for each element: tests/tensors/test_tensor_methods.py": """
            apply_ data_ptr is_set_to map_ resize_ resize_as_ set_""",
    }.items()
    for name in names.split()
}


def _public(place: Any) -> list[str]:
    found = [(name, getattr(place, name)) for name in dir(place) if not name.startswith("_")]
    return [
        name for name, f in found if (callable(f) and not inspect.isclass(f)) or type(f) is property
    ]


def test_every_functor_is_called():
    twins = {*_TWINS, "float_power_"}
    assert [name for name in FUNCTORS if name not in CASES and name not in twins] == []
    assert [name for name, cases in CASES.items() if not any(f"{name}(" in e for e in cases)] == []


@pytest.mark.parametrize("place", [flow, flow.Tensor, flow.nn.functional], ids=lambda p: p.__name__)
def test_every_public_function_is_called(place):
    expressions = [*OF_FUNCTORS, *MORE, *FRESH_WRITTEN, *READS_VALUES, *ARGUMENT_WRITTEN]
    found = reached(frozenset(expressions))
    missing = [name for name in _public(place) if id(getattr(place, name)) not in found]
    assert [name for name in missing if name not in ELSEWHERE] == []


def test_all_tables_are_used():
    assert len({*OF_FUNCTORS, *MORE}) == len(OF_FUNCTORS) + len(MORE)
    everywhere = {name for place in (flow, flow.Tensor, flow.nn.functional) for name in dir(place)}
    assert [name for name in ELSEWHERE if name not in everywhere] == []
    with_out_parameter = {name for name in FUNCTORS if takes_out(FUNCTORS.get(name))} - {*_TWINS}
    # Empty writes what it found in memory; those that are meant otherwise: test_declared.py.
    assert with_out_parameter - {*MEANT} == {*_OUTS, "empty"}
    twins = {f"{name}_" for name in FUNCTORS if has_twin(name)}
    assert twins == {*_TWINS, "float_power_"}


# --- flow.compile ---------------------------------------------------------------------------------


def check_compiled(case: Sample, captured: bool | None = True, device: str = "cpu") -> None:
    """Call three times with other values each, compiled and eagerly; also what was written.

    `captured` is None where either may be.
    """
    step = with_gradients(case)
    compiled = flow.compile(step)
    kept = []
    for variant in VARIANTS:
        flow.manual_seed(variant)
        tensors = case.tensors(variant, device)
        kept.append([*leaves(compiled(*tensors)), *tensors])
    for variant in VARIANTS:
        flow.manual_seed(variant)
        tensors = case.tensors(variant, device)
        want = [*leaves(step(*tensors)), *tensors]
        assert_same(case.op, kept[variant], want, f"call {variant}")
        assert [getattr(x, "requires_grad", None) for x in kept[variant]] == [
            getattr(x, "requires_grad", None) for x in want
        ]
    seen = compiled.explain()
    if captured is None:
        return
    if captured:
        assert (seen.captures, seen.hits, seen.fallbacks) == (1, len(VARIANTS) - 1, 0), seen.reasons
    else:
        assert seen.hits == 0 and seen.fallbacks > 0, seen


@pytest.mark.slow(but=60)
@pytest.mark.parametrize("expression", CAPTURED)
def test_compiled_equals_eager(expression):
    check_compiled(sample(expression))


@pytest.mark.slow(but=40)
@pytest.mark.parametrize("expression", [*CAPTURED, *FRESH_WRITTEN])
def test_compiled_calls_are_differentiable_nodes(expression):
    case = sample(expression)
    compiled = flow.compile(case.call)
    for variant in VARIANTS:
        have = outer_gradients(case, compiled, variant)
        assert_same(expression, have, outer_gradients(case, case.call, variant), f"call {variant}")
    assert compiled.explain().fallbacks == 0


@pytest.mark.parametrize("expression", FRESH_WRITTEN)
def test_compiled_writes_equal_eager(expression):
    check_compiled(sample(expression))


@pytest.mark.parametrize("expression", ARGUMENT_WRITTEN)
def test_compiled_writes_to_arguments_equal_eager(expression):
    captured = expression not in RESHAPES_ARGUMENT and not reshapes(expression)
    check_compiled(sample(expression, gradients=False), captured)


@pytest.mark.slow(but=60)
@pytest.mark.parametrize("name", _OUTS)
def test_compiled_out_equals_eager(name):
    check_compiled(_OUTS[name], captured=_OUTS[name].op.partition(", out=")[0] + ")" not in EAGER)


@pytest.mark.parametrize("expression", READS_VALUES)
def test_what_reads_values_stays_eager(expression):
    check_compiled(sample(expression), captured=False)


@pytest.mark.parametrize("expression", ["(x * 2).split(1)", "x.unbind()", "(x * 2).chunk(2, 1)"])
def test_compiled_parts_are_views_that_nobody_writes(expression):
    case = sample(expression)
    compiled = flow.compile(case.call)
    for call in (case.call, compiled, compiled, compiled):
        parts = call(*case.tensors())
        assert all(part.is_view() for part in parts)
        with pytest.raises(InplaceError, match="several outputs"):
            parts[0].zero_()
    assert compiled.explain().hits == 2


@pytest.mark.slow(but=40)
@pytest.mark.parametrize("device", ["cuda"], indirect=True)
@pytest.mark.parametrize(
    "expression",
    [e[-1] for name, e in CASES.items() if e and name not in ON_THE_CPU and e[-1] not in OF_OPS],
)
def test_compiled_equals_eager_on_cuda(expression, device):
    check_compiled(sample(expression), is_captured(expression), device)


# Expressions of two tensors of shape (4, 6), which come in every layout.
OF_LAYOUTS = """
    a + b | a * b.exp() | a @ b.t() | a.sum(1), b.mean() | a.relu() - b | a.softmax(1) / b
    a.reshape(-1)[::2] | a.t().contiguous() | stack((a, b)) | where(a > b, a, b) | a.clone()
    a[1:, ::2] * b[:-1, 1::2] | F.layer_norm(a, (6,)) + b | a.cumsum(0) | a.view_as(a) * b
""".replace("\n", "|").split("|")
LAYOUTS = {
    "transposed": lambda x: x.t().contiguous().t(),
    "every second": lambda x: stack_twice(x)[:, ::2],
    "broadcast": lambda x: x[:1].expand(4, 6),
    "a part": lambda x: flow.cat((x, x), 1)[:, 3:9],
}


def stack_twice(x: flow.Tensor) -> flow.Tensor:
    """Return a tensor of which each second column is one of `x`."""
    return flow.stack((x, x), -1).reshape(4, 12)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("expression", [e.strip() for e in OF_LAYOUTS if e.strip()])
def test_compiled_in_other_layouts_equals_eager(expression, layout):
    call = function_of(f"lambda a, b: ({expression})", SCOPE)
    compiled = flow.compile(call)
    numbers = np.linspace(-1, 1, 24, dtype=np.float32).reshape(4, 6)
    for change in (LAYOUTS[layout], flow.clone, LAYOUTS[layout]):
        for factor in (1.0, 0.75):
            a, b = change(flow.tensor(numbers * factor)), flow.tensor(numbers**2 + 0.5)
            have, want = leaves(compiled(a, b)), leaves(call(a, b))
            assert_same(expression, have, want, f"{layout}, times {factor}")
            assert [y.stride() for y in have] == [y.stride() for y in want]
    assert (compiled.explain().captures, compiled.explain().fallbacks) == (2, 0)


# --- Programs -------------------------------------------------------------------------------------


def _is_symbolic(y: Any) -> bool:
    """Return whether the Program computes a result; without feeds it may be there already."""
    return isinstance(y, flow.Tensor) and getattr(y._data, "is_symbolic", False)


def check_program(case: Sample) -> None:
    """Capture once and run three times; no feed may be written."""
    program, results = capture(case)
    fetches = [y for y in results if _is_symbolic(y)]
    executor = flow.static.Executor()
    for variant in VARIANTS:
        arrays = case.arrays(variant)
        before = [x.copy() for x in arrays]
        flow.manual_seed(variant)
        fetched = iter(executor.run(program, named(arrays), fetches))
        have = [next(fetched) if _is_symbolic(y) else y for y in results]
        assert_same(case.op, have, run_eager(case, variant), f"run {variant}")
        assert all(map(np.array_equal, arrays, before)), "a feed was written"


@pytest.mark.slow(but=60)
@pytest.mark.parametrize(
    "expression", [e for e in [*CAPTURED, *FRESH_WRITTEN] if e not in CHECKS_VALUES]
)
def test_program_equals_eager(expression):
    check_program(sample(expression))


@pytest.mark.parametrize("expression", ARGUMENT_WRITTEN)
def test_program_that_writes_its_feeds_equals_eager(expression):
    check_program(sample(expression, gradients=False))


@pytest.mark.slow(but=60)
@pytest.mark.parametrize("name", _OUTS)
def test_program_with_out_equals_eager(name):
    case = _OUTS[name]
    if case.op.partition(", out=")[0] + ")" in {*EAGER, *CHECKS_VALUES}:
        with pytest.raises(CaptureError):
            capture(case)
    else:
        check_program(case)


@pytest.mark.parametrize(
    "expression", [e for e in [*READS_VALUES, *sorted(CHECKS_VALUES)] if e not in SHOWS_SYMBOLIC]
)
def test_what_reads_values_is_not_captured(expression):
    with pytest.raises(CaptureError):
        capture(sample(expression))


def test_a_number_of_numpy_is_a_feed():
    case = sample("exp(s)")
    program, (result, _) = capture(case)
    for number in (np.float32(0.5), np.float32(2)):
        (have,) = flow.static.Executor().run(program, {"x0": number}, [result])
        assert have == np.exp(number)
