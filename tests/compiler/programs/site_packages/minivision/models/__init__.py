"""The models; importing them registers them."""

from minivision.models.resnet import ResNet as ResNet
from minivision.models.vision_transformer import VisionTransformer as VisionTransformer
