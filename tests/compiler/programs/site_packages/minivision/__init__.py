"""A small collection of image models, as one installs it: the programs import it from outside."""

from minivision import models as models
from minivision.registry import create_model as create_model, list_models as list_models

__version__ = "0.3.1"
