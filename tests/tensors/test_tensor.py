"""Tensor: construction, conversion to and from everything else, repr, copies, operators."""

import copy
import io
import operator
import pickle

import numpy as np
import pytest

import oneflow_lite as flow
from oneflow_lite.errors import (
    ArgumentTypeError,
    DeviceError,
    DTypeError,
    FlowError,
    GradientError,
    IndexRangeError,
    ShapeError,
    StaleTensorError,
)

DTYPES = "bool uint8 int8 int16 int32 int64 float16 float32 float64 complex64 complex128".split()


@pytest.fixture
def torch():
    return pytest.importorskip("torch")


class TestConstruction:
    @pytest.mark.parametrize("data", [[1, 2, 3], (1, 2, 3), np.array([1, 2, 3]), [True, 2.5, 3]])
    def test_tensor_of_the_class_is_of_the_default_dtype(self, data):
        x = flow.Tensor(data)
        assert x.dtype == flow.float32
        assert x.tolist() == [float(v) for v in data]

    def test_sizes_give_an_uninitialised_tensor(self):
        assert flow.Tensor(2, 3).shape == (2, 3)
        assert flow.Tensor(2, 3).dtype == flow.float32
        assert flow.Tensor(0).shape == (0,)
        assert flow.Tensor().shape == (0,)

    def test_tensor_of_the_class_copies(self):
        a = np.ones(2, np.float32)
        x = flow.Tensor(a)
        a[0] = 5
        assert x.tolist() == [1.0, 1.0]

    @pytest.mark.parametrize("dtype", DTYPES)
    def test_numpy_shares_memory(self, dtype):
        x = flow.ones(3, dtype=dtype)
        a = x.numpy()
        assert a.dtype == np.dtype(dtype)
        a[0] = 0
        assert x[0].item() == 0

    def test_numpy_of_a_tensor_that_requires_a_gradient(self):
        x = flow.ones(2, requires_grad=True)
        assert x.numpy().tolist() == [1.0, 1.0]
        assert (x * 2).numpy().tolist() == [2.0, 2.0]
        with pytest.raises(GradientError, match=r"call detach\(\) first"):
            np.asarray(x * 2)

    def test_a_leaf_of_its_own_has_no_history(self):
        x = flow.tensor([1.0], requires_grad=True)
        assert x.is_leaf and x.grad is None and x.grad_fn is None and not x.is_view()


class TestFacts:
    def test_shape_and_size(self):
        x = flow.zeros(2, 3, 4)
        assert x.shape == (2, 3, 4) == x.size()
        assert x.size(1) == 3 and x.size(-1) == 4 and x.size(dim=0) == 2
        assert x.ndim == x.dim() == 3
        assert x.numel() == x.nelement() == 24
        assert x.element_size() == x.itemsize == 4
        assert x.nbytes == 96
        assert x.stride() == (12, 4, 1) and x.stride(0) == 12
        assert x.is_contiguous() and not x.transpose(0, 1).is_contiguous()
        assert isinstance(x.shape, tuple)

    @pytest.mark.parametrize("dim", [2, -3, 7])
    def test_a_size_that_is_not_there(self, dim):
        with pytest.raises(IndexError) as caught:
            flow.zeros(2, 3).size(dim)
        assert isinstance(caught.value, FlowError)

    @pytest.mark.parametrize("dtype", DTYPES)
    def test_kinds(self, torch, dtype):
        x, t = flow.zeros(1, dtype=dtype), torch.zeros(1, dtype=getattr(torch, dtype))
        assert x.is_floating_point() == t.is_floating_point()
        assert x.is_complex() == t.is_complex()
        assert x.element_size() == t.element_size()

    def test_transposes(self):
        x = flow.zeros(2, 3)
        assert x.T.shape == x.mT.shape == x.t().shape == (3, 2)
        assert flow.zeros(4, 2, 3).mT.shape == (4, 3, 2)

    def test_real_and_imaginary_parts(self):
        x = flow.tensor([1 + 2j, 3 - 4j])
        assert x.real.tolist() == [1, 3] and x.imag.tolist() == [2, -4]
        assert flow.ones(2).real.tolist() == [1.0, 1.0]
        with pytest.raises(RuntimeError):
            _ = flow.ones(2).imag


