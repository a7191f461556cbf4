"""Special functions: scipy's on the CPU, cupyx's on CUDA; imported when first used."""


def special(xp):
    """Return scipy.special for numpy arrays, cupyx.scipy.special for cupy arrays."""
    if xp.__name__ == "numpy":
        import scipy.special

        return scipy.special
    import cupyx.scipy.special

    return cupyx.scipy.special
