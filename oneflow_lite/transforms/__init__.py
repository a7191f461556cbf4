"""Transforms on the interpreter stack: batches, forward mode and Taylor series.

`levels.py` has the interpreter and the arrays that carry a level, `batching.py` the level of
`vmap`, `forward.py` that of `jvp` and `jet`. `flow.func`, `flow.vmap` and `autograd.forward_ad` are
the functions that users call.
It imports the functors, the engine, the interpreter, and the rooms below. `autograd`,
`autograd/tools`, `testing` and `flow.func` use it.
"""
