"""Arguments by every name and in every order that PyTorch takes, walked along its own stubs."""

from __future__ import annotations

import ast
import functools
import inspect
import pathlib
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import oneflow_lite as flow
from oneflow_lite.functors.declaring.declare import DECLARATIONS
from oneflow_lite.tensors.spellings import NUMPY_NAMES
from tests.functors.declared import Call, calls

torch = pytest.importorskip("torch")

# Parameters of PyTorch's that are not taken here, and why; nowhere, or by one function.
NOWHERE = {
    "names": "dimensions have no names",
    "out_dtype": "of half precision on CUDA devices",
    "from": "a word of Python",
}
ELSEWHERE = {
    **dict.fromkeys(
        [(name, word) for name in ("batch_norm", "instance_norm") for word in ("cudnn_enabled",)],
        "these stand under nn.functional here, where the order is another",
    ),
    **dict.fromkeys(
        [(n, w) for n in ("gru", "lstm", "rnn_relu", "rnn_tanh") for w in ("data", "batch_sizes")],
        "of the packed form, which is told by what stands at its place",
    ),
    ("from_file", "device"): "a file is mapped into the memory of the CPU",
    ("from_file", "layout"): "a file holds elements in order",
    ("from_file", "pin_memory"): "a file is not pinned",
    ("dim_order", "ambiguity_check"): "strides of 1 are not asked about",
    ("requires_grad_", "mode"): "PyTorch's word is requires_grad, whatever the stub says",
    ("from_numpy", "ndarray"): "PyTorch takes it by its place, whatever the stub says",
    ("set_num_threads", "num"): "PyTorch takes it by its place, whatever the stub says",
    ("set_num_interop_threads", "num"): "PyTorch takes it by its place, whatever the stub says",
    ("numel", "self"): "PyTorch's word is input, whatever the stub says",
    ("new", "storage"): "by its place",
    ("new", "other"): "by its place",
    ("new", "size"): "by its place",
}
# By the place only, where a number stands: PyTorch calls it self.
OLD = {"add", "sub", "addcmul", "addcdiv", "addmm", "addmv", "addmv_", "addr", "addbmm", "baddbmm"}


@functools.cache
def stubs() -> dict[tuple[str, str], list[list[ast.arg]]]:
    """Return the parameters of each overload, by the namespace and the name."""
    root = pathlib.Path(torch.__file__).parent / "_C"
    functions = ast.parse((root / "_VariableFunctions.pyi").read_text()).body
    classes = ast.parse((root / "__init__.pyi").read_text()).body
    (base,) = (c for c in classes if isinstance(c, ast.ClassDef) and c.name == "TensorBase")
    found: dict[tuple[str, str], list[list[ast.arg]]] = {}
    for place, first, listed in (("flow", 0, functions), ("Tensor", 1, base.body)):
        for node in listed:
            if isinstance(node, ast.FunctionDef) and not node.name.startswith("_"):
                given = node.args
                parameters = [*given.posonlyargs, *given.args][first:] + given.kwonlyargs
                hints = [ast.unparse(p.annotation) for p in parameters if p.annotation]
                if not any("ellipsis" in h.lower() for h in hints):  # dimensions by their names
                    found.setdefault((place, node.name), []).append(parameters)
    return found


def taken(function: Any) -> set[str] | None:
    """Return the words that one of our functions takes; None where it reads any word."""
    listed = inspect.signature(function).parameters.values()
    if any(p.kind is p.VAR_KEYWORD for p in listed):
        return None
    return {p.name for p in listed}


def test_every_keyword_of_the_stubs() -> None:
    missing, asked = [], 0
    for (place, name), overloads in stubs().items():
        ours = getattr(flow if place == "flow" else flow.Tensor, name, None)
        theirs = getattr(torch if place == "flow" else torch.Tensor, name, None)
        # Functions that PyTorch wraps in Python have other parameters than the stub says.
        if not callable(ours) or inspect.isfunction(theirs) or isinstance(ours, type):
            continue
        if (words := taken(ours)) is None:
            continue
        for word in {p.arg for overload in overloads for p in overload} - words:
            asked += 1
            old = word == "self" and name in OLD
            if not (old or word in NOWHERE or (name, word) in ELSEWHERE):
                missing.append(f"{place}.{name}({word}=)")
    assert not missing
    assert len(stubs()) > 1000 and asked > 20


def _by_keyword(call: Call, place: str, name: str) -> Iterator[tuple[list[Any], dict[str, Any]]]:
    """Yield the arguments of a sample call by the names that overloads have, and NumPy's."""
    args, kwargs = call._map(lambda a: a, lambda a: a)
    first, rest = (args[:1], args[1:]) if place == "Tensor" else ([], list(args))
    for overload in stubs()[place, name]:
        words = [p.arg for p in overload]
        given = dict(zip(words, rest, strict=False)) | kwargs
        if len(given) == len(rest) + len(kwargs) and set(given) <= set(words):
            yield first, given
            if spelled := {NUMPY_NAMES.get(word, word): value for word, value in given.items()}:
                yield first, spelled


