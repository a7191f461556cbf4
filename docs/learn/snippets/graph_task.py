"""A graph with a fork: x waits for two gradients. Then a pruned call, which leaves x out."""

import oneflow_lite as flow

x = flow.tensor(2.0, requires_grad=True)
w = flow.tensor(5.0, requires_grad=True)
a = x * w
y = (a + 1) * x
y.backward(retain_graph=True)
print(x.grad, w.grad)

(da,) = flow.autograd.grad(y, a)
print(da)
