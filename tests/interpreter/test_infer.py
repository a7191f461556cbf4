"""That infer_outputs tells what running gives: shapes, dtypes and layouts, without running."""

from __future__ import annotations

import numpy as np
import pytest

import oneflow_lite as flow
from oneflow_lite.arrays.array_spec import ArraySpec, in_c_order
from oneflow_lite.errors import ArgumentError, CaptureError, LinAlgError, ShapeError
from oneflow_lite.interpreter.infer import has_dynamic_shape, infer_outputs
from oneflow_lite.ops.op_expr import op_expr
from oneflow_lite.ops.registry import KERNELS, register_kernel
from tests.static.kernel_calls import OPS, KernelCall, sample_calls, sized_calls


def turned(i: int, x: np.ndarray) -> np.ndarray:
    """Return the array with its dimensions lying in memory in the opposite order."""
    return x.copy(order="F")


def turned_first(i: int, x: np.ndarray) -> np.ndarray:
    return x.copy(order="F") if i == 0 else x


def turned_others(i: int, x: np.ndarray) -> np.ndarray:
    return x.copy(order="F") if i else x


def with_gaps(i: int, x: np.ndarray) -> np.ndarray:
    """Return the array as every second column of another."""
    if not x.ndim:
        return x
    y = np.zeros((*x.shape[:-1], 2 * x.shape[-1]), x.dtype)
    y[..., ::2] = x
    return y[..., ::2]


def stretched(i: int, x: np.ndarray) -> np.ndarray:
    """Return as many copies of the first row as there are, all in one place."""
    return np.broadcast_to(x[:1], x.shape) if x.ndim and len(x) else x


LAYOUTS = {f.__name__: f for f in (turned, turned_first, turned_others, with_gaps, stretched)}


def static_calls() -> list[KernelCall]:
    calls = sample_calls() + sized_calls()
    return [call for call in calls if not has_dynamic_shape(call.op, call.arrays, call.attrs)]


def assert_inferred(call: KernelCall) -> None:
    try:
        result = call.run()
    except (ValueError, LinAlgError, ShapeError):  # a read-only target, equal rows, ...
        return
    expected = result if type(result) is tuple else (result,)
    found = infer_outputs(call.op, call.arrays, call.attrs)
    assert len(found) == len(expected), call
    for spec, array in zip(found, map(np.asarray, expected), strict=True):
        assert (spec.shape, spec.dtype) == (array.shape, array.dtype), call
        strides = spec.phantom().strides
        assert array.size == 0 or all(
            n == 1 or s == t for n, s, t in zip(array.shape, strides, array.strides, strict=True)
        ), (str(call), spec, array.strides)


def test_every_op_has_a_call():
    assert {call.op.op_type_name for call in sample_calls()} >= set(OPS) - {"to_device"}


def test_what_is_inferred_is_what_running_gives():
    for call in static_calls():
        assert_inferred(call)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_other_layouts(layout):
    for call in static_calls():
        if layout != "stretched" or not call.op.schema.mutates:
            assert_inferred(call.laid_out(LAYOUTS[layout]))


def test_most_ops_are_inferred_without_running():
    ruled = [op for op in OPS if KERNELS.get(op).schema.infer is not None]
    assert len(ruled) >= 0.9 * len(OPS)


def test_the_inputs_are_neither_read_nor_written():
    for call in static_calls():
        before = [None if x is None else x.tobytes() for x in call.arrays]
        generator = call.attrs.get("generator")
        state = generator and repr(generator.get_state())
        infer_outputs(call.op, call.arrays, call.attrs)
        assert [None if x is None else x.tobytes() for x in call.arrays] == before, call
        assert (generator and repr(generator.get_state())) == state, call
        specs = [None if x is None else ArraySpec.of(x) for x in call.arrays]
        from_specs = infer_outputs(call.op, specs, call.attrs)
        assert from_specs == infer_outputs(call.op, call.arrays, call.attrs), call


# --- Shapes that depend on values ---------------------------------------------------------------


def other_values(i: int, x: np.ndarray) -> np.ndarray:
    """Return other values of the same kind: a mask with fewer True, an index that is legal."""
    return np.zeros_like(x) if x.dtype.kind in "biu" else np.where(np.isfinite(x), x / 2, x)


