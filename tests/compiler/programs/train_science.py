"""Derivatives of derivatives: equations, learning to learn, dynamics, kernels."""

import itertools
import math
from collections import OrderedDict
from functools import partial

import oneflow_lite as flow
from oneflow_lite import nn
from oneflow_lite.autograd import grad
from oneflow_lite.nn import functional as F
from tests.compiler.programs.kit import STEPS, blobs, curve, program


class FCN(nn.Module):
    """A tower of layers, their activation a class."""

    def __init__(self, n_input, n_output, n_hidden, n_layers):
        super().__init__()
        activation = nn.Tanh
        self.fcs = nn.Sequential(nn.Linear(n_input, n_hidden), activation())
        self.fch = nn.Sequential(
            *[nn.Sequential(nn.Linear(n_hidden, n_hidden), activation()) for _ in range(n_layers)]
        )
        self.fce = nn.Linear(n_hidden, n_output)

    def forward(self, x):
        return self.fce(self.fch(self.fcs(x)))


@program
def physics_informed(compiled):
    """a damped oscillator: second derivatives in the loss, its friction learned"""
    pinn, mu = FCN(1, 1, 8, 1), nn.Parameter(flow.zeros(1))
    d, w0 = 2, 20
    k = w0**2
    optimiser = flow.optim.Adam([*list(pinn.parameters()), mu], lr=1e-2)
    t_physics = flow.linspace(0, 1, 12).view(-1, 1).requires_grad_(True)
    t_obs = flow.rand(6).view(-1, 1)
    omega = math.sqrt(w0**2 - d**2)
    u_obs = flow.exp(-d * t_obs) * flow.cos(omega * t_obs)

    @compiled
    def train_step(lambda1=1e-4):
        optimiser.zero_grad()
        u = pinn(t_physics)
        dudt = grad(u, t_physics, flow.ones_like(u), create_graph=True)[0]
        d2udt2 = grad(dudt, t_physics, flow.ones_like(dudt), create_graph=True)[0]
        loss1 = flow.mean((d2udt2 + mu * dudt + k * u) ** 2)
        loss2 = flow.mean((pinn(t_obs) - u_obs) ** 2)
        loss = lambda1 * loss1 + loss2
        loss.backward()
        optimiser.step()
        return loss.detach()

    history = []
    for _ in range(STEPS):
        loss = train_step()
        history.append(mu.item())
        yield loss, history[-1], pinn, mu, optimiser


@program
def maml_inner_loop(compiled):
    """meta-learning: inner gradient steps on fast weights in an OrderedDict, tasks in a loop"""
    meta = OrderedDict(
        (name, (0.5 * flow.randn(*shape)).requires_grad_())
        for name, shape in {"w1": (6, 1), "b1": (6,), "w2": (1, 6), "b2": (1,)}.items()
    )
    meta_optimizer = flow.optim.Adam(meta.values(), lr=1e-2)

    def functional_forward(x, weights):
        x = F.relu(F.linear(x, weights["w1"], weights["b1"]))
        return F.linear(x, weights["w2"], weights["b2"])

    def adapt(x, y, steps=2, inner_lr=0.05, first_order=False):
        fast = OrderedDict(meta.items())
        for _ in range(steps):
            loss = F.mse_loss(functional_forward(x, fast), y)
            grads = grad(loss, list(fast.values()), create_graph=not first_order)
            fast = OrderedDict(
                (name, param - inner_lr * g)
                for (name, param), g in zip(fast.items(), grads, strict=True)
            )
        return fast

    @compiled
    def meta_step(tasks):
        meta_optimizer.zero_grad()
        outer_loss = flow.tensor(0.0)
        for x, y in tasks:
            fast = adapt(x[:5], y[:5])
            outer_loss = outer_loss + F.mse_loss(functional_forward(x[5:], fast), y[5:])
        outer_loss.div_(len(tasks))
        outer_loss.backward()
        meta_optimizer.step()
        return outer_loss.item()

    for _ in range(STEPS):
        tasks = []
        for _ in range(2):
            amplitude, phase, x = flow.rand(1) * 5, flow.rand(1) * 3, flow.rand(10, 1) * 10 - 5
            tasks.append((x, amplitude * flow.sin(x + phase)))
        yield meta_step(tasks), list(meta.values()), meta_optimizer


