"""`cond`, `switch_case`, `while_loop`: an op each, over sub-blocks that hold what users wrote."""

from oneflow_lite.static.control_flow.functors import (
    cond as cond,
    switch_case as switch_case,
    while_loop as while_loop,
)
