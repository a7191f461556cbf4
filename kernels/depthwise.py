"""Convolution where each channel has a filter of its own, as sums over runs; see `conv.py`.

A product of matrices with one filter is slow. Here padded planes lie such that each tap of the
kernel meets a run of memory: one element for each position of the output, and between rows some
that may be anything. With a stride, elements that a tap meets one after the other lie side by side:
there are as many runs, *phases*, as steps of the stride.
"""

import functools
import math
from typing import Any, NamedTuple

import numpy as np

from oneflow_lite.kernels import depthwise_planes as planes

# NumPy copies operands into buffers of 8,192 elements where two runs would fit in.
_RUN = 4097
_BYTES = 2**20  # what is worked on at once, which stays in the cache
_SPATIAL = "ijk"


class _Phase(NamedTuple):
    target: tuple[Any, ...]  # its places in a plane of this phase, and those in the input
    source: tuple[Any, ...]
    weight: tuple[Any, ...]  # its taps, which are as many steps apart in each dimension
    first: int  # how far from a position the first of them lies
    steps: tuple[int, ...]  # and how far the next one, in each dimension
    counts: tuple[int, ...]

    @property
    def reach(self):
        return self.first + sum([(n - 1) * s for n, s in zip(self.counts, self.steps, strict=True)])


class _Layout(NamedTuple):
    size: tuple[int, ...]  # of a plane in each phase
    phases: list[_Phase]
    result: tuple[Any, ...]  # where the output lies in it


@functools.lru_cache(256)
def _layout(input_size, output_size, kernel_size, stride, padding, dilation):
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
    return _Layout(size, phases, (..., *map(slice, output_size)))


class _Block:
    """Planes of some channels and images: `planes` of each phase, and `positions` of the output.

    `runs` are the latter as memory goes, (channels, run); with `reach` elements around them.
    """

    def __init__(self, channels, images, layout, dtype):
        self.shape, self.phases = (channels, images), layout.phases
        used = images * math.prod(layout.size)
        self.run = _RUN if _RUN // 2 < used < _RUN else used
        self.reach = max([phase.reach for phase in self.phases])
        self.itemsize = np.dtype(dtype).itemsize
        steps = [math.prod(layout.size[i:]) for i in range(len(layout.size))]
        steps = [n * self.itemsize for n in (self.run, *steps, 1)]
        self.memory = np.zeros((len(self.phases) + 1, channels * self.run + 2 * self.reach), dtype)
        shape, begin = (channels, images, *layout.size), self.reach * self.itemsize
        *self.planes, self.positions = [
            np.ndarray(shape, dtype, memory, begin, steps) for memory in self.memory
        ]
        self.runs = [
            memory[self.reach : len(memory) - self.reach].reshape(channels, self.run)
            for memory in self.memory
        ]

    def met(self, number, phase, sign=1):
        """Return what the taps of a phase meet in a plane: (channels, *taps, run)."""
        steps = [n * self.itemsize for n in (self.run, *[sign * s for s in phase.steps], 1)]
        begin = (self.reach + sign * phase.first) * self.itemsize
        shape = (self.shape[0], *phase.counts, self.run)
        return np.ndarray(shape, self.memory.dtype, self.memory[number], begin, steps)


def _blocks(x, layout):
    """Yield the index of some images and channels, and a block for them."""
    images, channels = x.shape[:2]
    size, phases = math.prod(layout.size), len(layout.phases)
    each = next((n for n in range(1, images) if images % n == 0 and n * size >= _RUN), images)
    room = _BYTES // ((phases + 1) * each * size * x.itemsize)
    channels_each = -(-channels // -(-channels // max(1, room)))
    block = None
    for channel in range(0, channels, channels_each):
        count = min(channels_each, channels - channel)
        if block is None or block.shape[0] != count:
            block = _Block(count, each, layout, x.dtype)
        for image in range(0, images, each):
            yield (slice(image, image + each), slice(channel, channel + count)), block


def _summed(weight, met, out):
    """Write Σ_taps weight · met into a run of each channel, the innermost loop along the run."""
    taps = _SPATIAL[: weight.ndim - 1]
    np.einsum(f"c{taps},c{taps}l->lc", weight, met, out=out.T, order="F")


@np.errstate(all="ignore")
def convolve(x, weight, y, stride, padding, dilation):
    """Write what filters (channels, 1, *kernel) make of x."""
    sizes, steps = (x.shape[2:], y.shape[2:], weight.shape[2:]), (stride, padding, dilation)
    if planes.pays(len(x), *sizes) and planes.convolve(x, weight, y, *steps):
        return
    layout = _layout(*sizes, *steps)
    for place, block in _blocks(x, layout):
        part, filters = x[place].swapaxes(0, 1), weight[place[1], 0]
        total, product = block.runs[-1], None
        for number, phase in enumerate(block.phases):
            if 0 in phase.counts:
                continue
            block.planes[number][phase.target] = part[phase.source]
            met = block.met(number, phase)
            _summed(filters[phase.weight], met, total if product is None else product)
            if product is None:
                product = np.empty_like(total)
            else:
                total += product
        y[place] = block.positions[layout.result].swapaxes(0, 1)


@np.errstate(all="ignore")
def input_grad(dy, weight, dx, stride, padding, dilation):
    """Write the gradient of the input; filters are finite, for zeros lie between positions."""
    sizes, steps = (dx.shape[2:], dy.shape[2:], weight.shape[2:]), (stride, padding, dilation)
    if planes.pays(len(dx), *sizes) and planes.input_grad(dy, weight, dx, *steps):
        return
    layout = _layout(*sizes, *steps)
    for place, block in _blocks(dx, layout):
        block.positions[layout.result] = dy[place].swapaxes(0, 1)
        part, filters = dx[place].swapaxes(0, 1), weight[place[1], 0]
        for number, phase in enumerate(block.phases):
            if 0 in phase.counts:
                part[phase.source] = 0
                continue
            _summed(filters[phase.weight], block.met(-1, phase, -1), block.runs[number])
            part[phase.source] = block.planes[number][phase.target]


@np.errstate(all="ignore")
def weight_grad(dy, x, dweight, stride, padding, dilation):
    """Add up the gradient of the filters; it is right where it is finite.

    Between positions zeros meet elements of x, which may be infinite.
    """
    sizes = x.shape[2:], dy.shape[2:], dweight.shape[2:]
    if planes.pays(len(x), *sizes) and np.isfinite(dy).all():
        planes.weight_grad(dy, x, dweight, stride, padding, dilation)
        return
    layout = _layout(*sizes, stride, padding, dilation)
    for place, block in _blocks(x, layout):
        block.positions[layout.result] = dy[place].swapaxes(0, 1)
        part, filters = x[place].swapaxes(0, 1), dweight[place[1], 0]
        given = block.runs[-1][(slice(None), *[None] * (x.ndim - 2))]
        for number, phase in enumerate(block.phases):
            if 0 not in phase.counts:
                block.planes[number][phase.target] = part[phase.source]
                filters[phase.weight] += np.vecdot(given, block.met(number, phase))
