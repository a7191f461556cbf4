# Every target sets up .venv by itself: all that a machine needs is make and a Python of 3.11 or newer.
# Another interpreter:     make test PYTHON=/path/to/python3.12
# Arguments for a command: make test ARGS="tests/nn -x", make demo ARGS="--device cuda"

PYTHON ?= $(shell for python in python3.14 python3.13 python3.12 python3.11 python3 python; do \
	"$$python" -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' \
		>/dev/null 2>&1 && command -v "$$python" && break; done)
WORKERS ?= 2
BIN := .venv/bin
# Tests start hundreds of processes: each would compile the package anew.
export PYTHONDONTWRITEBYTECODE :=

.DEFAULT_GOAL := help
.NOTPARALLEL:
.PHONY: help demo learn test test-all test-rest docs site fuzz soak packages check bench bench-cuda dist setup clean

help:
	@echo 'make demo   train a small network on real handwritten digits'
	@echo 'make test   run the quick tests, some minutes; ARGS="tests/nn -k conv" runs these, the slow ones too'
	@echo 'make test-all   run all tests; make test-rest: those that make test leaves out'
	@echo 'make docs   build the documentation site into build/site; run its snippets, refuse broken links'
	@echo 'make site   build the site alone, as after make test, which runs the snippets, too'
	@echo 'make fuzz   run random programs, against PyTorch and compiled; ARGS="--programs 500 --seed 7"'
	@echo 'make soak   kill ranks of a training 50 times, at random; ARGS="--kills 500 --seed 7"'
	@echo 'make learn  open the live tutorials in a browser; they are copied to build/learn first'
	@echo 'make packages   run packages built on PyTorch with and without it; ARGS=--quick a few, ARGS=--write the table'
	@echo 'make check  ruff, ruff format, mypy and the doctests'
	@echo 'make bench  compare the speed with PyTorch, autograd and NumPy, fill docs/benchmarks.md'
	@echo 'make bench-cuda   the same on the CUDA device; needs the extra cuda12 or cuda13'
	@echo 'make dist   build the wheel and the source distribution, install and try both'
	@echo 'make setup  install what make test needs, and nothing else'
	@echo 'make clean  remove what the other targets made, .venv included'

demo: .venv/demo.stamp
	$(BIN)/python docs/examples/digits.py $(ARGS)

# Copies, for a notebook is written where it lies; a copy that was changed stays.
learn: .venv/learn.stamp
	mkdir -p build/learn
	for each in docs/learn/live/*.py; do test -e build/learn/$${each##*/} || cp $$each build/learn/; done
	$(BIN)/marimo edit build/learn --skip-update-check $(ARGS)

# Each worker has a core to itself, so the numerical libraries must not start threads of their own.
PYTEST = OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n $(WORKERS) --dist=worksteal

test: .venv/test.stamp
	$(PYTEST) --quick $(ARGS)

test-all: .venv/test.stamp
	$(PYTEST) $(ARGS)

test-rest: .venv/test.stamp
	$(PYTEST) -m slow $(ARGS)

docs: .venv/docs.stamp
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -q tests/docs/test_docs.py tests/docs/test_reference.py
	$(MAKE) site

# -W makes an error of each warning of Sphinx, -n one of each unknown reference.
site: .venv/docs.stamp
	$(BIN)/python -m sphinx -q -n -W -j $(WORKERS) --keep-going --fresh-env -d build/doctrees docs build/site $(ARGS)
	@echo 'The site is at build/site/index.html.'

# Without PyTorch the programs still run against the copying interpreter.
fuzz: .venv/test.stamp
	OMP_NUM_THREADS=1 $(BIN)/python -m tests.fuzz --workers $(WORKERS) $(ARGS)

# Needs mpi4py and mpiexec: pip install -e '.[distributed]'.
soak: .venv/test.stamp
	OMP_NUM_THREADS=1 $(BIN)/python -m tests.distributed.soak $(ARGS)

# In build/packages/: environments with PyTorch and without; with --quick one, to which .venv lends its packages.
packages: .venv/test.stamp $(if $(findstring --quick,$(ARGS)),build/packages/quick.stamp,build/packages/torch.stamp \
		build/packages/flow.stamp)
	$(BIN)/python -m tests.packages.run $(ARGS)

check: .venv/check.stamp
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/python -m pytest --doctest-modules oneflow_lite

bench: .venv/bench.stamp
	$(BIN)/python -m tests.benchmarks $(or $(ARGS),--write)

bench-cuda: .venv/bench.stamp
	$(BIN)/python -m tests.benchmarks.cuda $(or $(ARGS),--write)

dist: .venv/dist.stamp
	rm -rf dist
	$(BIN)/python -m build --outdir dist .
	$(BIN)/python -m tests.installation dist

setup: .venv/test.stamp

# One stamp for each extra: installed once, and again when the requirements change.
.venv/%.stamp: setup.cfg pyproject.toml | $(BIN)/pip
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[$*]'
	@touch $@

# pip is the last thing that a new environment gets: without it, an interrupted set-up starts again.
$(BIN)/pip:
	@test -n '$(PYTHON)' || { echo 'No Python >= 3.11 with its venv module was found. Install one,' \
		'or name it: make PYTHON=/path/to/python3' >&2; exit 1; }
	$(PYTHON) -m venv .venv

INSTALL = $(@:.stamp=)/bin/python -m pip install --quiet --disable-pip-version-check

build/packages/torch.stamp: tests/packages/all.txt tests/packages/quick.txt
	$(PYTHON) -m venv $(@:.stamp=)
	$(INSTALL) -r $<
	@touch $@

build/packages/flow.stamp: tests/packages/all.txt tests/packages/quick.txt setup.cfg
	$(PYTHON) -m venv $(@:.stamp=)
	$(INSTALL) --editable '.[jit,bfloat16]'
	$(@:.stamp=)/bin/python -m oneflow_lite.mock_torch --stand-in
	$(INSTALL) -r $<
	@touch $@

PURELIB = python -c 'import sysconfig; print(sysconfig.get_path("purelib"))'
build/packages/quick.stamp: tests/packages/quick.txt .venv/torch.stamp
	$(PYTHON) -m venv $(@:.stamp=)
	$(BIN)/$(PURELIB) > "$$($(@:.stamp=)/bin/$(PURELIB))/venv.pth"
	$(INSTALL) -r $<
	@touch $@

clean:
	rm -rf .venv build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
