"""The check that `tests/installation.py` runs on an installed package: all that a wheel needs.

It runs in an environment that has the package and what it requires, and nothing else.
"""

import importlib.resources
import pathlib
import sys
import tempfile

import oneflow_lite as flow

here = pathlib.Path(flow.__file__).resolve()
assert "site-packages" in here.parts, f"not the installed package: {here}"

flow.manual_seed(0)
net = flow.nn.Sequential(flow.nn.Linear(4, 8), flow.nn.ReLU(), flow.nn.Linear(8, 1))
optimizer = flow.optim.Adam(net.parameters(), lr=0.05)
x = flow.randn(64, 4)
y = x.sum(1, keepdim=True)


def step(x: flow.Tensor, y: flow.Tensor) -> flow.Tensor:
    """Train once."""
    optimizer.zero_grad()
    loss = flow.nn.functional.mse_loss(net(x), y)
    loss.backward()
    optimizer.step()
    return loss


first = step(x, y).item()
compiled = flow.compile(step)
for _ in range(60):
    loss = compiled(x, y)
assert compiled.explain().hits > 50, compiled.explain()
assert loss.item() < first / 4, (first, loss.item())

with tempfile.TemporaryDirectory() as folder:
    path = pathlib.Path(folder) / "net.safetensors"
    flow.save(net.state_dict(), path)
    other = flow.nn.Sequential(flow.nn.Linear(4, 8), flow.nn.ReLU(), flow.nn.Linear(8, 1))
    other.load_state_dict(flow.load(path))
    assert flow.equal(other(x), net(x))

files = importlib.resources.files("oneflow_lite")
shipped = "py.typed __init__.pyi functions.pyi functors/activation.py kernels/activation.py"
for name in shipped.split():
    assert files.joinpath(name).is_file(), f"{name} is not in the distribution"
for name in dir(flow):
    getattr(flow, name)
assert flow.summary(net, (2, 4)).parameters == 49
assert "table" in x._repr_html_()

print(f"oneflow_lite {flow.__version__} works when installed, with Python {sys.version.split()[0]}")
