"""Train a small convolutional network on real handwritten digits, and look into the engine.

    make demo                                    # or: python docs/examples/digits.py
    make demo ARGS="--device cuda"
    make demo ARGS="--mnist path/to/the/four/idx/files"

The digits are the 1797 scans that come with scikit-learn, enlarged from 8 by 8 pixels to 28 by 28.
One in five is held out. A run with the default settings ends with an error when fewer than 97 % of
those are read correctly.

The file reads from top to bottom: the data, the network, the training, the pictures, a look at the
graph, and `main`, which calls them in this order.
"""

import argparse
import gzip
import math
import os
import struct
import sys
import zlib
from pathlib import Path
from typing import Any, NamedTuple

# Matrices as small as this network's gain little from more threads, and threads that wait for each
# other on a busy machine lose much. It has to be said before NumPy is imported.
os.environ.setdefault("OMP_NUM_THREADS", "1")

import matplotlib
import numpy as np
from tqdm import tqdm

import oneflow_lite as flow
from oneflow_lite import nn
from oneflow_lite.nn import functional as F
from oneflow_lite.utils.data import DataLoader, TensorDataset

matplotlib.use("Agg")  # draws into files; no window is needed
from matplotlib import pyplot as plt

SIDE = 28  # pixels
EXPECTED_ACCURACY = 0.97
HELD_OUT = 0.2  # share of the digits
LARGEST_SHIFT = 2  # pixels


# --- The data ----------------------------------------------------------------------------------


class Digits(NamedTuple):
    """Images, (n, 1, 28, 28), float32 from 0 (paper) to 1 (ink), and labels, (n,), from 0 to 9."""

    images: np.ndarray
    labels: np.ndarray


def load_scans(seed: int) -> tuple[Digits, Digits]:
    """Return scikit-learn's digits as a training and a held-out part."""
    from scipy import ndimage
    from sklearn.datasets import load_digits

    scans = load_digits()
    # Three times 8 pixels, and a margin of 2 that lets a digit move without losing ink.
    margin = (SIDE - 3 * 8) // 2
    enlarged = [
        np.pad(ndimage.zoom(scan / 16, 3, grid_mode=True, mode="grid-constant"), margin)
        for scan in scans.images
    ]
    images = np.stack(enlarged)[:, None].clip(0, 1).astype(np.float32)
    labels = scans.target.astype(np.int64)

    order = np.random.default_rng(seed).permutation(len(labels))
    count = round(HELD_OUT * len(order))
    held_out, train = order[:count], order[count:]
    return Digits(images[train], labels[train]), Digits(images[held_out], labels[held_out])


class IdxError(ValueError):
    """An IDX file is damaged, or is not what its name says."""


def read_idx(path: Path, dimensions: int) -> np.ndarray:
    """Read one IDX file of unsigned bytes, plain or gzipped.

    The format: two zero bytes, a byte for the type (8: unsigned byte), a byte for the number of
    dimensions, the sizes as big-endian 32-bit integers, then the values, the last index fastest.
    """
    try:
        with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as file:
            content = file.read()
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise IdxError(f"{path}: damaged gzip data ({error})") from error
    magic, start = bytes([0, 0, 8, dimensions]), 4 + 4 * dimensions
    if content[:4] != magic:
        raise IdxError(
            f"{path}: begins with {content[:4].hex(' ') or 'nothing'}, "
            f"an IDX file of bytes in {dimensions} dimensions with {magic.hex(' ')}"
        )
    if len(content) < start:
        raise IdxError(f"{path}: ends within its header")
    shape = struct.unpack(f">{dimensions}I", content[4:start])
    values = np.frombuffer(content, np.uint8, offset=start)
    if values.size != math.prod(shape):
        raise IdxError(
            f"{path}: the header promises {math.prod(shape)} values {shape}, got {values.size}"
        )
    return values.reshape(shape)


def find_idx(directory: Path, name: str) -> Path:
    """Return the path of an MNIST file under one of the names it is distributed with."""
    if not directory.is_dir():
        raise FileNotFoundError(f"{directory}: no such directory")
    for candidate in (name, name.replace("-idx", ".idx")):
        for path in (directory / candidate, directory / f"{candidate}.gz"):
            if path.is_file():
                return path
    raise FileNotFoundError(f"{directory}: there is no {name}, nor {name}.gz")


def load_mnist(directory: Path) -> tuple[Digits, Digits]:
    """Read the four files of the original MNIST as a training and a held-out part."""
    return _read_mnist_part(directory, "train"), _read_mnist_part(directory, "t10k")


