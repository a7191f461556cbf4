"""Memory seen as another dtype, `x.view(dtype)`: sizes, strides, bits and errors of PyTorch's."""

import itertools

import pytest

import oneflow_lite as flow
from oneflow_lite.errors import DTypeError

DTYPES = "uint8 int16 float16 bfloat16 float32 int64 complex64 complex128".split()
LAYOUTS = {
    "plain": lambda x: x,
    "transposed": lambda x: x.t(),
    "some columns": lambda x: x[:, :8],
    "an odd number of columns": lambda x: x[:, :7],
    "later columns": lambda x: x[:, 1:9],
    "every second column": lambda x: x[:, ::2],
    "later rows": lambda x: x[1:3],
    "one column": lambda x: x[:, :1],
    "one element": lambda x: x[0, 0],
    "three dimensions": lambda x: x.reshape(2, 2, 24).permute(1, 0, 2),
    "rows of odd length": lambda x: x.reshape(-1)[:95].reshape(5, 19)[:, :8],
    "no rows": lambda x: x[:0],
    "expanded": lambda x: x[:1].expand(3, 24),
    "a later part": lambda x: x.reshape(-1)[6:],
}


def seen(lib, layout, source, target):
    """Return what a view shows, or that there is none."""
    x = layout((lib.arange(96) % 7).reshape(4, 24).to(getattr(lib, source)))
    try:
        y = x.view(getattr(lib, target))
    except RuntimeError:
        return None
    assert not y.numel() or y.data_ptr() == x.data_ptr()
    bits = y.contiguous().reshape(-1).view(lib.uint8).tolist()
    return y.dtype == getattr(lib, target), tuple(y.shape), y.stride(), y.storage_offset(), bits


@pytest.mark.parametrize("source", DTYPES)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_views_are_those_of_pytorch(source, layout):
    torch = pytest.importorskip("torch")
    if "bfloat16" in DTYPES:
        pytest.importorskip("ml_dtypes")
    for target in DTYPES:
        calls = [(lib, LAYOUTS[layout], source, target) for lib in (flow, torch)]
        ours, theirs = itertools.starmap(seen, calls)
        assert ours == theirs, target


def test_memory_and_version_are_shared_without_a_gradient(device):
    x = flow.ones(2, 4, device=device, requires_grad=True)
    for y in (
        x.view(flow.float64),
        x.view(flow.float16),
        x.view(flow.complex64),
        x.view(flow.int32),
    ):
        assert not y.requires_grad and y.is_leaf and y._base is None and not y.is_view()
        assert y.device == x.device
    x.view(flow.int16).zero_()
    assert x.tolist() == [[0.0] * 4] * 2 and x._version == 1
    y = x * 1
    with pytest.raises(flow.errors.StaleTensorError):
        z = y.exp()
        z.view(flow.int16).zero_()
        z.sum().backward()


def test_bfloat16_and_its_bits():
    pytest.importorskip("ml_dtypes")
    x = flow.tensor([1.0, -2.0, 0.5, 3.0], dtype=flow.bfloat16)
    bits = x.view(flow.int16)
    assert bits.tolist() == [16256, -16384, 16128, 16448]
    assert (bits + 0).dtype is flow.int16
    assert bits.view(flow.bfloat16).dtype is flow.bfloat16
    assert (bits.view(flow.bfloat16) * 2).tolist() == [2.0, -4.0, 1.0, 6.0]
    assert x[2:].storage_offset() == 2


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: flow.ones(3).view(flow.float64), "size(-1) divisible by 2, to read elements of 4"),
        (lambda: flow.ones(4)[1:3].view(flow.float64), "storage_offset() divisible by 2"),
        (lambda: flow.ones(3, 5)[:, :4].view(flow.float64), "stride(0) divisible by 2"),
        (lambda: flow.ones(4, 4).t().view(flow.int16), "a last dimension of stride 1"),
        (lambda: flow.tensor(1.0).view(flow.int16), "a last dimension of stride 1"),
    ],
)
def test_errors_name_what_does_not_fit(make, text):
    with pytest.raises(DTypeError) as error:
        make()
    assert "view(): argument 'dtype'" in str(error.value) and text in str(error.value)
    assert isinstance(error.value, RuntimeError)  # as PyTorch's


def test_in_batches_and_compiled():
    x = flow.arange(12.0).reshape(3, 4)
    assert (
        flow.vmap(lambda row: row.view(flow.float64))(x).tolist() == x.view(flow.float64).tolist()
    )
    twice = flow.compile(lambda x: x.view(flow.int16).view(flow.float32) * 2)
    for _ in range(2):
        assert twice(x).tolist() == (x * 2).tolist()
