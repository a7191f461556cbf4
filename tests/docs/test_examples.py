"""Every script in docs/examples runs, with fewer steps than by default, and does what it says."""

from __future__ import annotations

import contextlib
import gzip
import importlib.util
import os
import re
import struct
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

import oneflow_lite as flow
from tests import strict_cupy

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "docs" / "examples"

Run = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """Run a script in a process of its own: it may register ops, and draws into its directory."""

    def run_script(name: str, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
        path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
        return subprocess.run(
            [sys.executable, EXAMPLES / name, *arguments],
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": path, "PYTHONIOENCODING": "utf-8"},
            capture_output=True,
            encoding="utf-8",
            timeout=300,
            check=False,
        )

    return run_script


def output_of(done: subprocess.CompletedProcess[str]) -> str:
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def numbers(pattern: str, text: str) -> list[float]:
    return [float(number) for number in re.findall(pattern, text)]


def load(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"example_{name}", EXAMPLES / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_script_is_tested_here() -> None:
    elsewhere = "train_distributed"  # by tests/distributed, on two ranks
    names = {"digits", "eager", "higher_order", "own_op", "showing", elsewhere, *LONGER}
    assert {path.stem for path in EXAMPLES.glob("*.py")} == names


@pytest.mark.slow(but=1)
@pytest.mark.parametrize("name", ["eager.py", "higher_order.py", "own_op.py"])
def test_no_steps_are_refused(run: Run, name: str) -> None:
    done = run(name, "--steps", "0")
    assert done.returncode == 2
    assert "--steps: expected at least 1, got 0" in done.stderr


def test_eager_separates_the_half_moons(run: Run) -> None:
    text = output_of(run("eager.py", "--steps", "200"))
    losses = numbers(r"loss ([\d.]+)", text)
    assert len(losses) == 3
    assert losses[0] > 0.5
    assert losses[-1] < 0.2
    assert numbers(r"([\d.]+)% of 400 points", text)[0] > 95


@pytest.mark.slow
def test_own_op_is_certified_differentiated_fitted_and_profiled(run: Run) -> None:
    text = output_of(run("own_op.py"))
    assert "check_op: isru passed" in text
    assert numbers(r"largest distance from .*: (\S+)", text)[0] < 1e-12
    before, after = numbers(r"(?:loss|->) ([\d.]+)", text)
    assert after < 1e-3 < before
    calls = dict(re.findall(r"^(\w+) +(\d+) +[\d.]+$", text, re.MULTILINE))
    assert calls["isru"] == "300"
    assert calls["adam_update"] == "1200"  # two layers of two parameters each


@pytest.mark.slow
def test_higher_order_finds_the_wave(run: Run) -> None:
    text = output_of(run("higher_order.py", "--steps", "300"))
    losses = numbers(r"loss (\S+)", text)
    assert losses[-1] < losses[0] / 1000
    assert numbers(r"largest error (\S+),", text)[0] < 1e-2


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "message"), [("eager", "that is too few"), ("higher_order", "that is too much")]
)
def test_a_full_run_is_judged(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], name: str, message: str
) -> None:
    script = load(name)
    assert script.main(["--steps", "1"]) == 0
    monkeypatch.setattr(script, "DEFAULT_STEPS", 1)
    assert script.main(["--steps", "1"]) == 1
    assert message in capsys.readouterr().out


# --- digits.py, the demo ------------------------------------------------------------------------


@pytest.fixture(scope="module")
def digits() -> ModuleType:
    return load("digits")


def assert_picture(path: Path) -> None:
    from matplotlib import image

    pixels = image.imread(path)
    assert min(pixels.shape[:2]) > 300
    assert pixels[..., :3].std() > 0.05


