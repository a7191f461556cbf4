"""The mistakes that authors of ops make most often, and the text that each of them reads.

`python -m tests.own_op_mistakes --write` writes docs/op_mistakes.md from them, and
tests/test_own_op_mistakes.py holds the page to them.
"""

from __future__ import annotations

import argparse
import re
import sys
import textwrap
import warnings
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import oneflow_lite as flow
from oneflow_lite.extend import forget_op

PAGE = Path(__file__).resolve().parents[1] / "docs" / "op_mistakes.md"
BEGIN, END = "<!-- the mistakes: tests/own_op_mistakes.py -->", "<!-- end of the mistakes -->"


class Mistake(NamedTuple):
    """A mistake: its title, the code that makes it, and how the author learns of it."""

    title: str
    code: str
    error: str  # the class of the exception or of the warning


MISTAKES = [
    Mistake(
        "The kernel returns its input, or a view of it",
        """
        @flow.register_op("every_second")
        def every_second(xp, x):
            return x[::2]


        y = every_second(flow.ones(4))
        """,
        "UserWarning",
    ),
    Mistake(
        "The kernel writes into its input",
        """
        @flow.register_op("twice")
        def twice(xp, x):
            x *= 2
            return x


        y = twice(flow.ones(4))
        """,
        "InplaceError",
    ),
    Mistake(
        "The kernel returns something else than arrays",
        """
        @flow.register_op("mean_square")
        def mean_square(xp, x):
            return float((x * x).mean())


        y = mean_square(flow.ones(4))
        """,
        "KernelError",
    ),
    Mistake(
        "The kernel does not take the array module",
        """
        @flow.register_op("scaled_sum")
        def scaled_sum(x, y):
            return 2 * x + y
        """,
        "RegistrationError",
    ),
    Mistake(
        "The decorator has no parentheses",
        """
        @flow.register_op
        def cubed(xp, x):
            return x * x * x
        """,
        "RegistrationError",
    ),
    Mistake(
        "The rule reads a tensor that it does not save",
        """
        @flow.register_op("cubed")
        def cubed(xp, x):
            return x * x * x


        @cubed.grad()
        def cubed_grad(F, ctx, dy):
            return dy * 3 * ctx.x * ctx.x


        cubed(flow.ones(4, requires_grad=True)).sum().backward()
        """,
        "AttributeError",
    ),
    Mistake(
        "The rule saves an input that the kernel has written",
        """
        @flow.register_op("squared_in_place", mutates="x")
        def squared_in_place(xp, x):
            x *= x
            return x


        @squared_in_place.grad(saves="x")
        def squared_in_place_grad(F, ctx, dy):
            return dy * 2 * ctx.x
        """,
        "RegistrationError",
    ),
    Mistake(
        "A learned number is an attribute",
        """
        @flow.register_op("scaled")
        def scaled(xp, x, *, scale):
            return x * scale


        y = scaled(flow.ones(4), scale=flow.tensor(2.0, requires_grad=True))
        """,
        "ArgumentTypeError",
    ),
    Mistake(
        "The op has no rule, and a gradient is asked for",
        """
        @flow.register_op("halved")
        def halved(xp, x):
            return x / 2


        halved(flow.ones(4, requires_grad=True)).sum().backward()
        """,
        "NotDifferentiableError",
    ),
    Mistake(
        "The rule writes into the gradient that it gets",
        """
        @flow.register_op("tripled")
        def tripled(xp, x):
            return x * 3


        @tripled.grad()
        def tripled_grad(F, ctx, dy):
            dy *= 3
            return dy


        tripled(flow.ones(4, requires_grad=True)).backward(flow.ones(4))
        """,
        "InplaceError",
    ),
]


def read(mistake: Mistake) -> str:
    """Make a mistake, and return what its author reads."""
    code = textwrap.dedent(mistake.code)
    names = re.findall(r'register_op\("(\w+)"', code)
    scope: dict[str, Any] = {"flow": flow, "np": np, "__name__": "mistakes"}
    try:
        with warnings.catch_warnings(record=True) as given:
            warnings.simplefilter("always")
            exec(compile(code, "<your code>", "exec"), scope)
    except Exception as error:
        return "\n".join([f"{type(error).__name__}: {error}", *getattr(error, "__notes__", ())])
    finally:
        for name in names:
            forget_op(name)
    (warning,) = given
    return f"{warning.category.__name__}: {warning.message}"


def section() -> str:
    """Return the text of the section."""
    parts = [BEGIN]
    for number, mistake in enumerate(MISTAKES, 1):
        code = textwrap.dedent(mistake.code).strip()
        lines = read(mistake).splitlines()
        shown = "\n".join(
            wrapped
            for line in lines
            for wrapped in textwrap.wrap(line, 110, subsequent_indent="  ", drop_whitespace=True)
            or [""]
        )
        if any(line.startswith("    @") for line in lines):  # code is not filled
            shown = "\n".join([*textwrap.wrap(lines[0], 110, subsequent_indent="  "), *lines[1:]])
        parts.append(
            f"## {number}. {mistake.title}\n\n```python\n{code}\n```\n\n```text\n{shown}\n```"
        )
    return "\n\n".join([*parts, END])


def page() -> str:
    """Return the page with the section as it should be."""
    before, _, rest = PAGE.read_text("utf-8").partition(BEGIN)
    return before + section() + rest.partition(END)[2]


def main(argv: list[str] | None = None) -> None:
    """Write the section, or print it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help="write it into docs/op_mistakes.md")
    if parser.parse_args(argv).write:
        PAGE.write_text(page(), "utf-8")
    else:
        print(section())


if __name__ == "__main__":
    sys.exit(main())
