"""Dtypes and promotion: PyTorch's whole table, tensors against 0-d tensors against scalars."""

import copy
import itertools
import pickle

import numpy as np
import pytest

import oneflow_lite as flow
from oneflow_lite.arrays.dtype import SUPPORTED, as_dtype, result_dtype, scalar_dtype
from oneflow_lite.errors import ArgumentTypeError, DTypeError

WIDE_UNSIGNED = "uint16 uint32 uint64".split()  # PyTorch has them, and promotes next to none
NAMES = [str(d) for d in SUPPORTED if str(d) not in WIDE_UNSIGNED]
SCALARS = {"bool": True, "int": 3, "float": 2.5, "complex": 1 + 2j}


@pytest.fixture
def torch():
    return pytest.importorskip("torch")


pytestmark = pytest.mark.filterwarnings("ignore:ComplexHalf support is experimental")


def name_of(torch_dtype):
    """The name of PyTorch's dtype; its half precision complex numbers are complex64 here."""
    return str(torch_dtype).removeprefix("torch.").replace("complex32", "complex64")


def test_the_dtypes():
    assert (
        "bool uint8 int8 int16 int32 int64 float16 float32 float64 complex64 complex128".split()
    ) == NAMES
    for name in (*NAMES, *WIDE_UNSIGNED):
        assert getattr(flow, name) == np.dtype(name)
    assert flow.bool == np.dtype(bool)


@pytest.mark.parametrize(
    ("alias", "dtype"),
    [
        ("float", "float32"),
        ("double", "float64"),
        ("half", "float16"),
        ("long", "int64"),
        ("int", "int32"),
        ("short", "int16"),
        ("cfloat", "complex64"),
        ("cdouble", "complex128"),
    ],
)
def test_pytorchs_other_names(alias, dtype):
    assert getattr(flow, alias) == np.dtype(dtype)


