"""The way of one call from functor to node: the interpreters and their stack.

It finds the kernel of an op, runs it, wraps what comes back, and records a node.
It imports `tensors`, `autograd/rules` and the rooms below. Functors dispatch through it; the
engine, Programs, `flow.compile`, global tensors and the explorer put interpreters on its stack.
"""
