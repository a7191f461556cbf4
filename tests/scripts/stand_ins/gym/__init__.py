"""Stands in for gym and gymnasium: a pole on a cart for all names, by CartPole's equations.

Names that are not of CartPole have their own sizes of observations and actions, and observations
that move by a fixed matrix.
"""

import numpy as np

from . import spaces as spaces, wrappers as wrappers

SIZES = {"CartPole": (4, 2), "Pendulum": (3, -1), "LunarLander": (8, 4), "MountainCar": (2, 3)}


class Env:
    metadata = {}

    def __init__(self, name="CartPole-v1", new=False, **options):
        self.new = new
        size, actions = next((v for k, v in SIZES.items() if name.startswith(k)), (4, 2))
        box = spaces.Box(-np.full(size, 4.0, np.float32), np.full(size, 4.0, np.float32))
        self.observation_space = box
        self.action_space = (
            spaces.Discrete(actions)
            if actions > 0
            else spaces.Box(np.full(1, -2.0, np.float32), np.full(1, 2.0, np.float32))
        )
        self.spec = type("Spec", (), {"reward_threshold": 195.0, "max_episode_steps": 200})()
        self.rng, self.size, self.unwrapped = np.random.default_rng(0), size, self
        self._max_episode_steps = 200
        self.theta_threshold_radians, self.x_threshold = 0.21, 2.4

    def seed(self, seed=None):
        self.rng = np.random.default_rng(seed)
        self.action_space.seed(seed)

    def reset(self, seed=None, options=None):
        if seed is not None:
            self.seed(seed)
        self.state = self.rng.uniform(-0.05, 0.05, self.size)
        self.steps = 0
        seen = self.state.astype(np.float32)
        return (seen, {}) if self.new else seen

    def step(self, action):
        force = float(np.asarray(action).reshape(-1)[0])
        if self.size == 4:
            x, v, angle, turn = self.state
            push = 10.0 if force > 0.5 else -10.0
            sin, cos = np.sin(angle), np.cos(angle)
            common = (push + 0.05 * turn**2 * sin) / 1.1
            pull = (9.8 * sin - cos * common) / (0.5 * (4 / 3 - 0.1 * cos**2 / 1.1))
            accelerate = common - 0.05 * pull * cos / 1.1
            self.state = self.state + 0.02 * np.array([v, accelerate, turn, pull])
            done = abs(x) > 2.4 or abs(angle) > 0.21
        else:
            self.state = 0.95 * np.roll(self.state, 1) + 0.05 * force
            done = False
        self.steps += 1
        over = self.steps >= 200
        reward = 1.0 - float(abs(self.state[0]))
        seen = self.state.astype(np.float32)
        if self.new:
            return seen, reward, bool(done), over, {}
        return seen, reward, bool(done or over), {}

    def render(self, *args, **options):
        return np.zeros((40, 60, 3), np.uint8)

    def close(self):
        pass


class Wrapper(Env):
    pass


ObservationWrapper = RewardWrapper = ActionWrapper = Wrapper


def make(name, **options):
    return Env(name, **options)
