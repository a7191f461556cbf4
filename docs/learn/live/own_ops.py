"""An op of your own, live: a wrong gradient, the message of check_op, and the mend."""

import marimo

app = marimo.App(width="full", app_title="An op of your own")


@app.cell(hide_code=True)
def _(mo):
    mo.md("""
    # An op of your own

    For everybody who writes an op. You will be able to write one with a decorator, to read the
    message of `check_op` about a wrong gradient, and to mend it.

    The gradient below has a mistake. Read the message under the check, mend the rule, and run
    its cell.
    """)
    return


@app.cell
def _():
    import marimo as mo
    import numpy as np
    import telling

    import oneflow_lite as flow

    return flow, mo, np, telling


@app.cell
def _(flow):
    @flow.register_op("my_square")
    def my_square(xp, x):
        return x * x

    @my_square.grad(saves="x")
    def my_square_grad(F, ctx, dy):
        return dy * ctx.x  # the mistake is here

    return (my_square,)


@app.cell
def _(flow, mo, my_square, np):
    def check():
        """Have first and second derivatives held against differences."""
        try:
            flow.testing.check_op(my_square, [flow.testing.Sample(np.array([1.0, -2.0, 3.0]))])
        except AssertionError as error:
            return mo.callout(mo.plain_text(str(error)), kind="danger")
        return mo.callout(
            mo.md("`check_op` finds nothing: both derivatives are right."), kind="success"
        )

    check()
    return


@app.cell
def _(flow, my_square):
    x = flow.tensor([1.0, -2.0, 3.0], requires_grad=True)
    with flow.explore(open=False) as film:
        (slope,) = flow.autograd.grad(my_square(x).sum(), x, create_graph=True)
        (curvature,) = flow.autograd.grad(slope.sum(), x)
    slope, curvature
    return (film,)


@app.cell(hide_code=True)
def _(telling):
    story = [
        (
            "forward?op=0",
            "**Forward.** The decorator has made a functor and registered your kernel. The node "
            'saves `x`, as `saves="x"` says.',
        ),
        (
            "backward?run=0&step=2",
            "**The turn of your rule.** It is given `dy`, and returns the gradient of `x`. The "
            "factor that is missing in the rule is missing in the sum here, too.",
        ),
        (
            "graph",
            "**Again.** The rule is written with ops, so the graph of the slope is there, and the "
            "second derivative with it. It is wrong by the same factor.",
        ),
    ]
    place, shown = telling.begun(story, "forward?op=0")
    return place, shown, story


@app.cell(hide_code=True)
def _(film, place, shown, story, telling):
    telling.told(story, shown, film, place())
    return


@app.cell(hide_code=True)
def _(mo):
    mo.md("""
    **Try:** after the mend, write `saves="y"` and use `ctx.y`. What does the second derivative
    say?
    """)
    return


if __name__ == "__main__":
    app.run()
