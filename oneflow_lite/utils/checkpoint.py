"""Computing a part of the forward pass again in the backward pass, instead of keeping its tensors.

With `use_reentrant=False`, hooks keep the number of each saved tensor instead of the tensor. The
first tensor that a gradient needs runs the function again, and the gradient takes the tensors that
this run saves. With `use_reentrant=True`, the function is one node, which runs a backward pass of
its own.
"""

from __future__ import annotations

import contextlib
import weakref
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from oneflow_lite.arrays.device import array_module
from oneflow_lite.arrays.refusals import guarded
from oneflow_lite.autograd.engine.run import backward
from oneflow_lite.autograd.function import Function
from oneflow_lite.autograd.graph import saved_tensors_hooks
from oneflow_lite.errors import ArgumentError, CheckpointError, StaleTensorError
from oneflow_lite.functors.random import default_generator
from oneflow_lite.nn.containers import Sequential
from oneflow_lite.ops.exposure import expose
from oneflow_lite.tensors.caller_warnings import warn_caller
from oneflow_lite.tensors.mode import inference_mode, local
from oneflow_lite.tensors.tensor import Tensor

expose(globals())

__all__ = ["CheckpointError", "checkpoint", "checkpoint_sequential", "set_checkpoint_early_stop"]

_early_stop: bool | None = None


def noop_context_fn() -> tuple[Any, Any]:
    """Return two contexts that do nothing, for the first and the second run."""
    return contextlib.nullcontext(), contextlib.nullcontext()


class set_checkpoint_early_stop:
    """Set whether a second run stops at the last tensor that is needed: a context manager."""

    def __init__(self, enable: bool) -> None:
        self._enable = enable

    def __enter__(self) -> None:
        global _early_stop
        self._before, _early_stop = _early_stop, self._enable

    def __exit__(self, *exc_info: object) -> None:
        global _early_stop
        _early_stop = self._before


class _Randomness:
    """The state of the default generator when a function began, to begin its second run alike."""

    def __init__(self, preserve: bool, args: Any) -> None:
        self.cpu = default_generator.get_state() if preserve else None
        # CuPy's streams have no state that can be read: the function gets a new, seeded stream.
        self.seed: int | None = None
        device = next((x.device for x in args if isinstance(x, Tensor) and x.is_cuda), None)
        if preserve and device is not None:
            self.module = array_module(device)
            stream = default_generator.stream(self.module)
            self.seed = int(float(stream.random()) * 2**53)

    @contextlib.contextmanager
    def first(self) -> Iterator[None]:
        """Run the first time: on the CPU the generator goes on from its state."""
        if self.seed is None:
            yield
            return
        streams, name = default_generator._streams, self.module.__name__
        outer = streams[name]
        streams[name] = self.module.random.default_rng(self.seed)
        try:
            yield
        finally:
            streams[name] = outer

    @contextlib.contextmanager
    def again(self) -> Iterator[None]:
        """Run once more with the same numbers, and leave the generator as it was."""
        if self.cpu is None:
            yield
            return
        outer = default_generator.get_state()
        default_generator.set_state(self.cpu)
        try:
            with self.first():
                yield
        finally:
            default_generator.set_state(outer)


class _Stop(BaseException):
    """Ends the second run of a function when all that is needed was computed."""


class _Holder:
    """Stands for the tensor that a node saved as the n-th of a checkpointed function."""

    __slots__ = ("frame", "index")

    def __init__(self, frame: _Frame, index: int) -> None:
        self.frame, self.index = frame, index


