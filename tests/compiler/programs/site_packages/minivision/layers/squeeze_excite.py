"""Channels that are weighted by what the whole image shows."""

from minivision.layers.activations import get_act_fn
from minivision.layers.helpers import make_divisible
from oneflow_lite import nn


class SqueezeExcite(nn.Module):
    """Mean of each channel, two 1 by 1 convolutions, a gate."""

    def __init__(self, channels, rd_ratio=0.25, gate="sigmoid"):
        super().__init__()
        rd_channels = make_divisible(channels * rd_ratio, 2, round_limit=0.0)
        self.fc1 = nn.Conv2d(channels, rd_channels, 1)
        self.fc2 = nn.Conv2d(rd_channels, channels, 1)
        self.gate = gate

    def forward(self, x):
        x_se = x.mean((2, 3), keepdim=True)
        x_se = self.fc2(get_act_fn("relu")(self.fc1(x_se)))
        return x * get_act_fn(self.gate)(x_se)
