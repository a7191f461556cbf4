"""nn.functional.pad: every mode, cutting, derivatives, errors."""

import numpy as np
import pytest

import oneflow_lite as flow
from oneflow_lite.errors import ArgumentError, ArgumentTypeError, DTypeError, ShapeError
from oneflow_lite.functors.padding import pad
from oneflow_lite.testing import Sample, check_op

X = np.random.default_rng(0).normal(size=(2, 3, 4, 5))
X2 = X[0, 0]

CONSTANT = {
    "last": (X2, (1, 2)),
    "two": (X, (1, 2, 0, 3)),
    "four": (X, (1, 0, 0, 1, 2, 0, 0, 1)),
    "cut": (X2, (-1, -2)),
    "cut and add": (X2, (-2, 3, 1, -1)),
    "cut all": (X2, (-2, -3)),
    "nothing": (X2, ()),
    "zeros": (X2, (0, 0)),
    "0d": (X2[0, 0], ()),
    "empty": (X2[:0], (1, 1, 2, 0)),
}
COPIED = {
    "last": (X2, (1, 2)),
    "left": (X2, (3, 0)),
    "two": (X, (1, 2, 3, 0)),
    "three": (X[None], (2, 1, 0, 1, 1, 2)),
    "cut and add": (X2, (-1, 3)),
    "add and cut": (X2, (3, -1)),
    "cut": (X2, (-1, -1)),
    "zeros": (X2, (0, 0)),
    "many elements": (np.random.default_rng(1).normal(size=(1, 9, 20, 30)), (1, 3, 2, 0)),
}


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("name", CONSTANT)
def test_constant_agrees_with_pytorch(name, dtype):
    torch = pytest.importorskip("torch")
    from tests.functors.agreement import compare

    x, sizes = CONSTANT[name]

    def on(pad):
        return lambda x: (pad(x * x, sizes), pad(x * x, sizes, value=1.5))

    compare(on(pad), on(torch.nn.functional.pad), np.asarray(x, dtype))


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("mode", ["reflect", "replicate", "circular"])
@pytest.mark.parametrize("name", COPIED)
def test_other_modes_agree_with_pytorch(name, mode, dtype):
    torch = pytest.importorskip("torch")
    from tests.functors.agreement import compare

    x, sizes = COPIED[name]
    compare(
        lambda x: pad(x * x, sizes, mode),
        lambda x: torch.nn.functional.pad(x * x, sizes, mode),
        x.astype(dtype),
    )


def test_as_much_as_there_is():
    torch = pytest.importorskip("torch")
    for mode, sizes in (("reflect", (4, 4)), ("circular", (5, 5)), ("replicate", (9, 9))):
        expected = torch.nn.functional.pad(torch.tensor(X2), sizes, mode).numpy()
        np.testing.assert_array_equal(pad(flow.tensor(X2), sizes, mode).numpy(), expected)


@pytest.mark.parametrize("mode", ["constant", "reflect", "replicate", "circular"])
def test_any_number_of_dimensions(mode):
    names = {"reflect": "reflect", "replicate": "edge", "circular": "wrap", "constant": "constant"}
    for x, sizes, pairs in (
        (X2[0], (2, 1), [(2, 1)]),
        (X2, (2, 1, 0, 3), [(0, 3), (2, 1)]),
        (X, (1, 1, 2, 2, 1, 0, 0, 1), [(0, 1), (1, 0), (2, 2), (1, 1)]),
    ):
        got = pad(flow.tensor(x), sizes, mode).numpy()
        np.testing.assert_array_equal(got, np.pad(x, pairs, names[mode]))


def test_derivatives(device):
    samples = [Sample(X2[:2, :3], (1, 2, 1, 0), mode) for mode in ("constant", "circular")]
    samples += [Sample(X2[:3, :3], (2, 1, 0, 2), mode) for mode in ("reflect", "replicate")]
    samples += [Sample(X2[:2, :3], (-1, 2), mode) for mode in ("constant", "reflect")]
    check_op("pad", samples, degenerate=False, device=device)


@pytest.mark.parametrize("mode", ["constant", "reflect", "replicate", "circular"])
def test_result_is_new_memory(mode):
    x = flow.tensor(X2)
    for sizes in ((0, 0), (-1, 0), (-1, -2, 0, -1), (-1, 2), (0, 0, -1, 1)):
        y = pad(x, sizes, mode)
        assert not y.is_view()
        assert not np.shares_memory(y.numpy(), x.numpy())
        assert y.is_contiguous()


@pytest.mark.parametrize("dtype", ["int64", "uint8", "bool", "float16"])
def test_dtypes_are_kept(dtype, device):
    x = flow.tensor(X2, device=device).to(dtype)
    assert pad(x, (1, 1), value=1).dtype == dtype
    for mode in ("reflect", "replicate", "circular"):
        assert pad(x, (1, 1), mode).dtype == dtype


@pytest.mark.parametrize(
    ("sizes", "options", "error", "argument"),
    [
        ((1,), {}, ShapeError, "pad"),
        ((1, 1, 1, 1, 1, 1), {}, ShapeError, "pad"),
        ((1, 1.5), {}, ArgumentTypeError, "pad"),
        ((-3, -3), {}, ShapeError, "pad"),
        ((-6, 7), {}, ShapeError, "pad"),
        ((1, 1), {"mode": "mirror"}, ArgumentError, "mode"),
        ((1, 1), {"mode": "reflect", "value": 2.0}, ArgumentError, "value"),
        ((1, 1), {"value": 1j}, DTypeError, "value"),
        ((5, 0), {"mode": "reflect"}, ShapeError, "pad"),
        ((0, 6), {"mode": "circular"}, ShapeError, "pad"),
        ((-3, 3), {"mode": "circular"}, ShapeError, "pad"),
    ],
)
def test_errors(sizes, options, error, argument):
    with pytest.raises(error, match=rf"^pad\(\): argument '{argument}'"):
        pad(flow.tensor(X2), sizes, **options)


def test_nothing_to_copy():
    for mode in ("reflect", "replicate", "circular"):
        with pytest.raises(ShapeError, match="size 0"):
            pad(flow.zeros(2, 0), (1, 0), mode)