class _Frame:
    """One call of a checkpointed function."""

    def __init__(
        self,
        function: Callable[..., Any],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        randomness: _Randomness,
        context: Any,
        check: bool,
        early_stop: bool,
    ) -> None:
        self.function, self.args, self.kwargs = function, args, kwargs
        self.randomness, self.context = randomness, context
        self.check, self.early_stop = check, early_stop
        self.saved: list[tuple[Any, ...]] = []  # facts, storage and version of each tensor
        # The second run needs the arguments as they were, so it compares their versions.
        self.given = [(x, x._version) for x in (*args, *kwargs.values()) if isinstance(x, Tensor)]
        # By backward call: two calls at once, each with its own tensors, must not share a run.
        self.computed: weakref.WeakKeyDictionary[Any, list[Any]] = weakref.WeakKeyDictionary()

    def pack(self, tensor: Tensor) -> _Holder:
        """Keep the place of a tensor instead of the tensor."""
        self.saved.append((_facts(tensor), tensor.memory, tensor._version))
        return _Holder(self, len(self.saved) - 1)

    def unpack(self, index: int) -> Tensor:
        """Return a tensor that was saved, computed anew once for each backward call."""
        task = local.task
        tensors = None if task is None else self.computed.get(task)
        if tensors is None or tensors[index] is None:
            tensors = self.compute()
            if task is not None:
                self.computed[task] = tensors
        tensor, version = tensors[index]
        tensors[index] = None  # freed early: a second request, under retain_graph, runs again
        if tensor._version != version:
            raise StaleTensorError(
                f"checkpoint(): the saved tensor {index} of shape {tensor.shape} was modified in "
                "place when the function ran again; use the out-of-place op"
            )
        return tensor  # type: ignore[no-any-return]

    def compute(self) -> list[Any]:
        """Run the function again and return what its nodes save."""
        for tensor, version in self.given:
            if tensor._version != version:
                raise StaleTensorError(
                    f"checkpoint(): an argument of shape {tensor.shape} was modified in place: it "
                    f"is at version {tensor._version}, the function has to run again on version "
                    f"{version}; clone() it before writing to it"
                )
        recomputed: list[Any] = []

        def pack(tensor: Tensor) -> Tensor:
            position = len(recomputed)
            if position < len(self.saved):
                self._compare(position, tensor)
            kept = tensor._cut()
            recomputed.append((kept, kept._version))
            # The rest of the function computes nothing that a gradient needs.
            if self.early_stop and len(recomputed) == len(self.saved):
                raise _Stop
            return kept

        hooks = saved_tensors_hooks(pack, lambda tensor: tensor)
        with (
            contextlib.suppress(_Stop),
            self.randomness.again(),
            inference_mode(False),
            self.context,
            hooks,
        ):
            self.function(*self.args, **self.kwargs)
        if len(recomputed) != len(self.saved) and (self.check or len(recomputed) < len(self.saved)):
            raise CheckpointError(
                f"checkpoint(): the function saved {len(self.saved)} tensor(s) for its gradient at "
                f"first and {len(recomputed)} when it ran again; it has to do the same both times"
            )
        return recomputed

    def _compare(self, position: int, tensor: Tensor) -> None:
        facts, storage, version = self.saved[position]
        if self.check and _facts(tensor) != facts:
            raise CheckpointError(
                f"checkpoint(): the saved tensor {position} was of {facts} at first and is of "
                f"{_facts(tensor)} when the function runs again; it has to do the same both times"
            )
        # A parameter, say, is the same tensor in both runs, and no argument.
        if tensor.memory is storage and tensor._version != version:
            raise StaleTensorError(
                f"checkpoint(): a tensor of shape {tensor.shape} that the function uses was "
                f"modified in place: it is at version {tensor._version}, the gradient needs "
                f"version {version}; run backward() before writing to it"
            )


def _facts(tensor: Tensor) -> tuple[Any, ...]:
    return tensor.shape, tensor.dtype, tensor.device


def _unpack(holder: _Holder) -> Tensor:
    return holder.frame.unpack(holder.index)


class CheckpointFunction(Function):
    """A checkpointed function as one node, which runs a backward pass of its own."""

    @staticmethod
    def forward(ctx: Any, function: Callable[..., Any], preserve: bool, *args: Any) -> Any:
        """Run the function without recording."""
        ctx.function = function
        ctx.randomness = _Randomness(preserve, args)
        ctx.places = [i for i, arg in enumerate(args) if isinstance(arg, Tensor)]
        ctx.args = [None if isinstance(arg, Tensor) else arg for arg in args]
        ctx.save_for_backward(*[args[i] for i in ctx.places])
        with ctx.randomness.first():
            return function(*args)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        """Run the function again, recorded, and take the gradients of the arguments."""
        # The inner backward pass adds to `.grad` of all leaves, which autograd.grad() must not do.
        task = local.task
        if task is None or not task.accumulate or task.exec_info is not None:
            raise CheckpointError(
                "checkpoint(): with use_reentrant=True there is no autograd.grad() and no "
                "backward(inputs=...), since gradients of what the function uses go to .grad; "
                "pass use_reentrant=False"
            )
        args = list(ctx.args)
        for place, tensor in zip(ctx.places, ctx.saved_tensors, strict=True):
            args[place] = tensor._cut()
            args[place].requires_grad = tensor.requires_grad
        with ctx.randomness.again(), inference_mode(False):
            outputs = ctx.function(*args)
        outputs = outputs if isinstance(outputs, tuple) else (outputs,)
        pairs = [
            (y, dy)
            for y, dy in zip(outputs, grads, strict=True)
            if isinstance(y, Tensor) and y.requires_grad
        ]
        if not pairs:
            raise CheckpointError(
                "checkpoint(): no output of the function requires a gradient when it runs again, "
                "so that a checkpoint is not necessary"
            )
        backward([y for y, _ in pairs], [dy for _, dy in pairs])
        given = [arg.grad if isinstance(arg, Tensor) else None for arg in args]
        return None, None, *given


