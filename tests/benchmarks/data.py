"""The inputs and starting parameters of every work: seeded NumPy arrays that all sides share."""

from __future__ import annotations

import numpy as np

Arrays = dict[str, np.ndarray]


def _layer(rng: np.random.Generator, name: str, *shape: int) -> Arrays:
    """Return a weight of ``shape`` and its bias, drawn as PyTorch's layers draw theirs."""
    bound = 1.0 / np.sqrt(np.prod(shape[1:]))
    return {
        f"{name}.weight": rng.uniform(-bound, bound, shape).astype(np.float32),
        f"{name}.bias": rng.uniform(-bound, bound, shape[0]).astype(np.float32),
    }


def _normal(rng: np.random.Generator, *shape: int) -> np.ndarray:
    return rng.standard_normal(shape).astype(np.float32)


def relu2() -> Arrays:
    return {"x": np.array([-1.0, 2.0], np.float32), "dy": np.array([1.0, 3.0], np.float32)}


def chain300() -> Arrays:
    rng = np.random.default_rng(0)
    return {
        "x": rng.uniform(0.2, 1.0, 16).astype(np.float32),
        "w": rng.uniform(0.9, 1.2, 16).astype(np.float32),
        "dy": np.ones(16, np.float32),
    }


def _mlp(seed: int, width: int, batch: int) -> Arrays:
    rng = np.random.default_rng(seed)
    return {
        **_layer(rng, "0", width, 784),
        **_layer(rng, "2", width, width),
        **_layer(rng, "4", 10, width),
        "x": _normal(rng, batch, 784),
        "target": rng.integers(0, 10, batch),
    }


def mlp() -> Arrays:
    return _mlp(1, 64, 32)


def mlp256() -> Arrays:
    return _mlp(6, 256, 128)


def third_order() -> Arrays:
    rng = np.random.default_rng(2)
    return {
        **_layer(rng, "0", 32, 2),
        **_layer(rng, "2", 32, 32),
        **_layer(rng, "4", 1, 32),
        "x": rng.uniform(-1.0, 1.0, (256, 2)).astype(np.float32),
    }


def lstm50() -> Arrays:
    rng = np.random.default_rng(7)
    inputs, hidden, batch = 32, 32, 8
    bound = 1.0 / np.sqrt(hidden)
    return {
        "w": rng.uniform(-bound, bound, (4 * hidden, inputs)).astype(np.float32),
        "u": rng.uniform(-bound, bound, (4 * hidden, hidden)).astype(np.float32),
        "b": rng.uniform(-bound, bound, 4 * hidden).astype(np.float32),
        "x": _normal(rng, 50, batch, inputs),
        "zeros": np.zeros((batch, hidden), np.float32),
        "dy": _normal(rng, batch, hidden),
    }


def chain20000() -> Arrays:
    return {"x": np.linspace(0.0, 1.0, 16, dtype=np.float32), "dy": np.ones(16, np.float32)}


def demo_step() -> Arrays:
    rng = np.random.default_rng(3)
    return {
        **_layer(rng, "conv1", 20, 1, 5, 5),
        **_layer(rng, "conv2", 50, 20, 5, 5),
        **_layer(rng, "fc1", 500, 800),
        **_layer(rng, "fc2", 10, 500),
        "x": _normal(rng, 64, 1, 28, 28),
        "target": rng.integers(0, 10, 64),
    }


def gelu() -> Arrays:
    rng = np.random.default_rng(4)
    return {"x": _normal(rng, 1024, 1024), "dy": _normal(rng, 1024, 1024)}


def transformer() -> Arrays:
    rng = np.random.default_rng(5)
    width = 128
    return {
        "norm1.weight": 1 + 0.1 * _normal(rng, width),
        "norm1.bias": 0.1 * _normal(rng, width),
        **_layer(rng, "qkv", 3 * width, width),
        **_layer(rng, "proj", width, width),
        "norm2.weight": 1 + 0.1 * _normal(rng, width),
        "norm2.bias": 0.1 * _normal(rng, width),
        **_layer(rng, "fc1", 4 * width, width),
        **_layer(rng, "fc2", width, 4 * width),
        "x": _normal(rng, 8, 64, width),
        "dy": _normal(rng, 8, 64, width),
    }


def _recurrent(seed: int, gates: int) -> Arrays:
    rng, width = np.random.default_rng(seed), 128
    bound = 1.0 / np.sqrt(width)
    shapes = {"weight_ih": (gates * width, width), "weight_hh": (gates * width, width)}
    shapes |= {"bias_ih": (gates * width,), "bias_hh": (gates * width,)}
    return {
        **{
            f"0.{name}_l{layer}": rng.uniform(-bound, bound, shape).astype(np.float32)
            for layer in range(2)
            for name, shape in shapes.items()
        },
        "x": _normal(rng, 64, 32, width),
        "dy": _normal(rng, 64, 32, width),
    }


def lstm_layers() -> Arrays:
    return _recurrent(8, 4)


def gru_layers() -> Arrays:
    return _recurrent(9, 3)


def encoder() -> Arrays:
    rng, width, wide = np.random.default_rng(10), 128, 512
    arrays: Arrays = {}
    for i in range(4):
        name = f"layers.{i}"
        inner = _layer(rng, "", 3 * width, width)
        arrays[f"{name}.self_attn.in_proj_weight"] = inner[".weight"]
        arrays[f"{name}.self_attn.in_proj_bias"] = inner[".bias"]
        arrays |= _layer(rng, f"{name}.self_attn.out_proj", width, width)
        arrays |= _layer(rng, f"{name}.linear1", wide, width)
        arrays |= _layer(rng, f"{name}.linear2", width, wide)
        for norm in ("norm1", "norm2"):
            arrays[f"{name}.{norm}.weight"] = 1 + 0.1 * _normal(rng, width)
            arrays[f"{name}.{norm}.bias"] = 0.1 * _normal(rng, width)
    return {**arrays, "x": _normal(rng, 64, 16, width), "dy": _normal(rng, 64, 16, width)}


def resnet18() -> Arrays:
    rng = np.random.default_rng(11)
    return {"x": _normal(rng, 16, 3, 32, 32), "target": rng.integers(0, 10, 16)}


def dcgan() -> Arrays:
    rng = np.random.default_rng(12)
    return {"x": np.tanh(_normal(rng, 16, 3, 32, 32)), "noise": _normal(rng, 16, 100, 1, 1)}


def gpt() -> Arrays:
    rng = np.random.default_rng(14)
    return {"x": rng.integers(0, 65, (8, 64)), "target": rng.integers(0, 65, (8, 64))}


def drawn(shapes: dict[str, tuple[int, ...]], seed: int) -> Arrays:
    """Return a parameter of each shape: weights by what goes in, scales near 1, biases near 0."""
    rng = np.random.default_rng(seed)
    made = {}
    for name, shape in shapes.items():
        size = 1 / np.sqrt(np.prod(shape[1:])) if len(shape) > 1 else 0.1
        middle = float(len(shape) == 1 and name.endswith("weight"))
        made[name] = np.float32(middle) + np.float32(size) * _normal(rng, *shape)
    return made


def parameters(arrays: Arrays) -> Arrays:
    """Return the entries of ``arrays`` that are a network's parameters, in their order."""
    return {name: array for name, array in arrays.items() if "." in name}
