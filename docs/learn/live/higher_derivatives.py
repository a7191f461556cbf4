"""Higher derivatives, live: each order is a layer of the graph."""

import marimo

app = marimo.App(width="full", app_title="Higher derivatives")


@app.cell(hide_code=True)
def _(mo):
    mo.md("""
    # Higher derivatives

    For everybody who needs the derivative of a derivative. You will be able to take derivatives
    of any order, and to see each of them as a graph that the backward call before it left
    behind.
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
    order = mo.ui.slider(1, 4, value=2, label="order", show_value=True)
    at = mo.ui.slider(-2.0, 2.0, 0.25, value=0.5, label="x", show_value=True)
    mo.hstack([order, at], justify="start", gap=2)
    return at, order


@app.cell
def _(flow):
    def f(x):
        return flow.sin(x) * x**2

    return (f,)


@app.cell
def _(at, f, flow, order):
    x = flow.tensor(at.value, dtype=flow.float64, requires_grad=True)
    with flow.explore(open=False) as film:
        derivatives = [f(x)]
        for _ in range(order.value):
            (slope,) = flow.autograd.grad(derivatives[-1], x, create_graph=True)
            derivatives.append(slope)
    [round(d.item(), 4) for d in derivatives]
    return (film,)


@app.cell(hide_code=True)
def _(telling):
    story = [
        (
            "backward?run=0&step=0",
            "**The first call** runs over the graph of `f`. With `create_graph=True` its rules "
            "run on tensors, and their ops are recorded.",
        ),
        (
            "backward?run=0&step=1",
            "**The first rule has run.** Its nodes lie a layer above, and are marked as "
            "made by this call.",
        ),
        (
            "graph",
            "**The graph** has one layer for each order. An edge from a layer leads down to the "
            "values that its rules used.",
        ),
        (
            "backward?run=1&step=0",
            "**The second call** starts in the layer that the first one made, and goes down to "
            "`x` through both (with the slider at an order of 2 or more).",
        ),
    ]
    place, shown = telling.begun(story, "graph")
    return place, shown, story


@app.cell(hide_code=True)
def _(film, place, shown, story, telling):
    telling.told(story, shown, film, place())
    return


@app.cell(hide_code=True)
def _(mo):
    mo.md("""
    **Try:** write `return flow.exp(x)`. Why does each order add so few nodes? Then put
    `create_graph=False` into the loop and read the error.
    """)
    return


if __name__ == "__main__":
    app.run()
