"""Convolution where each channel has a filter of its own, as sums over runs; see `conv.py`.

A product of matrices with one filter is slow. So padded planes are laid out such that each tap of
the kernel meets a run of memory. A run has an element for each position of the output, and between
rows a few elements whose results are not used. With a stride, a tap meets every second or third
element of a row. These are copied side by side, into a plane for each step of the stride, its
*phase*. Short rows with a step of two stay whole: to compute every second position in vain takes
less time than to take them apart.

Two ways lead to the sums. `einsum` adds tap by tap. With many taps products of matrices take half
as long: four rows of the output are a matrix of filters times the input rows that they meet, which
are copied once for each tap of a row. Threads share the channels, and each thread writes its own
channels alone, so the number of threads changes no bit.
"""

import functools
import itertools
import math
from typing import Any, NamedTuple

import numpy as np

from oneflow_lite.arrays.threads import in_threads, parts_of
from oneflow_lite.kernels import depthwise_planes as planes
from oneflow_lite.kernels.windows import copy

WAY = "runs of each channel"  # as a profile calls it

_BYTES = 2**22  # of a thread's block: in smaller blocks threads wait for each other's Python
# NumPy copies operands into its buffers of 8,192 elements where two runs fit into a buffer. A run
# that is a little shorter is made as long as this.
_RUN = 4097
_DOT = 2**13  # elements in a dot product, at most: BLAS takes one thread for these
_MANY = 16  # taps, from which products of matrices are quicker
_ROWS = 4  # of the output, in one product: BLAS takes as many at once
_SHORT = 32  # elements of an output row, up to which a step of two leaves rows whole
_LINE = 512  # elements of a row in all images, from which a product gains no more
_SPATIAL = "ijk"


class _Phase(NamedTuple):
    target: tuple[Any, ...]  # the places of its elements in the plane of this phase
    source: tuple[Any, ...]  # the places of the same elements in the input
    weight: tuple[Any, ...]  # its taps, at equal distances in each dimension
    first: tuple[int, ...]  # the distance from a position to its first tap, in each dimension
    counts: tuple[int, ...]  # of its taps, in each dimension


class _Products(NamedTuple):
    """The products of matrices that sum over the taps of some phases."""

    images: int  # in a product; 0 where einsum takes less time
    copies: int  # of a row, one for each of its taps
    window: int  # rows of the input that four rows of the output meet


class _Layout(NamedTuple):
    size: tuple[int, ...]  # of a plane in each phase
    phases: list[_Phase]
    met: list[tuple[int, _Phase]]  # the phases that taps meet, with their numbers
    apart: tuple[int, ...]  # the distance between neighbouring taps of a phase
    result: tuple[Any, ...]  # where the output lies in a plane
    whole: _Products  # for the sum of all phases
    each: list[_Products]  # for each phase that taps meet


