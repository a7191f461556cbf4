"""Residual networks."""

from minivision.layers import BatchNormAct2d, DropPath, SqueezeExcite
from minivision.registry import register_model
from oneflow_lite import nn
from oneflow_lite.nn import functional as F


def _cfg(**kwargs):
    return {"num_classes": 10, "in_chans": 3, **kwargs}


default_cfgs = {"tiny_resnet": _cfg(), "tiny_seresnet": _cfg(se_layer=SqueezeExcite)}


class BasicBlock(nn.Module):
    """Two convolutions beside a shortcut."""

    expansion = 1

    def __init__(self, inplanes, planes, stride=1, downsample=None, se_layer=None, drop_path=None):
        super().__init__()
        self.conv1 = nn.Conv2d(inplanes, planes, 3, stride=stride, padding=1, bias=False)
        self.bn1 = BatchNormAct2d(planes)
        self.conv2 = nn.Conv2d(planes, planes, 3, padding=1, bias=False)
        self.bn2 = BatchNormAct2d(planes, apply_act=False)
        self.se = se_layer(planes) if se_layer is not None else None
        self.drop_path, self.downsample = drop_path, downsample

    def forward(self, x):
        shortcut = x
        x = self.bn2(self.conv2(self.bn1(self.conv1(x))))
        if self.se is not None:
            x = self.se(x)
        if self.drop_path is not None:
            x = self.drop_path(x)
        if self.downsample is not None:
            shortcut = self.downsample(shortcut)
        x += shortcut
        return F.relu(x, inplace=True)


class ResNet(nn.Module):
    """A stem, stages of blocks, and a head that can be replaced."""

    def __init__(
        self, num_classes, in_chans, width=4, drop_rate=0.0, drop_path_rate=0.0, se_layer=None
    ):
        super().__init__()
        self.num_classes, self.drop_rate = num_classes, drop_rate
        self.conv1 = nn.Conv2d(in_chans, width, 3, padding=1, bias=False)
        self.bn1 = BatchNormAct2d(width)
        self.feature_info = [{"num_chs": width, "reduction": 1, "module": "bn1"}]
        inplanes = width
        for i, planes in enumerate((width, width * 2), 1):
            stride, downsample = i, None
            if stride != 1 or inplanes != planes * BasicBlock.expansion:
                conv = nn.Conv2d(inplanes, planes, 1, stride=stride, bias=False)
                downsample = nn.Sequential(conv, nn.BatchNorm2d(planes))
            drop_path = DropPath(drop_path_rate * i / 2) if drop_path_rate else None
            block = BasicBlock(inplanes, planes, stride, downsample, se_layer, drop_path)
            self.add_module(f"layer{i}", nn.Sequential(block))
            self.feature_info.append({"num_chs": planes, "reduction": i, "module": f"layer{i}"})
            inplanes = planes
        self.num_features = inplanes
        self.global_pool = nn.AdaptiveAvgPool2d(1)
        self.fc = nn.Linear(inplanes, num_classes)
        for m in self.modules():
            if isinstance(m, nn.Conv2d):
                nn.init.kaiming_normal_(m.weight, mode="fan_out", nonlinearity="relu")

    def reset_classifier(self, num_classes):
        self.num_classes = num_classes
        self.fc = nn.Linear(self.num_features, num_classes) if num_classes > 0 else nn.Identity()

    def forward_features(self, x):
        x = self.bn1(self.conv1(x))
        return self.layer2(self.layer1(x))

    def forward_head(self, x, pre_logits: bool = False):
        x = self.global_pool(x).flatten(1)
        if self.drop_rate:
            x = F.dropout(x, p=float(self.drop_rate), training=self.training)
        return x if pre_logits else self.fc(x)

    def forward(self, x):
        return self.forward_head(self.forward_features(x))


@register_model
def tiny_resnet(**kwargs):
    """Build a plain network."""
    return ResNet(**kwargs)


@register_model
def tiny_seresnet(**kwargs):
    """Build a network that weighs its channels."""
    return ResNet(**kwargs)