def rk4_step(f, t, y, dt):
    k1 = f(t, y)
    k2 = f(t + dt / 2, y + dt / 2 * k1)
    k3 = f(t + dt / 2, y + dt / 2 * k2)
    k4 = f(t + dt, y + dt * k3)
    return y + dt / 6 * (k1 + 2 * k2 + 2 * k3 + k4)


def euler_step(f, t, y, dt):
    return y + dt * f(t, y)


SOLVERS = {"rk4": rk4_step, "euler": euler_step}


def odeint(func, y0, t, *, method="rk4", options=None):
    step = SOLVERS[method]
    substeps = (options or {}).get("substeps", 1)
    solution = [y0]
    for t0, t1 in itertools.pairwise(t):
        y, dt = solution[-1], (t1 - t0) / substeps
        for i in range(substeps):
            y = step(func, t0 + i * dt, y, dt)
        solution.append(y)
    return flow.stack(solution)


class ODEFunc(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(2, 8), nn.Tanh(), nn.Linear(8, 2))
        self.nfe = 0

    def forward(self, t, y):
        self.nfe += 1
        return self.net(y**3)


@program
def neural_ode(compiled):
    """a neural differential equation: a solver by name, evaluations counted"""
    func = ODEFunc()
    solve = partial(odeint, func, method="rk4", options={"substeps": 1})
    optimizer = flow.optim.RMSprop(func.parameters(), lr=1e-2)
    true_A = flow.tensor([[-0.1, 2.0], [-2.0, -0.1]])
    t = flow.linspace(0.0, 0.3, 4)
    with flow.no_grad():
        starts = flow.rand(STEPS, 3, 2) * 2
        truth = flow.stack([odeint(lambda t, y: y**3 @ true_A, y, t) for y in starts])

    @compiled
    def train(batch_y0, batch_y):
        optimizer.zero_grad()
        loss = flow.mean(flow.abs(solve(batch_y0, t) - batch_y))
        loss.backward()
        optimizer.step()
        return loss.detach()

    for y0, y in zip(starts, truth, strict=True):
        yield train(y0, y), func.nfe, func, optimizer


class HNN(nn.Module):
    """A network for an energy, whose derivatives are the motion."""

    def __init__(self, differentiable_model, field_type="solenoidal"):
        super().__init__()
        self.differentiable_model, self.field_type = differentiable_model, field_type
        self.M = flow.tensor([[0.0, 1.0], [-1.0, 0.0]])

    def time_derivative(self, x):
        if not x.requires_grad:
            x = x.detach().requires_grad_(True)
        F2 = self.differentiable_model(x)
        dF2 = grad(F2.sum(), x, create_graph=True)[0]
        return dF2 @ self.M.t() if self.field_type != "conservative" else dF2


@program
def hamiltonian_network(compiled):
    """a Hamiltonian network: its forward pass is a gradient, trained and tested through it"""
    model = HNN(nn.Sequential(nn.Linear(2, 8), nn.Softplus(), nn.Linear(8, 1)))
    optim = flow.optim.Adam(model.parameters(), lr=1e-2, weight_decay=1e-4)
    l2_loss = nn.MSELoss()

    @compiled
    def train(x, dxdt):
        loss = l2_loss(model.time_derivative(x), dxdt)
        loss.backward()
        optim.step()
        optim.zero_grad()
        return loss.detach()

    @compiled
    def test(x, dxdt):
        return l2_loss(model.time_derivative(x), dxdt).item()

    for x, _ in curve():
        dxdt = x.flip(1) * flow.tensor([1.0, -1.0])
        yield train(x, dxdt), test(x, dxdt), model, optim


