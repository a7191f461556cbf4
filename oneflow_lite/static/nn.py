"""Control flow under Paddle's names: `flow.static.nn.cond` and its kind."""

from oneflow_lite.static.control_flow.functors import (
    cond as cond,
    switch_case as switch_case,
    while_loop as while_loop,
)
