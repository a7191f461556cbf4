"""The functions that users call: a family is imported when one of its names is first asked for.

A functor checks its arguments, promotes dtypes and dispatches; `declaring/` makes most of them.
It imports the interpreter, the engine and the rooms below. Gradient rules reach functors by name.
"""
