"""Convolution where each channel has a filter of its own, as sums over runs; see `conv.py`.

A product of matrices with one filter is slow. Here padded planes lie such that each tap of the
kernel meets a run of memory: one element for each position of the output, and between rows some
that may be anything. With a stride, elements that a tap meets one after the other lie side by side:
there are as many runs, *phases*, as steps of the stride.

Two ways lead to the sums. `einsum` adds tap by tap. With many taps products of matrices take half
as long: four rows of the output are a matrix of filters times the rows that these meet, which are
copied once for each tap of a row. Threads share the channels. Each writes what is its own, so their
number changes no bit.
"""

import functools
import itertools
import math
from typing import Any, NamedTuple

import numpy as np

from oneflow_lite.kernels import depthwise_planes as planes
from oneflow_lite.kernels.windows import copy
from oneflow_lite.threads import in_threads, parts_of

_BYTES = 2**22  # what a thread works on at once: with less, threads wait for each other's Python
# NumPy copies operands into buffers of 8,192 elements where two runs would fit in.
_RUN = 4097
_DOT = 2**13  # elements in a dot product, at most: BLAS takes one thread for these
_MANY = 16  # taps, from which products of matrices are quicker
_ROWS = 4  # of the output, in one product: BLAS takes as many at once
_LINE = 512  # elements of a row in all images, from which a product gains no more
_SPATIAL = "ijk"


class _Phase(NamedTuple):
    target: tuple[Any, ...]  # its places in a plane of this phase, and those in the input
    source: tuple[Any, ...]
    weight: tuple[Any, ...]  # its taps, which are as many steps apart in each dimension
    first: tuple[int, ...]  # how far from a position the first of them lies, in each dimension
    counts: tuple[int, ...]


