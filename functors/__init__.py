"""What users call; importing this package registers every functor and gives Tensor its methods."""

import importlib
import pkgutil

for _family in pkgutil.iter_modules(__path__):
    importlib.import_module(f"{__name__}.{_family.name}")

importlib.import_module(f"{__name__}.methods").attach_methods()