class TestConversion:
    @pytest.mark.parametrize(
        ("value", "kind"), [(3, int), (2.5, float), (True, bool), (1 + 2j, complex)]
    )
    def test_item(self, value, kind):
        for x in (flow.tensor(value), flow.tensor([[value]])):
            assert x.item() == value and type(x.item()) is kind

    @pytest.mark.parametrize(
        ("convert", "kind"),
        [
            (lambda x: x.item(), ShapeError),
            (bool, ShapeError),
            (int, ValueError),
            (float, ValueError),
            (complex, ValueError),
        ],
    )
    @pytest.mark.parametrize("shape", [(2,), (0,), (1, 2)])
    def test_of_more_or_fewer_elements_than_one(self, convert, kind, shape):
        with pytest.raises(kind, match="one element") as caught:
            convert(flow.ones(shape))
        assert isinstance(caught.value, RuntimeError)

    def test_complex_numbers_are_converted_where_they_are_real(self):
        assert (int(flow.tensor(3 + 0j)), float(flow.tensor(2.5 + 0j))) == (3, 2.5)
        for convert in (int, float):
            with pytest.raises(RuntimeError, match="real number"):
                convert(flow.tensor(1 + 2j))
        assert complex(flow.tensor(1 + 2j)) == 1 + 2j

    def test_formats_and_members(self):
        assert f"{flow.tensor(2.5):.2f} {flow.tensor([1])}" == "2.50 tensor([1])"
        with pytest.raises(TypeError, match="format"):
            format(flow.ones(1), ".2f")
        assert 1 in flow.ones(2) and flow.tensor(2) not in flow.ones(2)
        with pytest.raises(RuntimeError, match="number or a Tensor"):
            assert "a" in flow.ones(2)

    def test_tolist(self):
        assert flow.tensor([[1, 2], [3, 4]]).tolist() == [[1, 2], [3, 4]]
        assert flow.tensor(2.5).tolist() == 2.5
        assert flow.zeros(0, 2).tolist() == []
        assert type(flow.tensor([1.5]).tolist()[0]) is float

    def test_python_numbers(self):
        assert int(flow.tensor(2.7)) == 2
        assert float(flow.tensor([3])) == 3.0 and type(float(flow.tensor(3))) is float
        assert complex(flow.tensor(2.0)) == 2 + 0j
        assert bool(flow.tensor(0.0)) is False and bool(flow.tensor([[1]])) is True
        assert bool(flow.tensor(float("nan")))

    def test_index(self):
        assert [10, 20, 30][flow.tensor(1)] == 20
        assert list(range(3))[: flow.tensor([2])] == [0, 1]
        assert operator.index(flow.tensor(True)) == 1
        for bad in (flow.tensor(1.0), flow.tensor([1, 2])):
            with pytest.raises(FlowError):
                operator.index(bad)
        with pytest.raises(TypeError):
            operator.index(flow.tensor(1.0))

    def test_len_and_iteration(self):
        x = flow.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
        assert len(x) == 2
        rows = list(x)
        assert [r.tolist() for r in rows] == [[1.0, 2.0], [3.0, 4.0]]
        assert all(r.requires_grad for r in rows)
        (rows[0] * rows[1]).sum().backward()
        assert x.grad.tolist() == [[3.0, 4.0], [1.0, 2.0]]
        a, b = flow.tensor([1, 2])
        assert (a.item(), b.item()) == (1, 2)
        assert list(flow.zeros(0)) == []

    @pytest.mark.parametrize("look", [len, iter, list])
    def test_a_0d_tensor_has_no_first_dimension(self, look):
        with pytest.raises(ArgumentTypeError, match="0-d") as caught:
            look(flow.tensor(1.0))
        assert isinstance(caught.value, TypeError)

    def test_reversed_as_pytorch(self, torch):
        x = [[1, 2], [3, 4]]
        ours = [r.tolist() for r in reversed(flow.tensor(x))]
        theirs = [r.tolist() for r in reversed(torch.tensor(x))]
        assert ours == theirs

    def test_contains(self):
        x = flow.tensor([1.0, 2.0])
        assert 2.0 in x and 3 not in x

    def test_hash_and_identity(self):
        x, y = flow.ones(1), flow.ones(1)
        assert len({x, y, x}) == 2
        assert {x: 1}[x] == 1

    def test_format(self, torch):
        for spec in ("", ".2f", "5.1e"):
            assert format(flow.tensor(1.23456), spec) == format(torch.tensor(1.23456), spec)
        assert f"{flow.tensor([1.0])}" == "tensor([1.])"

    def test_bool_of_an_empty_or_long_tensor_in_an_if(self):
        with pytest.raises(RuntimeError, match="bool"):
            if flow.ones(2) == flow.ones(2):
                pass