def _read_mnist_part(directory: Path, part: str) -> Digits:
    images_path = find_idx(directory, f"{part}-images-idx3-ubyte")
    labels_path = find_idx(directory, f"{part}-labels-idx1-ubyte")
    images, labels = read_idx(images_path, 3), read_idx(labels_path, 1)
    if images.shape[1:] != (SIDE, SIDE):
        raise IdxError(f"{images_path}: expected {SIDE} by {SIDE} pixels, got {images.shape[1:]}")
    if len(images) != len(labels):
        raise IdxError(
            f"{labels_path}: {len(labels)} labels for the {len(images)} images of {images_path}"
        )
    if len(labels) == 0:
        raise IdxError(f"{images_path}: holds no images")
    if labels.max() > 9:
        raise IdxError(f"{labels_path}: a label is {labels.max()}, expected 0 to 9")
    return Digits(images[:, None].astype(np.float32) / 255, labels.astype(np.int64))


# --- The network -------------------------------------------------------------------------------


class Network(nn.Module):
    """Two convolutions and two linear layers; gives the log-probabilities of the ten digits."""

    def __init__(self) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(1, 20, 5)
        self.conv2 = nn.Conv2d(20, 50, 5)
        self.fc1 = nn.Linear(800, 500)
        self.fc2 = nn.Linear(500, 10)

    def forward(self, images: flow.Tensor) -> flow.Tensor:
        x = F.relu(F.max_pool2d(self.conv1(images), 2))  # (n, 20, 12, 12)
        x = F.relu(F.max_pool2d(self.conv2(x), 2))  # (n, 50, 4, 4)
        x = F.relu(self.fc1(x.flatten(1)))
        return F.log_softmax(self.fc2(x), dim=1)


# --- The training ------------------------------------------------------------------------------


class History(NamedTuple):
    """The loss of every step, and the accuracy on the held-out digits after every epoch."""

    losses: list[float]
    accuracies: list[float]


def random_shift(images: flow.Tensor) -> flow.Tensor:
    """Move a batch by up to two pixels each way, so that the network learns shapes, not places."""
    shifts = flow.randint(-LARGEST_SHIFT, LARGEST_SHIFT + 1, (2,)).tolist()
    return flow.roll(images, tuple(shifts), dims=(2, 3))


def train_step(
    net: Network, optimizer: flow.optim.Optimizer, images: flow.Tensor, labels: flow.Tensor
) -> flow.Tensor:
    """Improve the network once; return the loss that it had."""
    optimizer.zero_grad()
    loss = F.nll_loss(net(images), labels)
    loss.backward()
    optimizer.step()
    return loss


def train(net: Network, train_set: Digits, held_out: Digits, args: argparse.Namespace) -> History:
    """Fit by stochastic gradient descent, the learning rate falling linearly to zero."""
    dataset = TensorDataset(*map(flow.from_numpy, train_set))
    shuffle = flow.Generator().manual_seed(args.seed)
    loader = DataLoader(dataset, batch_size=args.batch_size, shuffle=True, generator=shuffle)
    optimizer = flow.optim.SGD(net.parameters(), lr=args.lr, momentum=0.5)
    history = History([], [])
    steps = args.epochs * len(loader)
    shown: dict[str, str] = {}  # beside the progress bar

    with tqdm(total=steps, unit="step", dynamic_ncols=True) as bar:
        for epoch in range(1, args.epochs + 1):
            bar.set_description(f"epoch {epoch}/{args.epochs}")
            for images, labels in loader:
                for group in optimizer.param_groups:
                    group["lr"] = args.lr * (1 - len(history.losses) / steps)
                shifted = random_shift(images.to(args.device))
                loss = train_step(net, optimizer, shifted, labels.to(args.device))

                history.losses.append(loss.item())
                shown["loss"] = f"{history.losses[-1]:.4f}"
                bar.set_postfix(shown, refresh=False)
                bar.update()
            history.accuracies.append(accuracy_of(predict(net, held_out, args), held_out))
            shown["held-out accuracy"] = f"{history.accuracies[-1]:.1%}"
            bar.set_postfix(shown)
    return history


def probabilities_of(net: Network, images: flow.Tensor) -> flow.Tensor:
    """Return the probabilities of the ten digits for a batch of images, shape (n, 10)."""
    return net(images).exp()


def predict(net: Network, digits: Digits, args: argparse.Namespace) -> np.ndarray:
    """Return the probabilities of the ten digits for every image, shape (n, 10)."""
    net.eval()
    probabilities = []
    with flow.no_grad():
        for start in range(0, len(digits.labels), 256):
            images = flow.from_numpy(digits.images[start : start + 256]).to(args.device)
            probabilities.append(probabilities_of(net, images).cpu().numpy())
    net.train()
    return np.concatenate(probabilities)


def accuracy_of(probabilities: np.ndarray, digits: Digits) -> float:
    """Return the share of images whose most probable digit is the right one."""
    return float((probabilities.argmax(axis=1) == digits.labels).mean())


