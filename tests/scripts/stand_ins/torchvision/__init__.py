"""Stands in for torchvision: generated images of the shapes of its data sets, and transforms."""

import torchvision.models as models
from torchvision import datasets as datasets, transforms as transforms, utils as utils

__version__ = "0.0"
