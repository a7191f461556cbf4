"""Export to ONNX: `flow.onnx.export` writes modules, functions and Programs for other runtimes.

It stands above Programs: a module or function is captured as a Program, and each op of the Program
is translated by its function from `register_onnx`. The extra `onnx` brings the library.
It imports `static/runtime`, `static/lazy`, `static/ir`, `nn` and the rooms below. No room uses it.
"""

from oneflow_lite.onnx.exporting import export as export, is_in_onnx_export as is_in_onnx_export
from oneflow_lite.onnx.graph import Graph as Graph, Value as Value
from oneflow_lite.onnx.ops import (  # imported for their registrations
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
from oneflow_lite.ops.exposure import expose as _expose

_expose(globals())
