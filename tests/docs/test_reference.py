"""Every public name is in the reference once, and says what it is."""

from __future__ import annotations

import enum
import inspect
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import oneflow_lite as flow
from docs.site import docstrings, object_pages, public_names

PAGES = Path(__file__).resolve().parents[2] / "docs" / "reference"


def told() -> Counter[str]:
    """Return how often the pages show each name."""
    texts = [page.read_text("utf-8") for page in PAGES.glob("*.md")]
    asked = [names for text in texts for _, names in object_pages.asked(text)]
    return Counter(name.full for names in asked for name in names)


@pytest.fixture
def fresh(monkeypatch: pytest.MonkeyPatch) -> None:
    """Look for the names again, and forget them afterwards."""
    for name in ("modules", "names_of_module", "public_names", "homes"):
        function = getattr(public_names, name)
        monkeypatch.setattr(public_names, name, function.__wrapped__)


def test_every_public_name_is_in_the_reference_once() -> None:
    names = [n.full for n in public_names.public_names().values() if "." not in n.name]
    assert told() == Counter(names)


def test_every_public_name_says_what_it_is() -> None:
    assert public_names.without_docstring() == []


def test_the_names_are_those_of_every_kind() -> None:
    names = public_names.public_names()
    expected = """
        relu Tensor Tensor.relu nn.functional.relu nn.Linear nn.Module.to linalg.qr fft.rfft
        autograd.grad autograd.Function.apply errors.ShapeError static.Executor.run func.vmap
        optim.Adam optim.Optimizer.step distributed.all_reduce distributions.Distribution.cdf
        utils.data.DataLoader profiler.profile special.erf cuda.is_available compile float32 pi
        placement register_op save distributed.checkpoint.save nn.Graph nn.init.zeros_
    """
    assert [name for name in expected.split() if f"flow.{name}" not in names] == []
    assert len(names) > 2500
    assert not any(part.startswith("_") for name in names for part in name.split("."))


def test_names_of_one_object_point_to_the_first() -> None:
    homes = public_names.homes()
    assert homes[id(flow.relu)] == "flow.relu"
    assert homes[id(flow.nn.Linear)] == "flow.nn.Linear"
    assert homes[id(flow.fft.rfft)] == "flow.fft.rfft"


def vague() -> list[str]:
    """Return the parameters and results for which the reference shows no type, or `Any`."""
    found = []
    for name in public_names.public_names().values():
        first = callable(name.value) and public_names.homes()[id(name.value)] == name.full
        if not first or (isinstance(name.value, type) and issubclass(name.value, OF_PYTHON)):
            continue
        signature = inspect.signature(name.value)
        types = {
            p.name: p.annotation
            for p in signature.parameters.values()
            if p.name not in ("self", "cls")
        }
        if not isinstance(name.value, type):
            types["return"] = signature.return_annotation
        nothing = ("Any", "Any | None", Any, inspect.Signature.empty)
        found += [f"{name.full} {key}" for key, hint in types.items() if hint in nothing]
    return found


OF_PYTHON = (BaseException, enum.Enum)  # classes that Python makes signatures for
# Where anything is taken or given: user's functions, their arguments, and nested structures.
MOST_VAGUE = 475


def test_signatures_say_which_types_they_take() -> None:
    found = vague()
    assert "flow.add input" not in found
    assert "flow.zeros dtype" not in found
    assert "flow.autograd.Function.apply args" in found
    assert len(found) <= MOST_VAGUE, "give the new ones a type"


def test_a_new_name_needs_a_docstring_and_a_place(
    fresh: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unexplained() -> None:
        pass

    class Unexplained(flow.nn.Module):
        def method(self) -> None:
            pass

    monkeypatch.setattr(flow.cuda, "unexplained", unexplained, raising=False)
    monkeypatch.setattr(flow.cuda, "Unexplained", Unexplained, raising=False)
    Unexplained.__module__ = "oneflow_lite.cuda"
    assert public_names.without_docstring() == [
        "flow.cuda.Unexplained",
        "flow.cuda.unexplained",
        "flow.cuda.Unexplained.method",
    ]
    assert "flow.cuda.unexplained" in public_names.public_names()


# --- Docstrings as pages ------------------------------------------------------------------------

_DOC = """Return x_i * y_i of shape (*, m), see `add`.

    y = a |x| + b

- one of `add`
- another one,
  that goes on

Parameters
----------
input, other : Tensor
    Of any shape.

    Or of another.
dim : int

Raises
------
ShapeError
    When `other` is too large.

Examples
--------
>>> 1 + 1
2

>>> 2 + 2
4
"""

_PAGE = r"""Return x\_i \* y\_i of shape (\*, m), see {py:obj}`add <flow.add>`.

```text
y = a |x| + b
```

- one of {py:obj}`add <flow.add>`
- another one, that goes on

**Parameters**

`input`, `other` : Tensor
: Of any shape.

  Or of another.

`dim` : int
: .

**Raises**

{py:obj}`ShapeError <flow.ShapeError>`
: When `other` is too large.

**Examples**

```pycon
>>> 1 + 1
2
```

```pycon
>>> 2 + 2
4
```"""


def test_a_docstring_becomes_text_that_means_itself() -> None:
    known = {"add", "ShapeError"}
    found = docstrings.to_myst(_DOC, lambda word: f"flow.{word}" if word in known else None)
    assert found.replace("\xa0", ".") == _PAGE
    assert docstrings.summary(_DOC) == "Return x_i * y_i of shape (*, m), see `add`."
