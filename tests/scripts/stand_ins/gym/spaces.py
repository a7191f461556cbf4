"""Spaces of observations and actions."""

import numpy as np


class Discrete:
    shape = ()

    def __init__(self, n):
        self.n, self.rng = n, np.random.default_rng(0)

    def seed(self, seed=None):
        self.rng = np.random.default_rng(seed)

    def sample(self):
        return int(self.rng.integers(self.n))


class Box(Discrete):
    def __init__(self, low, high, shape=None, dtype=np.float32):
        self.low, self.high, self.rng = low, high, np.random.default_rng(0)
        self.shape = low.shape

    def sample(self):
        return self.rng.uniform(self.low, self.high).astype(np.float32)
