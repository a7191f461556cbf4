"""einops, SciPy, scikit-learn and DLPack: what other libraries do with tensors."""

import subprocess
import sys

import numpy as np
import pytest

import oneflow_lite as flow
from oneflow_lite.errors import GradientError

A = np.arange(24.0).reshape(2, 3, 4)


class TestEinops:
    @pytest.fixture
    def einops(self):
        return pytest.importorskip("einops")

    @pytest.mark.parametrize(
        "call",
        [
            lambda e, x: e.rearrange(x, "a b c -> (c a) b"),
            lambda e, x: e.rearrange(x, "a b (c d) -> a c b d", d=2),
            lambda e, x: e.rearrange([x[0], x[1]], "n b c -> b n c"),
            lambda e, x: e.reduce(x, "a b c -> b", "mean"),
            lambda e, x: e.reduce(x, "a b c -> a 1 c", "max"),
            lambda e, x: e.reduce(x, "a b (c d) -> a c", "sum", c=2),
            lambda e, x: e.reduce(x / 24 + 1, "a b c -> a", "prod"),
            lambda e, x: e.reduce(x, "a b c -> ()", "min"),
            lambda e, x: e.repeat(x, "a b c -> a n b c k", n=2, k=3),
            lambda e, x: e.repeat(x, "a b c -> (a r) b c", r=2),
            lambda e, x: e.einsum(x, x, "a b c, a d c -> b d"),
            lambda e, x: e.pack([x, x[0]], "* b c")[0],
            lambda e, x: e.unpack(x, [(1,), (2,)], "a * c")[1],
        ],
    )
    def test_values_and_gradients(self, einops, call):
        x = flow.tensor(A, requires_grad=True)
        y = call(einops, x)
        np.testing.assert_allclose(y.detach().numpy(), call(einops, A))
        (dx,) = flow.autograd.grad((y * y).sum(), x)
        torch = pytest.importorskip("torch")
        t = torch.tensor(A, requires_grad=True)
        z = call(einops, t)
        (dt,) = torch.autograd.grad((z * z).sum(), t)
        np.testing.assert_allclose(dx.numpy(), dt.numpy())

    def test_conversions(self, einops):
        x = flow.tensor(A)
        assert einops.asnumpy(x).tolist() == A.tolist()
        assert einops.parse_shape(x, "a b c") == {"a": 2, "b": 3, "c": 4}

    def test_its_array_api(self, einops):
        from einops import array_api

        x = flow.tensor(A, requires_grad=True)
        y = array_api.rearrange(x, "a b c -> (c a) b")
        assert y.shape == (8, 3) and y.requires_grad
        z = array_api.reduce(x, "a b c -> a", "sum")
        np.testing.assert_allclose(z.detach().numpy(), A.sum((1, 2)))

    @pytest.mark.parametrize(
        "imports", ["import einops, oneflow_lite", "import oneflow_lite, einops"]
    )
    def test_in_either_order_of_imports(self, einops, imports):
        run = "assert einops.rearrange(oneflow_lite.ones(2, 3), 'a b -> b a').shape == (3, 2)"
        subprocess.run([sys.executable, "-c", f"{imports}\n{run}"], check=True)

    def test_it_is_not_imported(self):
        run = "import sys, oneflow_lite; assert 'einops' not in sys.modules"
        subprocess.run([sys.executable, "-c", run], check=True)


