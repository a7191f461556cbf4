"""The kernels of control flow, which choose sub-blocks among their attributes and run them.

These kernels run parts of a Program, so they stand here and not in `kernels/`. Each is registered
as random: a block may draw numbers, so no pass may move the op.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from oneflow_lite.arrays.array_spec import ArraySpec
from oneflow_lite.ops.registry import register_kernel
from oneflow_lite.static.control_flow.block_run import run_block
from oneflow_lite.static.control_flow.loop_derivatives import (
    TAPE,
    derivatives,
    make_tape,
    read_tape,
)
from oneflow_lite.static.ir.program import Block, VarDesc

Names = tuple[str, ...]


def _infer_branches(*inputs: Any, blocks: Any, outputs: Any, **attrs: Any) -> Any:
    descs = [_desc(blocks, outputs, k) for k in range(len(outputs[0]))]
    return tuple([ArraySpec(desc.shape, desc.dtype) for desc in descs])


def _desc(blocks: Sequence[Block], outputs: Sequence[Any], k: int) -> VarDesc:
    """Return the description of one output, which some block makes."""
    name, block = next(
        (names[k], block) for names, block in zip(outputs, blocks, strict=True) if names[k]
    )
    return block.vars[name]


def _run_branch(xp: Any, chosen: int, arrays: Any, blocks: Any, names: Names, outputs: Any) -> Any:
    made = outputs[chosen]
    fetches = tuple([name for name in made if name])
    results = iter(run_block(blocks[chosen], names, fetches, arrays))
    arrays_out = []
    for k, name in enumerate(made):
        if name:
            arrays_out.append(next(results))
        else:  # a variable that another branch alone keeps for its gradient
            desc = _desc(blocks, outputs, k)
            arrays_out.append(xp.zeros(desc.shape, desc.dtype))
    return arrays_out[0] if len(arrays_out) == 1 else tuple(arrays_out)


@register_kernel("cond", random=True, infer=_infer_branches)
def cond(
    xp: Any, pred: Any, *inputs: Any, blocks: Any, names: Names, outputs: Any, visible: int
) -> Any:
    """Run the first block if `pred` is true, else the second one."""
    return _run_branch(xp, 0 if pred.item() else 1, inputs, blocks, names, outputs)


@register_kernel("switch_case", random=True, infer=_infer_branches)
def switch_case(
    xp: Any,
    branch_index: Any,
    *inputs: Any,
    blocks: Any,
    names: Names,
    outputs: Any,
    visible: int,
    keys: tuple[int, ...],
) -> Any:
    """Run the block whose key is the index, or the last block if no key is."""
    index = int(branch_index.item())
    chosen = keys.index(index) if index in keys else len(blocks) - 1
    return _run_branch(xp, chosen, inputs, blocks, names, outputs)


def _infer_loop(*inputs: Any, outputs: Names, tape: bool, **attrs: Any) -> Any:
    specs = [ArraySpec(x.shape, x.dtype) for x in inputs[: len(outputs)]]
    return tuple([*specs, TAPE] if tape else specs)


@register_kernel("while_loop", random=True, infer=_infer_loop)
def while_loop(
    xp: Any,
    *inputs: Any,
    condition: Block,
    body: Block,
    names: Names,
    predicate: Names,
    outputs: Names,
    kept: Names,
    tape: bool,
) -> Any:
    """Run the body while the condition holds.

    The first inputs are the loop variables. The tape holds, for each iteration, the values it began
    with and the numbers it drew.
    """
    state, others = list(inputs[: len(outputs)]), inputs[len(outputs) :]
    fetches = outputs + kept if tape else outputs
    entries = []
    iterations = 0
    while run_block(condition, names, predicate, (*state, *others))[0].item():
        results = run_block(body, names, fetches, (*state, *others))
        if tape:
            entries.append((*state, *results[len(outputs) :]))
        state = results[: len(outputs)]
        iterations += 1
    if not iterations:
        state = [x.copy(order="C") for x in state]
    if tape:
        state.append(make_tape(xp, entries))
    return state[0] if len(state) == 1 else tuple(state)


def _infer_loop_grad(*inputs: Any, wanted: Any, **attrs: Any) -> Any:
    return tuple([ArraySpec(inputs[i].shape, inputs[i].dtype) for i in wanted[-1]])


@register_kernel("while_loop_grad", random=True, infer=_infer_loop_grad)
def while_loop_grad(
    xp: Any,
    tape: Any,
    *inputs: Any,
    body: Block,
    returned: Names,
    backward: Block,
    names: Names,
    outputs: Names,
    sizes: tuple[int, int, int],
    wanted: tuple[tuple[int, ...], ...],
) -> Any:
    """Run the gradient of a body once for each iteration, the last one first.

    `inputs` are the loop variables before the first iteration, the variables that the body
    captured, and the gradients of the floating-point results; `sizes` has the three counts. The
    first outputs are the gradients of the floating-point loop variables. The gradients of captured
    variables follow, summed over the iterations. Each further entry in `wanted` raises the order of
    the derivative by 1; the inputs then end with the gradients of the order below.
    """
    entries = read_tape(tape)
    if len(wanted) > 1:
        dxs = derivatives(entries, inputs, body, returned, names, sizes, wanted)
        return dxs[0] if len(dxs) == 1 else tuple(dxs)
    loop, captured, floats = sizes
    others = inputs[loop : loop + captured]
    grads = list(inputs[loop + captured :])
    sums: list[Any] = []
    for entry in reversed(entries):
        results = run_block(
            backward, names, outputs, (*entry[:loop], *others, *entry[loop:], *grads)
        )
        grads, parts = results[:floats], results[floats:]
        if sums:
            for total, part in zip(sums, parts, strict=True):
                total += part
        else:
            sums = parts
    if not entries:
        grads = [dy.copy() for dy in grads]
        sums = [xp.zeros_like(inputs[i - 1]) for i in wanted[0][floats:]]
    dxs = [*grads, *sums]
    return dxs[0] if len(dxs) == 1 else tuple(dxs)
