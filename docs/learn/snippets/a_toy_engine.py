"""The program of the page on the toy engine, run by the real one."""

import oneflow_lite as flow

x = flow.tensor([1.0, 2.0], requires_grad=True)
w = flow.tensor([3.0, 4.0], requires_grad=True)
a = x * w
y = (a + a.relu()).sum()
y.backward()
print(x.grad, w.grad)