class TestDlpack:
    def test_with_numpy(self):
        x = flow.tensor(A)
        array = np.from_dlpack(x)
        assert np.shares_memory(array, x.numpy())
        assert np.shares_memory(flow.from_dlpack(A).numpy(), A)
        assert flow.from_dlpack(x)._data.ctypes.data == x._data.ctypes.data
        assert x.__dlpack_device__() == (1, 0)
        assert not np.shares_memory(np.from_dlpack(x, copy=True), x.numpy())

    def test_with_pytorch(self):
        torch = pytest.importorskip("torch")
        x = flow.tensor(A)
        t = torch.from_dlpack(x)
        t[0, 0, 0] = 5
        assert x[0, 0, 0].item() == 5
        y = flow.from_dlpack(t)
        y[0, 0, 1] = 7
        assert t[0, 0, 1].item() == 7
        assert flow.from_dlpack(torch.ones(2, dtype=torch.complex64)).dtype == flow.complex64
        assert flow.from_dlpack(torch.ones(2, 3).t()).stride() == (1, 3)

    def test_with_cupy(self, device):
        if device == "cpu":
            return
        import cupy

        x = flow.tensor(A, device=device)
        if not hasattr(cupy, "from_dlpack"):
            pytest.skip("the stand-in has no DLPack")
        array = cupy.from_dlpack(x)
        y = flow.from_dlpack(array)
        assert y.device == x.device and y.tolist() == A.tolist()
        assert x.__dlpack_device__()[0] == 2

    def test_a_gradient_is_refused(self):
        torch = pytest.importorskip("torch")
        for x in (flow.ones(2, requires_grad=True), flow.ones(2, requires_grad=True) * 2):
            for take in (np.from_dlpack, torch.from_dlpack, flow.from_dlpack):
                with pytest.raises(GradientError, match=r"detach\(\) it first"):
                    take(x)
            assert np.from_dlpack(x.detach()).shape == (2,)
            for one in (x, torch.ones(2, requires_grad=True)):
                with pytest.raises(BufferError):
                    one.__dlpack__()


class TestScipy:
    def test_functions_of_arrays(self):
        import scipy.integrate
        import scipy.interpolate
        import scipy.linalg
        import scipy.optimize
        import scipy.signal
        import scipy.stats

        a, x = A[0, :, :3] + 5 * np.eye(3), np.linspace(0.0, 1.0, 7)
        t, s = flow.tensor(a), flow.tensor(x)
        np.testing.assert_allclose(scipy.linalg.expm(t / 20), scipy.linalg.expm(a / 20))
        np.testing.assert_allclose(scipy.linalg.lu(t)[2], scipy.linalg.lu(a)[2])
        np.testing.assert_allclose(scipy.stats.zscore(s), scipy.stats.zscore(x))
        np.testing.assert_allclose(scipy.integrate.simpson(s, x=s), scipy.integrate.simpson(x, x=x))
        np.testing.assert_allclose(scipy.interpolate.CubicSpline(s, s * s)(0.3), 0.09, rtol=1e-12)
        np.testing.assert_allclose(scipy.signal.convolve(s, s[:3]), scipy.signal.convolve(x, x[:3]))
        with pytest.raises(GradientError, match=r"detach\(\)"):
            scipy.linalg.expm(t.clone().requires_grad_())

    def test_a_minimizer(self):
        optimize = pytest.importorskip("scipy.optimize")

        def value_and_gradient(x):
            t = flow.tensor(x, requires_grad=True)
            y = ((t - flow.tensor([1.0, -2.0], dtype=flow.float64)) ** 2).sum()
            (dx,) = flow.autograd.grad(y, t)
            return y.item(), dx

        found = optimize.minimize(value_and_gradient, flow.zeros(2, dtype=flow.float64), jac=True)
        np.testing.assert_allclose(found.x, [1.0, -2.0], atol=1e-6)


class TestScikitLearn:
    def test_estimators_take_tensors(self):
        pytest.importorskip("sklearn")
        from sklearn.decomposition import PCA
        from sklearn.linear_model import LogisticRegression
        from sklearn.metrics import accuracy_score, mean_squared_error
        from sklearn.model_selection import train_test_split
        from sklearn.preprocessing import StandardScaler

        rng = np.random.default_rng(0)
        array = rng.normal(size=(60, 4))
        labels = (array[:, 0] > 0).astype(int)
        x, y = flow.tensor(array), flow.tensor(labels)
        model = LogisticRegression().fit(x, y)
        expected = LogisticRegression().fit(array, labels)
        np.testing.assert_allclose(model.coef_, expected.coef_)
        assert accuracy_score(y, model.predict(x)) == accuracy_score(labels, model.predict(array))
        np.testing.assert_allclose(
            StandardScaler().fit_transform(x), StandardScaler().fit_transform(array)
        )
        np.testing.assert_allclose(
            np.abs(PCA(2).fit_transform(x)), np.abs(PCA(2).fit_transform(array))
        )
        assert mean_squared_error(x, x) == 0
        parts = train_test_split(x, y, random_state=0)
        others = train_test_split(array, labels, random_state=0)
        for part, other in zip(parts, others, strict=True):
            np.testing.assert_allclose(np.asarray(part), other)
        with pytest.raises(GradientError, match=r"detach\(\)"):
            model.predict(x.clone().requires_grad_())
