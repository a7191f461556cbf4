"""Optimizers for models, by name."""

from oneflow_lite import optim


def param_groups_weight_decay(model, weight_decay=1e-5, no_weight_decay_list=()):
    """Return two groups: vectors and listed names do not decay."""
    decay, no_decay = [], []
    for name, param in model.named_parameters():
        if not param.requires_grad:
            continue
        plain = param.ndim <= 1 or name.endswith(".bias") or name in no_weight_decay_list
        (no_decay if plain else decay).append(param)
    return [
        {"params": no_decay, "weight_decay": 0.0},
        {"params": decay, "weight_decay": weight_decay},
    ]


def create_optimizer(model, opt="sgd", lr=0.1, weight_decay=0.0, momentum=0.9):
    """Build an optimizer by name."""
    skip = model.no_weight_decay() if hasattr(model, "no_weight_decay") else ()
    parameters = param_groups_weight_decay(model, weight_decay, skip)
    opt_lower = opt.lower()
    if opt_lower in ("sgd", "nesterov"):
        nesterov = opt_lower == "nesterov"
        return optim.SGD(parameters, lr=lr, momentum=momentum, nesterov=nesterov)
    return optim.AdamW(parameters, lr=lr)
