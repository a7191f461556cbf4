"""Random arrays, drawn from a `Generator`'s stream for the device."""

from oneflow_lite.registry import register_kernel

_DRAWS_DIRECTLY = ("float32", "float64")


def _uniform(xp, generator, shape, dtype):
    stream = generator.stream(xp)
    if dtype.name in _DRAWS_DIRECTLY:
        return stream.random(shape, dtype=dtype)
    return stream.random(shape).astype(dtype)


def _normal(xp, generator, shape, dtype):
    stream = generator.stream(xp)
    if dtype.name in _DRAWS_DIRECTLY:
        return stream.standard_normal(shape, dtype=dtype)
    if dtype.kind == "c":  # variance 1 in all, half of it in each part
        parts = stream.standard_normal((2, *shape)) * 0.5**0.5
        return (parts[0] + 1j * parts[1]).astype(dtype)
    return stream.standard_normal(shape).astype(dtype)


@register_kernel("random_uniform", random=True)
def random_uniform(xp, *, shape, dtype, generator):
    return _uniform(xp, generator, shape, dtype)


@register_kernel("random_normal", random=True)
def random_normal(xp, *, shape, dtype, generator):
    return _normal(xp, generator, shape, dtype)


@register_kernel("random_integers", random=True)
def random_integers(xp, *, low, high, shape, dtype, generator):
    return generator.stream(xp).integers(low, high, shape).astype(dtype)


@register_kernel("random_permutation", random=True)
def random_permutation(xp, *, n, dtype, generator):
    return xp.argsort(generator.stream(xp).random(n)).astype(dtype)


@register_kernel("dropout_mask", random=True)
def dropout_mask(xp, x, *, p, generator):
    kept = _uniform(xp, generator, x.shape, x.real.dtype) >= p
    return kept * x.dtype.type(0.0 if p == 1 else 1 / (1 - p))


@register_kernel("bernoulli", random=True)
def bernoulli(xp, x, *, generator):
    return (_uniform(xp, generator, x.shape, x.dtype) < x).astype(x.dtype)


@register_kernel("uniform_", mutates="x", random=True)
def uniform_(xp, x, *, low, high, generator):
    x[...] = _uniform(xp, generator, x.shape, x.dtype) * (high - low) + low
    return x


@register_kernel("normal_", mutates="x", random=True)
def normal_(xp, x, *, mean, std, generator):
    x[...] = _normal(xp, generator, x.shape, x.dtype) * std + mean
    return x


@register_kernel("bernoulli_", mutates="x", random=True)
def bernoulli_(xp, x, *, p, generator):
    x[...] = generator.stream(xp).random(x.shape) < p
    return x
