"""One relu, live: a slider for its input, and the film of both passes."""

import marimo

app = marimo.App(width="full", app_title="One relu")


@app.cell(hide_code=True)
def _(mo):
    mo.md("""
    # One relu

    For everybody who wants to know what happens behind `backward()`. You will be able to follow
    one op through the engine, forward and back, and to say what a change of the input changes
    on the way.

    The program is yours: change a line and run the cell. The film follows.
    """)
    return


@app.cell
def _():
    import marimo as mo
    import telling

    import oneflow_lite as flow

    return flow, mo, telling


@app.cell
def _(mo):
    first = mo.ui.slider(-3.0, 3.0, 0.5, value=-1.0, label="the first number of x", show_value=True)
    first
    return (first,)


@app.cell
def _(first, flow):
    x = flow.tensor([first.value, 2.0], requires_grad=True)
    with flow.explore(open=False) as film:
        y = flow.relu(x)
        y.backward(flow.tensor([1.0, 1.0]))
    x.grad
    return (film,)


@app.cell(hide_code=True)
def _(telling):
    story = [
        (
            "forward?op=0",
            "**Forward.** `flow.relu` is a *functor*: it checks `x` and dispatches. "
            "`AutogradInterpreter` lets the interpreter below run the kernel, and records a node, "
            "because `x` requires a gradient.",
        ),
        (
            "graph",
            "**The graph** has two nodes: `relu_backward`, and the node of the leaf `x`, where "
            "gradients end. relu's node keeps `y`: its rule needs the result alone.",
        ),
        (
            "backward?run=0&step=0",
            "**Before the first step** the gradient that you handed to `backward` waits at "
            "`relu_backward`. The node waits for nobody, so it is *ready*.",
        ),
        (
            "backward?run=0&step=1",
            "**The turn of relu.** Its rule lets the gradient through where the result is above "
            "0. Move the slider over 0, and see the sum that `x` gets.",
        ),
        (
            "backward?run=0&step=2",
            "**The leaf** adds the sum to `x.grad`.",
        ),
    ]
    place, shown = telling.begun(story, "backward?run=0&step=0")
    return place, shown, story


@app.cell(hide_code=True)
def _(film, place, shown, story, telling):
    telling.told(story, shown, film, place())
    return


@app.cell(hide_code=True)
def _(mo):
    mo.md("""
    **Try:** write `y = flow.relu(x) * 2`. How many nodes has the graph now, and what does the
    product keep? Then take `requires_grad=True` away.
    """)
    return


if __name__ == "__main__":
    app.run()
