"""Run one quick-start on one library, and write what it printed, and when, as JSON.

    python -m tests.packages.side torch|ours SCRIPT LOG [--double]

Each number that the quick-start prints is a value to compare. A line that does not begin with a
word ends a step; a line that does tells a result.
"""

from __future__ import annotations

import argparse
import ast
import gc
import importlib.metadata
import json
import os
import runpy
import time
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.scripts.side import without_workers, world


def numbers(value: Any) -> Iterator[float]:
    """Yield the numbers of what was printed, a complex one as two."""
    if hasattr(value, "detach"):
        value = value.detach().cpu().tolist()
    elif hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, (list, tuple)):
        for item in value:
            yield from numbers(item)
    elif isinstance(value, complex):
        yield from (value.real, value.imag)
    elif not isinstance(value, str):
        yield float(value)


def without_operators(torch: Any) -> None:
    """Declare what torchvision describes, where its operators are of another build than PyTorch."""
    try:
        built_for = importlib.metadata.version("torchvision")
    except importlib.metadata.PackageNotFoundError:
        return
    if "+cpu" in torch.__version__ and "+cpu" not in built_for:
        for name in ("nms", "qnms"):
            torch.library.define(f"torchvision::{name}", "(Tensor d, Tensor s, float t) -> Tensor")


def run(library: str, script: str, double: bool) -> dict[str, Any]:
    """Run a quick-start and return its log."""
    log: dict[str, Any] = {"values": [], "times": [], "error": ""}

    def record(*shown: Any) -> None:
        if not isinstance(shown[0], str):
            log["times"].append(time.process_time())
        log["values"] += numbers(shown)

    torch, log["mock"] = world(library, double)
    without_workers(torch)
    if library == "torch":
        without_operators(torch)
    try:
        tree = ast.parse(Path(script).read_text(), script)
        imports = [node for node in tree.body if isinstance(node, (ast.Import, ast.ImportFrom))]
        exec(compile(ast.Module(imports, []), script, "exec"), {})  # not part of the first step
        gc.collect()  # nor is what they left
        log["times"].append(time.process_time())
        runpy.run_path(script, {"print": record}, "__main__")
    except BaseException as error:
        log["error"] = f"{type(error).__name__}: {error}"[:600]
        log["where"] = traceback.format_exc()[-6000:]
    return log


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("library", choices=["torch", "ours"])
    parser.add_argument("script")
    parser.add_argument("log")
    parser.add_argument("--double", action="store_true", help="make float64 the default dtype")
    options = parser.parse_args()
    log = run(options.library, options.script, options.double)
    with open(options.log, "w") as file:
        json.dump({name: value for name, value in log.items() if name != "mock"}, file)
    os._exit(0)  # threads of a package may go on


if __name__ == "__main__":
    main()
