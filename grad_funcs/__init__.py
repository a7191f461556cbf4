"""Gradient rules of the ops; a family is imported when a gradient first needs it.

It imports `autograd/rules` and the rooms below; a rule reaches ops through its `F`. The engine
finds rules through the registry.
"""
