"""`cond`, `switch_case` and `while_loop`: Python control flow that a Program can hold.

While ops run eagerly, the three are plain Python. While a Program is captured, or `flow.compile`
records, each function is captured in a sub-block, and a single op chooses among the blocks.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import oneflow_lite.static.control_flow.grad_funcs
import oneflow_lite.static.control_flow.kernels  # noqa: F401  (both register)
from oneflow_lite.arrays.refusals import guarded
from oneflow_lite.functors.creation import tensor
from oneflow_lite.interpreter.dispatch import dispatch
from oneflow_lite.ops.op_expr import op_expr
from oneflow_lite.static.control_flow.arguments import (
    Branch,
    as_list,
    check_callable,
    check_loop_vars,
    check_one_element,
    functions_by_index,
)
from oneflow_lite.static.control_flow.block_gradient import is_differentiable, with_kept
from oneflow_lite.static.control_flow.structures import (
    Result,
    check_same_results,
    no_tensor,
    numbers_as_tensors,
    numbers_to_tensors,
)
from oneflow_lite.static.ir.program import Block
from oneflow_lite.static.ir.tree import flatten, unflatten
from oneflow_lite.static.lazy.block_capture import (
    BlockCapture,
    Captured,
    enclosing_block,
    names_of,
    undone_on_error,
)
from oneflow_lite.tensors.mode import local
from oneflow_lite.tensors.tensor import Tensor


@guarded
def cond(
    pred: Tensor,
    true_fn: Branch | None = None,
    false_fn: Branch | None = None,
    name: str | None = None,
    return_names: Sequence[str] | None = None,
) -> Any:
    """Call one of two functions, chosen when the Program runs, and return its result.

    Parameters
    ----------
    pred : Tensor or bool
        With one element.
    true_fn, false_fn : callable, optional
        Without arguments. Each returns a tensor, or a nested tuple, list or dict of tensors, of the
        same structure, shapes and dtypes. A function that is left out returns None.
    name, return_names
        For Paddle's scripts; without effect.

    Returns
    -------
    object
        The result of the chosen function.

    Raises
    ------
    ArgumentError, ShapeError, DTypeError
        While a Program is captured: when the results differ in structure, shape or dtype.
    CaptureError
        While a Program is captured: when a function writes to a tensor from outside, reads a value
        or builds a module.

    Examples
    --------
    >>> import numpy as np
    >>> import oneflow_lite as flow
    >>> main = flow.static.Program()
    >>> with flow.static.program_guard(main):
    ...     x = flow.static.data("x", [2])
    ...     y = flow.static.nn.cond(x.sum() > 0, lambda: x * 2, lambda: -x)
    >>> executor = flow.static.Executor()
    >>> executor.run(main, feed={"x": np.array([1, 2], "float32")}, fetch_list=[y])
    [array([2., 4.], dtype=float32)]
    >>> executor.run(main, feed={"x": np.array([1, -2], "float32")}, fetch_list=[y])
    [array([-1.,  2.], dtype=float32)]
    """
    for argument, function in (("true_fn", true_fn), ("false_fn", false_fn)):
        check_callable("cond", argument, function, optional=True)
    functions = [function or _nothing for function in (true_fn, false_fn)]
    check_one_element("cond", "pred", pred)
    around = enclosing_block()
    if around is None or not isinstance(pred, Tensor):
        return functions[0]() if pred else functions[1]()
    return _branches("cond", around, pred, ["true_fn", "false_fn"], functions, {})


@guarded
def switch_case(
    branch_index: Tensor,
    branch_fns: Any,
    default: Branch | None = None,
    name: str | None = None,
) -> Any:
    """Call one of several functions, chosen when the Program runs, and return its result.

    Parameters
    ----------
    branch_index : Tensor or int
        An integer with one element.
    branch_fns : dict of int to callable, or sequence of callables or of (int, callable)
        The functions, as for `cond`, by index.
    default : callable, optional
        For any other index; the function with the largest index if None.
    name
        For Paddle's scripts; without effect.

    Raises
    ------
    ArgumentError, ShapeError, DTypeError, CaptureError
        As for `cond`.

    Examples
    --------
    >>> import oneflow_lite as flow
    >>> x = flow.tensor([1.0, 2.0])
    >>> flow.static.nn.switch_case(flow.tensor(1), [lambda: x, lambda: x * 10, lambda: x * 100])
    tensor([10., 20.])
    """
    functions = functions_by_index(branch_fns)
    check_callable("switch_case", "default", default, optional=True)
    check_one_element("switch_case", "branch_index", branch_index)
    if default is None:
        default = functions[max(functions)]
    around = enclosing_block()
    if around is None or not isinstance(branch_index, Tensor):
        return functions.get(int(branch_index), default)()
    labels = [*[f"branch_fns[{key}]" for key in functions], "default"]
    keys = {"keys": tuple(functions)}
    given = [*functions.values(), default]
    return _branches("switch_case", around, branch_index, labels, given, keys)


@guarded
def while_loop(
    cond: Callable[..., Any],
    body: Callable[..., Any],
    loop_vars: Sequence[Any],
    is_test: bool = False,
    name: str | None = None,
) -> list[Any]:
    """Call a function on its own results while a condition holds.

    Parameters
    ----------
    cond : callable
        Takes the loop variables; returns a tensor with one element.
    body : callable
        Takes the loop variables; returns as many new ones, of the same structure, shapes and
        dtypes.
    loop_vars : list or tuple
        Tensors, numbers, or nested tuples, lists and dicts of them.
    is_test : bool
        Whether no gradient will be taken: then nothing is kept for one.
    name
        For Paddle's scripts; without effect.

    Returns
    -------
    list
        The loop variables after the last iteration.

    Raises
    ------
    ArgumentError, ShapeError, DTypeError
        When the body does not return variables like those that it takes.
    CaptureError
        As for `cond`.

    Examples
    --------
    >>> import numpy as np
    >>> import oneflow_lite as flow
    >>> main = flow.static.Program()
    >>> with flow.static.program_guard(main):
    ...     x = flow.static.data("x", [2])
    ...     y, n = flow.static.nn.while_loop(
    ...         lambda y, n: y.sum() < 100, lambda y, n: (y * 2, n + 1), [x, 0]
    ...     )
    >>> flow.static.Executor().run(main, {"x": np.array([1, 2], "float32")}, [y, n])
    [array([ 64., 128.], dtype=float32), array(6)]
    """
    check_callable("while_loop", "cond", cond)
    check_callable("while_loop", "body", body)
    check_loop_vars(loop_vars)
    around = enclosing_block()
    if around is not None:
        return _loop(around, cond, body, loop_vars, is_test)
    state = list(loop_vars)
    while _holds(cond(*state)):
        state = as_list(body(*state), len(state))
    return state


# Branches


def _branches(
    op: str,
    around: Block,
    selector: Tensor,
    labels: Sequence[str],
    functions: Sequence[Branch],
    options: dict[str, Any],
) -> Any:
    """Capture functions in blocks, and dispatch the op that chooses one."""
    program = around.program
    with undone_on_error(program):
        captured = Captured(op, program)
        captures = []
        results = []
        for function in functions:
            capture = BlockCapture(program.create_block(around), captured)
            captures.append(capture)
            with capture.capturing():
                results.append(Result.of(function()))
        for i, capture in enumerate(captures):
            with capture.capturing():
                numbers_to_tensors(results, i)
        check_same_results(op, labels, results)
        if not results[0].tensors:
            return unflatten(results[0].spec, no_tensor)
        outputs = []
        for capture, result in zip(captures, results, strict=True):
            seen: list[Any] = []
            result.tensors = [capture.own(y, seen) for y in result.tensors]
            capture.check_graph(result.tensors)
            outputs.append(names_of(result.tensors))
        for capture, result in zip(captures, results, strict=True):
            capture.finish(captured.stand_ins, result.tensors)
        keeps = local.state.grad_enabled and any(x.requires_grad for x in captured.outer)
        attrs = {
            "blocks": tuple([capture.block for capture in captures]),
            "names": names_of(captured.stand_ins),
            "outputs": with_kept(captures, outputs, keeps),
            "visible": len(outputs[0]),
            **options,
        }
        output = dispatch(op_expr(op), (selector, *captured.outer), attrs)
    made = output if type(output) is tuple else (output,)
    return unflatten(results[0].spec, lambda position: made[position])


# Loops


def _loop(
    around: Block,
    condition: Callable[..., Any],
    body: Callable[..., Any],
    loop_vars: Sequence[Any],
    is_test: bool,
) -> list[Any]:
    """Capture a loop in two blocks, and dispatch the op that runs it."""
    program = around.program
    inits: list[Tensor] = []
    spec = flatten([numbers_as_tensors(x) for x in loop_vars], inits)
    with undone_on_error(program):
        captured = Captured("while_loop", program)
        differentiable = local.state.grad_enabled and not is_test
        variables = [captured.new(x, differentiable, "loop") for x in inits]
        arguments = unflatten(spec, lambda position: variables[position])
        first = BlockCapture(program.create_block(around), captured)
        second = BlockCapture(program.create_block(around), captured)
        for capture in (first, second):
            for x in variables:
                capture.declare(x)
        with first.capturing():
            predicate = condition(*arguments)
            check_one_element("while_loop", "cond", predicate)
            if not isinstance(predicate, Tensor):
                predicate = tensor(bool(predicate))
        predicate = first.own(predicate, [])
        with second.capturing():
            given = [numbers_as_tensors(x) for x in as_list(body(*arguments), len(loop_vars))]
            result = Result.of(given)
        check_same_results("while_loop", ["loop_vars", "body"], [Result(spec, inits), result])
        seen: list[Any] = []
        result.tensors = [second.own(y, seen) for y in result.tensors]
        inputs = [*variables, *captured.stand_ins]
        first.finish(inputs, [predicate])
        second.check_graph(result.tensors)
        second.finish(inputs, result.tensors)
        outer = (*inits, *captured.outer)
        tape = (
            differentiable
            and any(x.requires_grad for x in outer)
            and any(map(is_differentiable, inits))
        )
        attrs = {
            "condition": first.block,
            "body": second.block,
            "names": names_of(inputs),
            "predicate": names_of([predicate]),
            "outputs": names_of(result.tensors),
            "kept": second.kept(names_of(result.tensors)) if tape else (),
            "tape": tape,
        }
        output = dispatch(op_expr("while_loop"), outer, attrs)
    made = output if type(output) is tuple else (output,)
    state: list[Any] = unflatten(spec, lambda position: made[position])
    return state


def _nothing() -> None:
    """Take the place of a function that was left out."""


def _holds(predicate: Any) -> bool:
    check_one_element("while_loop", "cond", predicate)
    return bool(predicate)
