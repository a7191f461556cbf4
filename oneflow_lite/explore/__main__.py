"""Run a script under the explorer: `python -m oneflow_lite.explore script.py [arguments]`."""

from __future__ import annotations

import argparse
import sys
import types
from pathlib import Path

from oneflow_lite.explore import explore


def main(argv: list[str] | None = None) -> None:
    """Run a script as `python script.py` would, write the page, and print its path."""
    parser = argparse.ArgumentParser(
        prog="python -m oneflow_lite.explore",
        description="Run a script, and show what the engine did in a page for the browser.",
        epilog="All other arguments go to the script.",
        allow_abbrev=False,
    )
    parser.add_argument("script", help="a Python file")
    parser.add_argument("--out", metavar="PAGE.html", help="the page; by default SCRIPT.html, here")
    parser.add_argument("--no-values", action="store_true", help="leave out values and source text")
    parser.add_argument(
        "--open", action=argparse.BooleanOptionalAction, help="open a browser, or not"
    )
    options, arguments = parser.parse_known_args(argv)
    script = Path(options.script)
    if not script.is_file():
        parser.error(f"there is no file {options.script!r}")
    out = Path(options.out or f"{script.stem}.html")
    code = compile(script.read_text("utf-8"), str(script.resolve()), "exec")
    # A module of its own, as pickle and dataclasses look up names in sys.modules["__main__"].
    module = types.ModuleType("__main__")
    module.__file__ = str(script)
    before = sys.argv, sys.path[0], sys.modules["__main__"]
    sys.argv, sys.path[0] = [str(script), *arguments], str(script.resolve().parent)
    sys.modules["__main__"] = module
    exploration = explore(
        path=out, values=not options.no_values, open=options.open, title=script.name
    )
    exploration.begin()
    failed: BaseException | None = None
    try:
        exec(code, module.__dict__)
    except BaseException as error:
        failed = error
        raise
    finally:
        has_ended = failed is None or isinstance(failed, SystemExit)
        exploration.end(None if has_ended else failed, dict(module.__dict__))
        sys.argv, sys.path[0], sys.modules["__main__"] = before
        print(f"explored: {out}", file=sys.stderr)


if __name__ == "__main__":
    main()
