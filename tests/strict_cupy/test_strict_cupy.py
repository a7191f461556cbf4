"""Each strictness that the stand-in claims is asserted here, for the tests that rely on it."""

import operator
import sys
import types
from typing import Any

import numpy as np
import pytest

from tests import strict_cupy
from tests.strict_cupy.modules import cupy, cupyx

BINARY = [
    operator.add, operator.sub, operator.mul, operator.truediv, operator.floordiv, operator.mod,
    operator.pow, operator.matmul, operator.lt, operator.le, operator.gt, operator.ge, operator.eq,
    operator.ne, divmod,
]  # fmt: skip
IN_PLACE = [
    operator.iadd, operator.isub, operator.imul, operator.itruediv, operator.ifloordiv,
    operator.imod, operator.ipow,
]  # fmt: skip


class TestInstallation:
    def test_import_finds_the_stand_in_until_it_is_uninstalled(self) -> None:
        import cupy as found
        import cupyx.scipy.special as special

        assert found is cupy
        assert special is cupyx.scipy.special
        assert found.__name__ == "cupy"
        strict_cupy.uninstall()
        assert sys.modules.get("cupy") is not cupy
        strict_cupy.install()

    def test_it_is_not_installed_twice(self) -> None:
        with pytest.raises(RuntimeError, match="already"):
            strict_cupy.install()

    def test_it_is_not_installed_where_a_device_is(self, monkeypatch: pytest.MonkeyPatch) -> None:
        strict_cupy.uninstall()
        real = types.SimpleNamespace(cuda=types.SimpleNamespace(is_available=lambda: True))
        monkeypatch.setitem(sys.modules, "cupy", real)
        assert strict_cupy.real_device_present()
        with pytest.raises(RuntimeError, match="device is present"):
            strict_cupy.install()
        assert sys.modules["cupy"] is real
        real.cuda.is_available = lambda: False  # a CuPy without a device gives way, and comes back
        with strict_cupy.installed():
            assert sys.modules["cupy"] is cupy
        assert sys.modules["cupy"] is real
        monkeypatch.undo()
        strict_cupy.install()

    def test_the_number_of_devices_is_configurable(self) -> None:
        strict_cupy.uninstall()
        with strict_cupy.installed(device_count=0):
            assert not cupy.cuda.is_available()
            with pytest.raises(cupy.cuda.runtime.CUDARuntimeError):
                cupy.cuda.runtime.getDeviceCount()
        strict_cupy.install(device_count=3)
        assert cupy.cuda.runtime.getDeviceCount() == 3


class TestHostArraysAreRefused:
    @pytest.mark.parametrize("apply", BINARY)
    @pytest.mark.parametrize("host", [np.ones((3, 3)), np.array(2.0)], ids=["2-d", "0-d"])
    def test_by_operators_on_either_side(self, apply: Any, host: Any) -> None:
        device = cupy.ones((3, 3))
        with pytest.raises(TypeError):
            apply(device, host)
        with pytest.raises(TypeError):
            apply(host, device)

    @pytest.mark.parametrize("apply", IN_PLACE)
    def test_by_in_place_operators_on_either_side(self, apply: Any, x: Any) -> None:
        before = x.get()
        with pytest.raises(TypeError):
            apply(x, np.ones((2, 3)))
        with pytest.raises(TypeError):
            apply(np.ones((2, 3)), x)
        assert np.array_equal(x.get(), before)

    def test_by_functions_and_keywords(self, x: Any) -> None:
        host = np.ones((2, 3))
        for refused in (
            lambda: cupy.add(x, host),
            lambda: cupy.add(x, x, out=host),
            lambda: np.add(host, x),
            lambda: np.add(host, host, out=x),
            lambda: np.maximum(x, host),
            lambda: cupy.where(x > 1, host, x),
            lambda: cupy.concatenate([x, host]),
            lambda: cupy.dot(x, host.T),
            lambda: cupy.sum(x, out=np.zeros(())),
            lambda: x.sum(axis=0, out=np.zeros(3)),
            lambda: x.dot(host.T),
            lambda: cupy.einsum("ij,ij->", x, host),
            lambda: cupyx.scipy.special.xlogy(x, host),
            lambda: cupyx.scatter_add(x, 0, host[0]),
            lambda: cupy.add.at(host, 0, 1.0),
            lambda: cupy.sum(host),
        ):
            with pytest.raises(TypeError):
                refused()

    def test_as_indices_and_as_assigned_values(self, x: Any) -> None:
        with pytest.raises(TypeError):
            x[np.array([0, 1])]
        with pytest.raises(TypeError):
            x[0] = np.ones(3)
        with pytest.raises(TypeError):
            x[np.array([True, False])] = 0.0
        with pytest.raises(TypeError):
            x[...] = [1.0, 2.0, 3.0]

    def test_implicit_conversion_raises(self, x: Any) -> None:
        for convert in (np.asarray, np.array, lambda a: np.array([a, a])):
            with pytest.raises(TypeError, match="Implicit conversion"):
                convert(x)
        with pytest.raises(ValueError, match="PyCapsule"):
            np.from_dlpack(x)
        assert not isinstance(x, np.ndarray)
        assert not hasattr(x, "__array_interface__")
        assert not hasattr(x, "__cuda_array_interface__")

    def test_lists_are_no_arrays(self, x: Any) -> None:
        for refused in (
            lambda: cupy.add(x, [1.0, 2.0, 3.0]),
            lambda: x + [1.0, 2.0, 3.0],
            lambda: cupy.sum([1.0, 2.0]),
            lambda: cupy.prod(x.shape),
        ):
            with pytest.raises(TypeError):
                refused()

    @pytest.mark.parametrize("scalar", [2, 2.0, True, np.float64(2), np.int32(2), np.bool(True)])
    def test_scalars_are_welcome_on_either_side(self, scalar: Any, x: Any) -> None:
        for result in (x * scalar, scalar * x, cupy.multiply(x, scalar), np.multiply(scalar, x)):
            assert isinstance(result, cupy.ndarray)
            assert np.array_equal(result.get(), x.get() * scalar)


