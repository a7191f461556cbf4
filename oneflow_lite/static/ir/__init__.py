"""Programs as data: blocks, ops and variables; as text, a picture, a hash, a file; with values."""

from oneflow_lite.static.ir import evaluation as evaluation  # what clone(for_test=True) does
