"""The ground below tensors: devices, dtypes, memory formats, and the threads that compute.

Device and dtype objects, the arrays of bfloat16, memory formats and sizes, descriptions of
arrays (`array_spec`), threads of our own and of BLAS, locks.
It imports `errors` alone. Every other room uses it.
"""
