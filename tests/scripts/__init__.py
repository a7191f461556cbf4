"""Public PyTorch scripts on both libraries: `python -m tests.scripts.run` says how."""
