"""Fourier transforms under the names of `torch.fft`: the functors themselves."""

from oneflow_lite.functors.declare import exposed

globals().update(exposed("fft"))