class TestNumpy:
    def test_array(self):
        x = flow.tensor([1.0, 2.0])
        a = np.asarray(x)
        assert a.dtype == np.float32
        assert np.shares_memory(a, x.numpy())
        assert np.array(x, dtype=np.float64).dtype == np.float64
        copied = np.array(x)
        copied[0] = 9
        assert x.tolist() == [1.0, 2.0]
        assert not np.shares_memory(np.array(x, copy=True), x.numpy())
        with pytest.raises(ValueError):
            np.array(x, dtype=np.float64, copy=False)

    def test_numpys_functions_take_tensors(self):
        x = flow.tensor([1.0, 4.0])
        assert np.sqrt(np.asarray(x)).tolist() == [1.0, 2.0]
        assert np.concatenate([x, x]).tolist() == [1.0, 4.0, 1.0, 4.0]
        np.testing.assert_array_equal(x, np.array([1.0, 4.0]))

    @pytest.mark.parametrize(
        "op",
        [operator.add, operator.sub, operator.mul, operator.truediv, operator.pow, operator.mod,
         operator.floordiv, operator.lt, operator.ge, operator.eq, operator.ne, operator.matmul],
    )  # fmt: skip
    def test_an_array_on_the_left_or_right_gives_a_tensor(self, op):
        a, b = np.array([1.0, 5.0, 7.0], np.float32), np.array([2.0, 2.0, 7.0], np.float32)
        expected = op(a, b)
        for x, y in ((a, flow.tensor(b)), (flow.tensor(a), b)):
            result = op(x, y)
            assert isinstance(result, flow.Tensor)
            np.testing.assert_allclose(result.numpy(), expected, rtol=1e-6)

    def test_an_array_on_the_left_keeps_the_gradient(self):
        x = flow.tensor([1.0, 2.0], requires_grad=True)
        (np.array([3.0, 4.0], np.float32) * x).sum().backward()
        assert x.grad.tolist() == [3.0, 4.0]

    @pytest.mark.parametrize("scalar", [np.float32(2), np.float64(2), np.int64(2)])
    def test_a_numpy_scalar_on_the_left(self, scalar):
        x = flow.tensor([1.0, 2.0], requires_grad=True)
        for y in (scalar * x, scalar + x, scalar - x, scalar / x, scalar**x, scalar < x):
            assert isinstance(y, flow.Tensor)
        assert (scalar * x).tolist() == [2.0, 4.0]
        assert (scalar * x).dtype == flow.float32

    def test_an_array_is_no_alias(self):
        a = np.array([1.0, 2.0], np.float32)
        y = a + flow.zeros(2)
        a[0] = 9
        assert y.tolist() == [1.0, 2.0]


class TestDlpack:
    @pytest.mark.parametrize("dtype", DTYPES)
    def test_to_and_from_numpy(self, dtype):
        x = flow.ones(2, 3, dtype=dtype)
        a = np.from_dlpack(x)
        assert a.dtype == x.dtype and np.shares_memory(a, x.numpy())
        b = np.ones((2, 3), dtype)
        y = flow.from_dlpack(b)
        assert y.dtype == b.dtype
        b[0, 0] = 0
        assert y[0, 0].item() == 0

    @pytest.mark.parametrize("dtype", DTYPES)
    def test_to_and_from_pytorch(self, torch, dtype):
        x = flow.ones(2, 3, dtype=dtype)
        t = torch.from_dlpack(x)
        assert t.dtype == getattr(torch, dtype) and t.shape == (2, 3)
        t[0, 0] = 0
        assert x[0, 0].item() == 0
        y = flow.from_dlpack(torch.ones(2, 3, dtype=getattr(torch, dtype)).t())
        assert y.shape == (3, 2) and y.dtype == np.dtype(dtype)

    def test_device(self):
        assert tuple(flow.ones(1).__dlpack_device__()) == (1, 0)

    def test_a_tensor_that_requires_a_gradient(self):
        for x in (flow.ones(2, requires_grad=True), flow.ones(2, requires_grad=True) * 2):
            with pytest.raises(GradientError, match="detach"):
                np.from_dlpack(x)

    def test_between_tensors(self):
        x = flow.ones(2)
        y = flow.from_dlpack(x)
        y.zero_()
        assert x.tolist() == [0.0, 0.0]

    @pytest.mark.parametrize("bad", [3, [1, 2], "text", None])
    def test_what_has_no_dlpack(self, bad):
        with pytest.raises(FlowError, match="from_dlpack"):
            flow.from_dlpack(bad)


REPRS = {
    "0-d int": 3,
    "0-d float": 2.5,
    "0-d whole float": 3.0,
    "0-d bool": True,
    "0-d complex": 1 + 2j,
    "ints": [1, 20, -3],
    "whole floats": [1.0, 2.0, -3.0],
    "floats": [1.0, 2.5, -3.25],
    "small": [1e-5, 1.0],
    "large": [1e9, 1.0],
    "large whole": [123456789.0, 1.0],
    "wide range": [0.001, 1000.5],
    "all small": [1e-6, 2e-6],
    "negative zero": [-0.0, 0.0],
    "inf and nan": [float("inf"), float("-inf"), float("nan"), 1.0],
    "inf and fractions": [float("inf"), 1.5],
    "only nan": [float("nan")],
    "bools": [True, False],
    "complex": [1 + 2j, -1.5 - 0.5j],
    "whole complex": [1 + 2j, -1 - 1j],
    "matrix": [[1.0, 2.0], [3.5, 4.0]],
    "cube": [[[1, 2], [3, 4]], [[5, 6], [7, 8]]],
    "empty": [],
    "row": [[1.0, 2.0, 3.0]],
    "long row": [float(i) for i in range(30)],
    "long row of fractions": [i / 7 for i in range(40)],
    "long ints": list(range(100)),
    "wide range of whole numbers": [1.0, 2000.0],
    "tiny among whole": [0.0, 1e-5],
    "complex of wide range": [1000.5 + 0.001j, -1.0 + 0.5j],
    "complex with nan": [complex(float("nan"), 1.5), 1 - 2j],
    "long complex": [complex(i, -i / 3) for i in range(20)],
    "summarised": list(range(2000)),
    "summarised fractions": [i / 7 for i in range(1500)],
}


