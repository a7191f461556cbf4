"""Packages built on PyTorch, on both libraries: `python -m tests.packages.run` says how."""
