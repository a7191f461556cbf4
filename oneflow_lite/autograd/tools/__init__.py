"""Tools around the engine: gradient checks, Jacobian products, pictures and logs of a pass.

`gradcheck` and finite differences, the products behind `autograd.functional`, graphs as DOT,
the log of a backward pass.
It imports functors, the engine and the rooms below. `flow.autograd`, `flow.func`, `flow.testing`
and the explorer use it.
"""