class SAM(flow.optim.Optimizer):
    """Sharpness-aware minimization around another optimizer."""

    def __init__(self, params, base_optimizer, rho=0.05, **kwargs):
        super().__init__(params, dict(rho=rho, **kwargs))
        self.base_optimizer = base_optimizer(self.param_groups, **kwargs)
        self.param_groups = self.base_optimizer.param_groups

    @flow.no_grad()
    def first_step(self, zero_grad=False):
        norms = [p.grad.norm(2) for g in self.param_groups for p in g["params"]]
        grad_norm = flow.stack(norms).norm(2)
        for group in self.param_groups:
            scale = group["rho"] / (grad_norm + 1e-12)
            for p in group["params"]:
                if p.grad is None:
                    continue
                self.state[p]["e_w"] = e_w = p.grad * scale.to(p)
                p.add_(e_w)
        if zero_grad:
            self.zero_grad()

    @flow.no_grad()
    def second_step(self, zero_grad=False):
        for group in self.param_groups:
            for p in group["params"]:
                p.sub_(self.state[p]["e_w"])
        self.base_optimizer.step()
        if zero_grad:
            self.zero_grad()


@program
def sharpness_aware(compiled):
    """an optimizer of one's own around SGD: two backward passes, tensors in its state"""
    net = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3))
    optimizer = SAM(net.parameters(), flow.optim.SGD, rho=0.05, lr=0.05, momentum=0.9)

    @compiled
    def step(x, y):
        loss = F.cross_entropy(net(x), y, label_smoothing=0.1)
        loss.backward()
        optimizer.first_step(zero_grad=True)
        F.cross_entropy(net(x), y, label_smoothing=0.1).backward()
        optimizer.second_step(zero_grad=True)
        return loss.detach()

    for x, y in blobs():
        perturbations = [optimizer.state[p].get("e_w") for p in net.parameters()]
        yield step(x, y), perturbations, net, optimizer.base_optimizer


class ExactGP(nn.Module):
    def __init__(self, train_x, train_y):
        super().__init__()
        self.train_x, self.train_y = train_x, train_y
        self.raw = nn.ParameterDict(
            {name: nn.Parameter(flow.zeros(())) for name in ("length", "scale", "noise")}
        )

    def __getattr__(self, name):
        if name.endswith("_constrained"):
            return F.softplus(self.raw[name[: -len("_constrained")]])
        return super().__getattr__(name)

    def kernel(self, a, b):
        square = (a.unsqueeze(1) - b.unsqueeze(0)).square().sum(-1)
        return self.scale_constrained * flow.exp(-0.5 * square / self.length_constrained**2)

    def forward(self):
        n = self.train_x.shape[0]
        cov = self.kernel(self.train_x, self.train_x) + self.noise_constrained * flow.eye(n)
        chol = flow.linalg.cholesky(cov)
        alpha = flow.cholesky_solve(self.train_y.unsqueeze(1), chol).squeeze(1)
        log_det = 2 * chol.diagonal().log().sum()
        return 0.5 * (self.train_y @ alpha + log_det + n * math.log(2 * math.pi))


@program
def gaussian_process(compiled):
    """a marginal likelihood through Cholesky factors, positive parameters by __getattr__"""
    x = flow.rand(10, 1) * 4
    model = ExactGP(x, x.squeeze(1).sin() + 0.1 * flow.randn(10))
    optimizer = flow.optim.Adam(model.parameters(), lr=0.1)
    scheduler = flow.optim.lr_scheduler.StepLR(optimizer, step_size=10, gamma=0.5)

    def closure():
        optimizer.zero_grad()
        loss = model()
        loss.backward()
        return loss

    @compiled
    def fit_once():
        return optimizer.step(closure).item()

    for _ in range(STEPS):
        loss = fit_once()
        scheduler.step()
        yield loss, model, optimizer