class TestRepr:
    """PyTorch's, but for the dtype's prefix, and our names of nodes."""

    @pytest.mark.parametrize("name", REPRS)
    def test_as_pytorchs(self, torch, name):
        assert repr(flow.tensor(REPRS[name])) == repr(torch.tensor(REPRS[name]))
        assert str(flow.tensor(REPRS[name])) == str(torch.tensor(REPRS[name]))

    @pytest.mark.parametrize("dtype", DTYPES)
    def test_names_a_dtype_that_is_not_the_obvious_one(self, torch, dtype):
        expected = repr(torch.ones(2, dtype=getattr(torch, dtype))).replace("torch.", "")
        assert repr(flow.ones(2, dtype=dtype)) == expected

    @pytest.mark.parametrize(
        "shape",
        [(0,), (0, 3), (2, 0), (1, 1), (2, 3, 4), (40, 40), (3, 1, 2, 2), (1, 2000), (2000, 1)],
    )
    def test_shapes(self, torch, shape):
        values = (np.arange(np.prod(shape)) * 0.37 - 2).reshape(shape).astype(np.float32)
        assert repr(flow.tensor(values)) == repr(torch.tensor(values))

    @pytest.mark.parametrize("seed", range(6))
    def test_random_values(self, torch, seed):
        rng = np.random.default_rng(seed)
        values = rng.normal(size=(3, 5)) * 10.0 ** rng.integers(-4, 6)
        values = values.astype(np.float32)
        assert repr(flow.tensor(values)) == repr(torch.tensor(values))

    @pytest.mark.parametrize("dtype", ["int64", "float64", "bool", "complex64"])
    @pytest.mark.parametrize("shape", [(0,), (0, 3)])
    def test_empty_tensors_name_shape_and_dtype(self, torch, dtype, shape):
        expected = repr(torch.ones(shape, dtype=getattr(torch, dtype))).replace("torch.", "")
        assert repr(flow.ones(shape, dtype=dtype)) == expected

    def test_facts_go_to_the_next_line_where_they_do_not_fit(self, torch):
        for n in range(6, 13):
            values = [i + 0.5 for i in range(n)]
            ours = flow.tensor(values, dtype=flow.float64, requires_grad=True)
            theirs = torch.tensor(values, dtype=torch.float64, requires_grad=True)
            # PyTorch measures with its prefix of 6 characters.
            assert repr(ours).replace("\n", "").split() == (
                repr(theirs).replace("torch.", "").replace("\n", "").split()
            )

    def test_names_the_gradient(self, torch):
        x = flow.tensor([1.0, 2.0], requires_grad=True)
        assert repr(x) == "tensor([1., 2.], requires_grad=True)"
        assert repr(x) == repr(torch.tensor([1.0, 2.0], requires_grad=True))
        assert repr(x * 2) == "tensor([2., 4.], grad_fn=<mul_backward>)"
        y = flow.tensor([1.0], dtype=flow.float64, requires_grad=True)
        assert repr(y) == "tensor([1.], dtype=float64, requires_grad=True)"
        assert repr(x.detach()) == "tensor([1., 2.])"

    def test_does_not_change_numpys_print_options(self):
        before = np.get_printoptions()
        repr(flow.rand(3))
        assert np.get_printoptions() == before