def test_ops_without_the_flag_give_one_shape_for_all_values():
    for call in static_calls():
        changed = call.laid_out(other_values)
        try:
            results = call.run(), changed.run()
        except (ShapeError, ValueError):  # a divisor of 0, fewer places than values, empty segments
            continue
        shapes = [[np.shape(y) for y in (r if type(r) is tuple else (r,))] for r in results]
        assert shapes[0] == shapes[1], call


X = np.array([[1.0, -2.0, 3.0], [4.0, 5.0, -6.0]])
_COUNTED = {"return_inverse": False, "return_counts": False, "dim": None}
DYNAMIC = {
    "nonzero": ([X > 0], {}),
    "masked_select": ([X, X > 0], {}),
    "getitem_advanced": ([X, X > 0], {"dims": (0,)}),
    "setitem_overwritten": ([X > 0], {"dims": (0,), "shape": (2, 3)}),
    "one_hot": ([np.array([0, 2])], {"num_classes": -1}),
    "bincount": ([np.array([0, 2]), None], {"minlength": 0}),
    "repeat_index": ([np.array([1, 2])], {"output_size": None}),
    "unique": ([np.array([1, 2])], _COUNTED),
    "unique_consecutive": ([np.array([1, 2])], _COUNTED),
}


def test_every_flag_is_met_by_a_call_whose_shape_follows_its_values():
    flagged = {op for op in OPS if KERNELS.get(op).schema.dynamic_shape}
    assert flagged == {*DYNAMIC, "ctc_loss"}  # which checks that the lengths fit
    for name, (arrays, attrs) in DYNAMIC.items():
        call = KernelCall(op_expr(name), tuple(arrays), attrs)
        results = call.run(), call.laid_out(other_values).run()
        shapes = [[np.shape(y) for y in (r if type(r) is tuple else (r,))] for r in results]
        assert shapes[0] != shapes[1], name


@pytest.mark.parametrize("name", DYNAMIC)
def test_a_shape_that_depends_on_values_is_refused(name):
    arrays, attrs = DYNAMIC[name]
    with pytest.raises(CaptureError, match=rf"^{name}\(\).* its output shape depends on values"):
        infer_outputs(op_expr(name), arrays, attrs)


def test_the_gradient_of_a_masked_read_has_the_shape_of_what_was_read():
    dy, mask, index = np.ones(4), X > 0, np.array([1, 0])
    for layout in LAYOUTS.values():
        call = KernelCall(
            op_expr("getitem_advanced_grad"), (dy, mask), {"dims": (0,), "shape": (2, 3)}
        )
        assert_inferred(call.laid_out(layout))
    for dims in [(0, 1), (0, 2), (1, 2)]:
        call = KernelCall(
            op_expr("getitem_advanced_grad"),
            (np.ones((2, 3)), index, index),
            {"dims": dims, "shape": (3, 3, 3)},
        )
        assert_inferred(call)
    source = np.ones(3)
    call = KernelCall(op_expr("masked_scatter"), (X.copy(order="F"), X > 7, source), {})
    assert_inferred(call)


def test_an_index_of_integers_and_a_count_of_classes_fix_the_shape():
    x, index = np.zeros((3, 4)), np.array([0, 2])
    found = infer_outputs(op_expr("getitem_advanced"), [x, index], {"dims": (1,)})
    assert found == (ArraySpec((3, 2), np.dtype(float)),)
    found = infer_outputs(op_expr("one_hot"), [index], {"num_classes": 5})
    assert found == (ArraySpec((2, 5), np.dtype(np.int64)),)


# --- Errors -------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["add", "where", "matmul", "clamp"])
def test_shapes_that_do_not_fit_raise_what_eager_raises(name):
    arrays = [np.ones((2, 3)), np.ones((4, 5)), np.ones((6, 7))]
    arrays = arrays[: len(op_expr(name).schema.inputs)]
    tensors = [flow.tensor(x) for x in arrays]
    with pytest.raises(Exception) as eager:
        flow.Interpreter.apply(_stack(), op_expr(name), tuple(tensors), {})
    with pytest.raises(type(eager.value)) as inferred:
        infer_outputs(op_expr(name), arrays, {})
    if isinstance(eager.value, ShapeError):
        assert str(inferred.value) == str(eager.value)
    else:
        assert inferred.value.__notes__ == eager.value.__notes__


