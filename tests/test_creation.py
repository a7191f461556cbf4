"""Tensors made from data, sizes and ranges."""

from typing import ClassVar

import numpy as np
import pytest

import oneflow_lite as flow
from oneflow_lite.errors import ArgumentError, ArgumentTypeError, DTypeError, FlowError

DTYPES = "bool uint8 int8 int16 int32 int64 float16 float32 float64 complex64 complex128".split()


@pytest.fixture
def torch():
    return pytest.importorskip("torch")


def same(ours, theirs):
    assert ours.shape == tuple(theirs.shape)
    assert str(ours.dtype) == str(theirs.dtype).removeprefix("torch.")
    np.testing.assert_allclose(ours.numpy(), theirs.numpy(), rtol=1e-6)


class TestTensor:
    DATA: ClassVar = {
        "int": 3,
        "float": 2.5,
        "bool": True,
        "complex": 1 + 2j,
        "ints": [1, 2],
        "floats": [1.0, 2.0],
        "mixed": [1, 2.5],
        "bool and int": [True, 2],
        "bools": [True, False],
        "complexes": [1j, 2],
        "nested": [[1, 2], [3, 4]],
        "tuple": ((1.0, 2.0), (3.0, 4.0)),
        "empty": [],
        "empty row": [[]],
        "empty rows": [[], []],
        "range": range(3),
        "large int": 2**40,
    }

    @pytest.mark.parametrize("name", DATA)
    def test_infers_as_pytorch(self, torch, name):
        same(flow.tensor(self.DATA[name]), torch.tensor(self.DATA[name]))

    @pytest.mark.parametrize("dtype", DTYPES)
    def test_of_a_given_dtype(self, torch, dtype):
        same(
            flow.tensor([0, 1, 2], dtype=dtype),
            torch.tensor([0, 1, 2], dtype=getattr(torch, dtype)),
        )

    @pytest.mark.parametrize("dtype", DTYPES)
    def test_of_an_array_keeps_its_dtype_and_copies(self, dtype):
        a = np.ones((2, 3), dtype)
        x = flow.tensor(a)
        assert x.dtype == a.dtype
        a[0, 0] = 0
        assert (x.numpy() == 1).all()

    @pytest.mark.parametrize(
        "value", [np.float64(2.5), np.float32(2.5), np.int8(3), np.bool_(True)]
    )
    def test_of_a_numpy_scalar_keeps_its_dtype(self, torch, value):
        assert flow.tensor(value).dtype == value.dtype
        assert flow.tensor(value).shape == ()
        same(flow.tensor(value), torch.tensor(value))

    def test_of_a_list_of_numpy_scalars_or_arrays(self, torch):
        for data in ([np.float64(1), np.float64(2)], [np.ones(2), np.zeros(2)]):
            same(flow.tensor(data), torch.tensor(np.array(data)))

    def test_of_a_tensor_copies_without_history(self):
        x = flow.ones(2, requires_grad=True)
        y = flow.tensor(x * 2)
        assert not y.requires_grad and y.tolist() == [2.0, 2.0]
        z = flow.tensor(x.detach())
        z.zero_()
        assert x.tolist() == [1.0, 1.0]

    def test_of_a_list_of_tensors(self):
        assert flow.tensor([flow.tensor(1.0), flow.tensor(2.0)]).tolist() == [1.0, 2.0]

    def test_of_strided_arrays(self):
        a = np.arange(6.0).reshape(2, 3)
        assert flow.tensor(a.T).tolist() == a.T.tolist()
        assert flow.tensor(a[:, ::-1]).tolist() == a[:, ::-1].tolist()
        assert flow.tensor(a.astype(">f8")).dtype == flow.float64

    def test_requires_grad(self):
        x = flow.tensor([1.0], requires_grad=True)
        assert x.requires_grad and x.is_leaf
        assert not flow.tensor([1.0]).requires_grad

    @pytest.mark.parametrize("dtype", [flow.int64, flow.bool])
    def test_integers_do_not_require_gradients(self, dtype):
        with pytest.raises(DTypeError, match="requires_grad"):
            flow.tensor([1, 0], dtype=dtype, requires_grad=True)

    @pytest.mark.parametrize(
        "bad", ["text", ["a", "b"], [[1, 2], [3]], None, object(), {}, [None], [1, "a"], {1, 2}]
    )
    def test_what_is_no_data(self, bad):
        for make in (flow.tensor, flow.Tensor, flow.as_tensor):
            with pytest.raises(FlowError) as caught:
                make(bad)
            assert isinstance(caught.value, (ValueError, TypeError, RuntimeError))

    def test_ragged_rows_name_the_mend(self):
        with pytest.raises(ArgumentError, match=r"tensor\(\).*data.*equal"):
            flow.tensor([[1, 2], [3]])