class _Layout(NamedTuple):
    size: tuple[int, ...]  # of a plane in each phase
    phases: list[_Phase]
    apart: tuple[int, ...]  # how far it is from one tap of a phase to the next
    result: tuple[Any, ...]  # where the output lies in a plane

    def met(self):
        """Return the phases that taps meet, with their numbers."""
        return [(i, phase) for i, phase in enumerate(self.phases) if 0 not in phase.counts]

    def images(self, phases):
        """Return how many images products of matrices take at once for a sum of some phases.

        0 where einsum takes less time.
        """
        taps = sum([math.prod(phase.counts) for phase in phases])
        copies, window = self.copies(phases)
        if taps < _MANY or (window + 2) * copies > 3.3 * taps:
            return 0
        line, most = math.prod(self.size[1:]), planes.PRODUCTS // (_ROWS * window * copies)
        return 0 if line > most else max(1, min(_LINE, most) // line)

    def copies(self, phases):
        """Return how many copies of a row its taps need, and how many rows four rows meet."""
        reach = (max([phase.counts[0] for phase in phases]) - 1) * self.apart[0]
        return sum([math.prod(phase.counts[1:]) for phase in phases]), reach + _ROWS


@functools.lru_cache(256)
def _layout(input_size, output_size, kernel_size, stride, padding, dilation):
    geometry = [*zip(input_size, stride, padding, kernel_size, dilation, strict=True)]
    size, phases = [*output_size], []
    for phase in np.ndindex(*stride):
        source, target, weight, first, counts = [], [], [], [], []
        for i, (a, (n, s, p, k, d)) in enumerate(zip(phase, geometry, strict=True)):
            begin = (a - p) % s
            start, count = (begin + p) // s, len(range(begin, n, s))
            taps = [t for t in range(k) if t * d % s == a]
            source.append(slice(begin, None, s))
            target.append(slice(start, start + count))
            weight.append(slice(taps[0], None, s // math.gcd(s, d)) if taps else slice(0))
            first.append(taps[0] * d // s if taps else 0)
            counts.append(len(taps))
            # Zeros in front of a row serve as those behind the one before it, too.
            size[i] = max(size[i], start + count)
        places = (..., *target), (..., *source), (..., *weight)
        phases.append(_Phase(*places, (*first,), (*counts,)))
    apart = [d // math.gcd(s, d) for s, d in zip(stride, dilation, strict=True)]
    return _Layout((*size,), phases, (*apart,), (..., *[slice(0, n) for n in output_size]))


class _Block:
    """Planes of some channels and images: `planes` of each phase, and `positions` of the output.

    In memory the images come first. For products of `lines` they come before the last dimension, so
    that a row of all of them is one line; the last product may have more rows than there are.
    """

    def __init__(self, channels, images, layout, dtype, zeros, lines):
        self.channels, self.layout, self.itemsize = channels, layout, np.dtype(dtype).itemsize
        *lead, last = layout.size
        width = images * last if lines else last
        self.steps = [math.prod(lead[i + 1 :]) * width for i in range(len(lead))] + [1]
        used = (lead[0] + _ROWS - 1) * self.steps[0] if lines else images * math.prod(layout.size)
        self.run = _RUN if _RUN // 2 < used < _RUN else used
        reach = 0
        for phase in layout.phases:
            taps = zip(phase.first, phase.counts, layout.apart, self.steps, strict=True)
            reach = max(reach, sum([(f + (n - 1) * d) * step for f, n, d, step in taps if n]))
        self.reach = reach
        self.memory = np.empty((len(layout.phases) + 1, channels * self.run + 2 * reach), dtype)
        self.memory[zeros] = 0
        shape = images, *layout.size
        steps = last if lines else math.prod(layout.size), *self.steps
        *self.planes, self.positions = [
            self._view(number, 0, shape, steps) for number in range(len(self.memory))
        ]
        self.sums: list[_Sum] = []

    def _view(self, number, begin, shape, steps):
        """Return elements of each channel, from one of its own on."""
        shape, steps = (self.channels, *shape), [n * self.itemsize for n in (self.run, *steps)]
        begin = (self.reach + begin) * self.itemsize
        return np.ndarray(shape, self.memory.dtype, self.memory[number], begin, steps)

    def runs(self, number):
        """Return planes as memory goes: (channels, run)."""
        return self._view(number, 0, (self.run,), (1,))

    def _first(self, phase):
        """Return how far from a position the first tap of a phase lies."""
        return sum([f * step for f, step in zip(phase.first, self.steps, strict=True)])

    def met(self, number, phase, sign=1):
        """Return what the taps of a phase meet in planes: (channels, *taps, run)."""
        steps = [sign * d * step for d, step in zip(self.layout.apart, self.steps, strict=True)]
        return self._view(number, sign * self._first(phase), (*phase.counts, self.run), (*steps, 1))

    def lines(self, number, phase, begin, count, sign):
        """Return what the taps of a row meet: (channels, rows, *taps, line).

        The rows are all that some rows of the output meet, those from `begin` on.
        """
        rows, *steps = [d * step for d, step in zip(self.layout.apart, self.steps, strict=True)]
        line, first = self.steps[0], sign * self._first(phase)
        begin = begin * line + first - (sign < 0) * (phase.counts[0] - 1) * rows
        shape = (count, *phase.counts[1:], line)
        return self._view(number, begin, shape, (line, *[sign * n for n in steps], 1))


def _blocks(x, layout, zeros, most=0, copies=0):
    """Yield the index of some images and channels, and a block for them.

    There are zeros around what planes of the numbers `zeros` will hold. Products of matrices take
    `most` images at once, and copy each row so often.
    """
    images, channels = x.shape[:2]
    copies = copies if most else 0
    bytes_each = (len(layout.phases) + 1 + copies) * math.prod(layout.size) * x.itemsize
    each = max(1, min(images, most or images, _BYTES // bytes_each))
    each = next((n for n in range(each, each // 2, -1) if images % n == 0), each)  # no rest
    parts = -(-channels // max(1, _BYTES // (bytes_each * each)))
    channels_each, block, kind = -(-channels // parts), None, None
    for image in range(0, images, each):
        for channel in range(0, channels, channels_each):
            shape = min(channels_each, channels - channel), min(each, images - image)
            if kind != shape:
                block, kind = _Block(*shape, layout, x.dtype, zeros, most > 0), shape
            yield (slice(image, image + each), slice(channel, channel + channels_each)), block


class _Sum:
    """Sums of what the taps of some phases meet, (number of planes, phase), in one direction.

    `rows` of the planes of a number are written.
    """

    def __init__(self, block, met, number, rows, sign=1):
        self.block, self.met, self.sign, self.out = block, met, sign, block.runs(number)
        self.products = block.layout.images([phase for _, phase in met]) > 0
        if self.products:
            self._lay_out(rows.start, -(-(rows.stop - rows.start) // _ROWS))

    def _lay_out(self, begin, count):
        """Make memory and views for `count` products of matrices in each channel."""
        block, dtype, size = self.block, self.out.dtype, self.block.itemsize
        copies, window = block.layout.copies([phase for _, phase in self.met])
        line, height = block.steps[0], count * _ROWS - _ROWS + window
        matrix = np.zeros((block.channels, 1, _ROWS, window * copies), dtype)
        rows = np.empty((block.channels, height, copies, line), dtype)
        shape = (block.channels, count, window * copies, line)
        steps: Any = rows.strides[0], _ROWS * rows.strides[1], *rows.strides[2:]
        self.matrix, self.rows = matrix, np.ndarray(shape, dtype, rows, 0, steps)
        out = self.out[:, begin * line : (begin + count * _ROWS) * line]
        self.made = out.reshape(block.channels, count, _ROWS, line)
        self.filters, self.lines, first = [], [], 0
        for number, phase in self.met:
            width = math.prod(phase.counts[1:])
            # One row further in the output, one row further in the input.
            shape = (block.channels, _ROWS, phase.counts[0], width)
            steps = (window * copies * _ROWS, window * copies + copies)
            steps = [n * size for n in (*steps, block.layout.apart[0] * copies, 1)]
            self.filters.append(np.ndarray(shape, dtype, matrix, first * size, steps))
            lines = block.lines(number, phase, begin, height, self.sign)
            copied = rows[:, :, first : first + width].reshape(lines.shape)
            self.lines.append((copied, lines))
            first += width

    def write(self, filters):
        if not self.products:
            self._add(filters)
            return
        right = self._multiply(filters)
        if not right.all():
            kept = self.out[right]
            self._add(filters)
            self.out[right] = kept

    def _multiply(self, filters):
        """Do it with products of matrices; return for which channels that is right.

        Their zeros make NaN of infinities.
        """
        for place, each in zip(self.filters, filters, strict=True):
            place[...] = each[:, :: self.sign].reshape(len(each), 1, *place.shape[2:])
        for copied, lines in self.lines:
            copied[...] = lines
        np.matmul(self.matrix, self.rows, out=self.made)
        return np.isfinite(self.made).all(axis=(1, 2, 3))

    def _add(self, filters):
        product = None
        for each, (number, phase) in zip(filters, self.met, strict=True):
            met = self.block.met(number, phase, self.sign)
            # Shorter runs are not copied, either, where taps are in one dimension.
            rows = np.ndindex(each.shape[1:-1]) if self.block.run <= _RUN // 2 else [()]
            for row in rows:
                factors, factors_met = each[:, *row], met[:, *row]
                taps = _SPATIAL[: factors.ndim - 1]
                made = self.out if product is None else product
                np.einsum(f"c{taps},c{taps}l->lc", factors, factors_met, out=made.T, order="F")
                if product is None:
                    product = np.empty_like(self.out)
                else:
                    self.out += product


def _shared(work, x, weight, y):
    """Do some work on the channels, in several threads if that pays; return whether it is right.

    `work` takes the parts of x, of filters and of y.
    """
    right, channels = [], x.shape[1]

    @np.errstate(all="ignore")
    def part(begin, end):
        right.append(work(x[:, begin:end], weight[begin:end], y[:, begin:end]))

    taps = min(weight[0].size, x[0, 0].size // 3)  # in small planes many meet nothing
    # An eighth of a nanosecond each. Parts wait for each other's Python, so they pay later
    # than parts of machine code.
    parts = parts_of(min(x.size, y.size) * taps / 8 / 2, channels)
    bounds = itertools.pairwise([channels * i // parts for i in range(parts + 1)])
    in_threads([functools.partial(part, *pair) for pair in bounds])
    return all(right)


def _laid_out(x, weight, y, steps):
    """Return a layout for planes and filters; sequences are planes of one row."""
    sizes = [a.shape[2:] for a in (x, y, weight)]
    if len(sizes[0]) == 1:
        sizes = [(1, *size) for size in sizes]
        steps = [(n, *step) for n, step in zip((1, 0, 1), steps, strict=True)]
    return _layout(*sizes, *steps)


def _in_planes(*arrays):
    """Return (images, channels, *plane), views."""
    return [a[:, :, None] if a.ndim == 3 else a for a in arrays]


def convolve(x, weight, y, *steps):
    """Write what filters (channels, 1, *kernel) make of x."""
    if planes.pays(len(x), x.shape[2:], y.shape[2:], weight.shape[2:]) and _shared(
        lambda *parts: planes.convolve(*parts, *steps), x, weight, y
    ):
        return
    layout = _laid_out(x, weight, y, steps)
    most = layout.images([phase for _, phase in layout.met()])
    _shared(functools.partial(_convolve, layout, most), *_in_planes(x, weight, y))


def _convolve(layout, most, x, weight, y):
    phases = [phase for _, phase in layout.met()]
    for place, block in _blocks(x, layout, slice(-1), most, layout.copies(phases)[0]):
        block.sums = block.sums or [_Sum(block, layout.met(), -1, layout.result[1])]
        part, filters = x[place].swapaxes(0, 1), weight[place[1], 0]
        for number, phase in layout.met():
            copy(block.planes[number][phase.target], part[phase.source])
        block.sums[0].write([filters[phase.weight] for phase in phases])
        copy(y[place], block.positions[layout.result].swapaxes(0, 1))


def input_grad(dy, weight, dx, *steps):
    """Write the gradient of the input; filters are finite, for zeros lie between positions."""
    if planes.pays(len(dx), dx.shape[2:], dy.shape[2:], weight.shape[2:]) and _shared(
        lambda *parts: planes.input_grad(*parts, *steps), dy, weight, dx
    ):
        return
    layout = _laid_out(dx, weight, dy, steps)
    most = min([n for _, phase in layout.met() if (n := layout.images([phase]))], default=0)
    _shared(functools.partial(_input_grad, layout, most), *_in_planes(dy, weight, dx))


def _input_grad(layout, most, dy, weight, dx):
    if len(layout.met()) < len(layout.phases):
        dx[...] = 0
    copies = max([layout.copies([phase])[0] for _, phase in layout.met()])
    for place, block in _blocks(dx, layout, -1, most, copies):
        block.sums = block.sums or [
            _Sum(block, [(-1, phase)], number, phase.target[1], -1)
            for number, phase in layout.met()
        ]
        copy(block.positions[layout.result], dy[place].swapaxes(0, 1))
        part, filters = dx[place].swapaxes(0, 1), weight[place[1], 0]
        for sums, (number, phase) in zip(block.sums, layout.met(), strict=True):
            sums.write([filters[phase.weight]])
            copy(part[phase.source], block.planes[number][phase.target])


def weight_grad(dy, x, dweight, *steps):
    """Add up the gradient of the filters; it is right where it is finite.

    Between positions zeros meet elements of x, which may be infinite.
    """
    if planes.pays(len(x), x.shape[2:], dy.shape[2:], dweight.shape[2:]) and np.isfinite(dy).all():
        _shared(lambda *parts: planes.weight_grad(*parts, *steps), dy, dweight, x)
        return
    layout = _laid_out(x, dweight, dy, steps)
    _shared(functools.partial(_weight_grad, layout), *_in_planes(dy, dweight, x))


def _weight_grad(layout, dy, dweight, x):
    for place, block in _blocks(x, layout, slice(None)):
        copy(block.positions[layout.result], dy[place].swapaxes(0, 1))
        part, filters = x[place].swapaxes(0, 1), dweight[place[1], 0]
        given = block.runs(-1)[(slice(None), *[None] * (x.ndim - 2))]
        for number, phase in layout.met():
            copy(block.planes[number][phase.target], part[phase.source])
            met = block.met(number, phase)
            for begin in range(0, block.run, _DOT):
                some = (..., slice(begin, begin + _DOT))
                filters[phase.weight] += np.vecdot(given[some], met[some])
