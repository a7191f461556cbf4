"""Models by name."""

import logging
from copy import deepcopy

_logger = logging.getLogger(__name__)
_entrypoints = {}
_default_cfgs = {}


def register_model(fn):
    """Enter a factory function, and the configuration that its module has for it."""
    _entrypoints[fn.__name__] = fn
    _default_cfgs[fn.__name__] = fn.__globals__.get("default_cfgs", {}).get(fn.__name__, {})
    return fn


def list_models(prefix=""):
    """Return the names of models."""
    return sorted(name for name in _entrypoints if name.startswith(prefix))


def create_model(model_name, num_classes=None, drop_rate=0.0, **kwargs):
    """Build a model by name; options that are None are left to the model."""
    if model_name not in _entrypoints:
        raise RuntimeError(f"Unknown model ({model_name}); known: {', '.join(list_models())}")
    cfg = deepcopy(_default_cfgs[model_name])
    kwargs = {k: v for k, v in kwargs.items() if v is not None}
    if num_classes is not None:
        cfg["num_classes"] = num_classes
    model = _entrypoints[model_name](drop_rate=drop_rate, **cfg, **kwargs)
    model.default_cfg = cfg
    _logger.info("Created %s with %d parameters", model_name, sum(1 for _ in model.parameters()))
    return model
