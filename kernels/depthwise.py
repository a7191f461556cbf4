"""Convolution where each channel has a filter of its own, as sums over runs; see `conv.py`.

A product of matrices with one filter is slow. Here padded planes lie such that each tap of the
kernel meets a run of memory: one element for each position of the output, and between rows some
that may be anything. With a stride, elements that a tap meets one after the other lie side by side:
there are as many runs, *phases*, as steps of the stride.
"""

import functools
import math
from typing import NamedTuple

import numpy as np

# NumPy copies operands into buffers of 8,192 elements where two runs would fit in.
_RUN = 4097
_BYTES = 2**18  # what is worked on at once, which stays in the cache
_SPATIAL = "ijk"


class _Phase(NamedTuple):
    target: tuple  # its places in a plane of this phase, and those in the input
    source: tuple
    weight: tuple  # its taps, which are as many steps apart in each dimension
    first: int  # how far from a position the first of them lies
    steps: tuple  # and how far the next one, in each dimension
    counts: tuple

    @property
    def reach(self):
        return self.first + sum([(n - 1) * s for n, s in zip(self.counts, self.steps, strict=True)])


@functools.lru_cache(256)
def _layout(input_size, kernel_size, stride, padding, dilation):
    """Return the size of a plane in each phase, and the phases."""
    geometry = [*zip(input_size, stride, padding, strict=True)]
    size = tuple([-(-(n + 2 * p) // s) for n, s, p in geometry])
    step_of = [math.prod(size[i + 1 :]) for i in range(len(size))]
    phases = []
    for phase in np.ndindex(*stride):
        source, target, weight, first, steps, counts = [], [], [], 0, [], []
        for a, (n, s, p), k, d, step in zip(
            phase, geometry, kernel_size, dilation, step_of, strict=True
        ):
            begin = (a - p) % s
            source.append(slice(begin, None, s))
            target.append(slice((begin + p) // s, (begin + p) // s + len(range(begin, n, s))))
            taps = [i for i in range(k) if i * d % s == a]
            weight.append(slice(taps[0], None, s // math.gcd(s, d)) if taps else slice(0))
            first += taps[0] * d // s * step if taps else 0
            steps.append(d // math.gcd(s, d) * step)
            counts.append(len(taps))
        phases.append(
            _Phase((..., *target), (..., *source), (..., *weight), first, (*steps,), (*counts,))
        )
    return size, phases


class _Block:
    """Planes of some channels and images: `planes` of each phase, and `positions` of the output."""

    def __init__(self, shape, layout, dtype):
        self.size, self.phases = layout
        self.shape = (*shape, *self.size)  # channels, images, size
        self.run = math.prod(self.shape[1:])
        self.reach = max([phase.reach for phase in self.phases])
        self.planes = [self._zeros(dtype) for _ in self.phases]
        self.positions = self._zeros(dtype)

    def _zeros(self, dtype):
        """Return zeros, with as many around them as a tap may reach."""
        count = self.shape[0] * self.run
        memory = np.zeros(count + 2 * self.reach, dtype)
        return memory[self.reach : self.reach + count].reshape(self.shape)

    def flat(self, x):
        return x.reshape(self.shape[0], self.run)

    def met(self, x, phase, sign=1):
        """Return what the taps of a phase meet: (channels, *taps, run)."""
        steps = [sign * step * x.itemsize for step in phase.steps]
        begin = (self.reach + sign * phase.first) * x.itemsize
        shape = (self.shape[0], *phase.counts, self.run)
        return np.ndarray(
            shape, x.dtype, x.base, begin, (self.run * x.itemsize, *steps, x.itemsize)
        )


def _blocks(x, layout):
    """Yield the index of some images and channels, and a block for them."""
    images, channels = x.shape[:2]
    size, phases = math.prod(layout[0]), len(layout[1])
    images_each = min(images, -(-_RUN // size))
    room = _BYTES // ((phases + 1) * images_each * size * x.itemsize)
    channels_each = max(1, min(channels, room))
    block = None
    for channel in range(0, channels, channels_each):
        for image in range(0, images, images_each):
            place = slice(image, image + images_each), slice(channel, channel + channels_each)
            shape = min(channels_each, channels - channel), min(images_each, images - image)
            if block is None or block.shape[:2] != shape:
                block = _Block(shape, layout, x.dtype)
            yield place, block


def _summed(weight, met, out):
    """Write Σ_taps weight · met into a run of each channel, the innermost loop along the run."""
    taps = _SPATIAL[: weight.ndim - 1]
    np.einsum(f"c{taps},c{taps}l->lc", weight, met, out=out.T, order="F")


@np.errstate(all="ignore")
def convolve(x, weight, y, stride, padding, dilation):
    """Write what filters (channels, 1, *kernel) make of x."""
    layout = _layout(x.shape[2:], weight.shape[2:], stride, padding, dilation)
    result = (..., *map(slice, y.shape[2:]))
    for place, block in _blocks(x, layout):
        part, filters = x[place].swapaxes(0, 1), weight[place[1], 0]
        total = block.flat(block.positions)
        product = None
        for plane, phase in zip(block.planes, block.phases, strict=True):
            if 0 in phase.counts:
                continue
            plane[phase.target] = part[phase.source]
            met = block.met(plane, phase)
            _summed(filters[phase.weight], met, total if product is None else product)
            if product is None:
                product = np.empty_like(total)
            else:
                total += product
        y[place] = block.positions[result].swapaxes(0, 1)


@np.errstate(all="ignore")
def input_grad(dy, weight, dx, stride, padding, dilation):
    """Write the gradient of the input; filters are finite, for zeros lie between positions."""
    layout = _layout(dx.shape[2:], weight.shape[2:], stride, padding, dilation)
    result = (..., *map(slice, dy.shape[2:]))
    for place, block in _blocks(dx, layout):
        block.positions[result] = dy[place].swapaxes(0, 1)
        part, filters = dx[place].swapaxes(0, 1), weight[place[1], 0]
        for plane, phase in zip(block.planes, block.phases, strict=True):
            if 0 in phase.counts:
                part[phase.source] = 0
                continue
            met = block.met(block.positions, phase, -1)
            _summed(filters[phase.weight], met, block.flat(plane))
            part[phase.source] = plane[phase.target]


@np.errstate(all="ignore")
def weight_grad(dy, x, dweight, stride, padding, dilation):
    """Add up the gradient of the filters; it is right where it is finite.

    Between positions zeros meet elements of x, which may be infinite.
    """
    layout = _layout(x.shape[2:], dweight.shape[2:], stride, padding, dilation)
    result = (..., *map(slice, dy.shape[2:]))
    for place, block in _blocks(x, layout):
        block.positions[result] = dy[place].swapaxes(0, 1)
        part, filters = x[place].swapaxes(0, 1), dweight[place[1], 0]
        given = block.flat(block.positions)[(slice(None), *[None] * (x.ndim - 2))]
        for plane, phase in zip(block.planes, block.phases, strict=True):
            if 0 not in phase.counts:
                plane[phase.target] = part[phase.source]
                filters[phase.weight] += np.vecdot(given, block.met(plane, phase))
