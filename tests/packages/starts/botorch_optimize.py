"""botorch: Bayesian optimization of a curve, by a process and expected improvement."""

import torch
from botorch.acquisition import LogExpectedImprovement
from botorch.fit import fit_gpytorch_mll
from botorch.models import SingleTaskGP
from botorch.optim import optimize_acqf
from gpytorch.mlls import ExactMarginalLogLikelihood

torch.set_default_dtype(torch.float64)
x, bounds = torch.rand(6, 2), torch.stack([torch.zeros(2), torch.ones(2)])


def curve(x):
    return 1 - (x - 0.5).norm(dim=-1, keepdim=True)


y = curve(x)
for _ in range(3):
    model = SingleTaskGP(x, y)
    fit_gpytorch_mll(ExactMarginalLogLikelihood(model.likelihood, model))
    gain = LogExpectedImprovement(model, best_f=y.max())
    start = torch.rand(2, 1, 2)
    new, value = optimize_acqf(gain, bounds, q=1, num_restarts=2, batch_initial_conditions=start)
    x, y = torch.cat([x, new]), torch.cat([y, curve(new)])
    print(value.item(), new)
print("best", y.max())
