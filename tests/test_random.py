"""Random tensors: repeatable by seed, and of roughly the distribution they name."""

import threading

import numpy as np
import pytest

import oneflow_lite as flow
from oneflow_lite.errors import ArgumentError, ArgumentTypeError, DTypeError, FlowError

DRAWS = {
    "rand": lambda g: flow.rand(50, generator=g),
    "randn": lambda g: flow.randn(50, generator=g),
    "randint": lambda g: flow.randint(0, 1000, (50,), generator=g),
    "randperm": lambda g: flow.randperm(50, generator=g),
    "bernoulli": lambda g: flow.bernoulli(flow.full((50,), 0.5), generator=g),
    "uniform_": lambda g: flow.zeros(50).uniform_(generator=g),
    "normal_": lambda g: flow.zeros(50).normal_(generator=g),
    "bernoulli_": lambda g: flow.zeros(50).bernoulli_(0.5, generator=g),
}


@pytest.fixture(autouse=True)
def seeded():
    flow.manual_seed(0)


class TestSeeds:
    @pytest.mark.parametrize("name", DRAWS)
    def test_a_seed_repeats_the_stream(self, name):
        draw = DRAWS[name]
        flow.manual_seed(7)
        first, second = draw(None).tolist(), draw(None).tolist()
        flow.manual_seed(7)
        assert draw(None).tolist() == first
        assert draw(None).tolist() == second
        assert first != second
        flow.manual_seed(8)
        assert draw(None).tolist() != first

    @pytest.mark.parametrize("name", DRAWS)
    def test_a_generator_is_a_stream_of_its_own(self, name):
        draw = DRAWS[name]
        g = flow.Generator().manual_seed(7)
        first = draw(g).tolist()
        flow.manual_seed(3)
        default = draw(None).tolist()
        draw(g)
        flow.manual_seed(3)
        assert draw(None).tolist() == default  # untouched by g
        assert draw(flow.Generator().manual_seed(7)).tolist() == first

    def test_manual_seed_returns_the_generator(self):
        assert isinstance(flow.manual_seed(3), flow.Generator)
        g = flow.Generator()
        assert g.manual_seed(3) is g
        assert g.initial_seed() == 3
        assert flow.manual_seed(11).initial_seed() == 11

    def test_seed_draws_one_from_the_system(self):
        g = flow.Generator()
        assert g.seed() != g.seed()
        assert g.initial_seed() == g.initial_seed()

    def test_state(self):
        g = flow.Generator().manual_seed(5)
        flow.rand(3, generator=g)
        state = g.get_state()
        first = flow.rand(3, generator=g).tolist()
        flow.rand(9, generator=g)
        g.set_state(state)
        assert flow.rand(3, generator=g).tolist() == first

    @pytest.mark.parametrize("seed", [0, -1, 2**63 - 1, np.int64(3)])
    def test_any_integer_is_a_seed(self, seed):
        first = flow.rand(3, generator=flow.Generator().manual_seed(seed))
        again = flow.rand(3, generator=flow.Generator().manual_seed(seed))
        assert first.tolist() == again.tolist()

    @pytest.mark.parametrize("bad", [1.5, "3", None])
    def test_what_is_no_seed(self, bad):
        with pytest.raises(ArgumentTypeError, match="manual_seed"):
            flow.manual_seed(bad)

    @pytest.mark.parametrize("name", DRAWS)
    @pytest.mark.parametrize("bad", [3, "g", np.random.default_rng(0)])
    def test_what_is_no_generator(self, name, bad):
        with pytest.raises(ArgumentTypeError, match=f"{name}.*generator"):
            DRAWS[name](bad)

    def test_threads_draw_without_harm(self):
        results = []

        def draw():
            results.append(flow.rand(1000).numpy())

        threads = [threading.Thread(target=draw) for _ in range(4)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        assert len({r.tobytes() for r in results}) == 4


N = 20_000


class TestDistributions:
    """Bounds of six standard errors."""

    @pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
    def test_rand(self, dtype):
        x = flow.rand(N, dtype=dtype)
        a = x.numpy().astype(np.float64)
        assert x.dtype == np.dtype(dtype)
        assert a.min() >= 0 and a.max() < 1
        assert abs(a.mean() - 0.5) < 6 * (1 / 12 / N) ** 0.5
        assert abs(a.var() - 1 / 12) < 0.005

    @pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
    def test_randn(self, dtype):
        x = flow.randn(N, dtype=dtype)
        a = x.numpy().astype(np.float64)
        assert x.dtype == np.dtype(dtype)
        assert abs(a.mean()) < 6 / N**0.5
        assert abs(a.var() - 1) < 6 * (2 / N) ** 0.5
        assert abs((a**4).mean() - 3) < 0.5

    def test_randn_of_complex_numbers(self):
        a = flow.randn(N, dtype=flow.complex64).numpy()
        assert abs((np.abs(a) ** 2).mean() - 1) < 0.06
        assert abs(a.real.var() - 0.5) < 0.05 and abs(a.imag.var() - 0.5) < 0.05

    def test_rand_of_complex_numbers(self):
        a = flow.rand(N, dtype=flow.complex64).numpy()
        assert abs(a.real.mean() - 0.5) < 0.02 and abs(a.imag.mean() - 0.5) < 0.02
        assert a.dtype == np.complex64 and max(a.real.max(), a.imag.max()) < 1
        assert flow.rand((), dtype=flow.complex128).numpy().dtype == np.complex128

    def test_randint(self):
        a = flow.randint(-2, 3, (N,)).numpy()
        assert a.dtype == np.int64
        values, counts = np.unique(a, return_counts=True)
        assert values.tolist() == [-2, -1, 0, 1, 2]
        assert (abs(counts - N / 5) < 6 * (N * 0.16) ** 0.5).all()
        assert flow.randint(3, (2, 2)).shape == (2, 2)
        assert flow.randint(3, size=(2,)).shape == (2,)
        assert flow.randint(0, 5, (3,), dtype=flow.int8).dtype == flow.int8
        assert flow.randint(0, 5, (3,), dtype=flow.float32).dtype == flow.float32

    def test_randperm(self):
        a = flow.randperm(100)
        assert a.dtype == flow.int64 and sorted(a.tolist()) == list(range(100))
        assert a.tolist() != list(range(100))
        assert flow.randperm(0).shape == (0,)
        firsts = np.bincount([flow.randperm(4)[0].item() for _ in range(2000)])
        assert (abs(firsts - 500) < 120).all()

    def test_bernoulli(self):
        p = flow.tensor([0.0, 0.25, 1.0]).expand(N, 3)
        means = flow.bernoulli(p).numpy().mean(0)
        assert means[0] == 0 and means[2] == 1 and abs(means[1] - 0.25) < 0.02
        rare = flow.full((N * 10,), 1e-4, dtype=flow.float16)
        assert flow.bernoulli(rare).sum().item() < 20 + 6 * 20**0.5
        x = flow.zeros(N).bernoulli_(0.25).numpy()
        assert set(x.tolist()) == {0.0, 1.0} and abs(x.mean() - 0.25) < 0.02

    def test_filling_in_place(self):
        x = flow.zeros(N)
        assert x.uniform_(-2, 3) is x
        a = x.numpy()
        assert a.min() >= -2 and a.max() < 3 and abs(a.mean() - 0.5) < 0.07
        assert x.normal_(5, 2) is x
        assert abs(a.mean() - 5) < 0.1 and abs(a.std() - 2) < 0.07
        assert x._version == 2
        z = flow.zeros(N, dtype=flow.complex64).uniform_(2, 3).numpy()  # both parts, as PyTorch
        assert min(z.real.min(), z.imag.min()) >= 2 and max(z.real.max(), z.imag.max()) <= 3
        z = flow.zeros(N, dtype=flow.complex64).normal_(5, 2).numpy()
        for part in (z.real, z.imag):
            assert abs(part.mean() - 5) < 0.07 and abs(part.var() - 2) < 0.13

    def test_like(self):
        x = flow.ones(3, 4, dtype=flow.float64)
        for make in (flow.rand_like, flow.randn_like):
            y = make(x)
            assert (y.shape, y.dtype) == (x.shape, x.dtype)
            assert make(x, dtype=flow.float32).dtype == flow.float32
            assert make(x, requires_grad=True).requires_grad
        assert flow.rand_like(x).numpy().min() >= 0


class TestGradients:
    def test_of_an_overwritten_tensor_are_zero(self):
        x = flow.ones(3, requires_grad=True)
        y = x * 2
        y.uniform_()
        (y + x).sum().backward()
        assert x.grad.tolist() == [1.0, 1.0, 1.0]

    def test_of_bernoulli_are_zero(self):
        x = flow.full((3,), 0.5, requires_grad=True)
        (flow.bernoulli(x) + x).sum().backward()
        assert x.grad.tolist() == [1.0, 1.0, 1.0]


class TestErrors:
    @pytest.mark.parametrize("name", ["rand", "randn"])
    def test_integers(self, name):
        with pytest.raises(DTypeError, match=name):
            getattr(flow, name)(2, dtype=flow.int64)

    @pytest.mark.parametrize(
        "bad",
        [(5, 5, (2,)), (5, 3, (2,)), (0.5, 3, (2,)), (0, "3", (2,)), (0, 3, (-1,)), (0, 3, 2.5)],
    )
    def test_randint(self, bad):
        with pytest.raises(FlowError, match="randint"):
            flow.randint(*bad)

    @pytest.mark.parametrize("bad", [-1, 2.5, None, "3"])
    def test_randperm(self, bad):
        with pytest.raises(FlowError, match="randperm"):
            flow.randperm(bad)

    @pytest.mark.parametrize(
        ("call", "what"),
        [
            (lambda x: x.uniform_(2, 1), "uniform_"),
            (lambda x: x.uniform_("a", 1), "uniform_"),
            (lambda x: x.normal_(0, -1), "normal_"),
            (lambda x: x.normal_("a"), "normal_"),
            (lambda x: x.bernoulli_(1.5), "bernoulli_"),
            (lambda x: x.bernoulli_(-0.5), "bernoulli_"),
            (lambda x: x.bernoulli_("a"), "bernoulli_"),
        ],
    )
    def test_parameters(self, call, what):
        x = flow.ones(3)
        with pytest.raises(FlowError, match=what):
            call(x)
        assert x.tolist() == [1.0, 1.0, 1.0] and x._version == 0

    @pytest.mark.parametrize("bad", [-0.1, 1.5, np.nan])
    def test_bernoulli_of_no_probability(self, bad):
        flow.manual_seed(3)
        expected = flow.rand(3).tolist()
        flow.manual_seed(3)
        with pytest.raises(ArgumentError, match="bernoulli.*'input'"):
            flow.bernoulli(flow.tensor([0.5, bad]))
        assert flow.rand(3).tolist() == expected
        with pytest.raises(DTypeError, match="bernoulli"):
            flow.bernoulli(flow.ones(2, dtype=flow.complex64))

    def test_a_failed_draw_leaves_the_stream(self):
        flow.manual_seed(3)
        expected = flow.rand(3).tolist()
        flow.manual_seed(3)
        with pytest.raises(FlowError):
            flow.rand(-1)
        with pytest.raises(FlowError):
            flow.randint(5, 5, (2,))
        assert flow.rand(3).tolist() == expected


def test_on_each_device(device):
    g = flow.Generator().manual_seed(1)
    for make in (flow.rand, flow.randn):
        for dtype in ("float16", "float32", "float64", "complex64", "complex128"):
            x = make(4, dtype=dtype, device=device, generator=g)
            assert x.device.type == device and len(set(x.cpu().tolist())) == 4
    x = flow.zeros(4, device=device)
    x.normal_(generator=g)
    assert len(set(x.cpu().tolist())) == 4


def test_negative_seeds():
    torch = pytest.importorskip("torch")
    for seed in (-1, -5, -(2**63), 2**64 - 1):
        flow.manual_seed(seed), torch.manual_seed(seed)
        assert flow.initial_seed() == torch.initial_seed()
    a = flow.manual_seed(-1) and flow.rand(3)
    b = flow.manual_seed(2**64 - 1) and flow.rand(3)
    assert a.tolist() == b.tolist()
    for seed in (-(2**63) - 1, 2**64):
        with pytest.raises(ValueError, match=r"manual_seed\(\)"):
            flow.manual_seed(seed)