class TestCopies:
    @pytest.mark.parametrize("dtype", DTYPES)
    def test_pickle(self, dtype):
        x = flow.ones(2, 3, dtype=dtype)
        y = pickle.loads(pickle.dumps(x))
        assert type(y) is flow.Tensor
        assert y.dtype == x.dtype and y.tolist() == x.tolist()

    @pytest.mark.parametrize("protocol", range(2, pickle.HIGHEST_PROTOCOL + 1))
    def test_pickle_of_a_leaf_keeps_requires_grad(self, protocol):
        x = flow.tensor([1.0, 2.0], requires_grad=True)
        y = pickle.loads(pickle.dumps(x, protocol))
        assert y.requires_grad and y.is_leaf and y.tolist() == [1.0, 2.0]
        (y * y).sum().backward()
        assert y.grad.tolist() == [2.0, 4.0] and x.grad is None

    def test_pickle_to_a_file(self):
        buffer = io.BytesIO()
        pickle.dump({"w": flow.ones(2)}, buffer)
        buffer.seek(0)
        assert pickle.load(buffer)["w"].tolist() == [1.0, 1.0]

    def test_deepcopy(self):
        x = flow.tensor([1.0, 2.0], requires_grad=True)
        (x * x).sum().backward()
        y = copy.deepcopy(x)
        assert y.requires_grad and y.is_leaf
        assert not np.shares_memory(x.numpy(), y.numpy())
        assert y.grad.tolist() == [2.0, 4.0]
        assert y.grad is not x.grad and not np.shares_memory(x.grad.numpy(), y.grad.numpy())
        assert y.grad_fn_node is not x.grad_fn_node
        (y * 2).sum().backward()
        assert x.grad.tolist() == [2.0, 4.0]

    def test_deepcopy_keeps_what_is_shared(self):
        x = flow.ones(2)
        a, b = copy.deepcopy([x, x])
        assert a is b and a is not x

    def test_deepcopy_without_a_gradient(self):
        x = flow.tensor([1, 2])
        y = copy.deepcopy(x)
        y.zero_()
        assert x.tolist() == [1, 2] and not y.requires_grad

    @pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
    def test_deepcopy_of_views_shares_memory_again(self, dtype, device):
        if dtype == "bfloat16" and device != "cpu":
            pytest.skip("bfloat16 is for tensors on the CPU")
        x = flow.arange(6.0, dtype=dtype, device=device)
        views = [x, x.reshape(2, 3).t(), x[4:], x[:0], x.detach().requires_grad_()]
        twins = copy.deepcopy({"views": views, "alone": x})
        whole, turned, part, empty, leaf = twins["views"]
        assert whole is twins["alone"] and leaf.requires_grad and empty.shape == (0,)
        assert [type(y._data) for y in twins["views"]] == [type(y._data) for y in views]
        part.fill_(9)
        assert leaf._version == 1  # so that backward refuses what was saved before
        assert whole.tolist() == [0.0, 1.0, 2.0, 3.0, 9.0, 9.0]
        assert turned.tolist() == [[0.0, 3.0], [1.0, 9.0], [2.0, 9.0]]
        assert x.tolist() == [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]

    def test_deepcopy_of_a_non_leaf_raises(self):
        y = flow.ones(2, requires_grad=True) * 2
        with pytest.raises(GradientError, match=r"leaves.*mul_backward.*detach"):
            copy.deepcopy(y)
        assert copy.deepcopy(y.detach()).tolist() == [2.0, 2.0]

    def test_a_pickle_of_a_non_leaf_is_a_leaf(self):
        y = flow.ones(2, requires_grad=True) * 2
        z = pickle.loads(pickle.dumps(y))
        assert z.tolist() == [2.0, 2.0] and z.requires_grad and z.is_leaf

    def test_a_write_through_a_shallow_copy_is_counted(self):
        x = flow.ones(2, requires_grad=True)
        y = (x * x).sum()
        copy.copy(x).detach().mul_(3)
        assert x.tolist() == [3.0, 3.0]
        with pytest.raises(StaleTensorError):
            y.backward()

    def test_unpickled_tensors_share_no_memory(self):
        x = flow.ones(2)
        one, two = pickle.loads(pickle.dumps([x, x.detach()]))
        two.mul_(3)
        assert one.tolist() == [1.0, 1.0]

    def test_attributes_of_the_user_are_kept(self):
        x = flow.ones(2)
        x.note = ["mine"]
        assert pickle.loads(pickle.dumps(x)).note == ["mine"]
        y = copy.deepcopy(x)
        assert y.note == ["mine"] and y.note is not x.note

    def test_a_shallow_copy_shares_memory(self):
        x = flow.ones(2)
        y = copy.copy(x)
        assert y is not x and y.tolist() == [1.0, 1.0]

    def test_pickle_of_views_and_strided_tensors(self):
        x = flow.arange(6).reshape(2, 3).t()
        assert pickle.loads(pickle.dumps(x)).tolist() == x.tolist()
        assert copy.deepcopy(x).tolist() == x.tolist()


INDICES = {
    "int": 1,
    "negative": -1,
    "slice": slice(1, None),
    "step": slice(None, None, 2),
    "ellipsis": (..., 0),
    "none": (None, 1),
    "several": (slice(None), 1, slice(0, 2)),
    "bool mask": np.array([True, False, True]),
    "full mask": None,  # x > 0 below
    "list": [0, 2],
    "array": np.array([2, 0, 2]),
    "two arrays": (np.array([0, 1]), np.array([1, 2])),
    "mixed": (np.array([0, 2]), slice(None), 1),
    "0-d array": np.array(1),
    "empty list": [],
    "empty slice": slice(2, 2),
}


