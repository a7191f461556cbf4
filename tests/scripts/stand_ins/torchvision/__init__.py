"""Stands in for torchvision: generated images of the shapes of its data sets, and transforms."""

from torchvision import (
    datasets as datasets,
    models as models,
    transforms as transforms,
    utils as utils,
)

__version__ = "0.0"