class TestAsPyTorch:
    """Expressions of both libraries, `t`: the same dtype, shape and values, or both raise."""

    RUN: ClassVar = [
        *(
            f"t.tensor({data})"
            for data in (
                "[np.float32(1), 2]",
                "[2, np.float32(1)]",
                "[1, np.float64(2)]",
                "[np.int32(1), 2.0]",
                "[[np.float32(1)], [2]]",
                "[1.0, np.complex128(1)]",
                "[np.int64(2), np.float16(1)]",
                "[np.float16(1), np.float32(2)]",
                "[np.array([1, 2]), np.array([1.0, 2.0], np.float32)]",
                "[np.int8(2), 300]",
                "[1.0, t.tensor(2.0, dtype=t.float64)]",
                "[np.float32(1), t.tensor(2)]",
                "[[1.0, 2.0], [3, np.float16(1)]]",
                "bytearray(b'ab')",
            )
        ),
        *(
            f"t.{name}({ends})"
            for name in ("linspace", "logspace")
            for ends in (
                "0, 1j, 3",
                "1 + 1j, 2 - 3j, 4",
                "t.tensor(0), t.tensor(3), 4",
                "t.tensor(1j), 3, 4, dtype=t.complex128",
                "0, t.tensor(3.0, dtype=t.float64), 4",
                "0, 3, 4, out=t.empty(0, dtype=t.complex64)",
            )
        ),
        "t.arange(5.1, dtype=t.int64)",
        "t.arange(0.5, 5.5, 1.5, dtype=t.int64)",
        "t.arange(0.5, 5.5, 1.5, dtype=t.int32)",
        "t.arange(0.5, 5.5, 1.5, out=t.empty(0, dtype=t.int64))",
        "t.full((2,), True)",
        "t.full((2,), 1 + 2j)",
        "t.full((2,), 2.5, dtype=t.int64)",
        "t.full((2,), 1, dtype=t.complex64)",
        "t.zeros(2, layout=t.strided, pin_memory=False)",
        "t.ones_like(t.zeros(2), layout=t.strided)",
        "t.tril_indices(2, 3, layout=t.strided, requires_grad=False)",
        "t.hann_window(4, layout=t.strided)",
        "t.randint(high=1, size=(2,))",
        "t.randint(0, 1, size=(2,), dtype=t.uint8)",
        "t.bernoulli(t.zeros(2), 1.0)",
        "t.bernoulli(t.zeros(2, dtype=t.int64), 1.0)",
        "t.zeros(2).bernoulli(p=1.0)",
        "t.zeros(3, 2).bernoulli_(t.ones(2))",
        "t.ones(2, dtype=t.int64).bernoulli_(t.zeros(2, dtype=t.float64))",
        "t.zeros(2).bernoulli_(t.tensor(1.0))",
    ]
    RAISE: ClassVar = [
        "t.linspace(0, 1j, 3, dtype=t.float32)",
        "t.linspace(t.tensor([1.0]), 2, 3)",
        "t.logspace(2, t.tensor([1.0]), 3)",
        "t.linspace(0, 1, 3, dtype=t.bool)",
        "t.arange(0, 3, 0.5, dtype=t.int64)",
        "t.full((2,), 1e40, dtype=t.complex64)",
        "t.full((2,), 2j, dtype=t.float32)",
        "t.randint(300, (2,), dtype=t.uint8)",
        "t.randint(-1, 1, (2,), dtype=t.uint8)",
        "t.randint_like(t.ones(2, dtype=t.uint8), 300)",
        "t.randint(5, (2,), dtype=t.complex64)",
        "t.randperm(300, dtype=t.uint8)",
        "t.randperm(3000, dtype=t.float16)",
        "t.zeros(2).bernoulli_(t.ones(3))",
        "t.zeros(2).bernoulli_(t.tensor([0.5, 2.0]))",
        "t.zeros(2, pin_memory=True)",
        "t.zeros(2, layout=2)",
    ]

    @pytest.mark.parametrize("text", RUN)
    def test_runs(self, torch, text):
        same(*(eval(text, {"t": library, "np": np}) for library in (flow, torch)))

    @pytest.mark.parametrize("text", RAISE)
    def test_raises(self, torch, text):
        with pytest.raises(FlowError):
            eval(text, {"t": flow})
        with pytest.raises((RuntimeError, ValueError, TypeError)):
            eval(text, {"t": torch})

    def test_generators_of_what_is_drawn_like_a_tensor(self):
        x = flow.zeros(3)
        for make in (flow.rand_like, flow.randn_like):
            one, other = (make(x, generator=flow.Generator().manual_seed(3)) for _ in range(2))
            assert flow.equal(one, other)


