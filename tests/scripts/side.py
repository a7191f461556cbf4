"""Run one script on one library and print what its training did, as one line of JSON.

Every gradient that the script asks for is a record: the value that it was taken of. After so many
records, or so many seconds, the script is stopped.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import random
import runpy
import sys
import time
import traceback
from typing import Any

import numpy as np

STAND_INS = os.path.join(os.path.dirname(__file__), "stand_ins")


class Stop(BaseException):
    """The script has shown enough."""


def watch(torch: Any, steps: int, seconds: float, log: dict[str, Any]) -> None:
    """Record what `backward` and `autograd.grad` are called for."""
    backward, grad = torch.Tensor.backward, torch.autograd.grad
    depth = [0]

    def record(value: Any) -> None:
        now = time.perf_counter()
        log.setdefault("start", now)
        log["seconds"] = now - log["start"]
        log["values"].append(float(value.detach().double().mean()))
        if len(log["values"]) >= steps or log["seconds"] > seconds:
            raise Stop

    def seen(function: Any, value_of: Any) -> Any:
        def call(*args: Any, **kwargs: Any) -> Any:
            if depth[0]:  # a gradient that a gradient function takes
                return function(*args, **kwargs)
            record(value_of(args, kwargs))
            depth[0] += 1
            try:
                return function(*args, **kwargs)
            finally:
                depth[0] -= 1

        return call

    def first_output(args: Any, kwargs: Any) -> Any:
        outputs = args[0] if args else kwargs["outputs"]
        return outputs[0] if isinstance(outputs, (tuple, list)) else outputs

    torch.Tensor.backward = seen(backward, lambda args, kwargs: args[0])
    torch.autograd.grad = seen(grad, first_output)
    torch.autograd.backward = seen(torch.autograd.backward, first_output)


def without_workers(torch: Any) -> None:
    """Load data here; let recurrent layers and attention drop nothing: they draw in C++."""
    data = torch.utils.data
    init = data.DataLoader.__init__

    def load_here(self: Any, *args: Any, **kwargs: Any) -> None:
        for name in ("num_workers", "prefetch_factor", "persistent_workers", "pin_memory"):
            kwargs.pop(name, None)
        init(self, *args, **kwargs)

    data.DataLoader.__init__ = load_here
    for name in ("RNN", "LSTM", "GRU", "MultiheadAttention"):
        layer = getattr(torch.nn, name)

        def make(self: Any, *args: Any, _init: Any = layer.__init__, **kwargs: Any) -> None:
            kwargs.pop("dropout", None)
            _init(self, *args, **kwargs)

        layer.__init__ = make


def on_the_cpu(torch: Any) -> None:
    """Let `.cuda()` return what it is called on: neither side has a card here."""
    torch.Tensor.cuda = torch.nn.Module.cuda = lambda self, *args, **kwargs: self


def train(torch: Any, module: Any, *inputs: Any, steps: int = 4, lr: float = 0.01) -> None:
    """Take steps on the mean square of all that a model returns."""

    def tensors(value: Any) -> Any:
        if isinstance(value, torch.Tensor):
            yield value
        elif isinstance(value, dict):
            yield from tensors(list(value.values()))
        elif isinstance(value, (tuple, list)):
            for item in value:
                yield from tensors(item)

    optimizer = torch.optim.SGD(module.parameters(), lr=lr)
    for _ in range(steps):
        optimizer.zero_grad()
        results = [y for y in tensors(module(*inputs)) if y.is_floating_point()]
        sum((y * y).mean() for y in results).backward()
        optimizer.step()


def world(library: str, double: bool) -> tuple[Any, Any]:
    """Import torch as `library` has it, with the common draws; return it and what keeps it so."""
    random.seed(0)
    np.random.seed(0)
    from tests.scripts import draws

    mock = None
    if library == "ours":
        import oneflow_lite as flow
        from oneflow_lite import mock_torch

        draws.of_ours(flow)
        mock = mock_torch.enable()  # it ends when it is dropped
        mock.__enter__()
    import torch

    if library == "torch":
        draws.of_pytorch(torch)
        torch.set_num_threads(1)
    if double:
        torch.set_default_dtype(torch.float64)
    return torch, mock


def run(
    library: str,
    root: str,
    script: str,
    args: list[str],
    call: str,
    steps: int,
    seconds: float,
    double: bool,
) -> Any:
    """Run a script, with `call` as code that follows it, and return the log."""
    log: dict[str, Any] = {"values": [], "error": ""}
    import matplotlib

    matplotlib.use("Agg")
    torch, log["mock"] = world(library, double)
    without_workers(torch)
    on_the_cpu(torch)
    watch(torch, steps, seconds, log)
    sys.path[:0] = [STAND_INS, os.path.dirname(os.path.abspath(script))]
    sys.modules["torch.utils.tensorboard"] = importlib.import_module("tensorboardX")
    sys.argv = [script, *args]
    scope: dict[str, Any] = {}
    try:
        sys.path[:0] = [root]
        if not call or ("from " not in call and "import " not in call):
            scope = runpy.run_path(script, run_name="model" if call else "__main__")
        if call:
            scope = {**scope, "torch": torch}
            scope["train"] = lambda *given, **options: train(torch, *given, **options)
            exec(call, scope)
    except Stop:
        pass
    except SystemExit as ended:
        if ended.code:
            log["error"] = f"SystemExit: {ended.code}"
    except BaseException as error:
        log["error"] = f"{type(error).__name__}: {error}"[:600]
        log["where"] = traceback.format_exc()[-3000:]
    return log


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("library", choices=["torch", "ours"])
    parser.add_argument("root")
    parser.add_argument("script")
    parser.add_argument("--call", default="")
    parser.add_argument("--steps", type=int, default=10)
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--double", action="store_true", help="make float64 the default dtype")
    parser.add_argument("--log", required=True)
    own, rest = parser.parse_known_args()
    log = run(own.library, own.root, own.script, rest, own.call, own.steps, own.seconds, own.double)
    with open(own.log, "w") as file:
        json.dump({name: value for name, value in log.items() if name != "mock"}, file)
    os._exit(0)  # threads and viewers of the script may go on


if __name__ == "__main__":
    main()
