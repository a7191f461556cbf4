"""Machine code: groups of pointwise ops become one loop, on the CPU and on CUDA.

Scalar expressions are joined into source text, which Numba or NVRTC compiles; loops for eager
calls are written here, too.
It imports `static/ir` and the rooms below. The passes of `static/runtime` form the groups, and
`ops/eager_loops.py` asks for loops through `ops/upward.py`.
"""