class TestSharing:
    def test_from_numpy_shares_memory(self):
        a = np.zeros((2, 3))
        x = flow.from_numpy(a)
        a[0, 0] = 5
        assert x[0, 0].item() == 5
        x[1, 1] = 7
        assert a[1, 1] == 7
        assert x.numpy() is a or np.shares_memory(x.numpy(), a)

    def test_from_numpy_of_views(self):
        a = np.arange(6.0).reshape(2, 3)
        x = flow.from_numpy(a[:, ::2].T)
        assert x.tolist() == a[:, ::2].T.tolist()
        x.zero_()
        assert a.tolist() == [[0, 1, 0], [0, 4, 0]]

    def test_from_numpy_of_a_subclass(self):
        x = flow.from_numpy(np.ones(2).view(np.recarray))
        assert type(x.numpy()) is np.ndarray

    @pytest.mark.parametrize("bad", [[1.0], 3, None, "text", np.float64(1)])
    def test_from_numpy_of_what_is_no_array(self, bad):
        with pytest.raises(ArgumentTypeError, match="from_numpy"):
            flow.from_numpy(bad)

    @pytest.mark.parametrize("dtype", [">f4", ">i8", "U3", "datetime64[s]", object])
    def test_from_numpy_of_a_foreign_dtype(self, dtype):
        with pytest.raises(FlowError, match="from_numpy"):
            flow.from_numpy(np.zeros(2, dtype))

    def test_as_tensor(self):
        a = np.ones(2)
        x = flow.as_tensor(a)
        a[0] = 5
        assert x.tolist() == [5.0, 1.0]
        assert flow.as_tensor(x) is x
        assert flow.as_tensor(x, dtype=flow.float64) is x
        y = flow.as_tensor(x, dtype=flow.float32)
        assert y is not x and y.dtype == flow.float32
        assert flow.as_tensor([1, 2]).dtype == flow.int64
        assert flow.as_tensor(a, dtype=flow.int64).tolist() == [5, 1]

    def test_as_tensor_keeps_history(self):
        x = flow.ones(2, requires_grad=True)
        flow.as_tensor(x * 2, dtype=flow.float64).sum().backward()
        assert x.grad.tolist() == [2.0, 2.0]


SIZES = [(), (0,), (3,), (2, 3), (2, 0, 3)]