def _stack() -> flow.Interpreter:
    top = flow.Interpreter()
    top.inner = flow.EagerInterpreter()
    return top


# --- Ops without a rule -------------------------------------------------------------------------


@pytest.fixture
def register():
    """Return a decorator that registers a kernel for this test."""
    names = []

    def decorator(name: str, **options):
        names.append(name)
        return register_kernel(name, **options)

    yield decorator
    for name in names:
        KERNELS.remove(name)


def test_a_kernel_without_a_rule_is_run_on_stand_ins(register):
    @register("halve")
    def halve(xp, x, bias, *, rows):
        assert not x.any() or (x == 1).all()
        return x[:rows] / 2, x.T * 1

    x = np.full((4, 3), 7.0, np.float32)
    first, second = infer_outputs(op_expr("halve"), [x, None], {"rows": 2})
    assert first == ArraySpec((2, 3), np.dtype(np.float32))
    assert second == ArraySpec((3, 4), np.dtype(np.float32), (4, 12))


def test_a_kernel_that_refuses_ones_sees_other_stand_ins(register):
    @register("invert_matrix")
    def invert_matrix(xp, x):
        return xp.linalg.inv(x)

    @register("divide_exactly")
    def divide_exactly(xp, x, y):
        if not y.all():
            raise ArgumentError("division by 0")
        return x // y

    found = infer_outputs(op_expr("invert_matrix"), [np.zeros((2, 3, 3))], {})
    assert found == (ArraySpec((2, 3, 3), np.dtype(float)),)
    ints = np.zeros(4, np.int32)
    assert infer_outputs(op_expr("divide_exactly"), [ints, ints], {})[0].dtype == np.int32


def test_what_every_stand_in_is_refused_with_is_raised_with_a_note(register):
    @register("refuse")
    def refuse(xp, x):
        raise KeyError("never")

    with pytest.raises(KeyError) as caught:
        infer_outputs(op_expr("refuse"), [np.zeros((2, 5))], {})
    assert caught.value.__notes__ == ["in the kernel of op 'refuse', input shapes [(2, 5)]"]


def test_a_random_kernel_draws_from_a_copy(register):
    @register("noise", random=True)
    def noise(xp, x, *, generator):
        return generator.stream(xp).random(x.shape)

    generator = flow.Generator().manual_seed(3)
    before = repr(generator.get_state())
    infer_outputs(op_expr("noise"), [np.zeros(4)], {"generator": generator})
    assert repr(generator.get_state()) == before


def test_a_kernel_that_writes_gets_memory_of_its_own(register):
    @register("count_up", mutates="x")
    def count_up(xp, x):
        x += 1
        return x

    x = np.zeros((3, 2)).T
    (found,) = infer_outputs(op_expr("count_up"), [x], {})
    assert found == ArraySpec((2, 3), np.dtype(float), (8, 16))
    assert not x.any()


# --- ArraySpec ----------------------------------------------------------------------------------


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("shape", [(), (3,), (2, 1), (2, 3, 4), (0, 5)])
def test_a_description_is_that_of_the_array_it_allocates(layout, shape):
    x = LAYOUTS[layout](0, np.ones(shape, np.float32))
    spec = ArraySpec.of(x)
    assert ArraySpec.of(spec) == spec == ArraySpec.of(spec.phantom())
    y = spec.allocate()
    assert (y.shape, y.dtype) == (x.shape, x.dtype)
    assert not y.any()
    assert (spec.ndim, spec.size) == (x.ndim, x.size)
    assert in_c_order(x.shape, 4, x.strides) == x.flags.c_contiguous
    assert spec.strides is None or y.strides == x.strides


def test_negative_strides():
    spec = ArraySpec.of(np.arange(6.0).reshape(2, 3)[::-1, ::-1])
    y = spec.allocate()
    y[...] = 1
    assert spec.strides == y.strides == (-24, -8)
