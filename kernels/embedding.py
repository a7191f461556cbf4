"""Kernels of embedding and one_hot: rows and units named by class numbers."""

from oneflow_lite.errors import IndexRangeError, ShapeError, bad_argument
from oneflow_lite.kernels.index_arrays import add_at, check_range, on_host, take
from oneflow_lite.kernels.infer_rules import looked_up, one_hot_rows
from oneflow_lite.registry import register_kernel


@register_kernel("embedding", infer=looked_up)
def embedding(xp, x, weight, *, padding_idx=None, scale_grad_by_freq=False, out=None):
    check_range(xp, "embedding", "input", x, weight.shape[0])
    return take(xp, weight, x, 0, out)


@register_kernel("embedding_scale")
def embedding_scale(xp, dy, x, *, padding_idx, scale_grad_by_freq, rows):
    """Return by what the gradient of each looked up row is multiplied, with dy's dtype."""
    scale = xp.ones(x.shape, dy.dtype)
    if scale_grad_by_freq:
        counts = xp.zeros(rows, xp.int64)  # bincount would wait for the device
        add_at(xp, counts, x, xp.ones(x.shape, xp.int64))
        scale /= counts.take(x)
    if padding_idx is not None:
        scale[x == padding_idx] = 0
    return scale[..., None]


def _counts_classes(x, *, num_classes):
    return num_classes < 0


@register_kernel("one_hot", infer=one_hot_rows, dynamic_shape=_counts_classes)
def one_hot(xp, x, *, num_classes, out=None):
    if num_classes < 0:
        # The shape of the result depends on the values: on CUDA this waits for the device.
        if not x.size:
            raise bad_argument(
                ShapeError,
                "one_hot",
                "num_classes",
                expected="the number of classes for an empty tensor",
                got=num_classes,
                mend="pass num_classes",
            )
        num_classes = int(x.max()) + 1
    if on_host(xp) and x.size and (x.min() < 0 or x.max() >= num_classes):
        raise bad_argument(
            IndexRangeError,
            "one_hot",
            "tensor",
            expected=f"class numbers from 0 to {num_classes - 1}",
            got=f"{x.min()} to {x.max()}",
            mend="raise num_classes or mend the labels",
        )
    classes = xp.arange(num_classes)
    if out is None:
        return (x[..., None] == classes).astype(xp.int64)
    return xp.equal(x[..., None], classes, out=out)
