"""The end of a replay, after the Program has run, as one generated function.

It wraps arrays in tensors, makes nodes, repeats the effects of the call, and puts the returned
value together.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from oneflow_lite.autograd.node import NO_EDGE, Edge, make_node, tensor_info
from oneflow_lite.device import CPU, Device
from oneflow_lite.function_writer import FunctionWriter
from oneflow_lite.static.compile.compiled_node import NEVER_WRITTEN, FreedGradFunction
from oneflow_lite.static.compile.results import Results, Written
from oneflow_lite.static.runtime.runner import frames
from oneflow_lite.tensor import Tensor


class NodeOf:
    """A node that every replay makes.

    It gives the results at `outputs` a place in the graph; `owners` are the expressions of the
    tensors that get a gradient. For each variable that it keeps, `saved` has the expression of the
    tensor that holds its memory, None where there is none, and whether that tensor is the variable.
    A node that was released keeps nothing.
    """

    def __init__(
        self,
        function: FreedGradFunction,
        outputs: Sequence[int],
        owners: Sequence[str],
        saved: Sequence[tuple[str, tuple[str | None, bool]]] | None,
        device: Device,
    ) -> None:
        self.function, self.outputs, self.owners, self.saved = function, outputs, owners, saved
        self.device = device
        # Whether the inputs are the same at every call, so that their places need not be read.
        self.is_fixed = all(owner.startswith("g") for owner in owners)

    def lines(self, writer: FunctionWriter, number: int, arrays: Mapping[str, str]) -> list[str]:
        """Return the code that makes the node; `arrays` has expressions of fetched variables."""
        lines = [] if self.is_fixed else [self.binding(number)]
        saved = "None"
        if self.saved is not None:
            saved = f"({''.join([f'{self._kept(arrays, *item)}, ' for item in self.saved])})"
        outputs = [f"y{i}" for i in self.outputs]
        lines.append(
            f"node = make_node({writer.value(self.function)}, edges{number}, above{number}, "
            f"{saved}, {{}}, {outputs[0]}._data.shape, {outputs[0]}._data.dtype)"
        )
        if len(outputs) > 1 or self.device is not CPU:
            lines.append(f"node.infos = [{', '.join([f'tensor_info({y})' for y in outputs])}]")
        return [*lines, *[f"{y}._edge = (node, {k})" for k, y in enumerate(outputs)]]

    def binding(self, number: int) -> str:
        """Return the line that takes the places of the inputs."""
        edges = "".join(f"{owner}._edge or NO_EDGE, " for owner in self.owners)
        return f"edges{number}, above{number} = placed(({edges}))"

    def _kept(self, arrays: Mapping[str, str], name: str, holder: tuple[str | None, bool]) -> str:
        given, is_it = holder
        if given is None:
            return f"({name!r}, {arrays[name]}, NEVER_WRITTEN, 0, None)"
        return f"kept({name!r}, {given}{'' if is_it else ', ' + arrays[name]})"


def _placed(edges: tuple[Edge, ...]) -> tuple[tuple[Edge, ...], int]:
    """Return places in the graph, and the topological number above them."""
    return edges, 1 + max([edge[0].topological_nr for edge in edges if edge[0] is not None])


def _kept(name: str, tensor: Tensor, array: Any = None) -> tuple[Any, ...]:
    """Return a saved value of a node: a tensor, or another array in that tensor's memory."""
    storage = tensor.memory
    if array is None:
        return name, tensor._data, storage, storage.version, tensor._edge
    return name, array, storage, storage.version, None


class Finish:
    """The end of a replay, after the Program has run, as one function.

    Attributes
    ----------
    run : callable
        Takes the arguments and the arrays of the Program; returns what the function returns. The
        list of arrays ends with False, which becomes True when all is done but to return.
    bind : callable
        Takes the places in the graph that tensors from outside have now.
    can_leave : bool
        Whether what is left behind needs nothing but the arrays that ops before it have made.
    """

    def __init__(
        self,
        results: Results,
        written: Sequence[Written],
        nodes: Sequence[NodeOf],
        arrays: Mapping[str, str],
    ) -> None:
        self.nodes = nodes
        writer = results.writer
        writer.names.update(
            make_node=make_node, tensor_info=tensor_info, NO_EDGE=NO_EDGE, placed=_placed,
            kept=_kept, NEVER_WRITTEN=NEVER_WRITTEN,
        )  # fmt: skip
        for given, numbers in written:
            writer.lines.append(f"({given}._storage or {given}.memory).version += {len(numbers)}")
        entries = list(enumerate(results.entries))
        waiting = {i for i, entry in entries if entry.place == "node"}  # for a place in the graph
        there: set[int] = set()
        for i, entry in entries:
            if entry.source < 0:
                writer.lines += entry.lines
                there.add(i)
        there -= waiting
        # A view is recorded in the graph that its base has by then, and nodes may look at views.
        for number, node in enumerate((*nodes, None)):
            for i, entry in entries:
                if i not in there and i not in waiting and entry.source in there:
                    writer.lines += entry.lines
                    there.add(i)
            if node is not None:
                writer.lines += node.lines(writer, number, arrays)
                there.update(node.outputs)
        for effect in results.effects:
            writer.lines += effect.lines
        writer.lines += results.ending
        self.run = writer.function("finish(x, found)", "<finish>")
        binder = FunctionWriter(writer.names, ["pass"])
        for number, node in enumerate(nodes):
            if node.is_fixed:
                binder.lines += [f"global edges{number}, above{number}", node.binding(number)]
        self.bind = binder.function("bind()", "<finish>")
        self._lines, self._names = writer.lines[:-1], writer.names
        self.can_leave = results.can_leave
        self._left: list[tuple[int, str]] = []  # how many ops come before a line
        if self.can_leave:
            known: set[int] = set()
            for effect in sorted(results.effects, key=lambda effect: effect.number):
                needs = [i for i in dict.fromkeys(effect.needs) if i not in known]
                known.update(needs)
                lines = [line for i in needs for line in results.entries[i].lines]
                self._left += [(effect.number, line) for line in (*lines, *effect.lines)]

    def complete(self, arguments: Sequence[Tensor], found: list[Any], error: BaseException) -> None:
        """Do what `run` has not done when an exception came."""
        names: dict[str, Any] = {"x": arguments, "found": found}
        line = 0
        for at in frames(error):
            if at.tb_frame.f_globals is self._names:
                names.update(at.tb_frame.f_locals)
                line = max(at.tb_lineno - 2, 0)  # each line does its one effect last
        if not found[-1]:
            exec("\n".join(self._lines[line:]), {**self._names, **names})

    def leave(
        self,
        arguments: Sequence[Tensor],
        found: Mapping[int, Any] | Sequence[Any],
        number: int,
        versions: Mapping[str, int],
    ) -> None:
        """Leave behind what is there before the op of a number; `versions` counts writes."""
        names = {**self._names, "x": arguments, "found": found}
        for given, count in versions.items():
            eval(given, names).memory.version += count
        exec("\n".join(line for before, line in self._left if before <= number), names)
