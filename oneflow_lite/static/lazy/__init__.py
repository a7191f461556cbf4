"""Capture of Programs: ops are written down instead of run, gradients and updates among them.

`LazyInterpreter` stands below an AutogradInterpreter and answers with symbolic tensors.
It imports `static/ir`, `optim`, `nn`, the engine and the rooms below. `program_guard` uses it, and
`static/control_flow` captures its blocks with it.
"""