class TestObjects:
    """`flow.float32` and its kind: one object each, PyTorch's and NumPy's at once."""

    @pytest.mark.parametrize("name", [*NAMES, *WIDE_UNSIGNED, "bfloat16"])
    def test_pytorchs_attributes(self, torch, name):
        if name == "bfloat16":
            pytest.importorskip("ml_dtypes")
        ours, theirs = getattr(flow, name), getattr(torch, name)
        for attribute in ("is_floating_point", "is_complex", "is_signed", "itemsize", "abbr"):
            assert getattr(ours, attribute) == getattr(theirs, attribute), attribute
        assert isinstance(ours, flow.dtype) and ours.to_real().name == name_of(theirs.to_real())
        if not (ours.is_floating_point or ours.is_complex):
            for each in (ours, theirs):
                with pytest.raises(RuntimeError, match="omplex"):
                    each.to_complex()
        else:
            assert ours.to_complex().name == name_of(theirs.to_complex())

    @pytest.mark.parametrize("name", [*NAMES, *WIDE_UNSIGNED])
    def test_numpys_dtype_is_equal(self, name):
        ours, numpys = getattr(flow, name), np.dtype(name)
        assert ours == numpys and numpys == ours and hash(ours) == hash(numpys)
        assert ours == numpys.type and ours == name
        assert {ours: 1}[numpys] == 1 == {numpys: 1}[ours]
        other = np.dtype(np.int8 if name != "int8" else np.int16)
        assert ours != other and other != ours and ours != None and ours != flow.zeros(1)  # noqa: E711
        assert ours.dtype is np.dtype(ours) and not hasattr(ours, "shape")
        for attribute in ("kind", "char", "name", "num", "type", "str", "alignment", "itemsize"):
            assert getattr(ours, attribute) == getattr(numpys, attribute)

    def test_numpy_takes_it(self):
        d = flow.float32
        assert np.zeros(2, d).dtype == np.ones(2).astype(d).dtype == np.dtype("float32") == d
        assert np.finfo(d).bits == 32 and np.iinfo(flow.int8).max == 127
        assert np.issubdtype(d, np.floating) and np.can_cast(flow.int8, d)
        assert np.result_type(d, flow.float64) == np.promote_types(d, flow.float64) == flow.float64
        assert np.ones(2, flow.int32).view(d).dtype == d and np.dtype([("x", d)])["x"] == d

    def test_there_is_one_object_each(self):
        x = flow.ones(2, 2)
        found = [
            x.dtype, (x * 2).dtype, x[0, 0].dtype, flow.nn.Parameter(x).dtype, x.to_sparse().dtype,
            x.storage().dtype, flow.get_default_dtype(), flow.promote_types("int8", np.float32),
            flow.result_type(x, 1), flow.finfo().dtype, flow.finfo(flow.complex64).dtype,
            flow.FloatTensor.dtype, flow.dtype("float32"), flow.dtype(np.float32), flow.float,
            flow.tensor(np.ones(2, "float32")).dtype, flow.zeros(1, dtype=np.float32).dtype,
            flow.as_tensor(np.ones(2, np.dtype("=f4"))).dtype, flow.complex64.to_real(),
            flow.distributions.Normal(x, x).sample().dtype, x.__array_namespace__().float32,
            flow.nn.LazyLinear(2).weight.dtype, pickle.loads(pickle.dumps(x.dtype)),
            copy.deepcopy(x).dtype, copy.copy(x.dtype), copy.deepcopy([x.dtype])[0],
        ]  # fmt: skip
        assert all(d is flow.float32 for d in found), found
        whole = flow.tensor(np.ones(2, np.longlong))
        assert whole.dtype is flow.int64 is flow.iinfo("int64").dtype
        assert flow.bool is flow.tensor(True).dtype and flow.dtype(x.dtype) is x.dtype

    def test_written_and_read(self, tmp_path):
        flow.save({"dtype": flow.float16, flow.ones(1).dtype.name: 1}, tmp_path / "file")
        assert flow.load(tmp_path / "file")["dtype"] is flow.float16

    def test_attributes_of_ops_are_numpys(self):
        seen = []

        class Watch(flow.Interpreter):
            def apply(self, op_expr, inputs, attrs):
                seen.append(attrs.get("dtype"))
                return self.inner.apply(op_expr, inputs, attrs)

        x = flow.ones(2)
        with flow.push_interpreter(Watch()):
            x.double().new_zeros(2)
            flow.zeros(2, dtype=x.dtype)
            flow.ones_like(x, device="cpu")
        main = flow.static.Program()
        with flow.static.program_guard(main):
            y = flow.static.data("y", (2,), flow.float32).requires_grad_()
            flow.static.gradients((y.double() * y).sum(), y)
        seen += [op.attrs.get("dtype") for op in main.global_block().ops]
        assert [d for d in seen if d is not None] and flow.dtype not in map(type, seen)

    def test_texts(self):
        x = flow.ones(2, dtype=flow.float64)
        assert (str(x.dtype), f"{x.dtype}", repr(x.dtype)) == (
            "float64",
            "float64",
            "dtype('float64')",
        )
        with flow.mock_torch():
            assert str(x.dtype) == f"{x.dtype}" == repr(x.dtype) == "torch.float64"
            assert "dtype=torch.float64" in repr(x) and "dtype=float64" in repr(flow.finfo(x.dtype))
            assert x.type() == "torch.DoubleTensor" and x.dtype.name == "float64"
            with flow.mock_torch():
                pass
            assert str(x.dtype) == "torch.float64"
        assert str(x.dtype) == "float64"


