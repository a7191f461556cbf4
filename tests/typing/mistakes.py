"""Ten mistakes: mypy --strict and pyright find each, on the line where it stands."""

import oneflow_lite as flow
from oneflow_lite import nn

x = flow.zeros(3)
net = nn.Linear(3, 1)
flow.zeros(3).reluu()  # mistake: a method that is not there
flow.reluu(x)  # mistake: a function that is not there
nn.Linearr(3, 1)  # mistake: a layer that is not there
flow.optim.SDG(net.parameters(), lr=0.1)  # mistake: an optimizer that is not there
flow.nn.functional.soft_max(x, 0)  # mistake: a function of functional that is not there
print(x.max(0).value)  # mistake: a field that the named tuple does not have
flow.sum(x, dims=0)  # mistake: an argument of another name
print(x.shape.foo)  # mistake: an attribute that sizes do not have
loss: nn.MSELoss = flow.compile(net)  # mistake: compile returns what it was given
total: str = x.T.sum().item()  # mistake: a number is no text
