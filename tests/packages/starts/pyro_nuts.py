"""pyro-ppl: a no-U-turn sampler draws from the posterior of a regression."""

import pyro
import pyro.distributions as dist
import torch
from pyro.infer import MCMC, NUTS

x = torch.randn(20, 2)
y = x @ torch.tensor([0.7, -0.4]) + 0.2 * torch.randn(20)


def model(x, y):
    weight = pyro.sample("weight", dist.Normal(torch.zeros(2), 1.0).to_event(1))
    scale = pyro.sample("scale", dist.HalfNormal(1.0))
    with pyro.plate("data", len(x)):
        pyro.sample("y", dist.Normal(x @ weight, scale), obs=y)


def show(kernel, samples, stage, number):
    print(samples["weight"], samples["scale"])


chain = MCMC(NUTS(model), num_samples=6, warmup_steps=6, disable_progbar=True, hook_fn=show)
chain.run(x, y)
print("mean", chain.get_samples()["weight"].mean(0))
