"""Gradients of gradients for ops that one kernel computes: their compositions, recorded anew."""

from oneflow_lite.autograd.engine.run import grad
from oneflow_lite.tensors.mode import enable_grad, is_grad_enabled


def is_followed(*inputs):
    """Return whether somebody differentiates the gradients again: a graph, or a transform."""
    return is_grad_enabled() or any(
        [getattr(getattr(x, "_data", x), "levels", None) for x in inputs]
    )


def gradients_of(F, ctx, run, inputs, douts):
    """Return the gradients of an op's inputs by a composition, which has derivatives of any order.

    `run(copies)` computes the op's results from copies of its inputs, of which some may be None.
    """
    # Copies, because one input may have been computed from another.
    recorded = is_grad_enabled()
    with enable_grad():
        made = _recorded(F, ctx, run, inputs, douts)
    return made if recorded else tuple([g if g is None else g._cut() for g in made])


def _recorded(F, ctx, run, inputs, douts):
    copies = [x if x is None else F.clone(x) for x in inputs]
    needs = ctx.needs_input_grad
    for c, needed in zip(copies, needs, strict=True):
        if c is not None and needed and not c.requires_grad:
            c.requires_grad_()
    results = run(copies)
    wanted = [c for c, needed in zip(copies, needs, strict=True) if needed]
    pairs = [(y, dy) for y, dy in zip(results, douts, strict=True) if dy is not None]
    # A rule gives plain derivatives, but `grad` conjugate ones.
    roots, given = [y for y, _ in pairs], [F.conj(dy) for _, dy in pairs]
    gradients = iter(grad(roots, wanted, given, create_graph=True, materialize_grads=True))
    return tuple([F.conj(next(gradients)) if needed else None for needed in needs])