class TestIndexing:
    X = np.arange(24.0).reshape(3, 4, 2) - 7

    @pytest.mark.parametrize("name", INDICES)
    def test_values_and_gradients(self, name):
        index = self.X > 0 if name == "full mask" else INDICES[name]
        ours = tuple(
            flow.tensor(i) if isinstance(i, np.ndarray) else i
            for i in (index if isinstance(index, tuple) else (index,))
        )
        ours = ours if isinstance(index, tuple) else ours[0]
        key = np.array([], np.int64) if isinstance(index, list) and not index else index
        x = flow.tensor(self.X, requires_grad=True)
        y = x[ours]
        np.testing.assert_array_equal(y.numpy(), self.X[key])
        weights = np.random.default_rng(0).normal(size=y.shape)
        expected = np.zeros_like(self.X)
        np.add.at(expected, key, weights)
        (g,) = flow.autograd.grad(y, x, flow.tensor(weights))
        np.testing.assert_allclose(g.numpy(), expected)

    def test_results_are_arrays_never_scalars(self):
        y = flow.tensor([1.0, 2.0])[0]
        assert isinstance(y, flow.Tensor) and type(y._data) is np.ndarray and y.shape == ()

    def test_basic_indexing_is_a_view(self):
        x = flow.arange(6).reshape(2, 3)
        x[0].zero_()
        x[:, 1:2].fill_(9)
        assert x.tolist() == [[0, 9, 0], [3, 9, 5]]

    def test_advanced_indexing_copies(self):
        x = flow.arange(3)
        x[[0, 1]].zero_()
        assert x.tolist() == [0, 1, 2]

    @pytest.mark.parametrize("index", [3, -4, (0, 4), flow.tensor([0, 3]), [5]])
    def test_out_of_range(self, index):
        x = flow.tensor(self.X)
        with pytest.raises(IndexRangeError):
            x[index]
        assert x.numpy().tolist() == self.X.tolist()

    @pytest.mark.parametrize("index", ["text", 1.5, flow.tensor([0.5]), (0, 0, 0, 0), object()])
    def test_what_is_no_index(self, index):
        with pytest.raises(FlowError) as caught:
            flow.tensor(self.X)[index]
        assert isinstance(caught.value, (IndexError, TypeError))

    def test_writing(self):
        x = flow.zeros(2, 3)
        x[0] = 1
        x[1, 1:] = flow.tensor([5.0, 6.0])
        x[x == 0] = -1
        assert x.tolist() == [[1, 1, 1], [-1, 5, 6]]


BINARY = [
    operator.add,
    operator.sub,
    operator.mul,
    operator.truediv,
    operator.floordiv,
    operator.mod,
    operator.pow,
]
COMPARE = [operator.eq, operator.ne, operator.lt, operator.le, operator.gt, operator.ge]
LOGIC = [operator.and_, operator.or_, operator.xor]


class TestOperators:
    A = np.array([[1.5, -2.0, 3.0], [0.5, 4.0, -1.0]])
    B = np.array([2.0, 3.0, -1.5])

    @pytest.mark.parametrize("op", [*BINARY[:6], *COMPARE], ids=lambda f: f.__name__)
    def test_of_two_tensors_against_numpy(self, op):
        result = op(flow.tensor(self.A), flow.tensor(self.B))
        np.testing.assert_allclose(result.numpy(), op(self.A, self.B))

    @pytest.mark.parametrize("op", BINARY, ids=lambda f: f.__name__)
    @pytest.mark.parametrize("number", [2, 2.5, True])
    def test_reflected_against_pytorch(self, torch, op, number):
        ours, theirs = flow.tensor(self.A).abs(), torch.tensor(self.A).abs()
        if op is operator.sub and number is True:  # both refuse to subtract a bool
            for x in (ours, theirs):
                with pytest.raises(RuntimeError, match="bool"):
                    number - x
                with pytest.raises(RuntimeError, match="bool"):
                    x - number
            return
        np.testing.assert_allclose(op(number, ours).numpy(), op(number, theirs).numpy())
        np.testing.assert_allclose(op(ours, number).numpy(), op(theirs, number).numpy())

    @pytest.mark.parametrize("op", COMPARE, ids=lambda f: f.__name__)
    def test_reflected_comparison(self, op):
        result = op(2, flow.tensor(self.A))
        assert result.dtype == flow.bool
        np.testing.assert_array_equal(result.numpy(), op(2, self.A))

    @pytest.mark.parametrize("op", LOGIC, ids=lambda f: f.__name__)
    def test_bits(self, op):
        a, b = np.array([5, 12, 7]), np.array([3, 10, 7])
        assert op(flow.tensor(a), flow.tensor(b)).tolist() == op(a, b).tolist()
        assert op(flow.tensor(a), 6).tolist() == op(a, 6).tolist()
        assert op(6, flow.tensor(a)).tolist() == op(6, a).tolist()
        p, q = np.array([True, True, False]), np.array([True, False, False])
        assert op(flow.tensor(p), flow.tensor(q)).tolist() == op(p, q).tolist()

    def test_of_one_operand(self):
        x = flow.tensor([1.0, -2.0])
        assert (-x).tolist() == [-1.0, 2.0]
        assert (+x).tolist() == [1.0, -2.0]
        assert abs(x).tolist() == [1.0, 2.0]
        assert (~flow.tensor([True, False])).tolist() == [False, True]
        assert (~flow.tensor([0, 5])).tolist() == [-1, -6]

    def test_matmul(self):
        a, b = np.arange(6.0).reshape(2, 3), np.arange(6.0).reshape(3, 2)
        np.testing.assert_array_equal((flow.tensor(a) @ flow.tensor(b)).numpy(), a @ b)

    @pytest.mark.parametrize("name", ["add", "sub", "mul", "truediv", "mod", "pow"])
    def test_gradients_of_both_sides_against_pytorch(self, torch, name):
        op, results = getattr(operator, name), []
        for lib in (flow, torch):
            x = lib.tensor(np.abs(self.A) + 0.3, requires_grad=True)
            y = lib.tensor(np.abs(self.B), requires_grad=True)
            results.append([g.numpy() for g in lib.autograd.grad(op(x, y).sum(), [x, y])])
        for ours, theirs in zip(*results, strict=True):
            np.testing.assert_allclose(ours, theirs, rtol=1e-9)

    @pytest.mark.parametrize("op", [*BINARY, *COMPARE[2:]], ids=lambda f: f.__name__)
    @pytest.mark.parametrize("bad", ["text", None, object(), {}])
    def test_what_does_not_fit_raises_type_error(self, op, bad):
        x = flow.tensor([1.0, 2.0])
        for a, b in ((x, bad), (bad, x)):
            if op is operator.mod and isinstance(a, str):
                continue  # formats the string
            with pytest.raises(TypeError):
                op(a, b)

    @pytest.mark.parametrize("other", ["text", None, object()])
    def test_equality_with_what_is_no_number(self, torch, other):
        ours, theirs = flow.ones(2), torch.ones(2)
        assert (ours == other) is (theirs == other) is False
        assert (ours != other) is (theirs != other) is True


