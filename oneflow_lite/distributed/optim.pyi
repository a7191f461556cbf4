"""Written by `python -m oneflow_lite.ops.index --write`; not by hand."""

from oneflow_lite.optim.zero import ZeroRedundancyOptimizer as ZeroRedundancyOptimizer