@pytest.mark.slow
def test_the_demo_trains_draws_and_explains(run: Run, tmp_path: Path) -> None:
    done = run("digits.py", "--epochs", "4", "--out", "pictures")
    text = output_of(done)
    assert "Training on 1438 digits, 359 are held out" in text
    assert numbers(r"([\d.]+)% of the held-out digits", text)[0] > 85
    for name in ("curve.png", "predictions.png"):
        assert f"pictures{os.sep}{name}" in text
        assert_picture(tmp_path / "pictures" / name)
    assert "docs/architecture.md" in text
    assert "At x = 3, the first derivative of x³ is 27, the second 18" in text
    slope, curvature = re.findall(r"has slope (\S+) and curvature ([^ ,]+)", text)[0]
    assert float(slope) > 0
    assert np.isfinite(float(curvature))

    assert "100%" in done.stderr
    shown = numbers(r"loss=([\d.]+)", done.stderr)
    assert shown[-1] < shown[0] / 2


def test_the_demo_shows_the_graph_before_and_after_backward(
    digits: ModuleType, capsys: pytest.CaptureFixture[str]
) -> None:
    digits.show_graph()
    before, after = capsys.readouterr().out.split("After y.backward")
    assert "relu_backward\n  next_functions       (accumulate_grad, output 0)\n" in before
    assert "accumulate_grad\n  next_functions       -\n  input_meta_data      -\n" in before
    assert before.count("x: leaf, requires_grad True, acc_grad None, current_grad None") == 2
    assert before.count("y: not leaf, requires_grad True, acc_grad None") == 1
    assert "saved_tensors        tensor([0., 2.])" in before
    assert "x.grad = tensor([0., 1.])" in after
    assert "x: leaf, requires_grad True, acc_grad tensor([0., 1.]), current_grad None" in after
    assert "saved_tensors        -\n  backward_fn          None" in after