def _made(lib: Any, value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return lib.tensor(value)
    if isinstance(value, (list, tuple)):
        return type(value)(_made(lib, each) for each in value)
    return getattr(lib, str(value)) if isinstance(value, np.dtype) else value


def test_samples_with_every_argument_by_keyword() -> None:
    refused, count = [], 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for call in calls():
            for place, name in call.declaration.places:
                if (place, name) not in stubs():
                    continue
                ours, theirs = (
                    getattr(lib if place == "flow" else lib.Tensor, name) for lib in (flow, torch)
                )
                for first, given in _by_keyword(call, place, name):
                    if any((name, word) in ELSEWHERE for word in given):
                        continue
                    try:
                        theirs(*_made(torch, first), **_made_all(torch, given))
                    except (TypeError, RuntimeError, ValueError, IndexError):
                        continue
                    count += 1
                    try:
                        ours(*_made(flow, first), **_made_all(flow, given))
                    except Exception as error:
                        refused.append(f"{place}.{name}{tuple(given)}: {error}")
    assert not refused
    assert count > 1000


def _made_all(lib: Any, given: dict[str, Any]) -> dict[str, Any]:
    return {word: _made(lib, value) for word, value in given.items()}


# --- Overloads that PyTorch runs with a warning ---------------------------------------------------

_SHAPES = {
    "addmm": ((2, 3), (2, 4), (4, 3)),
    "addmv": ((2,), (2, 4), (4,)),
    "addr": ((2, 3), (2,), (3,)),
    "baddbmm": ((2, 2, 3), (2, 2, 4), (2, 4, 3)),
    "addbmm": ((2, 3), (2, 2, 4), (2, 4, 3)),
    "add": ((3,), (3,)),
    "sub": ((3,), (3,)),
    "addcmul": ((3,), (3,), (3,)),
    "addcdiv": ((3,), (3,), (3,)),
}
_WITH_BETA = ("addmm", "addmv", "addr", "baddbmm", "addbmm")
_FACTORS = [(n, f) for n in _SHAPES for f in ([(2,), (2, 3)] if n in _WITH_BETA else [(0.5,)])]


def _old(lib: Any, name: str, factors: tuple[float, ...], way: str) -> Any:
    draw = np.random.default_rng(0).uniform
    x, *rest = (lib.tensor(draw(0.5, 1.5, shape)) for shape in _SHAPES[name])
    at = int(name in _WITH_BETA)  # beta stands in front of all
    if way == "method":
        return getattr(x, name)(*factors, *rest)
    if way == "in place":
        return getattr(x, f"{name}_")(*factors, *rest)
    out = {"out": lib.zeros_like(x)} if way == "out" else {}
    return getattr(lib, name)(*factors[:at], x, *factors[at:], *rest, **out)


@pytest.mark.parametrize("way", ["function", "out", "method", "in place"])
@pytest.mark.parametrize(("name", "factors"), _FACTORS)
def test_factors_in_front_of_what_they_scale(name: str, factors: Any, way: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = _old(torch, name, factors, way)
    with pytest.warns(UserWarning, match=rf"{name}_?\(.*deprecated; give the factors by name"):
        found = _old(flow, name, factors, way)
    np.testing.assert_allclose(found.numpy(), expected.numpy())


def test_factors_are_given_once_and_numbers_of_arguments_fit() -> None:
    x = flow.ones(2)
    with pytest.raises(
        TypeError, match=r"add\(\).*\(input, alpha, other\) by place, got alpha twice"
    ):
        flow.add(x, 2, x, alpha=3)
    with pytest.raises(TypeError, match=r"add\(\).*got 4 arguments"):
        flow.add(x, 2, x, x)
    with pytest.raises(TypeError, match="missing 1 required positional argument"):
        flow.add(x)


# --- One by one -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "call",
    [
        lambda t: t.ones(1, 1, 3).squeeze(0, 1).shape,
        lambda t: t.ones(1, 1, 3).squeeze_(0, 1).shape,
        lambda t: t.eye(3).count_nonzero(0, 1).item(),
        lambda t: t.ones(3).broadcast_to(2, 3).shape,
        lambda t: [y.shape for y in t.ones(4, 4).hsplit(1, 3)],
        lambda t: [y.shape for y in t.ones(4, 4).vsplit(2)],
        lambda t: t.repeat_interleave(repeats=t.tensor([1, 2])).tolist(),
        lambda t: t.embedding(t.eye(3), t.tensor([1])).tolist(),
        lambda t: t.embedding(weight=t.eye(3), indices=t.tensor([1])).tolist(),
        lambda t: t.nn.functional.embedding_bag(t.eye(3), t.tensor([[1, 2]])).tolist(),
        lambda t: t.layer_norm(t.ones(2, 3), (3,), None, None, 1e-5, True).tolist(),
        lambda t: t.pow(self=2.0, exponent=t.ones(2)).tolist(),
        lambda t: t.ones(2).copy_(other=t.zeros(2)).tolist(),
        lambda t: t.ones(3).resize_(size=(2,)).tolist(),
        lambda t: t.ones(3).new_zeros(size=(2, 1)).tolist(),
        lambda t: t.randint(high=1, size=(2,)).tolist(),
        lambda t: t.is_signed(input=t.ones(2)),
        lambda t: t.ones(3).numpy(force=True).tolist(),
        lambda t: t.dropout(t.ones(2), p=0.5, train=False).tolist(),
        lambda t: [str(y.dtype)[-5:] for y in t.unravel_index(t.tensor([3]).short(), (2, 3))],
    ],
)
def test_as_pytorch(call: Any) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert call(flow) == call(torch)


def test_the_older_name_of_gradients() -> None:
    x = flow.ones(2, requires_grad=True)
    with pytest.warns(UserWarning, match="grad_variables is deprecated"):
        flow.autograd.backward(x * 2, None, None, False, flow.ones(2), [x])
    assert x.grad is not None and x.grad.tolist() == [2, 2]
    with pytest.raises(TypeError, match="both"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        flow.autograd.backward(x * 2, flow.ones(2), grad_variables=flow.ones(2))


def test_every_spelling_is_a_parameter() -> None:
    for name in DECLARATIONS:
        declaration = DECLARATIONS.get(name)
        listed = {p.name for p in declaration.parameters}
        assert set(declaration.spellings.values()) <= listed, name
        assert not listed & set(declaration.spellings), name
