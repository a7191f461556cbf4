"""Export to ONNX: `flow.onnx.export` writes modules, functions and Programs for other runtimes.

It stands above Programs: what is to be exported is captured as one, and each of its ops is
translated by a function that `register_onnx` found for it. The extra `onnx` brings the library.
"""

from oneflow_lite.onnx.exporting import export as export, is_in_onnx_export as is_in_onnx_export
from oneflow_lite.onnx.graph import Graph as Graph, Value as Value
from oneflow_lite.onnx.ops import (  # they register themselves
    elementwise as elementwise,
    indexing as indexing,
    layers as layers,
    reductions as reductions,
    shapes as shapes,
)
from oneflow_lite.onnx.registry import (
    NotTranslated as NotTranslated,
    register_onnx as register_onnx,
)
from oneflow_lite.ops.exposure import old_names as _old_names

__getattr__ = _old_names(__name__)