class TestZeroDimensions:
    def test_answers_are_arrays_never_scalars(self, x: Any) -> None:
        for result in (
            x.sum(),
            x.max(),
            x.argmax(),
            x.any(),
            cupy.mean(x),
            np.sum(x),
            x[0, 0],
            x[0][0] + 1,
            cupy.add(1.0, 2.0),
            cupy.dot(x[0], x[0]),
            x[0] @ x[0],
            cupy.allclose(x, x),
            cupy.array_equal(x, x),
            cupy.count_nonzero(x),
            cupy.linalg.norm(x),
            cupy.random.default_rng(0).random(),
            cupyx.scipy.special.erf(x.sum()),
        ):
            assert type(result) is cupy.ndarray
            assert result.shape == ()

    def test_an_element_is_a_view(self, x: Any) -> None:
        element = x[1, 2]
        assert element.base is x
        element[...] = -1.0
        assert x.get()[1, 2] == -1.0

    def test_iteration_over_them_raises(self, x: Any) -> None:
        with pytest.raises(TypeError, match="0-d"):
            iter(x.sum())
        with pytest.raises(TypeError):
            len(x.sum())


class TestWhatCuPyLacks:
    @pytest.mark.parametrize(
        "name",
        ["nditer", "errstate", "object_", "longdouble", "vectorize", "insert", "block", "_core"],
    )
    def test_names(self, name: str) -> None:
        assert not hasattr(cupy, name)

    def test_names_of_submodules(self) -> None:
        assert not hasattr(cupy.linalg, "vector_norm")
        assert not hasattr(cupyx.scipy.special, "airy")
        assert not hasattr(cupy.random.default_rng(0), "permutation")
        assert not hasattr(cupy.random.default_rng(0), "normal")

    @pytest.mark.parametrize(
        ("name", "keywords"),
        [
            ("sum", {"where": True}),
            ("sum", {"initial": 0.0}),
            ("max", {"initial": 0.0}),
            ("mean", {"where": True}),
            ("var", {"correction": 1}),
            ("sort", {"stable": True}),
            ("add", {"where": True}),
            ("exp", {"order": "C"}),
            ("clip", {"min": 0.0}),
            ("take", {"mode": "clip"}),
            ("full_like", {"device": "cpu"}),
        ],
    )
    def test_keywords(self, name: str, keywords: dict[str, Any], x: Any) -> None:
        required = {"add": (x,), "take": (cupy.asarray(0),), "full_like": (1.0,)}.get(name, ())
        with pytest.raises(TypeError):
            getattr(cupy, name)(x, *required, **keywords)

    def test_methods_have_no_more_keywords_than_functions(self, x: Any) -> None:
        with pytest.raises(TypeError):
            x.sum(where=True)
        with pytest.raises(TypeError):
            x.max(initial=0.0)

    def test_ufunc_methods(self, x: Any) -> None:
        assert float(cupy.add.reduce(x, axis=None)) == 21.0
        assert cupy.multiply.accumulate(x).shape == (2, 3)
        for refused in (
            lambda: cupy.maximum.reduce(x),
            lambda: cupy.logical_and.reduce(x),
            lambda: cupy.maximum.accumulate(x),
            lambda: cupy.multiply.at(x, 0, 2.0),
            lambda: np.maximum.reduce(x),
        ):
            with pytest.raises(NotImplementedError):
                refused()

    @pytest.mark.parametrize("dtype", ["complex64", "int8", "int16", "int64", "bool"])
    def test_scattering_into_other_dtypes(self, dtype: str) -> None:
        target = cupy.zeros(3, dtype=dtype)
        with pytest.raises(TypeError, match="does not support"):
            cupy.add.at(target, cupy.asarray([0, 0]), cupy.ones(2, dtype=dtype))
        with pytest.raises(TypeError, match="does not support"):
            cupyx.scatter_add(target, cupy.asarray([0, 0]), cupy.ones(2, dtype=dtype))

    @pytest.mark.parametrize("host", [np.array(["a"]), np.array([None]), np.ones(2, np.longdouble)])
    def test_dtypes(self, host: Any) -> None:
        with pytest.raises(TypeError, match="Unsupported dtype"):
            cupy.asarray(host)

    def test_arrays_have_no_hash(self, x: Any) -> None:
        with pytest.raises(TypeError):
            hash(x)


