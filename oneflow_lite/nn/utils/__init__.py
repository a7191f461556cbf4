"""Helpers around parameters and their gradients."""

from oneflow_lite.exposure import old_names as _old_names
from oneflow_lite.nn.utils import rnn
from oneflow_lite.nn.utils.clip_grad import clip_grad_norm_, clip_grad_value_, get_total_norm
from oneflow_lite.nn.utils.convert_parameters import parameters_to_vector, vector_to_parameters

__getattr__ = _old_names(__name__)

__all__ = [
    "clip_grad_norm_",
    "clip_grad_value_",
    "get_total_norm",
    "parameters_to_vector",
    "rnn",
    "vector_to_parameters",
]
