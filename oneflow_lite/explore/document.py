"""The document of an exploration: all that Python hands to the page.

It is plain: dicts, lists, numbers, strings, booleans and None, so that
`json.loads(json.dumps(document)) == document`. Keys that are ids are strings, as JSON has it. The
classes here describe the dicts; `Document` is the whole.

Ids are ints. A tensor's id is its place in `tensors`, and so for `ops` and `nodes`: `nodes[7]["id"]
== 7`. A run's number is its place in `runs`. A place in code is a `[file, line]`; files of the user
are named as in `sources`, those of the library as `"functors/activation.py:12"`.

`programs` and `compiled` are made by the modules of these names, which describe them. Each has a
class `Watch(values)`, a context manager for the time of the exploration; its `parts()` is the list.
There a "source" is `[path of a file, line]`, until the exploration gives the file its name.
"""

from __future__ import annotations

from typing import Any, NotRequired, TypedDict

FORMAT = 1
SourceLine = list[Any]  # [name of a source, line]
Number = float | str  # a str for what JSON lacks: "nan", "inf", "-inf"


class Value(TypedDict):
    """The contents of a tensor. Only where the document has values.

    Attributes
    ----------
    text : str
        The elements to 4 digits, on one line, shortened where there are many.
    rows : list of list of (number or None)
        An image, to 4 digits: of a matrix with at least 2 rows and 2 columns, of a long vector as
        one row, and of the filters of a convolution, a row of images for each output channel with
        None between the filters. A matrix or vector that is too large for the document is thinned:
        every k-th row and column. Of filters the first are shown. Complex numbers are shown by
        their absolute values.
    low, high : float
        The least and the greatest finite element of the whole; with `rows`. Both 0 when none is
        finite.
    nan : bool
        True where an element is NaN; left out elsewhere.
    """

    text: str
    rows: NotRequired[list[list[Number | None]]]
    low: NotRequired[float]
    high: NotRequired[float]
    nan: NotRequired[bool]


class Source(TypedDict):
    """The text of a user's file, around the lines that the document names.

    Attributes
    ----------
    name : str
        The file's name, with as many folders as make it unique.
    first : int
        The number of the first line of `text`.
    text : str
    """

    name: str
    first: int
    text: str


class ModulePart(TypedDict):
    """A module that was called.

    Attributes
    ----------
    path : str
        The class of the outermost module, then the names of children, as
        "MLP.layers.0". A second outermost module of that class is "MLP#2".
    kind : str
        Its class, as "Linear".
    """

    path: str
    kind: str


class TensorPart(TypedDict):
    """A tensor that an op took or made. In-place writes leave its id as it is.

    Attributes
    ----------
    id : int
    name : str
        The path of a parameter, else the variable that holds the tensor at the end of the
        exploration; empty without either.
    shape : list of int
    dtype, device : str
    bytes : int
        Of its elements.
    level : str
        What it stands for inside a transform, as "batch of 5, vmap"; empty elsewhere.
    leaf : bool
        Whether it requires a gradient and no recorded op made it.
    requires_grad : bool
    view_of : int or None
        The base whose memory it shares.
    alias_of : int or None
        The tensor with the same array, such as the origin of a `detach` or of a saved tensor.
    memory : int
        Tensors with the same number share memory; -1 where memory cannot be followed.
    value : Value or None
        When it was first seen. None without values.
    """

    id: int
    name: str
    shape: list[int]
    dtype: str
    device: str
    bytes: int
    level: str
    leaf: bool
    requires_grad: bool
    view_of: int | None
    alias_of: int | None
    memory: int
    value: Value | None


class SavedPart(TypedDict):
    """A tensor that a node keeps for its gradient.

    Attributes
    ----------
    name : str
        As the gradient rule knows it.
    tensor : int or None
        None where no op of the exploration took or made it.
    shape : list of int
    dtype : str
    bytes : int
    version : int
        Of its memory when it was saved; a later version refuses the gradient.
    packed : bool
        Whether a hook on saved tensors keeps an object in its place.
    why : str
        From the declaration of the gradient rule, in words.
    """

    name: str
    tensor: int | None
    shape: list[int]
    dtype: str
    bytes: int
    version: int
    packed: bool
    why: str


class Rebased(TypedDict):
    """A tensor whose history a write changed.

    Attributes
    ----------
    tensor : int
        The tensor written, its base, or another view of the base.
    old, new : int or None
        The node that the tensor came from, before and after.
    """

    tensor: int
    old: int | None
    new: int | None