class TestFilled:
    @pytest.mark.parametrize("name", ["zeros", "ones"])
    @pytest.mark.parametrize("size", SIZES, ids=str)
    def test_sizes(self, torch, name, size):
        same(getattr(flow, name)(size), getattr(torch, name)(size))
        if size:
            same(getattr(flow, name)(*size), getattr(torch, name)(*size))
        else:
            assert getattr(flow, name)().shape == ()
        same(getattr(flow, name)(list(size)), getattr(torch, name)(list(size)))
        same(getattr(flow, name)(size=size), getattr(torch, name)(size=size))

    @pytest.mark.parametrize("dtype", DTYPES)
    def test_dtypes(self, torch, dtype):
        for name in ("zeros", "ones"):
            same(
                getattr(flow, name)(2, dtype=dtype),
                getattr(torch, name)(2, dtype=getattr(torch, dtype)),
            )

    @pytest.mark.parametrize("value", [3, 2.5, True, 1 + 2j])
    def test_full(self, torch, value):
        same(flow.full((2, 2), value), torch.full((2, 2), value))
        same(
            flow.full((2,), value, dtype=flow.complex128),
            torch.full((2,), value, dtype=torch.complex128),
        )

    @pytest.mark.parametrize("size", SIZES, ids=str)
    def test_empty(self, size):
        x = flow.empty(size, dtype=flow.int16)
        assert x.shape == size and x.dtype == flow.int16

    def test_require_grad(self):
        for make in (flow.zeros, flow.ones, flow.empty, flow.rand, flow.randn):
            assert make(2, requires_grad=True).requires_grad
            assert not make(2).requires_grad

    @pytest.mark.parametrize("name", ["zeros", "ones", "empty", "rand", "randn"])
    @pytest.mark.parametrize(
        "bad", [(-1,), (2, -3), (2.5,), ("2",), (None,), ((2, 2.5),), (2, (3,))]
    )
    def test_bad_sizes(self, name, bad):
        with pytest.raises(FlowError, match=rf"{name}\(\)"):
            getattr(flow, name)(*bad)

    @pytest.mark.parametrize("bad", ["text", None, [1, 2], object()])
    def test_full_of_no_number(self, bad):
        with pytest.raises(FlowError, match=r"full\(\)"):
            flow.full((2,), bad)

    def test_sizes_may_be_numpy_integers(self):
        assert flow.zeros(np.int64(2), 3).shape == (2, 3)
        assert flow.zeros(flow.ones(2, 3).shape).shape == (2, 3)


class TestLike:
    X = np.ones((2, 3), np.float64)

    @pytest.mark.parametrize("name", ["zeros_like", "ones_like", "empty_like"])
    def test_shape_and_dtype(self, name):
        x = flow.tensor(self.X)
        y = getattr(flow, name)(x)
        assert (y.shape, y.dtype, y.device) == (x.shape, x.dtype, x.device)
        z = getattr(flow, name)(x, dtype=flow.int64)
        assert z.dtype == flow.int64
        assert getattr(flow, name)(x, requires_grad=True).requires_grad

    def test_values(self):
        x = flow.tensor(self.X)
        assert (flow.zeros_like(x).numpy() == 0).all()
        assert (flow.ones_like(x).numpy() == 1).all()
        assert (flow.full_like(x, 7).numpy() == 7).all()
        assert flow.full_like(x, 7).dtype == flow.float64

    def test_of_a_tensor_in_the_graph_has_no_history(self):
        x = flow.ones(2, requires_grad=True) * 2
        for y in (flow.zeros_like(x), flow.ones_like(x), flow.full_like(x, 1), flow.rand_like(x)):
            assert not y.requires_grad

    @pytest.mark.parametrize(
        "name", ["zeros_like", "ones_like", "empty_like", "rand_like", "randn_like"]
    )
    @pytest.mark.parametrize("bad", [[1.0], 3, None, np.ones(2)])
    def test_of_no_tensor(self, name, bad):
        with pytest.raises(ArgumentTypeError, match=rf"{name}\(\).*input"):
            getattr(flow, name)(bad)

    def test_does_not_share_memory(self):
        x = flow.ones(2)
        y = flow.ones_like(x)
        y.zero_()
        assert x.tolist() == [1.0, 1.0]