def _products(phases, size, apart):
    taps = sum([math.prod(phase.counts) for phase in phases])
    copies = sum([math.prod(phase.counts[1:]) for phase in phases])
    window = (max([phase.counts[0] for phase in phases]) - 1) * apart[0] + _ROWS
    images, line, most = 0, math.prod(size[1:]), planes.PRODUCTS // (_ROWS * window * copies)
    if taps >= _MANY and (window + 2) * copies <= 3.3 * taps and line <= most:
        images = max(1, min(_LINE, most) // line)
    return _Products(images, copies, window)


@functools.lru_cache(256)
def _layout(input_size, output_size, kernel_size, stride, padding, dilation):
    result = [slice(0, n) for n in output_size]
    if stride[-1] == 2 and output_size[-1] <= _SHORT and math.prod(kernel_size) < _MANY:
        output_size, stride = (*output_size[:-1], 2 * output_size[-1] - 1), (*stride[:-1], 1)
        result[-1] = slice(0, output_size[-1], 2)
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
            # Rows share their padding: zeros in front of a row lie behind the row before it.
            size[i] = max(size[i], start + count)
        places = (..., *target), (..., *source), (..., *weight)
        phases.append(_Phase(*places, (*first,), (*counts,)))
    apart = [d // math.gcd(s, d) for s, d in zip(stride, dilation, strict=True)]
    met = [(i, phase) for i, phase in enumerate(phases) if 0 not in phase.counts]
    whole = _products([phase for _, phase in met], size, apart)
    each = [_products([phase], size, apart) for _, phase in met]
    return _Layout((*size,), phases, met, (*apart,), (..., *result), whole, each)


class _Block:
    """Planes of some channels and images: `planes` of each phase, and `positions` of the output.

    In memory the images come first. With `lines`, for products of matrices, they come before the
    last dimension, so that a row of all images is a line. The last product may reach past the
    last row.
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
        """Return a view of each channel's elements, from its element `begin` on."""
        shape, steps = (self.channels, *shape), [n * self.itemsize for n in (self.run, *steps)]
        begin = (self.reach + begin) * self.itemsize
        return np.ndarray(shape, self.memory.dtype, self.memory[number], begin, steps)

    def runs(self, number):
        """Return the planes of a number as they lie in memory: (channels, run)."""
        return self._view(number, 0, (self.run,), (1,))

    def _first(self, phase):
        """Return the distance in memory from a position to the first tap of a phase."""
        return sum([f * step for f, step in zip(phase.first, self.steps, strict=True)])

    def met(self, number, phase, sign=1):
        """Return the elements that the taps of a phase meet: (channels, *taps, run)."""
        steps = [sign * d * step for d, step in zip(self.layout.apart, self.steps, strict=True)]
        return self._view(number, sign * self._first(phase), (*phase.counts, self.run), (*steps, 1))

    def lines(self, number, phase, begin, count, sign):
        """Return the elements that the taps of a row meet: (channels, rows, *taps, line).

        These are `count` rows of the input: all that rows of the output from `begin` on meet.
        """
        rows, *steps = [d * step for d, step in zip(self.layout.apart, self.steps, strict=True)]
        line, first = self.steps[0], sign * self._first(phase)
        begin = begin * line + first - (sign < 0) * (phase.counts[0] - 1) * rows
        shape = (count, *phase.counts[1:], line)
        return self._view(number, begin, shape, (line, *[sign * n for n in steps], 1))


def _blocks(x, layout, zeros, *products):
    """Yield the index of some images and channels, and a block for them that suits the products.

    Planes with the numbers `zeros` begin as zeros, which stay around their elements.
    """
    images, channels = x.shape[:2]
    used = [each for each in products if each.images]
    most = min([each.images for each in used], default=0)
    copies = max([each.copies for each in used], default=0)
    bytes_each = (len(layout.phases) + 1 + copies) * math.prod(layout.size) * x.itemsize
    each = max(1, min(images, most or images, _BYTES // bytes_each))
    # A number that divides the images leaves no rest, which would need a block of its own.
    each = next((n for n in range(each, each // 2, -1) if images % n == 0), each)
    parts = -(-channels // max(1, _BYTES // (bytes_each * each)))
    channels_each, block, kind = -(-channels // parts), None, None
    for image in range(0, images, each):
        for channel in range(0, channels, channels_each):
            shape = min(channels_each, channels - channel), min(each, images - image)
            if kind != shape:
                block, kind = _Block(*shape, layout, x.dtype, zeros, most > 0), shape
            yield (slice(image, image + each), slice(channel, channel + channels_each)), block


class _Sum:
    """Sums over the taps of some phases `met`, (number of planes, phase), in one direction.

    They are written to `rows` of the planes with a number.
    """

    def __init__(self, block, met, products, number, rows, sign=1):
        # The block holds its sums. A reference back would make a cycle, and 3 MB a call would wait
        # for the garbage collector.
        self.met = [block.met(i, phase, sign) for i, phase in met]
        self.sign, self.out, self.short = sign, block.runs(number), block.run <= _RUN // 2
        self.filters = []  # in products of matrices
        if products.images:
            self._lay_out(block, met, products, rows.start, -(-(rows.stop - rows.start) // _ROWS))

    def _lay_out(self, block, met, products, begin, count):
        """Make memory and views for `count` products of matrices in each channel."""
        dtype, size = self.out.dtype, block.itemsize
        _, copies, window = products
        line, height = block.steps[0], count * _ROWS - _ROWS + window
        matrix = np.zeros((block.channels, 1, _ROWS, window * copies), dtype)
        rows = np.empty((block.channels, height, copies, line), dtype)
        shape = (block.channels, count, window * copies, line)
        steps: Any = rows.strides[0], _ROWS * rows.strides[1], *rows.strides[2:]
        self.matrix, self.rows = matrix, np.ndarray(shape, dtype, rows, 0, steps)
        out = self.out[:, begin * line : (begin + count * _ROWS) * line]
        self.made = out.reshape(block.channels, count, _ROWS, line)
        self.lines, first = [], 0
        for number, phase in met:
            width = math.prod(phase.counts[1:])
            # A view of the matrix: one row further in the output is one row further in the input.
            shape = (block.channels, _ROWS, phase.counts[0], width)
            steps = (window * copies * _ROWS, window * copies + copies)
            steps = [n * size for n in (*steps, block.layout.apart[0] * copies, 1)]
            self.filters.append(np.ndarray(shape, dtype, matrix, first * size, steps))
            lines = block.lines(number, phase, begin, height, self.sign)
            copied = rows[:, :, first : first + width].reshape(lines.shape)
            self.lines.append((copied, lines))
            first += width

    def write(self, filters):
        if not self.filters:
            self._add(filters)
            return
        right = self._multiply(filters)
        if not right.all():
            kept = self.out[right]
            self._add(filters)
            self.out[right] = kept

    def _multiply(self, filters):
        """Write the sums by products of matrices; return for each channel whether they are right.

        The zeros of the matrices make NaN of infinities.
        """
        for place, each in zip(self.filters, filters, strict=True):
            place[...] = each[:, :: self.sign].reshape(len(each), 1, *place.shape[2:])
        for copied, lines in self.lines:
            copied[...] = lines
        np.matmul(self.matrix, self.rows, out=self.made)
        return np.isfinite(self.made).all(axis=(1, 2, 3))

    def _add(self, filters):
        product = None
        for each, met in zip(filters, self.met, strict=True):
            # Of short runs NumPy makes no copies either, if taps lie along one dimension.
            lead = [range(n) for n in each.shape[1:-1]] if self.short else []
            for row in itertools.product(*lead):
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

    `work` gets the same channels of x, of the filters and of y.
    """
    right, channels = [], x.shape[1]

    def part(begin, end):
        with np.errstate(all="ignore"):
            right.append(work(x[:, begin:end], weight[begin:end], y[:, begin:end]))

    taps = min(weight[0].size, x[0, 0].size // 3)  # in small planes many taps meet padding alone
    # A product takes an eighth of a nanosecond. It counts half, for threads that wait for each
    # other's Python pay later than threads in machine code.
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
    """Write the convolution of x with filters (channels, 1, *kernel) to y."""
    if planes.pays(len(x), x.shape[2:], y.shape[2:], weight.shape[2:]) and _shared(
        lambda *parts: planes.convolve(*parts, *steps), x, weight, y
    ):
        return
    layout = _laid_out(x, weight, y, steps)
    _shared(functools.partial(_convolve, layout), *_in_planes(x, weight, y))


def _convolve(layout, x, weight, y):
    for place, block in _blocks(x, layout, slice(-1), layout.whole):
        block.sums = block.sums or [_Sum(block, layout.met, layout.whole, -1, layout.result[1])]
        part, filters = x[place].swapaxes(0, 1), weight[place[1], 0]
        for number, phase in layout.met:
            copy(block.planes[number][phase.target], part[phase.source])
        block.sums[0].write([filters[phase.weight] for _, phase in layout.met])
        copy(y[place], block.positions[layout.result].swapaxes(0, 1))


def input_grad(dy, weight, dx, *steps):
    """Write the gradient of the input. Filters must be finite: zeros lie between positions."""
    if planes.pays(len(dx), dx.shape[2:], dy.shape[2:], weight.shape[2:]) and _shared(
        lambda *parts: planes.input_grad(*parts, *steps), dy, weight, dx
    ):
        return
    layout = _laid_out(dx, weight, dy, steps)
    _shared(functools.partial(_input_grad, layout), *_in_planes(dy, weight, dx))


def _input_grad(layout, dy, weight, dx):
    if len(layout.met) < len(layout.phases):
        dx[...] = 0
    for place, block in _blocks(dx, layout, -1, *layout.each):
        block.sums = block.sums or [
            _Sum(block, [(-1, phase)], products, number, phase.target[1], -1)
            for (number, phase), products in zip(layout.met, layout.each, strict=True)
        ]
        copy(block.positions[layout.result], dy[place].swapaxes(0, 1))
        part, filters = dx[place].swapaxes(0, 1), weight[place[1], 0]
        for sums, (number, phase) in zip(block.sums, layout.met, strict=True):
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
        for number, phase in layout.met:
            copy(block.planes[number][phase.target], part[phase.source])
            met = block.met(number, phase)
            for begin in range(0, block.run, _DOT):
                some = (..., slice(begin, begin + _DOT))
                filters[phase.weight] += np.vecdot(given[some], met[some])