class OpPart(TypedDict):
    """One op, as a pushed interpreter saw it, or the call of a custom Function.

    The call of a Function comes after the ops of its `forward`, when its node is made. It has no
    interpreters, and its inputs are the tensors that require a gradient.

    Attributes
    ----------
    id : int
    op : str
    functor : str
        The place of the innermost functor that dispatched it, as "functors/activation.py:12", or of
        another function of the library, such as the operator `*`.
    functors : list of str
        The names of all functors on the way, the outermost first: `["mse_loss", "mean"]`. For a
        view that is taken anew from its base after a write, `["replay_view"]`.
    interpreters : list of str
        The stack that it went through, from the top, without the explorer's own.
    kernel : str
        The kernel's place, as "kernels/activation.py:40", or NumPy's function: "numpy.add".
    source : [file, line] or None
        The user's line.
    module : str
        The path of the innermost module, see `ModulePart`; empty outside of all.
    inputs : list of int or None
        Tensors, in the order of the kernel's parameters.
    outputs : list of int
    parameters : list of str
        The kernel's names for the inputs.
    attrs : dict of str to str
    node : int or None
        The node that was recorded.
    saved : list of SavedPart
        The tensors that the node keeps.
    versions : dict of tensor to [int, int]
        Of the memory of inputs, before and after, where it changed or is not 0.
    writes : list of int
        The tensors that it wrote.
    written : dict of tensor to Value
        Their contents afterwards; empty without values.
    rebased : list of Rebased
    run : int or None
        The backward call in which it ran.
    by : int or None
        The node whose turn it was in that call.
    thread : int
        0 for the thread that explores.
    alive : int
        Bytes of all memory seen so far that exists after the op.
    error : str or None
        The exception that it raised.
    """

    id: int
    op: str
    functor: str
    functors: list[str]
    interpreters: list[str]
    kernel: str
    source: SourceLine | None
    module: str
    inputs: list[int | None]
    outputs: list[int]
    parameters: list[str]
    attrs: dict[str, str]
    node: int | None
    saved: list[SavedPart]
    versions: dict[str, list[int]]
    writes: list[int]
    written: dict[str, Value]
    rebased: list[Rebased]
    run: int | None
    by: int | None
    thread: int
    alive: int
    error: str | None


class EdgePart(TypedDict):
    """The destination of the gradient that a node sends for one input.

    Attributes
    ----------
    to : int
        A node.
    output : int
        Which output of that node the input was.
    input : int
        Which input of this node's op.
    shape : list of int
        Of the gradient that is sent.
    dtype : str
    """

    to: int
    output: int
    input: int
    shape: list[int]
    dtype: str


class NodePart(TypedDict):
    """A node of the backward graph.

    Attributes
    ----------
    id : int
    name : str
        As "relu_backward"; of a leaf "accumulate_grad".
    label : str
        Its name on the page: a leaf's tensor, else the name with a number.
    kind : str
        "op", "leaf", "function" (a custom Function) or "root" (above several roots).
    topological_nr : int
        The longest distance to a leaf.
    sequence_nr : int
        The order in which nodes were made.
    module : str
    source : [file, line] or None
        Where its op was called.
    op : int or None
        The op that recorded it, if the exploration saw it.
    rule : str
        Its gradient rule's place, as "grad_funcs/activation.py:30"; empty for a leaf.
    layer : int
        0 for the forward graph. A backward call makes nodes one layer above the highest that it
        runs: 1 is double backward.
    made_by : int or None
        The node whose gradient made it, above layer 0.
    shape : list of int
        Of output 0; `shapes` has all outputs, None for one without a gradient.
    shapes : list of (list of int or None)
    dtype : str
    tensor : int or None
        The leaf's, or the first output's if the exploration saw it.
    saved : list of SavedPart
    hooks : list of str
        In words: "tensor hook f", "prehook g", "hook h", "post-accumulate hook k", "retain_grad".
    edges : list of EdgePart
    """

    id: int
    name: str
    label: str
    kind: str
    topological_nr: int
    sequence_nr: int
    module: str
    source: SourceLine | None
    op: int | None
    rule: str
    layer: int
    made_by: int | None
    shape: list[int]
    shapes: list[list[int] | None]
    dtype: str
    tensor: int | None
    saved: list[SavedPart]
    hooks: list[str]
    edges: list[EdgePart]


class Gradient(TypedDict):
    """A gradient: a partial sum, a complete sum, or the contents of `.grad`.

    Attributes
    ----------
    output : int
        Of the node.
    shape : list of int
    dtype : str
    bytes : int
    value : Value or None
        None without values.
    """

    output: int
    shape: list[int]
    dtype: str
    bytes: int
    value: Value | None


class ReadyChange(TypedDict):
    """A change of the ready queue, in nodes: the next to run comes first."""

    added: list[int]
    removed: list[int]


class Start(TypedDict):
    """The state of a backward call before any node ran.

    Attributes
    ----------
    ready : list of int
        The ready queue.
    dependencies : dict of node to int
        The number of gradients that each node of the call waits for.
    not_ready : dict of node to list of Gradient
        The sums so far: the gradients of the roots.
    held, alive : int
        As in a step.
    """

    ready: list[int]
    dependencies: dict[str, int]
    not_ready: dict[str, list[Gradient]]
    held: int
    alive: int