# --- The pictures ------------------------------------------------------------------------------

BLUE, RED, GREY = "#1f5fa8", "#c0392b", "#6b7280"


def draw_curve(history: History, path: Path) -> None:
    """Draw the loss over the steps, and the held-out accuracy over the epochs."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4), layout="constrained")
    steps = np.arange(1, len(history.losses) + 1)
    means = np.reshape(history.losses, (len(history.accuracies), -1)).mean(axis=1)
    middles = (np.arange(len(means)) + 0.5) * len(steps) / len(means)
    left.plot(steps, history.losses, color=BLUE, alpha=0.3, linewidth=1, label="each step")
    left.plot(middles, means, color=BLUE, linewidth=2, marker="o", markersize=4, label="epoch mean")
    left.set(title="Loss on the training digits", xlabel="step", ylabel="negative log-likelihood")
    left.set_yscale("log")
    left.legend(frameon=False)

    epochs = np.arange(1, len(history.accuracies) + 1)
    percent = 100 * np.array(history.accuracies)
    right.plot(epochs, percent, color=BLUE, linewidth=2, marker="o", markersize=4)
    right.axhline(100 * EXPECTED_ACCURACY, color=RED, linestyle="--", linewidth=1)
    right.text(epochs[-1], 100 * EXPECTED_ACCURACY, "expected", color=RED, ha="right", va="top")
    right.set(
        title=f"Accuracy on held-out digits: {history.accuracies[-1]:.1%} in the end",
        xlabel="epoch",
        ylabel="read correctly (%)",
        ylim=(min(90, percent.min() - 3), 100.5),
    )
    right.xaxis.get_major_locator().set_params(integer=True)
    for axes in (left, right):
        axes.grid(color="#e5e7eb")
        axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, dpi=120)
    plt.close(figure)


def draw_predictions(probabilities: np.ndarray, digits: Digits, path: Path) -> None:
    """Draw 40 held-out digits with what the network read and how sure it was, mistakes first."""
    rows, columns = 4, 10
    read = probabilities.argmax(axis=1)
    order = np.argsort(read == digits.labels, kind="stable")[: rows * columns]
    figure, grid = plt.subplots(rows, columns, figsize=(11, 5.6), layout="constrained")
    for axes in grid.flat:
        axes.set(xticks=[], yticks=[])
        axes.spines[:].set_visible(False)
    for axes, i in zip(grid.flat, order, strict=False):
        right = read[i] == digits.labels[i]
        colour = GREY if right else RED
        axes.imshow(digits.images[i, 0], cmap="gray_r", vmin=0, vmax=1)
        axes.set_title(f"{read[i]}  ({probabilities[i, read[i]]:.0%})", color=colour, fontsize=11)
        axes.spines[:].set(visible=True, color=colour, linewidth=0.5 if right else 2.5)
        if not right:
            axes.set_xlabel(f"is a {digits.labels[i]}", color=RED, fontsize=10)
    wrong = int((read != digits.labels).sum())
    figure.suptitle(
        f"Held-out digits as the network reads them: {wrong} of {len(read)} wrong, framed in red"
    )
    figure.savefig(path, dpi=120)
    plt.close(figure)


# --- A look at the graph -----------------------------------------------------------------------


def show_graph() -> None:
    """Print the nodes behind y = relu(x), before and after the backward pass."""
    x = flow.tensor([-1.0, 2.0], requires_grad=True)
    y = flow.relu(x)
    names = {id(x.autograd_meta): "x", id(y.autograd_meta): "y"}
    print(f"\nThe graph of y = relu(x), where x = {x}")
    for node in (y.grad_fn, x.grad_fn_node):
        print(describe(node, names))

    y.backward(flow.Tensor([1, 1]))
    print(f"\nAfter y.backward({flow.Tensor([1, 1])}), x.grad = {x.grad}")
    print(describe(y.grad_fn, names))


def describe(node: Any, names: dict[int, str]) -> str:
    """Return what a node knows, one line a property."""

    def meta_text(meta: Any) -> str:
        kind = "leaf" if meta.is_leaf else "not leaf"
        return f"{names[id(meta)]}: {kind}, requires_grad {meta.requires_grad}, " + (
            f"acc_grad {meta.acc_grad}, current_grad {meta.current_grad}"
        )

    properties = {
        "next_functions": [f"({n.name()}, output {nr})" for n, nr in node.next_functions],
        "input_meta_data": map(meta_text, node.input_meta_data),
        "output_meta_data": map(meta_text, node.output_meta_data),
        "output_tensor_infos": map(str, node.output_tensor_infos),
        "saved_tensors": map(str, node.saved_tensors),
        "backward_fn": [getattr(node.backward_fn, "__name__", str(node.backward_fn))],
    }
    lines = [f"  {key:<20} {', '.join(values) or '-'}" for key, values in properties.items()]
    return "\n".join([node.name(), *lines])


def bend(net: Network, images: flow.Tensor, labels: flow.Tensor) -> tuple[flow.Tensor, flow.Tensor]:
    """Return the squared slope of the loss along its gradient, and the curvature there.

    With g the gradient of the loss and H its second derivatives, H g is the gradient of g·g / 2.
    """
    loss = F.nll_loss(net(images), labels)
    parameters = list(net.parameters())
    gradient = flow.autograd.grad(loss, parameters, create_graph=True)
    squared = sum(g.square().sum() for g in gradient)
    along = flow.autograd.grad(squared / 2, parameters)
    curvature = sum((g * h).sum() for g, h in zip(gradient, along, strict=True)) / squared
    return squared.detach(), curvature.detach()


def show_second_order(net: Network, digits: Digits, args: argparse.Namespace) -> None:
    """Print a second derivative that can be checked by hand, and one of the trained network."""
    x = flow.tensor(3.0, requires_grad=True)
    (first,) = flow.autograd.grad(x**3, x, create_graph=True)
    (second,) = flow.autograd.grad(first, x)
    print(
        f"\nAt x = 3, the first derivative of x³ is {first.item():g}, the second {second.item():g}"
    )

    images = flow.from_numpy(digits.images[:64]).to(args.device)
    labels = flow.from_numpy(digits.labels[:64]).to(args.device)
    squared, curvature = bend(net, images, labels)
    print(
        f"Along its gradient the network's loss has slope {squared.item() ** 0.5:.4f} "
        f"and curvature {curvature.item():.4f}, on {len(labels)} held-out digits"
    )


# --- All of it ---------------------------------------------------------------------------------


def main(argv: list[str] | None = None) -> int:
    """Train, draw, look around; return 1 when a default run stays under 97 %."""
    parser = make_parser()
    args = parser.parse_args(argv)
    untouched = args.mnist is None and all(
        getattr(args, name) == parser.get_default(name) for name in ("epochs", "batch_size", "lr")
    )
    args.epochs = args.epochs or (20 if args.mnist is None else 2)
    try:
        flow.zeros(1, device=args.device)
        train_set, held_out = load_mnist(args.mnist) if args.mnist else load_scans(args.seed)
        args.out.mkdir(parents=True, exist_ok=True)
    except (flow.errors.FlowError, IdxError, OSError) as error:
        parser.error(str(error))

    print(f"Training on {len(train_set.labels)} digits, {len(held_out.labels)} are held out")
    flow.manual_seed(args.seed)
    net = Network().to(args.device)
    history = train(net, train_set, held_out, args)
    show_graph()
    show_second_order(net, held_out, args)

    probabilities = predict(net, held_out, args)
    curve, predictions = args.out / "curve.png", args.out / "predictions.png"
    draw_curve(history, curve)
    draw_predictions(probabilities, held_out, predictions)

    accuracy = accuracy_of(probabilities, held_out)
    print(f"\n{accuracy:.2%} of the held-out digits are read correctly.")
    print(f"Pictures:  {curve}  {predictions}")
    print("Read next: docs/architecture.md (one call on its way through the library),")
    print("           docs/add_an_op.md (an op of your own), docs/examples/ (shorter scripts)")
    if untouched and accuracy < EXPECTED_ACCURACY:
        print(f"That is less than the {EXPECTED_ACCURACY:.0%} expected of the default settings.")
        return 1
    return 0


def make_parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    parser = argparse.ArgumentParser(
        description="Train a small convolutional network on handwritten digits.",
        epilog="With the default settings the exit status is 1 if fewer than 97 % of the held-out "
        "digits are read correctly; other settings are not judged.",
    )
    parser.add_argument(
        "--mnist", type=Path, metavar="DIR", help="read the original MNIST files from here instead"
    )
    parser.add_argument("--device", default="cpu", help="cpu (the default), cuda or cuda:1")
    parser.add_argument("--epochs", type=positive_int, help="20 by default, 2 with --mnist")
    parser.add_argument("--batch-size", type=positive_int, default=64, help="default %(default)s")
    parser.add_argument("--lr", type=float, default=0.2, help="learning rate, default %(default)s")
    parser.add_argument("--seed", type=int, default=0, help="default %(default)s")
    parser.add_argument(
        "--out", type=Path, default=Path("build/demo"), help="for pictures, default %(default)s"
    )
    return parser


def positive_int(text: str) -> int:
    """Read a whole number of at least 1."""
    value = int(text)
    if value < 1:
        raise ValueError(text)
    return value


if __name__ == "__main__":
    sys.exit(main())
