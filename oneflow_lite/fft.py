"""Fourier transforms under the names of `torch.fft`: the functors themselves."""

from oneflow_lite.ops.exposure import expose as _expose

_expose(globals())
