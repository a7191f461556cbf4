"""Tools that the tests of the engine share."""

from typing import Any

import oneflow_lite as flow


def leaf(values: Any, dtype: Any = None) -> flow.Tensor:
    """Return a tensor that requires a gradient."""
    return flow.tensor(values, dtype=dtype, requires_grad=True)
