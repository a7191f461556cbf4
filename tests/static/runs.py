"""Functions that are captured once and run: what the tests of capturing have in common."""

import numpy as np

import oneflow_lite as flow
from oneflow_lite import static


def programs():
    return static.Program(), static.Program()


def op_types(program):
    return [op.type for op in program.global_block().ops]


class Runs:
    """A captured function: `run(*arrays)` feeds it and returns what it returned."""

    def __init__(self, function, *arrays, startup=None):
        self.main, self.startup = static.Program(), startup or static.Program()
        self.scope, self.executor = static.Scope(), static.Executor()
        with static.program_guard(self.main, self.startup):
            fed = [static.data(f"x{i}", a.shape, a.dtype) for i, a in enumerate(arrays)]
            self.results = function(*fed)
        self.executor.run(self.startup, scope=self.scope)

    def run(self, *arrays):
        feed = {f"x{i}": a for i, a in enumerate(arrays)}
        found = self.results if isinstance(self.results, (list, tuple)) else [self.results]
        return self.executor.run(self.main, feed, list(found), self.scope)


X = np.arange(6, dtype=np.float32).reshape(2, 3)


def compare(function, *arrays):
    """Check that a captured function gives what eager gives, twice."""
    want = function(*[flow.tensor(a) for a in arrays])
    want = want if isinstance(want, tuple) else (want,)
    runs = Runs(function, *arrays)
    for _ in range(2):
        for a, b in zip(runs.run(*arrays), want, strict=True):
            np.testing.assert_array_equal(a, b.detach().numpy())
