"""Ops by name: what is registered for one, and where a name is found.

Registries of kernels, functors and gradient functions, the `OpExpr` of an op, the index that says
which file has which name, scalar expressions of pointwise ops, SBP rules, eager loops, cuDNN.
It imports `arrays` and `errors`. Kernels know this room and `arrays` alone; every room above
finds ops through it, so no room of the framework imports one.
"""
