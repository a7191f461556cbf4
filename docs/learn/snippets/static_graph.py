"""A training step as a Program: captured, analysed, and replayed."""

import numpy as np

import oneflow_lite as flow

flow.manual_seed(0)
step, startup = flow.static.Program(), flow.static.Program()
with flow.static.program_guard(step, startup):
    x, label = flow.static.data("x", [8, 2]), flow.static.data("label", [8, 1])
    net = flow.nn.Linear(2, 1)
    loss = flow.nn.functional.mse_loss(net(x), label)
    flow.optim.SGD(net.parameters(), lr=0.1).minimize(loss)

executor, scope = flow.static.Executor(), flow.static.Scope()
executor.run(startup, scope=scope)
inputs = np.random.default_rng(0).normal(size=(8, 2)).astype(np.float32)
feed = {"x": inputs, "label": inputs @ np.float32([[1.0], [-2.0]])}
for _ in range(3):
    (value,) = executor.run(step, feed, [loss], scope=scope)
    print(value)
