"""The GraphTask, live: how many gradients each node waits for, and which nodes are left out."""

import marimo

app = marimo.App(width="full", app_title="The GraphTask")


@app.cell(hide_code=True)
def _(mo):
    mo.md("""
    # The GraphTask

    For everybody who has asked in which order a backward call runs. You will be able to say for
    any graph how many gradients each node waits for, who runs next, and which nodes
    `autograd.grad` leaves out.
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
    depth = mo.ui.slider(
        1, 6, value=2, label="depth: how often x is multiplied in", show_value=True
    )
    value = mo.ui.slider(-3.0, 3.0, 0.5, value=2.0, label="x", show_value=True)
    mo.hstack([depth, value], justify="start", gap=2)
    return depth, value


@app.cell
def _(depth, flow, value):
    x = flow.tensor(value.value, requires_grad=True)
    w = flow.tensor(5.0, requires_grad=True)
    a = x * w
    with flow.explore(open=False) as film:
        y = a
        for _ in range(depth.value):
            y = (y + 1) * x
        y.backward(retain_graph=True)
        (da,) = flow.autograd.grad(y, a)
    x.grad, w.grad, da
    return film, x


@app.cell(hide_code=True)
def _(telling):
    story = [
        (
            "graph",
            "**The graph.** `x` is used once more for each step of the depth. Each arrow is a "
            "gradient that will be sent.",
        ),
        (
            "backward?run=0&step=0",
            "**Counting.** Before a node runs, its gradient must be complete. So the task first "
            "counts, depth first, how many gradients each node waits for. The table shows the "
            "count of `x`.",
        ),
        (
            "backward?run=0&step=1",
            "**Half a sum.** The last product has sent its two gradients. The sum of `x` is a "
            "part only: it waits in `not_ready`, and its count has fallen by one.",
        ),
        (
            "backward?run=0&step=2",
            "**Ready.** A node whose count is 0 joins the ready queue. The latest made node "
            "leaves it first.",
        ),
        (
            "backward?run=1&step=0",
            "**Pruning.** `autograd.grad(y, a)` wants one gradient. Nodes that do not lead to `a` "
            "would run for nothing: they are crossed out.",
        ),
    ]
    place, shown = telling.begun(story, "backward?run=0&step=0")
    return place, shown, story


@app.cell(hide_code=True)
def _(film, place, shown, story, telling):
    telling.told(story, shown, film, place())
    return


@app.cell
def _(film, mo):
    counts = film.document["runs"][0]["start"]["dependencies"]
    nodes = film.document["nodes"]
    mo.ui.table(
        [{"node": nodes[int(k)]["label"], "waits for": n} for k, n in counts.items()],
        selection=None,
        label="The counts before the first step, from `film.document`",
    )
    return


@app.cell(hide_code=True)
def _(mo):
    mo.md("""
    **Try:** ask for the gradient of `w` in place of `a`: `flow.autograd.grad(y, w)`. Which
    nodes come back into the picture?
    """)
    return


if __name__ == "__main__":
    app.run()