class TestWhereCuPyAnswersOtherwise:
    def test_integer_arrays_out_of_range_wrap_around(self, x: Any) -> None:
        index = cupy.asarray([3, -4])
        assert np.array_equal(x[:, index].get(), x.get()[:, [0, 2]])
        assert np.array_equal(x[..., index].get(), x.get()[:, [0, 2]])
        assert np.array_equal(x.take(index, 1).get(), x.get()[:, [0, 2]])
        assert np.array_equal(cupy.take(x, index, axis=1).get(), x.get()[:, [0, 2]])
        rows = cupy.asarray([[5, 2, 0]])
        assert np.array_equal(cupy.take_along_axis(x, rows, 0).get(), [[4.0, 2.0, 3.0]])
        x[:, index] = 0.0
        assert np.array_equal(x.get(), [[0.0, 2.0, 0.0], [0.0, 5.0, 0.0]])

    def test_an_integer_out_of_range_raises(self, x: Any) -> None:
        with pytest.raises(IndexError):
            x[2]

    def test_floating_point_warnings_are_unknown(self, x: Any) -> None:
        with np.errstate(all="raise"):
            assert np.isinf(cupy.log(x * 0).get()).all()
            assert np.isnan((x * 0 / 0).get()).all()

    def test_scattering_adds_duplicates(self) -> None:
        for scatter in (cupy.add.at, cupyx.scatter_add):
            target = cupy.zeros(3)
            scatter(target, cupy.asarray([0, 0, 2]), cupy.asarray([1.0, 2.0, 4.0]))
            assert np.array_equal(target.get(), [3.0, 0.0, 4.0])

    def test_get_array_module(self, x: Any) -> None:
        assert cupy.get_array_module(np.ones(2), x) is cupy
        assert cupy.get_array_module(np.ones(2), 1.0) is np


class TestRandom:
    def test_a_seed_repeats(self) -> None:
        first, second = cupy.random.default_rng(3), cupy.random.default_rng(3)
        assert np.array_equal(
            first.standard_normal((2, 2), dtype=np.float32).get(),
            second.standard_normal((2, 2), dtype=np.float32).get(),
        )
        assert first.integers(0, 5, size=4).dtype == np.int64
        assert len(strict_cupy.transfers()) == 2

    def test_the_older_functions(self) -> None:
        assert np.array_equal(np.sort(cupy.random.permutation(4).get()), np.arange(4))
        assert cupy.random.rand(2, 3, dtype="float32").dtype == np.float32
        draws = []
        for _ in range(2):
            cupy.random.seed(7)
            draws.append(cupy.random.randn(3).get())
        assert np.array_equal(*draws)
        deck = cupy.arange(5)
        assert cupy.random.shuffle(deck) is None
        assert np.array_equal(np.sort(deck.get()), np.arange(5))
