"""ZERO, the gradient that a rule returns for an input by which the derivative is zero.

The op depends on the input, so zeros arrive there, as in PyTorch. After None nothing arrives. The
engine makes the zeros only where somebody sees them.
"""


class Zero:
    """A gradient of zeros that are not made yet."""

    def __repr__(self) -> str:
        return "ZERO"


ZERO = Zero()
