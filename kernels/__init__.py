"""The arithmetic on arrays, CPU and CUDA; importing this package registers every kernel."""

import importlib
import pkgutil

for _family in pkgutil.iter_modules(__path__):
    importlib.import_module(f"{__name__}.{_family.name}")
