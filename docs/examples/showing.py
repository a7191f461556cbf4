"""Tools of the examples beside this file: options, a bar while they work, a place for pictures.

tqdm and matplotlib come with `pip install '.[demo]'`. Without them an example prints lines instead
of the bar, and draws nothing.
"""

import argparse
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

# Networks as small as these lose more by waiting for threads than they gain. To be said before
# NumPy is imported, so the examples import this file first.
os.environ.setdefault("OMP_NUM_THREADS", "1")

try:
    import matplotlib
except ImportError:
    matplotlib = None

try:
    from tqdm import tqdm
except ImportError:
    tqdm = None


def read_options(
    argv: list[str] | None, description: str, steps: int, seed: int = 0
) -> argparse.Namespace:
    """Read `--steps`, `--seed` and `--out`; `full` says whether as many steps as by default."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--steps", type=int, default=steps, help="default %(default)s")
    parser.add_argument("--seed", type=int, default=seed, help="default %(default)s")
    parser.add_argument(
        "--out", type=Path, default=Path("build/examples"), help="for pictures, default %(default)s"
    )
    args = parser.parse_args(argv)
    if args.steps < 1:
        parser.error(f"--steps: expected at least 1, got {args.steps}")
    args.full = args.steps >= steps
    return args


class Lines:
    """As much of tqdm as the examples use; prints about ten lines."""

    def __init__(self, steps: int) -> None:
        self.steps, self.step = steps, 0

    def __iter__(self) -> Iterator[int]:
        for step in range(self.steps):
            self.step = step
            yield step

    def set_postfix(self, shown: dict[str, Any], refresh: bool = True) -> None:
        if (self.step + 1) % max(1, self.steps // 10) == 0:
            print(f"step {self.step + 1:5d}", *(f"{name} {value}" for name, value in shown.items()))


def progress(steps: int) -> Any:
    """Count 0, 1, … steps - 1 under a bar, beside which `set_postfix` shows values."""
    return Lines(steps) if tqdm is None else tqdm(range(steps), unit="step", dynamic_ncols=True)


def save_picture(path: Path, draw: Callable[..., None], *data: Any) -> None:
    """Save what `draw(axes, *data)` draws."""
    if matplotlib is None:
        print(f"no {path.name}: matplotlib is not installed")
        return
    matplotlib.use("Agg")  # draws into files; no window is needed
    from matplotlib import pyplot as plt

    path.parent.mkdir(parents=True, exist_ok=True)
    figure, axes = plt.subplots(figsize=(7, 4), layout="constrained")
    draw(axes, *data)
    axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, dpi=90)
    plt.close(figure)
    print(f"drawn: {path}")


def judge(args: argparse.Namespace, good: bool, expected: str) -> int:
    """Return the exit status: 1 when a run of full length does not do what is expected of it."""
    if args.full and not good:
        print(f"that is not good enough: expected {expected}")
        return 1
    return 0
