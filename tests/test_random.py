"""Random tensors: repeatable by seed, and of roughly the distribution they name."""

import threading

import numpy as np
import pytest

import oneflow_lite as flow
from oneflow_lite.errors import (
    ArgumentError,
    ArgumentTypeError,
    DTypeError,
    FlowError,
    NotDifferentiableError,
)

DRAWS = {
    "rand": lambda g: flow.rand(50, generator=g),
    "randn": lambda g: flow.randn(50, generator=g),
    "randint": lambda g: flow.randint(0, 1000, (50,), generator=g),
    "randperm": lambda g: flow.randperm(50, generator=g),
    "bernoulli": lambda g: flow.bernoulli(flow.full((50,), 0.5), generator=g),
    "uniform_": lambda g: flow.zeros(50).uniform_(generator=g),
    "normal_": lambda g: flow.zeros(50).normal_(generator=g),
    "bernoulli_": lambda g: flow.zeros(50).bernoulli_(0.5, generator=g),
    "random_": lambda g: flow.zeros(50).random_(generator=g),
    "exponential_": lambda g: flow.zeros(50).exponential_(generator=g),
    "geometric_": lambda g: flow.zeros(50).geometric_(0.1, generator=g),
    "log_normal_": lambda g: flow.zeros(50).log_normal_(generator=g),
    "cauchy_": lambda g: flow.zeros(50).cauchy_(generator=g),
    "normal": lambda g: flow.normal(flow.zeros(50), 1.0, generator=g),
    "poisson": lambda g: flow.poisson(flow.full((50,), 9.0), g),
    "binomial": lambda g: flow.binomial(flow.full((50,), 99.0), flow.full((1,), 0.5), g),
    "multinomial": lambda g: flow.multinomial(flow.ones(50), 50, generator=g),
    "randint_like": lambda g: flow.randint_like(flow.zeros(50), 1000, generator=g),
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

    @pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
    def test_other_distributions_in_place(self, dtype):
        """Their mean, or the median where there is none."""
        x = flow.zeros(N, dtype=dtype)

        def drawn(y):
            assert y is x
            return y.numpy().astype(np.float64)

        a = drawn(x.exponential_(2.0))
        assert a.min() > 0 and abs(a.mean() - 0.5) < 0.025 and abs(a.std() - 0.5) < 0.05
        a = drawn(x.geometric_(0.25))
        assert a.min() == 1 and abs(a.mean() - 4) < 0.15
        a = np.log(drawn(x.log_normal_(1.0, 0.5)))
        assert abs(a.mean() - 1) < 0.025 and abs(a.std() - 0.5) < 0.02
        a = drawn(x.cauchy_(1.0, 2.0))
        assert np.abs(np.percentile(a, [25, 50, 75]) - [-1, 1, 3]).max() < 0.2
        a = drawn(x.random_(-2, 3))
        assert np.unique(a).tolist() == [-2, -1, 0, 1, 2] and abs(a.mean()) < 0.07

    def test_random_by_dtype(self):
        assert flow.zeros(N, dtype=flow.uint8).random_().numpy().max() == 255
        assert flow.zeros(N, dtype=flow.bool).random_().float().mean().item() < 0.55
        wide = flow.zeros(N, dtype=flow.int64).random_().numpy()
        assert wide.min() >= 0 and wide.max() > 2**62
        assert flow.zeros(N).random_().numpy().max() <= 2**24

    def test_of_distributions_that_tensors_give(self):
        rate = flow.tensor([0.0, 3.5]).expand(N, 2)
        counts = flow.poisson(rate).numpy()
        assert counts[:, 0].max() == 0 and abs(counts[:, 1].mean() - 3.5) < 0.1
        wins = flow.binomial(flow.full((N, 1), 8.0), flow.tensor([0.0, 0.25, 1.0])).numpy().mean(0)
        assert wins[0] == 0 and wins[2] == 8 and abs(wins[1] - 2) < 0.07
        a = flow.normal(flow.tensor([1.0, -1.0]).expand(N, 2), flow.tensor([0.5, 2.0])).numpy()
        assert np.abs(a.mean(0) - [1, -1]).max() < 0.1 and np.abs(a.std(0) - [0.5, 2]).max() < 0.1
        assert flow.normal(0.0, flow.ones(3, dtype=flow.float64)).dtype == flow.float64
        assert flow.normal(1.0, 2.0, (2, 3)).shape == (2, 3)

    @pytest.mark.parametrize("replacement", [False, True])
    def test_multinomial(self, replacement):
        weights = flow.tensor([[0.0, 1.0, 3.0, 0.0], [0.0, 0.0, 0.0, 2.0]])
        if replacement:
            places = flow.multinomial(weights, N, True).numpy()
            assert set(places[1]) == {3}
            shares = np.bincount(places[0], minlength=4) / N
        else:
            places = flow.multinomial(weights[:1].expand(N, 4), 2).numpy()
            assert (np.sort(places, 1) == [1, 2]).all()
            shares = np.bincount(places[:, 0], minlength=4) / N
        assert np.abs(shares - [0, 0.25, 0.75, 0]).max() < 0.02

    def test_dropout_of_channels(self):
        F = flow.nn.functional
        for f, shape in ((F.dropout1d, (2, 500, 3)), (F.dropout2d, (2, 500, 2, 2))):
            y = f(flow.ones(*shape), 0.25).numpy().reshape(2, 500, -1)
            assert (y == y[:, :, :1]).all()
            assert abs((y == 0).mean() - 0.25) < 0.12
        assert len(np.unique(F.dropout1d(flow.ones(500, 2)).numpy())) == 2
        with pytest.warns(UserWarning, match=r"dropout2d\(\)"):
            F.dropout2d(flow.ones(2, 3))

    def test_alpha_dropout_keeps_mean_and_variance(self):
        x = flow.randn(N)
        for f, given in (
            (flow.nn.functional.alpha_dropout, x),
            (flow.nn.functional.feature_alpha_dropout, x.reshape(1, N, 1)),
        ):
            y = f(given, 0.3, True).numpy()
            assert abs(y.mean()) < 0.05 and abs(y.std() - 1) < 0.05
            assert f(given, 0.3) is given

    def test_gumbel_softmax_draws_classes(self):
        logits = flow.log(flow.tensor([0.1, 0.2, 0.7])).expand(N, 3)
        y = flow.nn.functional.gumbel_softmax(logits, 0.5, hard=True).numpy()
        assert np.allclose(y.sum(1), 1) and np.abs(y.mean(0) - [0.1, 0.2, 0.7]).max() < 0.03

    def test_rrelu_draws_slopes(self):
        y = flow.nn.functional.rrelu(-flow.ones(N), 0.1, 0.3, True).numpy()
        assert y.min() >= -0.3001 and y.max() <= -0.0999 and abs(y.mean() + 0.2) < 0.01


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

    def test_of_drawn_numbers_are_zero(self):
        x = flow.full((3,), 0.5, requires_grad=True)
        (flow.poisson(x) + flow.normal(x, x) + x).sum().backward()
        assert x.grad.tolist() == [1.0, 1.0, 1.0]
        with pytest.raises(NotDifferentiableError, match="binomial"):
            flow.binomial(x, x).sum().backward()


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
            (lambda x: x.random_(5, 2), "random_"),
            (lambda x: x.half().random_(70_000), "random_"),
            (lambda x: x.cfloat().random_(), "random_"),
            (lambda x: x.exponential_(0), "exponential_"),
            (lambda x: x.long().exponential_(), "exponential_"),
            (lambda x: x.geometric_(1.0), "geometric_"),
            (lambda x: x.log_normal_(0, 0), "log_normal_"),
            (lambda x: x.cauchy_(0, -1), "cauchy_"),
            (lambda x: flow.multinomial(x, 4), "multinomial"),
            (lambda x: flow.multinomial(x * 0, 1), "multinomial"),
            (lambda x: flow.multinomial(-x, 1), "multinomial"),
            (lambda x: flow.multinomial(x[None, None], 1), "multinomial"),
            (lambda x: flow.poisson(-x), "poisson"),
            (lambda x: flow.normal(x, -x), "normal"),
            (lambda x: flow.normal(x, -1.0), "normal"),
            (lambda x: flow.normal(0.0, 1.0), "normal"),
            (lambda x: flow.randint_like(x, 5, 2), "randint_like"),
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