class TestPromotionAgainstPytorch:
    @pytest.mark.parametrize("a", NAMES)
    def test_promote_types(self, torch, a):
        for b in NAMES:
            expected = name_of(torch.promote_types(getattr(torch, a), getattr(torch, b)))
            assert str(flow.promote_types(getattr(flow, a), getattr(flow, b))) == expected, (a, b)

    @pytest.mark.parametrize("a", NAMES)
    @pytest.mark.parametrize("shapes", list(itertools.product([(), (2,)], repeat=2)), ids=str)
    def test_two_tensors(self, torch, a, shapes):
        for b in NAMES:
            expected = (
                torch.ones(shapes[0], dtype=getattr(torch, a))
                * torch.ones(shapes[1], dtype=getattr(torch, b))
            ).dtype
            result = flow.ones(shapes[0], dtype=a) * flow.ones(shapes[1], dtype=b)
            assert str(result.dtype) == name_of(expected), (a, b)

    @pytest.mark.parametrize("kind", SCALARS)
    @pytest.mark.parametrize("shape", [(), (2,)], ids=str)
    def test_a_tensor_and_a_number(self, torch, kind, shape):
        for a in NAMES:
            theirs = torch.ones(shape, dtype=getattr(torch, a))
            ours = flow.ones(shape, dtype=a)
            value = SCALARS[kind]
            assert str((ours * value).dtype) == name_of((theirs * value).dtype), a
            assert str((value * ours).dtype) == name_of((value * theirs).dtype), a
            assert str((ours + value).dtype) == name_of((theirs + value).dtype), a

    @pytest.mark.parametrize("a", NAMES)
    def test_true_division(self, torch, a):
        for b in NAMES:
            expected = (
                torch.ones(2, dtype=getattr(torch, a)) / torch.ones(2, dtype=getattr(torch, b))
            ).dtype
            result = flow.ones(2, dtype=a) / flow.ones(2, dtype=b)
            assert str(result.dtype) == name_of(expected), b
        theirs = torch.ones(2, dtype=getattr(torch, a))
        assert str((flow.ones(2, dtype=a) / 2).dtype) == name_of((theirs / 2).dtype)
        assert str((2 / flow.ones(2, dtype=a)).dtype) == name_of((2 / theirs).dtype)

    def test_can_cast(self, torch):
        for a, b in itertools.product(NAMES, NAMES):
            expected = torch.can_cast(getattr(torch, a), getattr(torch, b))
            assert flow.can_cast(getattr(flow, a), getattr(flow, b)) is expected, (a, b)

    @pytest.mark.parametrize("op", ["eq", "lt", "maximum", "fmod", "remainder", "atan2", "hypot"])
    def test_other_ops_of_two_operands(self, torch, op):
        for a, b in itertools.product(["uint8", "int32", "int64", "float16", "float64"], repeat=2):
            x, y = torch.ones(2, dtype=getattr(torch, a)), torch.ones(2, dtype=getattr(torch, b))
            try:
                expected = name_of(getattr(torch, op)(x, y).dtype)
            except (RuntimeError, TypeError):
                continue
            result = getattr(flow, op)(flow.ones(2, dtype=a), flow.ones(2, dtype=b))
            assert str(result.dtype) == expected, (a, b)

    def test_three_operands(self, torch):
        for a, b in itertools.product(["int64", "float32", "float64"], repeat=2):
            theirs = torch.where(
                torch.tensor([True, False]),
                torch.ones(2, dtype=getattr(torch, a)),
                torch.ones((), dtype=getattr(torch, b)),
            )
            ours = flow.where(
                flow.tensor([True, False]), flow.ones(2, dtype=a), flow.ones((), dtype=b)
            )
            assert str(ours.dtype) == name_of(theirs.dtype), (a, b)

    @pytest.mark.parametrize("name", NAMES)
    def test_sums(self, torch, name):
        for reduce in ("sum", "prod"):
            expected = getattr(torch, reduce)(torch.ones(2, dtype=getattr(torch, name))).dtype
            ours = getattr(flow, reduce)(flow.ones(2, dtype=name))
            assert str(ours.dtype) == name_of(expected), reduce

    @pytest.mark.parametrize("op", ["exp", "sqrt", "sin", "sigmoid", "reciprocal", "log1p"])
    def test_integers_become_floats(self, torch, op):
        for name in ("bool", "uint8", "int8", "int64"):
            expected = getattr(torch, op)(torch.ones(2, dtype=getattr(torch, name))).dtype
            assert str(getattr(flow, op)(flow.ones(2, dtype=name)).dtype) == name_of(expected)


