"""Loops of optimizer updates, read off their kernels: they have the kernels' bits."""

import numpy as np
import pytest

from oneflow_lite.ops.op_expr import op_expr
from oneflow_lite.ops.registry import KERNELS
from oneflow_lite.ops.scalar_expression import FUNCTIONS
from oneflow_lite.static.fusion.updates import is_update, update_of
from oneflow_lite.static.ir.program import OpDesc
from tests.static.build import Builder

WHOLE = {"adafactor_update", "muon_update"}  # what they do to an element depends on all others
OPS = sorted({name for name in KERNELS if name.endswith("_update")} - WHOLE)
STATES = {"max_exp_avg_sq", "momentum_buffer", "grad_avg"}  # those that may be left out
OPTIONS = {
    "lr": 0.1, "weight_decay": 0.3, "momentum": 0.9, "beta1": 0.9, "beta2": 0.99, "eps": 1e-3,
    "step_size_max": 0.5, "step_size_min": 0.01, "etaplus": 1.2, "etaminus": 0.5, "t0": 3.0,
}  # fmt: skip
NUMBERS = {"step": 3.0, "mu_product": 0.7, "eta": 0.1, "mu": 0.9}


def operands(op, dtype, variant, shape=(3, 4)):
    """Return arrays for an update; the bits of `variant` leave states and options out."""
    rng = np.random.default_rng(0)
    found = []
    for name in op_expr(op).schema.inputs:
        if name in NUMBERS:
            found.append(np.array(NUMBERS[name] + 9 * bool(variant & 4), "float32"))
        elif name in OPTIONS or name in ("dampening", "alpha", "rho", "lambd", "lr_decay"):
            off = variant & 2 and name in ("weight_decay", "dampening")
            found.append(None if off else np.array(OPTIONS.get(name, 0.37)))
        elif name == "momentum_decay":
            found.append(np.array(0.004))
        elif variant & 1 and name in STATES:
            found.append(None)
        else:
            array = rng.standard_normal(shape).astype(dtype)
            signed = name in ("param", "grad", "prev", "momentum_buffer")
            found.append(array if signed else abs(array) + (2 if "avg" in name else 0))
    return found


def described(op, arrays, attributes):
    b = Builder()
    names = [None if x is None else b.external(f"x{i}", x) for i, x in enumerate(arrays)]
    return OpDesc(op, tuple(names), (names[0],), attributes), b.block


def run_as_python(update, arrays):
    """Run the source of an update with NumPy's numbers, one element after the other."""

    def carray(position, shape, dtype):
        assert arrays[position].dtype == dtype
        return arrays[position].reshape(-1)

    scope = {
        **FUNCTIONS, "part": lambda function: function, "carray": carray, "pointer": lambda x: x,
        "float32": np.float32, "float64": np.float64, "uint64": int,
        "divided": lambda x, y: float(x) / float(y),
    }  # fmt: skip
    exec(update.source, scope)
    found = scope[f"{update.name}_numbers"](*update.numbers)
    assert len(found) == update.kept
    size = arrays[0].size
    with np.errstate(all="ignore"):
        scope[f"{update.name}_elements"](0, size // 2, found, *update.arrays)
        scope[f"{update.name}_elements"](size // 2, size, found, *update.arrays)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("op", OPS)
def test_the_loop_of_an_update_is_its_kernel(op, dtype):
    for variant in range(8):
        arrays = operands(op, dtype, variant)
        schema = op_expr(op).schema
        attributes = {
            name: bool(variant & 4) if isinstance(value, bool) else value
            for name, value in schema.attrs.items()
        }
        update = update_of(*described(op, arrays, attributes))
        assert update is not None and update.dtype == dtype
        mine = [None if x is None else x.copy() for x in arrays]
        run_as_python(update, mine)
        with np.errstate(all="ignore"):
            op_expr(op).kernel(np)(*arrays, **attributes)
        for name, x, y in zip(schema.inputs, arrays, mine, strict=True):
            if x is not None:  # powers of single numbers may differ in the last bit
                tolerance = 0 if dtype == "float32" else 1e-15
                np.testing.assert_allclose(y, x, tolerance, tolerance, err_msg=f"{name} {variant}")
                assert not np.array_equal(x, operands(op, dtype, variant)[0]) or name != "param"


@pytest.mark.parametrize("op", sorted(WHOLE))
def test_updates_that_look_at_whole_arrays_have_none(op):
    arrays = [np.ones((3, 4), "float32") for _ in op_expr(op).schema.inputs]
    numbers = [i for i, name in enumerate(op_expr(op).schema.inputs) if name in (*OPTIONS, "step")]
    arrays = [np.ones(()) if i in numbers else x for i, x in enumerate(arrays)]
    op, block = described(op, arrays, {})
    assert is_update(op) and update_of(op, block) is None


@pytest.mark.parametrize("what", ["complex", "half", "two dtypes", "two shapes"])
def test_other_arrays_stay_with_numpy(what):
    arrays = operands("sgd_update", "float32", 0)
    if what == "two dtypes":
        arrays[1] = arrays[1].astype("float64")
    elif what == "two shapes":
        arrays[1] = arrays[1][:1].copy()
    else:
        dtype = {"complex": "complex64", "half": "float16"}[what]
        arrays[:3] = [x.astype(dtype) for x in arrays[:3]]
    assert update_of(*described("sgd_update", arrays, {})) is None


def test_a_step_that_divides_by_zero_raises_as_python_does():
    arrays = operands("adam_update", "float32", 0)
    arrays[7] = np.array(1.0)  # beta1: 1 - beta1^t is 0
    update = update_of(*described("adam_update", arrays, {}))
    with pytest.raises(ZeroDivisionError):
        run_as_python(update, arrays)
