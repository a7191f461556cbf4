"""Ops by name: the parts that are registered for an op, and the file in which each name stands.

Registries of kernels, functors and gradient functions, the `OpExpr` of an op, the index from a
name to its file, scalar expressions of pointwise ops, SBP rules, eager loops, cuDNN.
It imports `arrays` and `errors`. Kernels know this room, `arrays` and `errors` alone; every room
above finds ops through it, so no room of the framework imports an op.
"""