class TestPromotion:
    """The rules again, on a few cases that need no other library."""

    def test_integers_do_not_widen_floats(self):
        assert flow.promote_types(flow.int64, flow.float32) == flow.float32
        assert flow.promote_types(flow.int64, flow.float16) == flow.float16
        assert flow.promote_types(flow.int64, flow.complex64) == flow.complex64

    def test_uint8_and_int8_meet_in_int16(self):
        assert flow.promote_types(flow.uint8, flow.int8) == flow.int16

    def test_ranks(self):
        f32, f64, i64 = flow.float32, flow.float64, flow.int64
        assert result_dtype([(f32, 1), (f64, 0)]) == f32
        assert result_dtype([(f32, 1), (f64, 1)]) == f64
        assert result_dtype([(i64, 1), (f64, 0)]) == f64
        assert result_dtype([(i64, 0)], [2.5]) == f32
        assert result_dtype([(f64, 0)], [1j]) == flow.complex128
        assert result_dtype([(flow.bool, 1)], [True]) == flow.bool
        assert result_dtype([], []) == f32

    def test_numpy_scalars_are_weak(self):
        for value in (np.float64(2), np.float32(2), np.int64(2), np.bool_(True)):
            assert (flow.ones(2) * value).dtype == flow.float32
            assert (value * flow.ones(2)).dtype == flow.float32

    def test_scalar_dtype(self):
        assert scalar_dtype(True) == flow.bool
        assert scalar_dtype(3) == flow.int64
        assert scalar_dtype(3.0) == flow.float32
        assert scalar_dtype(3j) == flow.complex64
        assert scalar_dtype(np.int8(3)) == flow.int64

    def test_gradients_come_back_in_the_dtype_of_their_input(self):
        x = flow.ones(2, dtype=flow.float16, requires_grad=True)
        y = flow.ones((), dtype=flow.float64, requires_grad=True)
        z = x * y * flow.ones(2, dtype=flow.int64)
        assert z.dtype == flow.float16
        z.sum().backward()
        assert x.grad.dtype == flow.float16 and y.grad.dtype == flow.float64


class TestDefaultDtype:
    @pytest.fixture(autouse=True)
    def restored(self):
        yield
        flow.set_default_dtype(flow.float32)

    def test_is_float32(self):
        assert flow.get_default_dtype() == flow.float32
        assert flow.zeros(1).dtype == flow.float32

    @pytest.mark.parametrize("name", ["float64", "float16"])
    def test_may_be_changed(self, name):
        flow.set_default_dtype(getattr(flow, name))
        dtype = np.dtype(name)
        assert flow.get_default_dtype() == dtype
        for made in (
            flow.zeros(1),
            flow.ones(1),
            flow.empty(1),
            flow.rand(1),
            flow.randn(1),
            flow.tensor(1.0),
            flow.tensor([1.0]),
            flow.Tensor([1]),
            flow.Tensor(2),
            flow.arange(0, 1, 0.5),
            flow.linspace(0, 1, 3),
            flow.eye(2),
            flow.full((1,), 1.0),
            flow.tensor([1]) / 2,
            flow.tensor([1]).exp(),
            flow.tensor([1]) * 1.0,
        ):
            assert made.dtype == dtype
        assert flow.tensor([1]).float().dtype == flow.float32  # whatever the default
        complex_dtype = {"float64": flow.complex128, "float16": None}[name]
        if complex_dtype is not None:
            assert flow.tensor(1j).dtype == complex_dtype

    @pytest.mark.parametrize("bad", ["int64", "complex64", "bool"])
    def test_is_a_floating_one(self, bad):
        with pytest.raises(DTypeError, match="set_default_dtype"):
            flow.set_default_dtype(getattr(flow, bad))
        assert flow.get_default_dtype() == flow.float32


class TestWideUnsigned:
    """The array API standard's promotion, where PyTorch has none."""

    @pytest.mark.parametrize("name", WIDE_UNSIGNED)
    def test_promotion(self, name):
        for other in ["bool", "uint8", *WIDE_UNSIGNED, "int8", "int16", "int32", "int64"]:
            expected = np.promote_types(name, other)
            if expected.kind == "f":
                with pytest.raises(DTypeError, match="int64"):
                    flow.promote_types(name, other)
            else:
                assert flow.promote_types(name, other) == expected
        for other in ("float16", "float32", "float64", "complex64", "complex128"):
            assert flow.promote_types(name, other) == np.dtype(other)

    @pytest.mark.parametrize("name", WIDE_UNSIGNED)
    def test_values(self, name):
        x = flow.tensor([1, 2, 250], dtype=name)
        assert (x + x).tolist() == [2, 4, 500] and (x + 1).dtype == np.dtype(name)
        assert (x / 2).dtype == flow.float32 and flow.from_numpy(x.numpy()).dtype == x.dtype
        assert flow.sum(x).item() == 253 and (x > 1).tolist() == [False, True, True]