@pytest.mark.slow
def test_only_a_default_run_is_judged(
    digits: ModuleType,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    few = digits.Digits(np.ones((3, 1, 28, 28), np.float32), np.array([1, 2, 3]))
    monkeypatch.setattr(digits, "load_scans", lambda seed: (few, few))
    monkeypatch.setattr(digits, "train", lambda *_: digits.History([2.3], [0.1]))
    out = ["--out", str(tmp_path)]
    assert digits.main(out) == 1
    assert "less than the 97% expected of the default settings" in capsys.readouterr().out
    assert digits.main([*out, "--lr", "0.1"]) == 0
    assert "less than" not in capsys.readouterr().out


def test_scans_are_split_by_the_seed(digits: ModuleType) -> None:
    train, held_out = digits.load_scans(seed=1)
    assert train.images.shape == (1438, 1, 28, 28)
    assert held_out.images.shape == (359, 1, 28, 28)
    assert train.images.dtype == np.float32
    assert (held_out.images.min(), held_out.images.max()) == (0, 1)
    assert not {image.tobytes() for image in train.images} & {
        image.tobytes() for image in held_out.images
    }
    np.testing.assert_array_equal(digits.load_scans(1)[1].images, held_out.images)
    assert (digits.load_scans(2)[1].labels != held_out.labels).any()


def test_a_random_shift_moves_the_digits_and_loses_no_ink(digits: ModuleType) -> None:
    flow.manual_seed(0)
    images = flow.from_numpy(digits.load_scans(0)[1].images[:8])
    shifted = [digits.random_shift(images).numpy() for _ in range(20)]
    assert all(np.isclose(s.sum(), images.numpy().sum()) for s in shifted)
    assert len({s.tobytes() for s in shifted}) > 5


@pytest.mark.slow
def test_the_demo_runs_on_cuda(
    digits: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """On a real device where there is one, else on the stand-in, which refuses hidden copies."""
    images, labels = digits.load_scans(0)[0]
    few = digits.Digits(images[:128], labels[:128])
    monkeypatch.setattr(digits, "load_scans", lambda seed: (few, few))
    used = []
    draw_curve = digits.draw_curve
    monkeypatch.setattr(digits, "draw_curve", lambda h, path: (used.append(h), draw_curve(h, path)))
    real = strict_cupy.real_device_present()
    arguments = ["--epochs", "5", "--lr", "0.1", "--batch-size", "16", "--out", str(tmp_path)]
    with contextlib.nullcontext() if real else strict_cupy.installed():
        assert digits.main([*arguments, "--device", "cuda"]) == 0
    assert len(used[0].losses) == 40
    assert np.mean(used[0].losses[-8:]) < 0.9 * np.mean(used[0].losses[:8])


def test_a_missing_device_is_reported(run: Run) -> None:
    if strict_cupy.real_device_present():
        pytest.skip("there is a CUDA device")
    done = run("digits.py", "--device", "cuda")
    assert done.returncode == 2
    assert "cupy" in done.stderr.lower()
    assert "Traceback" not in done.stderr


def test_an_unknown_device_is_reported(run: Run) -> None:
    done = run("digits.py", "--device", "abacus")
    assert done.returncode == 2
    assert "error: device(): " in done.stderr and "'abacus'" in done.stderr


# --- IDX files ----------------------------------------------------------------------------------


def idx(array: np.ndarray) -> bytes:
    header = bytes([0, 0, 8, array.ndim]) + struct.pack(f">{array.ndim}I", *array.shape)
    return header + array.astype(np.uint8).tobytes()


@pytest.fixture
def images() -> np.ndarray:
    return np.random.default_rng(0).integers(0, 256, (5, 28, 28), dtype=np.uint8)


LABELS = np.array([3, 1, 4, 1, 9])
IMAGES_NAME, LABELS_NAME = "train-images-idx3-ubyte", "train-labels-idx1-ubyte"


def write_mnist(directory: Path, images: np.ndarray, labels: np.ndarray) -> None:
    """Write the four files: the training part plain, the other one gzipped."""
    (directory / IMAGES_NAME).write_bytes(idx(images))
    (directory / LABELS_NAME).write_bytes(idx(labels))
    (directory / "t10k-images-idx3-ubyte.gz").write_bytes(gzip.compress(idx(images[::-1])))
    (directory / "t10k-labels-idx1-ubyte.gz").write_bytes(gzip.compress(idx(labels[::-1])))


def test_mnist_is_read_plain_and_gzipped(
    digits: ModuleType, tmp_path: Path, images: np.ndarray
) -> None:
    write_mnist(tmp_path, images, LABELS)
    train, held_out = digits.load_mnist(tmp_path)
    np.testing.assert_array_equal(train.images, images[:, None].astype(np.float32) / 255)
    np.testing.assert_array_equal(train.labels, LABELS)
    np.testing.assert_array_equal(held_out.images, train.images[::-1])
    np.testing.assert_array_equal(held_out.labels, LABELS[::-1])
    assert train.labels.dtype == np.int64


def test_mnist_is_found_under_its_other_spelling(digits: ModuleType, tmp_path: Path) -> None:
    path = tmp_path / "train-images.idx3-ubyte"
    path.touch()
    assert digits.find_idx(tmp_path, IMAGES_NAME) == path


def damaged(kind: str, good: bytes) -> bytes:
    return {
        "empty": b"",
        "other file": b"\x89PNG" + good[4:],
        "other type": b"\0\0\x0d" + good[3:],
        "other dimensions": good[:3] + b"\1" + good[4:],
        "short header": good[:10],
        "truncated": good[:-1],
        "too long": good + b"\0",
        "huge promise": good[:4] + b"\xff" * 12 + good[16:],
    }[kind]


MESSAGES = {
    "empty": "begins with nothing",
    "other file": "begins with 89 50 4e 47",
    "other type": "begins with 00 00 0d 03",
    "other dimensions": "begins with 00 00 08 01, an IDX file of bytes in 3 dimensions with 00 00",
    "short header": "ends within its header",
    "truncated": "promises 3920 values (5, 28, 28), got 3919",
    "too long": "promises 3920 values (5, 28, 28), got 3921",
    "huge promise": "got 3920",
}


@pytest.mark.parametrize("suffix", ["", ".gz"])
@pytest.mark.parametrize("kind", MESSAGES)
def test_a_damaged_idx_file_is_refused(
    digits: ModuleType, tmp_path: Path, images: np.ndarray, kind: str, suffix: str
) -> None:
    content = damaged(kind, idx(images))
    path = tmp_path / f"{IMAGES_NAME}{suffix}"
    path.write_bytes(gzip.compress(content) if suffix else content)
    with pytest.raises(digits.IdxError, match=re.escape(MESSAGES[kind])) as caught:
        digits.read_idx(path, 3)
    assert str(path) in str(caught.value)


@pytest.mark.parametrize("kind", ["no gzip", "cut", "flipped"])
def test_damaged_gzip_data_is_refused(
    digits: ModuleType, tmp_path: Path, images: np.ndarray, kind: str
) -> None:
    packed = bytearray(gzip.compress(idx(images)))
    packed[len(packed) // 2] ^= 0xFF
    content = {"no gzip": idx(images), "cut": bytes(packed[:40]), "flipped": bytes(packed)}[kind]
    path = tmp_path / f"{IMAGES_NAME}.gz"
    path.write_bytes(content)
    with pytest.raises(digits.IdxError, match="damaged gzip data"):
        digits.read_idx(path, 3)


@pytest.mark.parametrize(
    ("bad_images", "bad_labels", "message"),
    [
        (np.zeros((5, 28, 27)), LABELS, "expected 28 by 28 pixels, got (28, 27)"),
        (np.zeros((4, 28, 28)), LABELS, "5 labels for the 4 images"),
        (np.zeros((5, 28, 28)), np.array([0, 1, 2, 3, 10]), "a label is 10, expected 0 to 9"),
        (np.zeros((0, 28, 28)), np.zeros(0), "holds no images"),
    ],
)
def test_mnist_files_that_do_not_fit_are_refused(
    digits: ModuleType,
    tmp_path: Path,
    bad_images: np.ndarray,
    bad_labels: np.ndarray,
    message: str,
) -> None:
    write_mnist(tmp_path, bad_images, bad_labels)
    with pytest.raises(digits.IdxError, match=re.escape(message)):
        digits.load_mnist(tmp_path)


def test_a_missing_file_and_a_missing_directory_are_named(
    digits: ModuleType, tmp_path: Path, images: np.ndarray
) -> None:
    write_mnist(tmp_path, images, LABELS)
    (tmp_path / LABELS_NAME).unlink()
    with pytest.raises(FileNotFoundError, match=f"there is no {LABELS_NAME}, nor"):
        digits.load_mnist(tmp_path)
    with pytest.raises(FileNotFoundError, match="nowhere: no such directory"):
        digits.load_mnist(tmp_path / "nowhere")


@pytest.mark.slow
def test_the_demo_trains_on_mnist_files(run: Run, digits: ModuleType, tmp_path: Path) -> None:
    part = digits.load_scans(0)[1]
    write_mnist(tmp_path, np.round(255 * part.images[:, 0]), part.labels)
    text = output_of(run("digits.py", "--mnist", tmp_path, "--batch-size", "16", "--epochs", "4"))
    assert "Training on 359 digits, 359 are held out" in text
    assert numbers(r"([\d.]+)% of the held-out digits", text)[0] > 60
    assert_picture(tmp_path / "build" / "demo" / "predictions.png")


@pytest.mark.slow
def test_the_demo_reports_damaged_mnist_files_without_a_traceback(
    run: Run, tmp_path: Path, images: np.ndarray
) -> None:
    write_mnist(tmp_path, images, LABELS)
    (tmp_path / IMAGES_NAME).write_bytes(b"not an IDX file")
    done = run("digits.py", "--mnist", tmp_path)
    assert done.returncode == 2
    assert f"{IMAGES_NAME}: begins with 6e 6f 74 20" in done.stderr
    assert "Traceback" not in done.stderr


# --- The longer examples: a few steps here; what a whole run gives stands in each docstring -------

LONGER = {  # what each prints, and whether it draws
    "char_transformer": ("nats for each held-out character", False),
    "gaussian_process": ("the band holds", True),
    "lstm_forecaster": ("naive   error", True),
    "maml": ("joint training", True),
    "neural_ode": ("direct and adjoint gradient differ by", True),
    "pinn": ("relative error", True),
    "private_gradients": ("noise of deviation 2.0", True),
    "wgan_gp": ("look like 9", True),
}


@pytest.fixture
def load_longer(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], ModuleType]:
    """Load a script as Python does that runs it: the scripts import their neighbour, `showing`."""
    monkeypatch.syspath_prepend(EXAMPLES)
    return load


@pytest.mark.slow
@pytest.mark.parametrize("name", LONGER)
def test_a_longer_example_runs_shows_draws_and_is_judged(
    load_longer: Callable[[str], ModuleType],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    name: str,
) -> None:
    script = load_longer(name)
    arguments = ["--steps", "2", "--out", str(tmp_path / "pictures")]
    assert script.main(arguments) == 0
    shown = capsys.readouterr()
    said, draws = LONGER[name]
    assert said in shown.out
    assert "2/2" in shown.err
    if draws:
        assert_picture(tmp_path / "pictures" / f"{name}.png")

    monkeypatch.setattr(script, "DEFAULT_STEPS", 2)
    assert script.main(arguments) == 1
    again = capsys.readouterr().out
    assert again.startswith(shown.out.rstrip())  # the seed is fixed
    assert "that is not good enough: expected" in again
    with pytest.raises(SystemExit) as caught:
        script.main(["--steps", "0"])
    assert caught.value.code == 2
    assert "--steps: expected at least 1, got 0" in capsys.readouterr().err


@pytest.mark.slow
def test_a_longer_example_needs_neither_tqdm_nor_matplotlib(run: Run, tmp_path: Path) -> None:
    """Modules that cannot be imported stand before the real ones on the path."""
    for name in ("tqdm", "matplotlib"):
        (tmp_path / f"{name}.py").write_text("raise ImportError")
    code = (
        f"import runpy, sys; sys.path[:0] = [{str(tmp_path)!r}, {str(EXAMPLES)!r}]\n"
        "sys.argv = ['gaussian_process.py', '--steps', '20']\n"
        f"runpy.run_path({str(EXAMPLES / 'gaussian_process.py')!r}, run_name='__main__')"
    )
    (tmp_path / "start.py").write_text(code)
    text = output_of(run(str(tmp_path / "start.py")))
    assert len(re.findall(r"^step +\d+ log-likelihood -\d", text, re.MULTILINE)) == 10
    assert "no gaussian_process.png: matplotlib is not installed" in text


def test_the_process_is_the_one_of_scikit_learn(
    load_longer: Callable[[str], ModuleType],
) -> None:
    """The likelihood, its gradient, and the prediction, at hyperparameters of every size."""
    from sklearn.gaussian_process import GaussianProcessRegressor, kernels

    script = load_longer("gaussian_process")
    flow.manual_seed(1)
    x, y = script.measure(20)
    process = script.GaussianProcess()
    with flow.no_grad():
        process.log_scales.copy_(flow.tensor([0.3, -0.2, -1.1]))
    a, length, s = process.log_scales.detach().exp().tolist()
    covariance = kernels.ConstantKernel(a**2) * kernels.RBF(length) + kernels.WhiteKernel(s**2)
    theirs = GaussianProcessRegressor(covariance, alpha=0, optimizer=None)
    theirs.fit(x.numpy()[:, None], y.numpy())
    found = process.log_likelihood(x, y)
    found.backward()
    value, gradient = theirs.log_marginal_likelihood(theirs.kernel_.theta, eval_gradient=True)
    np.testing.assert_allclose(found.item(), value)
    # They take the gradient by log a² and log s².
    np.testing.assert_allclose(process.log_scales.grad.numpy(), gradient * [2, 1, 2], rtol=1e-8)

    at = flow.linspace(-1, 9, 7, dtype=flow.float64)
    band = process.predict(x, y, at)
    mean, deviation = theirs.predict(at.numpy()[:, None], return_std=True)
    np.testing.assert_allclose(band.mean.numpy(), mean, rtol=1e-7)
    np.testing.assert_allclose(band.deviation.numpy() ** 2 + s**2, deviation**2, rtol=1e-7)


def test_the_adjoint_is_of_fourth_order(
    load_longer: Callable[[str], ModuleType], monkeypatch: pytest.MonkeyPatch
) -> None:
    script = load_longer("neural_ode")
    flow.manual_seed(0)
    start = flow.tensor([2.0, 0.0], dtype=flow.float64)
    truth = script.integrate(script.spiral, start, 30, 0.15, 4)
    net = flow.nn.Sequential(flow.nn.Linear(2, 8), flow.nn.Tanh(), flow.nn.Linear(8, 2)).double()
    apart = script.compare(net, truth)
    assert apart[2] < 1e-8
    assert 12 < apart[0] / apart[1] < 24
    assert 12 < apart[1] / apart[2] < 24

    # The gradient by the start, which no training asks for.
    starts = [start.clone().requires_grad_() for _ in range(2)]
    for solve, own in zip((script.integrate, script.by_adjoint), starts, strict=True):
        solve(net, own, 5, 0.1, 4).square().sum().backward()
    np.testing.assert_allclose(starts[0].grad.numpy(), starts[1].grad.numpy(), rtol=1e-6)


def test_the_outer_gradient_runs_through_the_inner_steps(
    load_longer: Callable[[str], ModuleType],
) -> None:
    script = load_longer("maml")
    flow.manual_seed(0)
    tasks = script.draw_tasks(3)
    points = [values.double() for values in (*tasks.points(6), *tasks.points(6))]
    weights = [flow.randn(*s, dtype=flow.float64) / 4 for s in script.SHAPES]

    def error_after(w1: flow.Tensor) -> flow.Tensor:
        own = [w1, *(w.requires_grad_() for w in weights[1:])]
        return script.errors(script.adapt(own, *points[:2], steps=2), *points[2:]).mean()

    w1 = weights[0].clone().requires_grad_()
    error_after(w1).backward()
    way = flow.randn(*w1.shape, dtype=flow.float64)
    # A step so small that it crosses no kink, where the gradient of the inner step would jump.
    ahead, back = (error_after((w1 + h * way).detach().requires_grad_()) for h in (1e-7, -1e-7))
    slope = (ahead - back).item() / 2e-7
    np.testing.assert_allclose((w1.grad * way).sum().item(), slope, rtol=1e-5)


def test_the_penalty_is_the_square_of_the_slope_less_one(
    load_longer: Callable[[str], ModuleType],
) -> None:
    script = load_longer("wgan_gp")
    critic = flow.nn.Linear(64, 1)
    penalty = script.penalty_of(critic, flow.rand(5, 64), flow.rand(5, 64))
    (gradient,) = flow.autograd.grad(penalty, critic.weight)
    weight = critic.weight.detach()
    norm = weight.norm()
    np.testing.assert_allclose(penalty.item(), (norm - 1).item() ** 2, rtol=1e-4)
    np.testing.assert_allclose(
        gradient.numpy(), (2 * (norm - 1) * weight / norm).numpy(), rtol=1e-3, atol=1e-6
    )


def test_burgers_exact_solution_solves_the_equation(
    load_longer: Callable[[str], ModuleType],
) -> None:
    script = load_longer("pinn")
    x, t, h = np.linspace(-0.9, 0.9, 19), 0.4, 1e-3
    u, ahead, back = (script.exact(x + d, t) for d in (0, h, -h))
    u_t = (script.exact(x, t + h) - script.exact(x, t - h)) / (2 * h)
    u_xx = (ahead - 2 * u + back) / h**2
    left = u_t + u * (ahead - back) / (2 * h) - script.VISCOSITY * u_xx
    assert np.abs(left).max() < 1e-3 < np.abs(u_t).max()
    np.testing.assert_allclose(script.exact(x, 1e-9), -np.sin(np.pi * x), atol=1e-6)
    np.testing.assert_allclose(script.exact(np.array([-1.0, 1.0]), t), 0, atol=1e-12)


def test_the_residual_is_that_of_differences(load_longer: Callable[[str], ModuleType]) -> None:
    script = load_longer("pinn")
    flow.manual_seed(0)
    net = script.Solution().double()
    (x, t), edge = script.choose_points()
    x, t, h = x[:9], t[:9], 1e-4
    with flow.no_grad():
        u, ahead, back = (net(x + d, t) for d in (0, h, -h))
        u_t = (net(x, t + h) - net(x, t - h)) / (2 * h)
        u_xx = (ahead - 2 * u + back) / h**2
        left = u_t + u * (ahead - back) / (2 * h) - script.VISCOSITY * u_xx
        missed = net(*edge[:2]) - edge[2]
    wanted = left.square().mean() + script.EDGE_WEIGHT * missed.square().mean()
    found = script.loss_of(net, [x, t], edge)
    np.testing.assert_allclose(found.item(), wanted.item(), rtol=1e-5)


def test_no_sample_moves_the_clipped_sum_by_more_than_the_bound(
    load_longer: Callable[[str], ModuleType],
) -> None:
    script = load_longer("private_gradients")
    train_on, _ = script.load(0)
    weights = {name: w.detach() for name, w in script.net.named_parameters()}
    images, labels = 5 * train_on.images[:6], train_on.labels[:6]
    found = script.gradients_of(weights, images, labels)
    for i in range(6):
        one = {name: w.clone().requires_grad_() for name, w in weights.items()}
        script.loss_of(one, images[i], labels[i]).backward()
        for name, w in one.items():
            np.testing.assert_allclose(found[name][i].numpy(), w.grad.numpy(), atol=1e-5)

    def norm(gradients: dict[str, flow.Tensor]) -> float:
        return float(sum(g.square().sum().item() for g in gradients.values()) ** 0.5)

    alone = [{name: g[i : i + 1] for name, g in found.items()} for i in range(6)]
    sums = [script.clipped_sum(gradients, 1.0) for gradients in alone]
    own = [norm({name: g[0] for name, g in gradients.items()}) for gradients in alone]
    assert max(own) > 1
    np.testing.assert_allclose([norm(s) for s in sums], np.minimum(own, 1), rtol=1e-5)
    whole = script.clipped_sum(found, 1.0)
    for name, total in whole.items():
        np.testing.assert_allclose(total.numpy(), sum(s[name].numpy() for s in sums), atol=1e-5)


def test_the_bound_on_privacy_is_the_known_one(load_longer: Callable[[str], ModuleType]) -> None:
    script = load_longer("private_gradients")
    # Where every step takes all samples, order a has the divergence a / (2 σ²) for each step.
    steps, noise = 10, 4.0
    known = min(
        steps * a / (2 * noise**2) + np.log(1 / script.DELTA) / (a - 1) for a in range(2, 129)
    )
    assert script.epsilon(steps, 1 - 1e-12, noise) == pytest.approx(known, rel=1e-6)
    assert script.epsilon(steps, 0.1, noise) < 0.2 * known
    assert script.epsilon(steps, 0.1, noise) < script.epsilon(2 * steps, 0.1, noise)


def test_the_transformer_does_not_look_ahead(load_longer: Callable[[str], ModuleType]) -> None:
    script = load_longer("char_transformer")
    net = script.Transformer(20).eval()
    text = flow.randint(20, (2, script.CONTEXT))
    other = flow.cat([text[:, :40], (text[:, 40:] + 1) % 20], dim=1)
    with flow.no_grad():
        scores, changed = net(text).numpy(), net(other).numpy()
    np.testing.assert_allclose(scores[:, :40], changed[:, :40], atol=1e-5)
    assert (np.abs(scores - changed)[:, 40:].max(axis=2) > 1e-3).all()


def test_the_sonnets_are_small_and_whole() -> None:
    path = EXAMPLES / "data" / "sonnets.txt"
    assert path.stat().st_size < 60_000
    sonnets = path.read_text(encoding="ascii").strip().split("\n\n")
    assert [len(sonnet.splitlines()) for sonnet in sonnets] == [14] * 35


def test_the_linear_forecast_answers_the_right_times(
    load_longer: Callable[[str], ModuleType],
) -> None:
    """A sine wave obeys a linear recurrence, so its forecast is exact."""
    script = load_longer("lstm_forecaster")
    wave = np.sin(0.37 * np.arange(300))
    found = script.linear_forecasts(wave[:200], wave[200:])
    np.testing.assert_allclose(found, wave[200:][script.PAST - 1 + script.AHEAD :], atol=1e-9)


def test_the_series_obeys_its_equation(load_longer: Callable[[str], ModuleType]) -> None:
    """Finer steps give the same series, to the accuracy of Heun's method."""
    script = load_longer("lstm_forecaster")
    coarse, fine = (script.mackey_glass(20, 0, fine=n) for n in (20, 40))
    assert np.abs(coarse - fine).max() < 0.05
    assert abs(coarse.mean()) < 1e-12 and abs(coarse.std() - 1) < 1e-12
