"""Convolution where each channel has a filter of its own, as products of matrices; see `conv.py`.

This is for small planes, whose rows are too short to be the runs of `depthwise.py`. A matrix for
each channel holds the weight of each element of a plane in each position of the output. BLAS
multiplies the planes of all images with it, without copies. The zeros of the matrix make NaN of
infinities, so only finite results are right.
"""

import functools
import math

import numpy as np

_ROW, _PLANE = 16, 64  # elements, at most
_USES = 144  # of the taps of a filter by images, at least, to pay for its matrix
_BYTES = 2**18  # of matrices at once, which stay in the cache
PRODUCTS = 2**18  # in one product of matrices, at most: BLAS takes one thread for these


def pays(images, input_size, output_size, kernel_size):
    """Return whether this is quicker than runs, and than loops of machine code."""
    small = max(math.prod(input_size), math.prod(output_size)) <= _PLANE and input_size[-1] <= _ROW
    return small and images * math.prod(kernel_size) >= _USES


@functools.lru_cache(64)
def _met(input_size, output_size, kernel_size, stride, padding, dilation):
    """Return the flat places of taps in the matrix (elements, positions), and the taps in order."""
    y, taps = np.indices((*output_size, *kernel_size)).reshape(2, len(stride), -1)
    steps, before, apart, size = np.array([stride, padding, dilation, input_size])[..., None]
    x = y * steps - before + taps * apart
    inside = ((x >= 0) & (x < size)).all(axis=0)
    x, y, taps = x[:, inside], y[:, inside], taps[:, inside]
    places = np.ravel_multi_index((*x, *y), input_size + output_size)
    taps = np.ravel_multi_index((*taps,), kernel_size)
    order = np.argsort(taps, kind="stable")
    return places[order], taps[order]


def _blocks(x, y):
    """Yield the index of some channels and images, and memory for a matrix for each channel.

    The matrix begins as zeros.
    """
    (channels, images, elements), positions = x.shape, y.shape[2]
    channels_each = max(1, _BYTES // (elements * positions * x.itemsize))
    images_each = max(1, PRODUCTS // (elements * positions))
    memory = np.zeros((min(channels_each, channels), elements, positions), x.dtype)
    for channel in range(0, channels, channels_each):
        for image in range(0, images, images_each):
            place = slice(channel, channel + channels_each), slice(image, image + images_each)
            yield place, memory[: channels - channel]


def _planes(x):
    """Return (channels, images, elements), a view."""
    return x.reshape(*x.shape[:2], -1).swapaxes(0, 1)


def _matrices(x, weight, y, steps):
    """Yield planes of the input, planes of the output, and the matrices between both."""
    places, taps = _met(x.shape[2:], y.shape[2:], weight.shape[2:], *steps)
    x, y, weight = _planes(x), _planes(y), weight.reshape(len(weight), -1)
    for place, matrices in _blocks(x, y):
        matrices.reshape(len(matrices), -1)[:, places] = weight[place[0], taps]
        yield x[place], y[place], matrices


def convolve(x, weight, y, *steps):
    """Write the convolution of x with filters (channels, 1, *kernel); return whether it is right.

    An infinite filter makes NaN of padding, which the matrices leave out.
    """
    for given, made, matrices in _matrices(x, weight, y, steps):
        np.matmul(given, matrices, out=made)
    return np.isfinite(y).all() and np.isfinite(weight).all()


def input_grad(dy, weight, dx, *steps):
    """Write the gradient of the input; return whether that is right."""
    for made, given, matrices in _matrices(dx, weight, dy, steps):
        np.matmul(given, matrices.swapaxes(1, 2), out=made)
    return np.isfinite(dx).all()


def weight_grad(dy, dweight, x, *steps):
    """Add up the gradient of the filters, for finite dy: an infinite dy makes NaN of padding."""
    places, taps = _met(x.shape[2:], dy.shape[2:], dweight.shape[2:], *steps)
    met, first = np.unique(taps, return_index=True)
    x, dy, dweight = _planes(x), _planes(dy), dweight.reshape(len(dweight), -1)
    for place, products in _blocks(x, dy):
        np.matmul(x[place].swapaxes(1, 2), dy[place], out=products)
        used = products.reshape(len(products), -1)[:, places]
        dweight[place[0], met] += np.add.reduceat(used, first, axis=1)