IN_PLACE = {
    "+=": operator.iadd,
    "-=": operator.isub,
    "*=": operator.imul,
    "/=": operator.itruediv,
    "**=": operator.ipow,
    "//=": operator.ifloordiv,
    "%=": operator.imod,
}


class TestInPlaceOperators:
    @pytest.mark.parametrize("name", IN_PLACE)
    @pytest.mark.parametrize("other", [2, 2.5, np.array([2.0, 3.0, 0.5])])
    def test_write_into_the_tensor(self, name, other):
        op = IN_PLACE[name]
        a = np.array([1.5, 4.0, 3.0])
        x = flow.tensor(a)
        alias, memory, version = x, x.numpy(), x._version
        x = op(x, flow.tensor(other) if isinstance(other, np.ndarray) else other)
        assert x is alias and x.numpy() is memory
        assert x._version == version + 1
        expected = a.copy()
        np.testing.assert_allclose(x.numpy(), op(expected, other))

    @pytest.mark.parametrize("name", ["&=", "|=", "^="])
    def test_bits(self, name):
        op = {"&=": operator.iand, "|=": operator.ior, "^=": operator.ixor}[name]
        x = flow.tensor([5, 12])
        alias = x
        x = op(x, 6)
        assert x.tolist() == op(np.array([5, 12]), 6).tolist()
        assert x is alias

    @pytest.mark.parametrize("name", IN_PLACE)
    def test_on_a_leaf_that_requires_a_gradient(self, name):
        x = flow.tensor([1.0, 2.0], requires_grad=True)
        with pytest.raises(FlowError, match="leaf"):
            IN_PLACE[name](x, 2)
        assert x.tolist() == [1.0, 2.0] and x._version == 0
        with flow.no_grad():
            alias = x
            x += 1
        assert x is alias and x.tolist() == [2.0, 3.0] and x.requires_grad

    def test_with_a_gradient(self):
        x = flow.tensor([1.0, 2.0], requires_grad=True)
        y = x * 1
        y += x
        y *= x
        y.sum().backward()
        assert x.grad.tolist() == [4.0, 8.0]


class TestAssignment:
    def test_data(self):
        x = flow.tensor([1.0, 2.0], requires_grad=True)
        x.data = flow.tensor([5.0, 6.0, 7.0])
        assert x.tolist() == [5.0, 6.0, 7.0] and x.requires_grad
        (x * x).sum().backward()
        assert x.grad.tolist() == [10.0, 12.0, 14.0]
        with pytest.raises(ArgumentTypeError):
            x.data = [1.0]

    def test_grad_of_a_non_leaf_is_none(self):
        y = flow.ones(1, requires_grad=True) * 2
        assert y.grad is None

    @pytest.mark.parametrize("name", ["shape", "dtype", "device", "ndim", "grad_fn", "is_leaf"])
    def test_facts_cannot_be_assigned(self, name):
        with pytest.raises(AttributeError):
            setattr(flow.ones(1), name, None)

    def test_an_attribute_that_is_not_there(self):
        with pytest.raises(AttributeError, match="no_such"):
            _ = flow.ones(1).no_such


