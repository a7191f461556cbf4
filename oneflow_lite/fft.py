"""Fourier transforms under the names of `torch.fft`: the functors themselves."""

from oneflow_lite.ops.exposure import namespace as _namespace

__getattr__, __dir__ = _namespace("fft", globals())
