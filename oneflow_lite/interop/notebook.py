"""The HTML that notebooks show: the `_repr_html_` of tensors, parameters and modules.

`exposure.py` attaches it when a notebook first asks. No function here raises: a fact that cannot be
found is replaced by a note, and the rest is shown.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from oneflow_lite.nn.parameter import is_lazy
from oneflow_lite.tensors.html_text import (
    Html,
    block,
    element,
    facts,
    joined,
    preformatted,
    table,
    tree,
)
from oneflow_lite.tensors.tensor import Tensor
from oneflow_lite.tensors.tensor_repr import array_text

_OPEN_LEVELS = 2  # levels of a module's tree that are open at first


def tensor_html(self: Tensor) -> str:
    """Return a tensor as HTML: its values, shortened as by `repr`, and its properties.

    Of a long tensor on a CUDA device only the values shown are copied, and of a global tensor
    none, so that no rank waits for another.
    """
    kind = type(self).__name__.lower()
    return block(
        attempt(lambda: preformatted(_values(self))),
        facts((name, attempt(find)) for name, find in _tensor_facts(self)),
        label=kind,
    )


def sparse_html(self: Any) -> str:
    """Return a sparse tensor as HTML: its shape, and its indices and values as they are stored."""
    named = [
        ("shape", lambda: tuple(self.shape)),
        ("dtype", lambda: self.dtype),
        ("device", lambda: self.device),
        ("layout", lambda: f"{self.layout}, {self._nnz()} values"),
        ("requires_grad", lambda: self.requires_grad),
    ]
    return block(
        facts((name, attempt(find)) for name, find in named),
        tree("indices", [attempt(lambda: preformatted(_values(self._indices())))]),
        tree("values", [attempt(lambda: preformatted(_values(self._values())))]),
        label="sparse tensor",
    )


def module_html(self: Any) -> str:
    """Return a module as HTML: a tree of submodules with the shapes of their parameters.

    A parameter that several modules share is counted once, at its first place.
    """
    return block(attempt(lambda: _Tree(self).root()), label="module")


def explanation_html(self: Any) -> str:
    """Return the outcomes of a compiled function's calls, as HTML."""
    counts = [
        ("recorded (captures)", self.captures),
        ("replayed (hits)", self.hits),
        ("eager for good (fallbacks)", self.fallbacks),
        ("recordings kept", self.kept),
        ("recordings dropped", self.dropped),
    ]
    texts = {
        "Why calls were not replayed": self.reasons,
        "In what the last call that was recorded anew differs": [self.why] if self.why else [],
        "Machine code": self.loops,
        "Being built": self.building,
    }
    listed = {title: [element("div", t) for t in told] for title, told in texts.items() if told}
    return block(
        table(("calls", "count"), counts, numbers=[1]),
        *[tree(title, lines) for title, lines in listed.items()],
        label="how the calls of a compiled function went",
    )


def attempt(find: Callable[[], Any]) -> Any:
    """Return the result of a function, or a note with the error it raised."""
    try:
        return find()
    except Exception as error:
        return element("i", f"not known ({type(error).__name__})")


def _values(x: Tensor) -> str:
    if is_lazy(x):
        return "The shape is not known yet: call the module once."
    data = x._data
    if getattr(data, "is_symbolic", False):
        return "A variable of a Program has no values: fetch it with Executor.run."
    if getattr(data, "is_global", False):
        return "A global tensor: to_local() is this rank's part, numpy() on all ranks the whole."
    if getattr(data, "levels", None):
        return repr(x)  # inside a transform
    x._leave("numpy")
    return array_text(data)


def _tensor_facts(x: Tensor) -> Iterator[tuple[str, Callable[[], Any]]]:
    if not is_lazy(x):
        yield "shape", lambda: tuple(x.shape)
    yield "dtype", lambda: x.dtype
    yield "device", lambda: x.device
    yield "requires_grad", lambda: x.requires_grad
    if is_lazy(x):
        return
    yield "grad_fn", lambda: x.grad_fn
    if x._edge is not None and x.is_leaf:
        yield "grad", lambda: "None" if x.grad is None else f"of shape {tuple(x.grad.shape)}"
    data: Any = vars(x).get("_data")
    name = x._name or getattr(data, "name", None)
    if name is not None:
        yield "name", lambda: name
    if getattr(data, "is_global", False):
        yield "placement", lambda: data.placement
        yield "sbp", lambda: ", ".join(map(str, data.sbp))
        yield "this rank's part", lambda: f"of shape {data.local.shape}"


class _Tree:
    """A module's tree; it remembers the parameters and submodules shown before."""

    def __init__(self, module: Any) -> None:
        self.module = module
        self.tensors: dict[int, str] = {}  # the first path of each parameter and buffer
        self.modules: dict[int, str] = {}

    def root(self) -> Html:
        """Return the whole tree."""
        return self.node("", self.module, 0)

    def node(self, path: str, module: Any, level: int) -> Html:
        """Return the tree of a submodule."""
        name = path.rpartition(".")[2]
        title = [f"({name}): " if name else "", element("b", module._get_name())]
        first = self.modules.setdefault(id(module), path or "the root")
        if first != (path or "the root"):
            return tree(joined([*title, f" is {first} again"]))
        extra = attempt(module.extra_repr)
        title += [f"({extra})" if extra else "", ", ", parameter_counts(module)]
        below = [*self.members(path, module)]
        for child_name, child in module._modules.items():
            child_path = f"{path}.{child_name}" if path else child_name
            below.append(
                tree(f"({child_name}): None")
                if child is None
                else self.node(child_path, child, level + 1)
            )
        return tree(joined(title), below, open=level < _OPEN_LEVELS)

    def members(self, path: str, module: Any) -> Iterator[Html]:
        """Yield a line for each parameter and buffer of a module itself."""
        for kind, named in (("parameter", module._parameters), ("buffer", module._buffers)):
            for name, tensor in named.items():
                if tensor is None:
                    continue
                here = f"{path}.{name}" if path else name
                first = self.tensors.setdefault(id(tensor), here)
                facts = [attempt(lambda x=tensor: tensor_line(x))]  # type: ignore[misc]
                if kind == "buffer":
                    facts.append("buffer")
                elif not tensor.requires_grad:
                    facts.append("frozen")
                if first != here:
                    facts.append(f"shared with {first}, which counts once")
                yield tree(joined([element("code", name), " ", ", ".join(facts)]))


def tensor_line(x: Tensor) -> str:
    """Return shape and dtype of a parameter in a line."""
    if is_lazy(x):
        return f"of a shape not known yet, {x.dtype}"
    where = "" if x.device.type == "cpu" else f" on {x.device}"
    return f"{tuple(x.shape)} {x.dtype}{where}"


def parameter_counts(module: Any) -> str:
    """Return the number of parameters of a module and its submodules, shared ones counted once."""
    known = [x for x in module.parameters() if not is_lazy(x)]
    total = sum(x.numel() for x in known)
    frozen = sum(x.numel() for x in known if not x.requires_grad)
    text = f"{total:,} parameter{'' if total == 1 else 's'}"
    text += f", {frozen:,} of them frozen" if frozen else ""
    unknown = sum(map(is_lazy, module.parameters()))
    return text + (f" and {unknown} of a shape not known yet" if unknown else "")
