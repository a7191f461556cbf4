"""The engine: it runs the backward pass when a gradient is asked for.

`run` has `backward` and `grad`; a `GraphTask` counts dependencies and runs the nodes, through
queues and workers where nodes lie on several devices; anomaly mode; the `F` of gradient rules.
It imports `interpreter`, `autograd/rules` and the rooms below. Functors with gradients of their
own, `nn`, Programs and `flow.compile` use it.
"""
