"""The two layers behind attention."""

from minivision.layers.helpers import to_2tuple
from oneflow_lite import nn


class Mlp(nn.Module):
    """Linear, activation, dropout, linear, dropout."""

    def __init__(self, in_features, hidden_features=None, act_layer=nn.GELU, bias=True, drop=0.0):
        super().__init__()
        hidden_features = hidden_features or in_features
        bias, drop_probs = to_2tuple(bias), to_2tuple(drop)
        self.fc1 = nn.Linear(in_features, hidden_features, bias=bias[0])
        self.act = act_layer()
        self.drop1 = nn.Dropout(drop_probs[0])
        self.fc2 = nn.Linear(hidden_features, in_features, bias=bias[1])
        self.drop2 = nn.Dropout(drop_probs[1])

    def forward(self, x):
        x = self.drop1(self.act(self.fc1(x)))
        return self.drop2(self.fc2(x))