class TestPrintOptions:
    @pytest.fixture(autouse=True)
    def restored(self, torch):
        before, theirs = flow.get_printoptions(), torch._tensor_str.get_printoptions()
        yield
        flow.set_printoptions(**before)
        torch.set_printoptions(**theirs)

    @pytest.mark.parametrize(
        "options",
        [
            {},
            {"precision": 2},
            {"precision": 8, "linewidth": 40},
            {"threshold": 10, "edgeitems": 1},
            {"threshold": 10, "edgeitems": 2, "precision": 1},
            {"sci_mode": True},
            {"sci_mode": False},
            {"sci_mode": True, "precision": 2},
            {"profile": "short"},
            {"profile": "full"},
            {"profile": "short", "precision": 6},
        ],
    )
    def test_like_pytorchs(self, torch, options):
        flow.set_printoptions(**options), torch.set_printoptions(**options)
        values = np.random.default_rng(0).normal(size=(7, 9)).astype(np.float32)
        for array in (values, values[0, :3], values * 1e6, np.float32(values > 0), values[:0],
                      np.arange(1200), values[0] + 1j, np.float32([0, 0])):  # fmt: skip
            ours, theirs = repr(flow.tensor(array)), repr(torch.tensor(array))
            assert ours == theirs.replace("torch.", "").replace("size=Size", "size=")

    def test_in_a_block(self):
        before = flow.get_printoptions()
        with flow.printoptions(precision=1):
            assert repr(flow.tensor([0.123])) == "tensor([0.1])"
        assert flow.get_printoptions() == before
        with pytest.raises(ValueError, match="'short'"):
            flow.set_printoptions(profile="long")


def test_reversed(torch):
    for array in (np.arange(3), np.arange(6).reshape(2, 3), np.array(1)):
        ours, theirs = reversed(flow.tensor(array)), reversed(torch.tensor(array))
        assert ours.tolist() == theirs.tolist()
    x = flow.ones(2, requires_grad=True)
    assert reversed(x).requires_grad


@pytest.mark.parametrize("value", [flow.ones(2, dtype=flow.int64), flow.tensor([True])])
def test_data_of_a_leaf_that_requires_a_gradient(value):
    x = flow.ones(2, requires_grad=True)
    with pytest.raises(DTypeError, match="floating point or complex"):
        x.data = value
    assert x.tolist() == [1.0, 1.0]
    x.data = flow.ones(3, dtype=flow.float64)
    x.sum().backward()
    assert x.grad.dtype == flow.float64


def test_a_device_that_is_not_there():
    for name in ("mps", "tpu:0", "float33"):
        with pytest.raises(DeviceError, match=f"device.*'{name}'"):
            flow.ones(2).to(name)
    assert flow.ones(2).to("float64").dtype == flow.float64


def test_alpha_that_is_a_tensor():
    assert flow.ones(2).add_(flow.ones(2), alpha=flow.tensor(0.5)).tolist() == [1.5, 1.5]
    with pytest.raises(FlowError, match=r"'alpha'.*item\(\)"):
        flow.ones(2).add_(flow.ones(2), alpha=flow.tensor(0.5, requires_grad=True))


class Stranger:
    """A class that knows how to meet tensors, which know nothing of it."""

    def answer(self, other):
        return "the stranger's answer"

    __radd__ = __rsub__ = __rmul__ = __rtruediv__ = __rfloordiv__ = __rmod__ = __rpow__ = answer
    __rmatmul__ = __rand__ = __ror__ = __rxor__ = answer
    __lt__ = __le__ = __gt__ = __ge__ = __eq__ = __ne__ = answer
    __hash__ = object.__hash__


class TestStrangers:
    """An operator asks the other operand where this one cannot answer."""

    @pytest.mark.parametrize("sign", "+ - * / // % ** @ & | ^ < <= > >= == !=".split())
    def test_the_other_operand_is_asked(self, sign):
        for t in (flow.ones(2), flow.ones(2, dtype=flow.int64)):
            found = eval(f"t {sign} stranger", {"t": t, "stranger": Stranger()})
            assert found == "the stranger's answer"

    @pytest.mark.parametrize("sign", "+ - * / // % ** @ & | ^ < <= > >=".split())
    @pytest.mark.parametrize("value", [None, object(), [1.0, 2.0], {}])
    def test_nobody_answers(self, sign, value):
        t = flow.ones(2)
        with pytest.raises(TypeError):
            eval(f"t {sign} value", {"t": t, "value": value})
        with pytest.raises(TypeError):
            eval(f"value {sign} t", {"t": t, "value": value})

    def test_augmented_assignment(self):
        t = flow.ones(2)
        t += Stranger()
        assert t == "the stranger's answer"

    @pytest.mark.parametrize("name", ["add", "radd", "mul", "sub", "matmul", "lt", "iadd", "pow"])
    def test_the_method_itself(self, name):
        assert getattr(flow.ones(2), f"__{name}__")(object()) is NotImplemented

    def test_functors_keep_raising(self):
        for call in (flow.add, flow.mul, flow.lt, flow.matmul):
            with pytest.raises(ArgumentTypeError, match="Tensor"):
                call(flow.ones(2), object())

    def test_other_errors_are_told(self):
        with pytest.raises(ShapeError):
            flow.ones(2) + flow.ones(3)
        with pytest.raises(FlowError):
            flow.tensor([True]) - flow.tensor([True])