@guarded
def checkpoint(
    function: Callable[..., Any],
    *args: Any,
    use_reentrant: bool | None = None,
    context_fn: Callable[[], tuple[Any, Any]] = noop_context_fn,
    determinism_check: str = "default",
    debug: bool = False,
    early_stop: bool = True,
    preserve_rng_state: bool = True,
    **kwargs: Any,
) -> Any:
    """Run a function without keeping what its gradient needs; it runs again in the backward pass.

    Parameters
    ----------
    function : callable
        It has to do the same both times.
    *args, **kwargs
        The arguments of the call; keyword arguments with `use_reentrant=False` only.
    use_reentrant : bool, optional
        False: the graph is that of the function, and every kind of derivative works. True: the
        function is one node, for `backward()` alone; at least one argument has to require a
        gradient. None is True, with a warning.
    context_fn : callable
        Returns two context managers, for the first and for the second run.
    determinism_check : {"default", "none"}
        Whether shapes, dtypes and devices of the tensors that both runs save are compared.
    debug : bool
        Without effect: errors name the tensor in any case.
    early_stop : bool
        Whether the second run stops at the last tensor that is needed.
    preserve_rng_state : bool
        Whether the second run draws the same random numbers from the default generator. On CUDA
        devices the function then draws numbers of a stream of its own, unlike without a checkpoint.

    Raises
    ------
    CheckpointError
        When the function does not do the same the second time.
    StaleTensorError
        When an argument, or a tensor that the function uses, was written in between.

    Examples
    --------
    >>> import oneflow_lite as flow
    >>> from oneflow_lite.utils.checkpoint import checkpoint
    >>> x = flow.tensor([0.5, 2.0], requires_grad=True)
    >>> checkpoint(lambda x: x.exp().sin(), x, use_reentrant=False).sum().backward()
    >>> x.grad
    tensor([-0.1283,  3.3129])
    """
    if use_reentrant is None:
        use_reentrant = _assume_reentrant("checkpoint")
    if determinism_check not in ("default", "none"):
        raise ArgumentError(
            "checkpoint(): argument 'determinism_check': expected 'default' or 'none', got "
            f"{determinism_check!r}; choose one of these"
        )
    if use_reentrant:
        if kwargs or context_fn is not noop_context_fn or debug:
            names = [*kwargs] or ["context_fn" if not debug else "debug"]
            raise ArgumentError(
                f"checkpoint(): argument {names[0]!r}: expected none with use_reentrant=True; "
                "pass use_reentrant=False"
            )
        if not any([isinstance(x, Tensor) and x.requires_grad for x in args]):
            warn_caller("checkpoint(): no argument requires a gradient, so nothing is recorded")
        return CheckpointFunction.apply(function, preserve_rng_state, *args)
    first, second = context_fn()
    randomness = _Randomness(preserve_rng_state, (*args, *kwargs.values()))
    stop = early_stop if _early_stop is None else _early_stop
    check = determinism_check == "default"
    frame = _Frame(function, args, kwargs, randomness, second, check, stop)
    with saved_tensors_hooks(frame.pack, _unpack), first, randomness.first():
        return function(*args, **kwargs)


@guarded
def checkpoint_sequential(
    functions: Sequence[Callable[..., Any]] | Sequential,
    segments: int,
    input: Any,
    use_reentrant: bool | None = None,
    preserve_rng_state: bool = True,
) -> Any:
    """Run functions one after another in segments, each but the last a checkpoint.

    Parameters
    ----------
    functions : Sequential or sequence of callable
    segments : int
    input : Tensor
    use_reentrant, preserve_rng_state
        As in `checkpoint`.

    Examples
    --------
    >>> import oneflow_lite as flow
    >>> from oneflow_lite.utils.checkpoint import checkpoint_sequential
    >>> x = flow.tensor([1.0], requires_grad=True)
    >>> y = checkpoint_sequential([flow.exp, flow.sin, flow.exp], 2, x, use_reentrant=False)
    >>> y
    tensor([1.5080], grad_fn=<exp_backward>)
    """
    if use_reentrant is None:
        use_reentrant = _assume_reentrant("checkpoint_sequential")
    steps = list(functions.children()) if isinstance(functions, Sequential) else list(functions)
    size = len(steps) // segments

    def run(part: Sequence[Callable[..., Any]]) -> Callable[[Any], Any]:
        def forward(x: Any) -> Any:
            for step in part:
                x = step(x)
            return x

        return forward

    last = size * (segments - 1)
    for start in range(0, last, size or 1):
        input = checkpoint(
            run(steps[start : start + size]),
            input,
            use_reentrant=use_reentrant,
            preserve_rng_state=preserve_rng_state,
        )
    return run(steps[last:])(input)


def _assume_reentrant(op: str) -> bool:
    warn_caller(f"{op}(): pass use_reentrant explicitly; False is recommended, True is assumed")
    return True
