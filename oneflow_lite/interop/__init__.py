"""Meeting other libraries: NumPy's protocols, CuPy's streams, einops, and notebooks.

Each module here answers questions that another library asks of a tensor or a module.
It imports `array_api`, `nn` and the rooms below. `ops/exposure.py` attaches the answers to the
classes when they are first asked for, so nothing below imports this room.
"""
