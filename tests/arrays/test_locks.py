"""A child that forks while other threads hold locks, draw, compile or import goes on."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import oneflow_lite as flow

ROOT = Path(flow.__file__).parent
# Locks that are not made by `make_lock`, and are nobody's in a forked child.
OWN = {
    "arrays/locks.py": "they are made there",
    "arrays/threads.py": "its pool is dropped in a child",
    "autograd/engine/queued_run.py": "a lock of one backward call",
    "autograd/engine/ready_queue.py": "workers, and with them their queues, are dropped in a child",
    "autograd/engine/workers.py": "events of one backward call",
    "static/runtime/work_queue.py": "its jobs are dropped in a child, and a lock of one run",
    "utils/data/_utils/worker.py": "a queue of one worker process",
}
MADE = {
    "threading": "Barrier BoundedSemaphore Condition Event Lock RLock Semaphore".split(),
    "queue": "LifoQueue PriorityQueue Queue SimpleQueue".split(),
    "concurrent.futures": "Future ThreadPoolExecutor".split(),
    "functools": ["cached_property"],  # it has a lock before Python 3.12
}


def _of_threads(source):
    """Yield the locks and queues of the standard library that a module makes."""
    names, modules = {}, {}
    for node in ast.walk(tree := ast.parse(source)):
        if isinstance(node, ast.ImportFrom) and node.module in MADE:
            names |= {a.asname or a.name: a.name for a in node.names if a.name in MADE[node.module]}
        elif isinstance(node, ast.Import):
            modules |= {a.asname or a.name: a.name for a in node.names if a.name in MADE}
    for node in ast.walk(tree):
        made = [node.func] if isinstance(node, ast.Call) else getattr(node, "decorator_list", [])
        for f in made:
            if isinstance(f, ast.Name) and f.id in names:
                yield names[f.id]
            elif isinstance(f, ast.Attribute) and f.attr in MADE.get(_module(f, modules), ()):
                yield f.attr


def _module(attribute, modules):
    return modules.get(ast.unparse(attribute.value))


def test_all_locks_are_free_in_a_forked_child():
    texts = {p.relative_to(ROOT).as_posix(): p.read_text() for p in ROOT.rglob("*.py")}
    texts |= {f"kernels/{p.name}": p.read_text() for p in (ROOT / "kernels").glob("*.py")}
    texts |= {f"functors/{p.name}": p.read_text() for p in (ROOT / "functors").glob("*.py")}
    likely = {name: text for name, text in texts.items() if any(module in text for module in MADE)}
    assert {name for name, text in likely.items() if list(_of_threads(text))} == OWN.keys()


START = """
import copy, functools, importlib, os, sys, threading, time
import numpy as np
import oneflow_lite as flow
from oneflow_lite.arrays import locks

def in_thread(function):
    threading.Thread(target=function, daemon=True).start()

def forked(function):
    begun = time.monotonic()
    child = os.fork()
    if not child:
        function()
        os._exit(7)
    while not (ended := os.waitpid(child, os.WNOHANG))[0]:
        if time.monotonic() > begun + 20:
            os.kill(child, 9)
        time.sleep(0.002)
    assert os.waitstatus_to_exitcode(ended[1]) == 7, ended
"""
HELD = """
own = copy.deepcopy(flow.Generator().manual_seed(3))
later = copy.deepcopy(own)
flow.rand(2, generator=own)
copied = copy.deepcopy(own)
streams = [g.stream(np).bit_generator for g in (flow.default_generator, own, later, copied)]
future = locks.make_future()
lock = locks.make_lock()
held = [s.lock for s in streams] + [np.random.get_bit_generator().lock, future._condition, lock]
all_held = threading.Event()

def hold():
    for each in held:
        each.acquire()
    all_held.set()
    time.sleep(100)

def child():
    for generator in (None, own, later, copied):
        flow.rand(2, generator=generator)
    np.random.rand(2)
    assert not future.done()
    assert lock.acquire(timeout=1)

in_thread(hold)
all_held.wait()
forked(child)
"""
IN_PROPERTY = """
class Slow:
    wait = 100

    @locks.cached_property
    def value(self):
        begun.set()
        time.sleep(self.wait)
        return 3

quick = Slow()
quick.wait, begun = 0, threading.Event()
in_thread(lambda: Slow().value)
begun.wait()
forked(lambda: quick.value)
"""
IMPORTING = """
sys.path.insert(0, sys.argv[1])
in_thread(lambda: importlib.import_module("slow_to_import"))
while "slow_to_import" not in sys.modules:
    time.sleep(0.01)

def child():
    import slow_to_import
    assert slow_to_import.ready

forked(child)
"""
NEVER_READY = """
sys.path.insert(0, sys.argv[1])
locks.PATIENCE = 0.2
in_thread(lambda: importlib.import_module("never_ready"))
while "never_ready" not in sys.modules:
    time.sleep(0.01)
forked(lambda: None)
locks.PATIENCE = 1000.0
forked(lambda: None)
"""


@pytest.mark.skipif(not hasattr(sys.modules["os"], "fork"), reason="this system has no fork")
@pytest.mark.parametrize("script", [HELD, IN_PROPERTY, IMPORTING, NEVER_READY])
def test_a_child_goes_on_while_threads_hold_locks(script, tmp_path):
    (tmp_path / "slow_to_import.py").write_text("import time\ntime.sleep(0.3)\nready = True\n")
    (tmp_path / "never_ready.py").write_text("import time\ntime.sleep(100)\n")
    _run(START + script, tmp_path)


ANYTHING = """
import io
x, large = flow.randn(60, 60), flow.randn(500_000)
own = flow.Generator()
file = io.BytesIO()
flow.save({"x": x}, file)
numbers = iter(range(10**9))

def draw():
    flow.rand(100_000)
    flow.randn(1000, generator=own)

def work():
    (large.exp() + large).sum()
    flow.special.erf(large)

def learn():
    w = x.clone().requires_grad_()
    (w @ x).relu().sum().backward()

def build():
    scale = next(numbers)
    compiled = flow.compile(lambda a: (a * scale).tanh() + 1)
    for _ in range(8):
        compiled(x)

def load():
    flow.load(io.BytesIO(file.getvalue()))

jobs = [draw, work, learn, build, load]

def repeat(job):
    while True:
        job()

for job in jobs:
    in_thread(lambda job=job: repeat(job))
for k in range(12):
    time.sleep(0.013 * k)
    forked(lambda: [job() for job in jobs])
"""


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(sys.modules["os"], "fork"), reason="this system has no fork")
def test_a_fork_may_come_while_threads_do_anything(tmp_path):
    _run(START + ANYTHING, tmp_path)


def _run(script, folder):
    script += "\nos._exit(0)\n"  # the threads go on for ever
    run = [sys.executable, "-W", "ignore", "-c", script, str(folder)]
    done = subprocess.run(run, capture_output=True, text=True, timeout=100, check=False)
    assert done.returncode == 0, done.stderr
