"""Normalization and activation in one layer."""

from minivision.layers.activations import create_act
from oneflow_lite import nn


class BatchNormAct2d(nn.BatchNorm2d):
    """BatchNorm2d, and an activation behind it."""

    def __init__(self, num_features, apply_act=True, act_layer="relu", inplace=True, **kwargs):
        super().__init__(num_features, **kwargs)
        self.act = create_act(act_layer, inplace=inplace) if apply_act else nn.Identity()

    def forward(self, x):
        return self.act(super().forward(x))