class TestRanges:
    @pytest.mark.parametrize(
        "args",
        [
            (5,), (0,), (2, 7), (2, 2), (7, 2, -2), (0, 1, 0.25), (1.5,), (0.0, 5.0), (1, 2, 0.3),
            (0, 1, 0.1), (5, 0, -1), (-3, 3), (0, 0.3, 0.1), (1.0, 1.0), (0, 10, 3),
            (2.5, -2.5, -0.5),
        ],
    )  # fmt: skip
    def test_arange(self, torch, args):
        same(flow.arange(*args), torch.arange(*args))

    @pytest.mark.parametrize("dtype", ["int32", "float64", "float16", "int8"])
    def test_arange_of_a_dtype(self, torch, dtype):
        same(flow.arange(5, dtype=dtype), torch.arange(5, dtype=getattr(torch, dtype)))
        same(flow.arange(0, 5, 2, dtype=dtype), torch.arange(0, 5, 2, dtype=getattr(torch, dtype)))

    def test_arange_by_keyword_and_of_tensors(self):
        assert flow.arange(start=1, end=3).tolist() == [1, 2]
        assert flow.arange(end=3).tolist() == [0, 1, 2]
        assert flow.arange(flow.tensor(3)).tolist() == [0, 1, 2]

    @pytest.mark.parametrize(
        "bad",
        [
            (0, 5, 0),
            (5, 0),
            (0, 5, -1),
            ("a",),
            (None,),
            (0, float("inf")),
            (float("nan"),),
            ([1],),
        ],
    )
    def test_arange_of_nonsense(self, bad):
        with pytest.raises(FlowError, match=r"arange\(\)"):
            flow.arange(*bad)

    @pytest.mark.parametrize(
        "args",
        [(0, 1, 5), (0, 1, 1), (0, 1, 0), (3, -3, 4), (2, 2, 3), (0, 10, 11), (-1.5, 2.5, 9)],
    )
    def test_linspace(self, torch, args):
        same(flow.linspace(*args), torch.linspace(*args))
        same(flow.linspace(*args, dtype=flow.float64), torch.linspace(*args, dtype=torch.float64))

    def test_linspace_of_integers(self, torch):
        same(flow.linspace(0, 10, 5, dtype=flow.int64), torch.linspace(0, 10, 5, dtype=torch.int64))

    @pytest.mark.parametrize(
        "bad", [(0, 1, -1), (0, 1, 2.5), ("a", 1, 2), (0, None, 2), (0, 1, "3")]
    )
    def test_linspace_of_nonsense(self, bad):
        with pytest.raises(FlowError, match=r"linspace\(\)"):
            flow.linspace(*bad)

    @pytest.mark.parametrize("args", [(3,), (2, 3), (3, 2), (0,), (0, 2)])
    def test_eye(self, torch, args):
        same(flow.eye(*args), torch.eye(*args))
        same(flow.eye(*args, dtype=flow.int64), torch.eye(*args, dtype=torch.int64))

    @pytest.mark.parametrize("bad", [(-1,), (2, -1), (2.5,), ("2",), (None,)])
    def test_eye_of_nonsense(self, bad):
        with pytest.raises(FlowError, match=r"eye\(\)"):
            flow.eye(*bad)

    def test_require_grad(self):
        for x in (
            flow.arange(0.0, 3.0, requires_grad=True),
            flow.linspace(0, 1, 3, requires_grad=True),
            flow.eye(2, requires_grad=True),
            flow.full((2,), 1.0, requires_grad=True),
        ):
            assert x.requires_grad and x.is_leaf
        with pytest.raises(DTypeError):
            flow.arange(3, requires_grad=True)


def test_new_tensors_are_not_shared():
    x, y = flow.zeros(2), flow.zeros(2)
    x.add_(1)
    assert y.tolist() == [0.0, 0.0]


def test_on_each_device(device):
    for make in (
        lambda d: flow.tensor([1.0, 2.0], device=d),
        lambda d: flow.zeros(2, device=d),
        lambda d: flow.arange(2, device=d),
        lambda d: flow.full((2,), 1, device=d),
    ):
        x = make(device)
        assert x.device.type == device
        assert x.cpu().tolist() == make("cpu").tolist()