class StepPart(TypedDict):
    """The turn of a node, and its changes. All that is missing here is as it was before.

    Attributes
    ----------
    node : int
    ready : ReadyChange
    dependencies : dict of node to int
        The counts that changed. The node itself has none any more.
    not_ready : dict of node to list of Gradient
        The sums that changed, whole. The node's own is gone: see `current_grad`.
    current_grad : list of Gradient
        The gradients that had arrived at the node when its turn came, before hooks.
    acc_grad : list of Gradient
        The `.grad` (of a leaf, or of a tensor that retains it) after the turn.
    captured : dict of position to Gradient
        The gradients that `autograd.grad` keeps for its inputs, by their positions.
    ops : [int, int]
        The first op that ran in the turn, and the first after it.
    released : int
        Bytes that the node held alone and let go of.
    held : int
        Bytes that saved tensors of the call's nodes and waiting sums hold, each memory once.
    freed : int
        Bytes of known memory that ceased to exist since the step before.
    alive : int
        Bytes of all memory seen so far that exists.
    """

    node: int
    ready: ReadyChange
    dependencies: dict[str, int]
    not_ready: dict[str, list[Gradient]]
    current_grad: list[Gradient]
    acc_grad: list[Gradient]
    captured: dict[str, Gradient]
    ops: list[int]
    released: int
    held: int
    freed: int
    alive: int


class RunPart(TypedDict):
    """A backward call as a film: its start, and the changes of each step.

    Attributes
    ----------
    number : int
    parent : int or None
        The call that this call ran inside of.
    kind : str
        "backward" or "grad".
    rehearsal : bool
        Whether the explorer made the call, to show what `backward` would do: nothing is written to
        `.grad` and nothing is released; `released` and `held` are as `backward` would leave them.
    roots : list of int
        Nodes.
    root : int
        The node that it starts from: the root, or a node above several roots.
    inputs : list of int or None
        Nodes of the inputs that were named, by position, -1 for an input that the roots do not lead
        to; None without named inputs.
    retain_graph, create_graph : bool
    recorded : bool
        Whether gradients are tensors and go through the functors.
    layer : int
        Of the nodes that it makes when create_graph is on.
    order : list of int
        The nodes that run, the latest made first.
    pruned : list of int
        Nodes behind the roots that do not run, because they lead to no input.
    unvisited : list of int
        The nodes of `pruned` that the walk did not reach: their topological numbers are too small.
    needed : list of int
        With inputs: the nodes whose rules run; the rest of `order` only receives.
    op : int
        The first op at or after the start of the call.
    source : [file, line] or None
        The user's line that called.
    start : Start
    steps : list of StepPart
    error : str or None
        The exception that ended it.
    """

    number: int
    parent: int | None
    kind: str
    rehearsal: bool
    roots: list[int]
    root: int
    inputs: list[int] | None
    retain_graph: bool
    create_graph: bool
    recorded: bool
    layer: int
    order: list[int]
    pruned: list[int]
    unvisited: list[int]
    needed: list[int]
    op: int
    source: SourceLine | None
    start: Start
    steps: list[StepPart]
    error: str | None


class ErrorPart(TypedDict):
    """The exception that ended the block.

    Attributes
    ----------
    kind : str
        Its class.
    text : str
        With its notes. Empty without values, since it may show values.
    source : [file, line] or None
    """

    kind: str
    text: str
    source: SourceLine | None


class LeftOut(TypedDict):
    """The ops that ran after `limit` ops had been written down.

    Attributes
    ----------
    ops : int
    runs : int
        Backward calls that began after the limit.
    """

    ops: int
    runs: int


class Document(TypedDict):
    """The whole document.

    Attributes
    ----------
    format : int
        1.
    version : str
        Of the library.
    title : str
    values : bool
        Whether values of tensors and the text of sources are in it.
    error : ErrorPart or None
    left_out : LeftOut
    sources : list of Source
        Empty without values: then places are names and line numbers.
    modules : list of ModulePart
    tensors : list of TensorPart
    ops : list of OpPart
        In the order in which they began.
    nodes : list of NodePart
    runs : list of RunPart
    programs : list of dict
        See `programs.py`.
    compiled : list of dict
        See `compiled.py`.
    """

    format: int
    version: str
    title: str
    values: bool
    error: ErrorPart | None
    left_out: LeftOut
    sources: list[Source]
    modules: list[ModulePart]
    tensors: list[TensorPart]
    ops: list[OpPart]
    nodes: list[NodePart]
    runs: list[RunPart]
    programs: list[dict[str, Any]]
    compiled: list[dict[str, Any]]
