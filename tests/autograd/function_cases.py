"""Functions written once for both libraries: `build(lib)` returns what maps tensors to tensors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple


class Case(NamedTuple):
    build: Callable[[Any], Callable[..., Any]]
    shapes: tuple[tuple[int, ...], ...] = ((3,),)
    order: int = 3  # derivatives to compare


def function(lib: Any, forward: Any, backward: Any, **more: Any) -> Any:
    """Make a Function class of plain functions."""
    methods = {"forward": forward, "backward": backward, **more}
    given = {name: staticmethod(f) for name, f in methods.items() if f is not None}
    return type("Custom", (lib.autograd.Function,), given)


def cube(lib):
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x**3

    def backward(ctx, dy):
        (x,) = ctx.saved_tensors
        return 3 * x**2 * dy

    return function(lib, forward, backward).apply


def output_saved(lib):
    def forward(ctx, x):
        y = x.exp()
        ctx.save_for_backward(y)
        return y

    def backward(ctx, dy):
        (y,) = ctx.saved_tensors
        return y * dy

    return function(lib, forward, backward).apply


def output_of_several_saved(lib):
    def forward(ctx, x):
        s, c = x.sin(), x.cos()
        ctx.save_for_backward(c, None, s)
        return s, c

    def backward(ctx, ds, dc):
        c, nothing, s = ctx.saved_tensors
        assert nothing is None
        return c * ds - s * dc

    return function(lib, forward, backward).apply


def set_up_apart(lib):
    def forward(x, y, power=2):
        return x**power * y

    def setup_context(ctx, inputs, output):
        x, y, ctx.power = inputs
        ctx.save_for_backward(x, y)

    def backward(ctx, dz):
        x, y = ctx.saved_tensors
        n = ctx.power
        return n * x ** (n - 1) * y * dz, x**n * dz, None

    apply = function(lib, forward, backward, setup_context=setup_context).apply
    return lambda x, y: apply(x, y) + apply(y, x, 3) + apply(x, y=y, power=1)


def constants(lib):
    def forward(ctx, factor, x, names, offset):
        ctx.factor = factor
        assert names == ["a", "b"]
        return x * factor + offset

    def backward(ctx, dy):
        return None, dy * ctx.factor, None, None

    apply = function(lib, forward, backward).apply
    return lambda x: apply(2.5, x, ["a", "b"], 1) * x * x


def called_with_keywords(lib):
    def forward(ctx, x, y, scale):
        ctx.scale = scale
        ctx.save_for_backward(x, y)
        return x * y * scale

    def backward(ctx, dz):
        x, y = ctx.saved_tensors
        return y * dz * ctx.scale, x * dz * ctx.scale, None

    apply = function(lib, forward, backward).apply
    return lambda x, y: apply(x, scale=3.0, y=y)


def several_outputs(lib):
    def forward(ctx, x, y):
        ctx.save_for_backward(x, y)
        return x * y, x + y, None, "text"

    def backward(ctx, dp, ds, *rest):
        assert rest == (None, None)
        x, y = ctx.saved_tensors
        return y * dp + ds, x * dp + ds

    def call(x, y):
        product, total, nothing, text = function(lib, forward, backward).apply(x, y)
        assert nothing is None and text == "text"
        return product * total

    return call


def unused_output_as_zeros(lib):
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x**2, x.sin()

    def backward(ctx, d2, ds):
        (x,) = ctx.saved_tensors
        return 2 * x * d2 + x.cos() * ds

    return lambda x: function(lib, forward, backward).apply(x)[0]


def unused_output_as_none(lib):
    def forward(ctx, x):
        ctx.save_for_backward(x)
        ctx.set_materialize_grads(False)
        return x**2, x.sin()

    def backward(ctx, d2, ds):
        assert d2 is None
        (x,) = ctx.saved_tensors
        return x.cos() * ds

    return lambda x: function(lib, forward, backward).apply(x)[1]


def indices_beside_values(lib):
    def forward(ctx, x):
        index = (x > 0).nonzero()
        rounded = (x * 4).floor()
        ctx.save_for_backward(x, rounded)
        ctx.mark_non_differentiable(rounded)
        return x**2, index, rounded

    def backward(ctx, dy, dindex, drounded):
        x, rounded = ctx.saved_tensors
        assert dindex.shape[0] <= 3 and drounded.shape == x.shape
        return 2 * x * dy * rounded

    def call(x):
        y, index, rounded = function(lib, forward, backward).apply(x)
        assert y.requires_grad and not index.requires_grad and not rounded.requires_grad
        return y * rounded

    return call


def in_place(lib):
    def forward(ctx, x):
        ctx.mark_dirty(x)
        x.exp_()
        ctx.save_for_backward(x)
        return x

    def backward(ctx, dy):
        (y,) = ctx.saved_tensors
        return y * dy

    def call(x):
        a = x * 1
        b = function(lib, forward, backward).apply(a)
        assert b is a
        return a * x

    return call


def in_place_through_a_view(lib):
    def forward(ctx, x):
        ctx.mark_dirty(x)
        x.mul_(x.detach())
        return x

    def backward(ctx, dy):
        return dy * 5  # not the derivative, so that it is told from it

    def call(x):
        a = x * 1
        part = a[1:]
        function(lib, forward, backward).apply(part)
        return a * a, part * x[1:]

    return call


def two_in_place(lib):
    def forward(ctx, x, y, factor):
        ctx.mark_dirty(x, y)
        ctx.factor = factor
        x.mul_(2), y.mul_(factor)
        return y, x

    def backward(ctx, dy, dx):
        return dx * 2, dy * ctx.factor, None

    def call(x, y):
        a, b = x * y, x + y
        function(lib, forward, backward).apply(a, b, 3)
        return a * b

    return call


def in_place_of_a_constant(lib):
    def forward(ctx, x, w):
        ctx.mark_dirty(x)
        x.mul_(w)
        ctx.save_for_backward(w)
        return x

    def backward(ctx, dy):
        return None, dy * 2

    def call(w):
        a = w.detach() * 0 + 2
        function(lib, forward, backward).apply(a, w)
        return a * a * w

    return call


def identity(lib):
    apply = function(lib, lambda ctx, x: x, lambda ctx, dy: dy * 3).apply
    return lambda x: apply(x) * apply(x * 1) * x


def the_same_twice(lib):
    def forward(ctx, x):
        y = x * 2
        ctx.save_for_backward(y)
        return y, y

    def backward(ctx, da, db):
        (y,) = ctx.saved_tensors
        return da * 7 + y * db * 2

    apply = function(lib, forward, backward).apply
    return lambda x: sum(apply(x)) * x * x


def argument_returned_twice(lib):
    apply = function(lib, lambda ctx, x: (x, x), lambda ctx, da, db: da * 7 + db * 2).apply

    def call(x):
        a, b = apply(x)
        return a * a * b

    return call


def view_returned(lib):
    def forward(ctx, x):
        ctx.shape = x.shape
        return x[1:]

    def backward(ctx, dy):
        return lib.cat([lib.zeros(1, dtype=dy.dtype), dy])

    return lambda x: function(lib, forward, backward).apply(x * x) ** 2


def intermediate_saved(lib):
    def forward(ctx, x):
        s = x.sin()
        ctx.save_for_backward(s)
        return s**2

    def backward(ctx, dy):
        (s,) = ctx.saved_tensors
        return 2 * s * dy  # constant for the second derivative, in both libraries

    return function(lib, forward, backward).apply


def named_vjp(lib):
    return function(lib, lambda ctx, x: x * 2, None, vjp=lambda ctx, dy: dy * 3).apply


def surplus_nones(lib):
    return function(lib, lambda ctx, x: x * 2, lambda ctx, dy: (dy * 2, None, None)).apply


def gradient_of_broadcast_shape(lib):
    def forward(ctx, x, y):
        ctx.save_for_backward(x, y)
        return x * y

    def backward(ctx, dz):
        x, y = ctx.saved_tensors
        return y * dz, x * dz

    return function(lib, forward, backward).apply


def argument_twice(lib):
    def forward(ctx, x, y):
        ctx.save_for_backward(x, y)
        return x * y

    def backward(ctx, dz):
        x, y = ctx.saved_tensors
        return y * dz * 2, x * dz * 5

    apply = function(lib, forward, backward).apply
    return lambda x: apply(x, x)


def constant_saved(lib):
    def forward(ctx, c, x):
        ctx.save_for_backward(c, x)
        return c * x * x

    def backward(ctx, dy):
        c, x = ctx.saved_tensors
        assert x.requires_grad and not c.requires_grad
        return None, 2 * c * x * dy

    apply = function(lib, forward, backward).apply
    return lambda x: apply(lib.tensor(2.0, dtype=lib.float64), x)


def none_for_an_argument(lib):
    def forward(ctx, x, y):
        ctx.save_for_backward(y)
        return x * y

    return function(lib, forward, lambda ctx, dz: (ctx.saved_tensors[0] * dz, None)).apply


def gradient_for_a_constant_is_ignored(lib):
    apply = function(lib, lambda ctx, x, c: x * c, lambda ctx, dy: (dy * 2, lib.ones(7))).apply
    return lambda x: apply(x, lib.tensor(2.0, dtype=lib.float64))


def function_in_its_backward(lib):
    class Sine(lib.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x.sin()

        @staticmethod
        def backward(ctx, dy):
            (x,) = ctx.saved_tensors
            return Cosine.apply(x) * dy

    class Cosine(lib.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x.cos()

        @staticmethod
        def backward(ctx, dy):
            (x,) = ctx.saved_tensors
            return -Sine.apply(x) * dy

    return Sine.apply


def recording_in_forward(lib):
    def forward(ctx, x):
        with lib.enable_grad():
            return x**3

    return function(lib, forward, lambda ctx, dy: dy * 7).apply


def checkpoint(lib):
    """Compute again in backward, and run another backward there."""

    def forward(ctx, x):
        ctx.save_for_backward(x)
        return (x * x).sin()

    def backward(ctx, dy):
        with lib.enable_grad():
            x = ctx.saved_tensors[0].detach().requires_grad_()
            (dx,) = lib.autograd.grad((x * x).sin(), x, dy)
        return dx

    return function(lib, forward, backward).apply


CASES = {
    build.__name__: Case(build, *more)
    for build, *more in [
        (cube,),
        (output_saved,),
        (output_of_several_saved,),
        (set_up_apart, ((3,), (3,))),
        (constants,),
        (called_with_keywords, ((3,), (3,))),
        (several_outputs, ((3,), (3,))),
        (unused_output_as_zeros,),
        (unused_output_as_none,),
        (indices_beside_values,),
        (in_place,),
        (in_place_through_a_view,),
        (two_in_place, ((3,), (3,))),
        (in_place_of_a_constant,),
        (identity,),
        (the_same_twice,),
        (argument_returned_twice,),
        (view_returned,),
        (intermediate_saved,),
        (named_vjp,),
        (surplus_nones,),
        (gradient_of_broadcast_shape, ((2, 3), (3,))),
        (argument_twice,),
        (constant_saved,),
        (none_for_an_argument, ((3,), (3,))),
        (gradient_for_a_constant_is_ignored,),
        (function_in_its_backward,),
        (recording_in_forward,),
        (checkpoint, ((3,),), 1),
    ]
}
# Those whose backward is the derivative of their forward.
TRUE = """cube output_saved output_of_several_saved set_up_apart constants called_with_keywords
several_outputs constant_saved unused_output_as_zeros unused_output_as_none in_place view_returned
two_in_place gradient_of_broadcast_shape function_in_its_backward""".split()
