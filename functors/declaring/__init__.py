"""Declarations: one signature with annotated domains, from which a functor is made.

Domains and checks of arguments, `out=`, the in-place twin, history of what is written, and the
samples that the tests run.
It imports the interpreter, the engine and the rooms below. The families of `functors/` declare
with it, `register_op` too; `nn` and `distributed` use its checks.
"""
