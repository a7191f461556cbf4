"""Programs as data: blocks, ops and variables; as text, a picture, a hash, a file; with values.

It imports `files`, `distributed`, functors (for the generators of random ops) and the rooms below.
Capture, passes, the Executor, `flow.compile` and ONNX read and write what stands here.
"""

from oneflow_lite.static.ir import evaluation as evaluation  # what clone(for_test=True) does
