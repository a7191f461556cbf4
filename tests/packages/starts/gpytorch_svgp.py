"""gpytorch: a variational process with inducing points and natural gradients classifies."""

import gpytorch
import torch
from gpytorch.variational import CholeskyVariationalDistribution, VariationalStrategy

x = torch.rand(64, 2)
y = (x.sum(1) > 1).to(x.dtype)


class Process(gpytorch.models.ApproximateGP):
    def __init__(self, points):
        distribution = CholeskyVariationalDistribution(len(points))
        super().__init__(VariationalStrategy(self, points, distribution))
        self.mean = gpytorch.means.LinearMean(2)
        self.kernel = gpytorch.kernels.ScaleKernel(gpytorch.kernels.MaternKernel(2.5))

    def forward(self, x):
        return gpytorch.distributions.MultivariateNormal(self.mean(x), self.kernel(x))


model, likelihood = Process(torch.rand(12, 2)), gpytorch.likelihoods.BernoulliLikelihood()
optimizer = torch.optim.Adam(model.parameters(), lr=0.05)
objective = gpytorch.mlls.VariationalELBO(likelihood, model, num_data=64)
for _ in range(8):
    optimizer.zero_grad()
    loss = -objective(model(x), y)
    loss.backward()
    optimizer.step()
    print(loss.item())
model.eval(), likelihood.eval()
with torch.no_grad():
    print("chances", likelihood(model(x[:5])).mean)
