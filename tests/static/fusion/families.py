"""Functions whose groups have lines: softmax, norms, losses; and points to try them at."""

import numpy as np

import oneflow_lite as flow

F = flow.nn.functional


def backward(function):
    """Return the function with its gradient."""

    def both(x, *others):
        y = function(x, *others)
        y.backward(gradient(y.shape, y.dtype, y.device))
        dx, x.grad = x.grad, None
        return y.detach(), dx

    return both


GRADIENTS = {}


def gradient(shape, dtype, device):
    """Return the same tensor at every call: a compiled function takes it from outside."""
    if (shape, dtype, device) not in GRADIENTS:
        values = np.random.default_rng(1).standard_normal(tuple(shape))
        GRADIENTS[shape, dtype, device] = flow.tensor(values, dtype=dtype, device=device)
    return GRADIENTS[shape, dtype, device]


def weights(x):
    options = {"dtype": x.dtype, "device": x.device}
    return [flow.linspace(0.5, 2.0, x.shape[-1], **options) for _ in range(2)]


FAMILIES = {
    "softmax": lambda x: F.softmax(x, -1),
    "softmax, first": lambda x: F.softmax(x, 0),
    "log_softmax": lambda x: F.log_softmax(x * 2, -1),
    "layer_norm": lambda x: F.layer_norm(x, x.shape[-1:], *weights(x)),
    "layer_norm, plain": lambda x: F.layer_norm(x, x.shape[-1:]),
    "rms_norm": lambda x: F.rms_norm(x, x.shape[-1:], weights(x)[0]),
    "batch_norm": lambda x: F.batch_norm(x.flatten(1), None, None, training=True),
    "mse": lambda x: F.mse_loss(x, x.detach().sin()),
    "smooth_l1": lambda x: F.smooth_l1_loss(x, x.detach().sin()),
    "bce": lambda x: F.binary_cross_entropy_with_logits(x, flow.sigmoid(x.detach())),
    "kl_div": lambda x: F.kl_div(F.log_softmax(x, -1), F.softmax(x.detach(), -1), reduction="sum"),
    "var": lambda x: x.var(-1),
    "std": lambda x: x.std(-1, keepdim=True),
    "var, all": lambda x: x.var(correction=0),
    "amax": lambda x: (x * 3).amax(-1),
    "amin": lambda x: (x * 3).amin(-1, keepdim=True) + x,
    "logsumexp": lambda x: flow.logsumexp(x * 2, -1),
    "norm": lambda x: x.norm(dim=-1),
    "normalize": lambda x: F.normalize(x, dim=-1),
    "gelu": lambda x: F.gelu(x),
    "gelu, tanh": lambda x: F.gelu(x, approximate="tanh"),
    "share": lambda x: flow.exp(x) / flow.exp(x).sum(-1, keepdim=True),
    "centred": lambda x: x - x.mean(-1, keepdim=True),
    "centred columns": lambda x: x - x.mean(0, keepdim=True),
    "bias": lambda x: flow.tanh(x + weights(x)[0]).sum(0),
}
LOSSES = {
    "plain": {},
    "ignored": {"ignore_index": 2},
    "summed": {"reduction": "sum"},
    "each": {"reduction": "none"},
    "smooth": {"label_smoothing": 0.2},
    "weighted": {"weight": flow.linspace(0.5, 2.0, 4, dtype=flow.float64)},
}


def points(shape, dtype, special=False, device="cpu"):
    rng = np.random.default_rng(sum(shape))
    x = rng.standard_normal(shape)
    if special:
        x = np.where(rng.random(shape) < 0.1, rng.choice([np.inf, -np.inf, np.nan, 0.0], shape), x)
    return flow.tensor(x.astype(dtype), device=device).requires_grad_()


def runner(compiled):
    """Return what runs the only recording of a compiled function."""
    (recording,) = compiled._recordings
    return recording.core.runner


def gelu(x):
    """Return an activation of elementary ops, and its gradient."""
    y = 0.5 * x * (1 + flow.tanh(0.8 * (x + 0.05 * x**3)))
    y.sum().backward()
    dx, x.grad = x.grad, None
    return y.detach(), dx
