"""Gradients of ops with several inputs, of which a kernel computes those that are needed."""


def at_their_places(needs, needed):
    """Return for each input its gradient, or None; `needed` has the gradients that are needed."""
    if all(needs):
        return needed
    needed = iter(needed if sum(needs) > 1 else (needed,))
    return [next(needed) if need else None for need in needs]


def added(a, b):
    """Return the sum of two parts of a gradient, each of which may be None."""
    if a is None or b is None:
        return b if a is None else a
    return a + b
