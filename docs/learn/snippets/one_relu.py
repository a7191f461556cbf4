"""One relu, forward and back."""

import oneflow_lite as flow

x = flow.tensor([-1.0, 2.0], requires_grad=True)
y = flow.relu(x)
y.backward(flow.tensor([1.0, 1.0]))
print(x.grad)
