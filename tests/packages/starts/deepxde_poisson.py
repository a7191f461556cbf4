"""deepxde: a physics-informed network solves a Poisson equation on a line."""

import os

os.environ["DDE_BACKEND"] = "pytorch"

import deepxde as dde
import numpy as np
import torch

dde.config.set_default_float(str(torch.get_default_dtype()).removeprefix("torch."))


def equation(x, y):
    return dde.grad.hessian(y, x) + np.pi**2 * torch.sin(np.pi * x)


line = dde.geometry.Interval(0, 1.5)
edge = dde.icbc.DirichletBC(line, lambda x: np.sin(np.pi * x), lambda x, at_edge: at_edge)
data = dde.data.PDE(line, equation, edge, 16, 2, train_distribution="uniform", num_test=20)
model = dde.Model(data, dde.nn.FNN([1] + [20] * 3 + [1], "tanh", "Glorot uniform"))


class Show(dde.callbacks.Callback):
    def on_epoch_end(self):
        losses = self.model.outputs_losses_train(*self.model.data.train_next_batch()[:2], None)[1]
        print(losses.sum())


model.compile("adam", lr=1e-3)
model.train(iterations=8, callbacks=[Show()], verbose=0)
print("solution", model.predict(np.linspace(0, 1.5, 5)[:, None]))
