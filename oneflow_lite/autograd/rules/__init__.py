"""Gradient rules: their registration, and the context in which they run.

`register_grad_func` and its forms, the plan of the tensors that a node saves, saved tensors with
their versions, the marks that modes and hooks leave on a node.
It imports `tensors` and the rooms below. The interpreter records with it, the engine runs the
rules, `grad_funcs/` and `register_op` register them.
"""
