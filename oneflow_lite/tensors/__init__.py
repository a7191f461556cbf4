"""Tensor and its Storage, and the parts of autograd that every tensor needs.

Views, numbers as tensors, `repr`, methods without mathematics; grad mode and the rest of a
thread's state (`mode`), nodes, `AutogradMeta`, hooks, warnings at a caller's line.
It imports `ops`, `arrays` and `errors`. The interpreter makes tensors; all rooms above use them.
"""
