"""Cases for numbers, settings and functions that are read from outside and change."""

from __future__ import annotations

import numpy as np

from tests.compiler.capture.worlds import Box, leaf, tensor

SCALE = 2.0
FLAG = True
LAST = None
TABLE = {"scale": 2.0}
OFFSET = tensor(1.0, 2.0)


def helper(x):
    return x * 3


def other_helper(x):
    return x * 5


def global_scalar(compiled):
    global SCALE
    f = compiled(lambda x: x * SCALE)
    for SCALE in (2.0, 3.0, 2.0, 4) * 2:
        yield f(tensor(1.0, 2.0))


def global_tensor_replaced(compiled):
    global OFFSET
    f = compiled(lambda x: x + OFFSET)
    for OFFSET in (tensor(1.0, 2.0), tensor(3.0, 4.0), tensor(5.0)) * 2:
        yield f(tensor(1.0, 2.0))


def global_table_entry(compiled):
    f = compiled(lambda x: x * TABLE["scale"])
    for TABLE["scale"] in (2.0, 3.0, 4.0) * 2:
        yield f(tensor(1.0, 2.0))


def global_by_name(compiled):
    global SCALE
    f = compiled(lambda x: x * globals()["SCALE"])
    for SCALE in (2.0, 3.0) * 2:
        yield f(tensor(1.0, 2.0))


def evaluated_source(compiled):
    global SCALE
    f = compiled(lambda x: x * eval("SCALE"))
    for SCALE in (2.0, 3.0) * 2:
        yield f(tensor(1.0, 2.0))


def closure_scalar(compiled):
    scale = 2.0

    def f(x):
        return x * scale

    f = compiled(f)
    for scale in (2.0, 3.0, 2.0) * 2:
        yield f(tensor(1.0, 2.0))


def closure_tensor(compiled):
    w = leaf(1.0, 2.0)
    f = compiled(lambda x: x * w)
    for i in range(3):
        y = f(tensor(3.0, 4.0))
        y.sum().backward()
        yield y, w
        w = leaf(i + 5.0, i + 6.0)


def closure_list_of_tensors(compiled):
    ws = [tensor(1.0, 2.0), tensor(3.0, 4.0)]
    f = compiled(lambda x: x * ws[0] + ws[1])
    yield f(tensor(1.0, 1.0))
    ws[1] = tensor(7.0, 8.0)
    yield f(tensor(1.0, 1.0))
    ws.insert(0, tensor(9.0, 9.0))
    yield f(tensor(1.0, 1.0))


def attribute_scalar(compiled):
    box = Box(scale=2.0)
    f = compiled(lambda x: box.scaled(x))
    for box.scale in (2.0, 3.0, 2.5) * 2:
        yield f(tensor(1.0, 2.0))


def class_attribute(compiled):
    box = Box()
    f = compiled(lambda x: x * box.rate)
    yield f(tensor(1.0, 2.0))
    try:
        Box.rate = 5.0
        yield f(tensor(1.0, 2.0))
    finally:
        Box.rate = 2.0
    box.rate = 7.0
    yield f(tensor(1.0, 2.0))


def hidden_behind_a_property(compiled):
    box = Box(_hidden=2.0)
    f = compiled(lambda x: x * box.doubled)
    for box._hidden in (2.0, 3.0) * 2:
        yield f(tensor(1.0, 2.0))


def attribute_by_computed_name(compiled):
    box = Box(a=2.0, b=3.0, name="a")
    f = compiled(lambda x: x * getattr(box, box.name))
    yield f(tensor(1.0))
    box.name = "b"
    yield f(tensor(1.0))
    box.b = 4.0
    yield f(tensor(1.0))


def nested_settings(compiled):
    box = Box(options={"layers": [2.0, 3.0]})

    def f(x):
        for factor in box.options["layers"]:
            x = x * factor
        return x

    f = compiled(f)
    yield f(tensor(1.0))
    box.options["layers"].append(5.0)
    yield f(tensor(1.0))
    box.options["layers"][0] = 7.0
    yield f(tensor(1.0))
    box.options = {"layers": []}
    yield f(tensor(1.0))


def helper_replaced(compiled):
    global helper
    first = helper
    f = compiled(lambda x: helper(x) + 1)
    try:
        yield f(tensor(1.0))
        helper = other_helper
        yield f(tensor(1.0))
    finally:
        helper = first


def method_replaced(compiled):
    box = Box(scale=2.0)
    f = compiled(lambda x: box.scaled(x))
    yield f(tensor(1.0))
    box.scaled = lambda x: x - 1
    yield f(tensor(1.0))


def helper_reads_a_global(compiled):
    global SCALE

    def inner(x):
        return x * SCALE

    f = compiled(lambda x: inner(x) + 1)
    for SCALE in (2.0, 3.0) * 2:
        yield f(tensor(1.0, 2.0))


def _printing(name, say):
    def printing(compiled):
        f = compiled(lambda x: (x * 2, say(np.float64(1.0) / 3)))
        for options in ({}, {}, {"precision": 2}, {"precision": 2}, {"legacy": "1.13"}, {}, {}):
            with np.printoptions(**options):
                yield f(tensor(1.0))

    printing.__name__ = f"numpy_prints_{name}"
    return printing


printing_of_a_number = _printing("a_number", lambda number: f"{number!r}")
printing_of_a_list = _printing("a_list", lambda number: f"{[number]}")
printing_of_an_array = _printing("an_array", lambda number: str(np.arange(3) * number))
printing_by_a_format = _printing("by_format", lambda number, words="%s": words % (number,))
printing_by_repr = _printing("by_repr", lambda number: repr((number,)))
