"""The arithmetic on arrays, CPU and CUDA; a family is imported when an op first needs it.

It imports `ops` and `arrays` alone. The interpreter and the Executor find kernels through the
registry.
"""
