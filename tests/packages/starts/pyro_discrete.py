"""pyro-ppl: a mixture whose classes are summed out, by enumeration, under constraints."""

import pyro
import pyro.distributions as dist
import torch
from pyro import poutine
from pyro.infer import SVI, TraceEnum_ELBO, config_enumerate
from pyro.infer.autoguide import AutoDelta
from torch.distributions import constraints

data = torch.cat([torch.randn(12) - 3, torch.randn(12) * 0.5 + 2])


@config_enumerate
def model(data):
    weights = pyro.param("weights", torch.tensor([0.4, 0.6]), constraint=constraints.simplex)
    with pyro.plate("components", 2):
        centres = pyro.sample("centres", dist.Normal(torch.tensor([-1.0, 1.0]), 2.0))
    with pyro.plate("data", len(data)):
        which = pyro.sample("which", dist.Categorical(weights))
        pyro.sample("x", dist.Normal(centres[which], 1.0), obs=data)


guide = AutoDelta(poutine.block(model, expose=["centres"]))
svi = SVI(model, guide, pyro.optim.Adam({"lr": 0.1}), TraceEnum_ELBO(max_plate_nesting=1))
for _ in range(8):
    print(svi.step(data))
print("centres", pyro.param("AutoDelta.centres"), pyro.param("weights"))
