"""The tools of the package: `python -m oneflow_lite` lists them, and runs one by its name."""

from __future__ import annotations

import runpy
import sys

TOOLS = {
    "explore": "explore script.py     run a script, and see the engine in a browser",
    "mock_torch": "mock_torch script.py  run a script written for PyTorch",
    "info": "info                  versions, devices and extras, for a report",
}
_IN_A_CHECKOUT = {
    "make demo": "train a small network on handwritten digits",
    "make learn": "live tutorials: change the code, and see the engine follow",
}


def main(words: list[str]) -> None:
    """Run a tool, or say which tools there are.

    >>> from oneflow_lite.__main__ import main
    >>> main([])
    python -m oneflow_lite explore script.py     run a script, and see the engine in a browser
    python -m oneflow_lite mock_torch script.py  run a script written for PyTorch
    python -m oneflow_lite info                  versions, devices and extras, for a report
    <BLANKLINE>
    In a checkout of the repository:
    make demo   train a small network on handwritten digits
    make learn  live tutorials: change the code, and see the engine follow
    """
    name = words[0] if words else ""
    if name in TOOLS:
        sys.argv = words
        runpy.run_module(f"oneflow_lite.{name}", run_name="__main__", alter_sys=True)
        return
    if name not in ("", "-h", "--help"):
        sys.exit(f"python -m oneflow_lite: there is no {name!r}; there are {', '.join(TOOLS)}")
    print(*[f"python -m oneflow_lite {line}" for line in TOOLS.values()], sep="\n")
    print("\nIn a checkout of the repository:")
    print(*[f"{command:11} {text}" for command, text in _IN_A_CHECKOUT.items()], sep="\n")


if __name__ == "__main__":
    main(sys.argv[1:])