class TestAsDtype:
    @pytest.mark.parametrize(
        ("given", "dtype"),
        [
            ("float64", "float64"),
            (np.float64, "float64"),
            (np.dtype("int8"), "int8"),
            (np.dtype(">f4"), "float32"),
            (float, "float64"),
            (int, "int64"),
            (bool, "bool"),
            (complex, "complex128"),
        ],
    )
    def test_accepts(self, given, dtype):
        found = as_dtype("op", given)
        assert found == np.dtype(dtype)
        assert any(found is d for d in SUPPORTED)  # identity: dispatch compares with `is`

    @pytest.mark.parametrize("bad", ["float128", "datetime64[s]", "U3", object, "V2"])
    def test_what_is_not_supported(self, bad):
        with pytest.raises(DTypeError, match=r"zeros\(\).*float32"):
            flow.zeros(1, dtype=bad)

    @pytest.mark.parametrize("bad", ["no such", 3, 2.5, [1, 2], flow.ones(1)])
    def test_what_is_no_dtype(self, bad):
        with pytest.raises((ArgumentTypeError, DTypeError), match=r"zeros\(\).*dtype"):
            flow.zeros(1, dtype=bad)

    @pytest.mark.parametrize("dtype", ["U3", "S3", "datetime64[s]", object])
    def test_arrays_of_other_dtypes(self, dtype):
        array = np.zeros(2, dtype)
        for make in (flow.tensor, flow.from_numpy, flow.as_tensor):
            with pytest.raises((DTypeError, ArgumentTypeError)):
                make(array)


class TestLimits:
    def test_finfo(self, torch):
        for name in ("float16", "float32", "float64"):
            ours, theirs = flow.finfo(getattr(flow, name)), torch.finfo(getattr(torch, name))
            for field in ("bits", "eps", "max", "min", "tiny"):
                assert float(getattr(ours, field)) == float(getattr(theirs, field))
            assert ours.smallest_normal == theirs.smallest_normal
            assert ours.resolution == theirs.resolution and ours.dtype == theirs.dtype
            assert repr(ours) == repr(theirs) and isinstance(ours.eps, float)
        assert flow.finfo().bits == 32 and flow.finfo(flow.complex128).dtype == flow.float64
        assert flow.finfo(flow.float32) == flow.finfo() and isinstance(flow.finfo(), flow.finfo)
        with pytest.raises(TypeError, match="iinfo"):
            flow.finfo(flow.int64)

    def test_iinfo(self, torch):
        for name in ("uint8", "int8", "int16", "int32", "int64"):
            ours, theirs = flow.iinfo(getattr(flow, name)), torch.iinfo(getattr(torch, name))
            assert (ours.bits, int(ours.max), int(ours.min)) == (
                theirs.bits,
                theirs.max,
                theirs.min,
            )
            assert ours.dtype == theirs.dtype
            assert ours == flow.iinfo(name) and hash(ours) == hash(flow.iinfo(name))
        with pytest.raises(TypeError, match="finfo"):
            flow.iinfo(flow.float32)


class TestCasts:
    @pytest.mark.parametrize(
        ("method", "dtype"),
        [
            ("float", "float32"),
            ("double", "float64"),
            ("half", "float16"),
            ("long", "int64"),
            ("int", "int32"),
            ("short", "int16"),
            ("bool", "bool"),
        ],
    )
    def test_methods(self, method, dtype):
        x = flow.tensor([0.0, 1.0, 2.0])
        y = getattr(x, method)()
        assert y.dtype == np.dtype(dtype)
        assert y.tolist() == x.numpy().astype(dtype).tolist()

    def test_to_the_same_dtype_is_the_tensor_itself(self):
        x = flow.ones(2)
        assert x.to(flow.float32) is x and x.float() is x
        assert x.to(flow.float32, copy=True) is not x

    @pytest.mark.parametrize(
        "args", [(flow.float64,), ("float64",), (np.float64,), (float,), ("cpu", flow.float64)]
    )
    def test_to(self, args):
        assert flow.ones(2).to(*args).dtype == flow.float64

    def test_gradients_flow_through_casts_of_floats(self):
        x = flow.ones(2, requires_grad=True)
        (x.double() * 2).half().float().sum().backward()
        assert x.grad.tolist() == [2.0, 2.0] and x.grad.dtype == flow.float32

    def test_gradients_end_at_integers(self):
        x = flow.ones(2, requires_grad=True)
        assert not x.long().requires_grad

    def test_second_derivatives_through_a_cast(self):
        x = flow.tensor([2.0], requires_grad=True)
        (g,) = flow.autograd.grad((x.double() ** 3).sum(), x, create_graph=True)
        assert g.dtype == flow.float32
        assert flow.autograd.grad(g.sum(), x)[0].item() == 12
