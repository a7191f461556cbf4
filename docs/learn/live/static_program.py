"""A static Program, live: captured once, analysed, replayed by the executor."""

import marimo

app = marimo.App(width="full", app_title="A static Program")


@app.cell(hide_code=True)
def _(mo):
    mo.md("""
    # A static Program and its executor

    For everybody who has met Paddle's static graph, or wonders why a replay is quicker. You
    will be able to capture a Program, read what the executor finds out about it, and say which
    memory its variables share.
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
def _(mo):
    depth = mo.ui.slider(1, 6, value=2, label="depth: how many exp-and-add pairs", show_value=True)
    size = mo.ui.slider(2, 64, 2, value=4, label="rows of x", show_value=True)
    mo.hstack([depth, size], justify="start", gap=2)
    return depth, size


@app.cell
def _(depth, flow, np, size):
    main = flow.static.Program()
    with flow.static.program_guard(main):
        x = flow.static.data("x", [size.value, 3])
        h = x
        for _ in range(depth.value):
            h = flow.exp(-h) + 1
        y = (h.log() * h).sum()
    feed = {"x": np.ones((size.value, 3), "float32")}
    film = flow.explore(main, feed=feed, fetch_list=[y], open=False)
    print(main)
    return (film,)


@app.cell(hide_code=True)
def _(telling):
    story = [
        (
            "programs?program=0&instruction=1",
            "**An instruction.** Capturing ran no kernel: the Program is the list of ops. The "
            "executor makes an instruction of each, and one more for each feed and fetch.",
        ),
        (
            "programs?program=0",
            "**Dependencies.** An instruction waits for an earlier one where both use the same "
            "memory and one of them writes. Edges that others imply are taken out.",
        ),
        (
            "programs?program=0&variable=2",
            "**Memory.** After its last use a variable can go. Variables that are never alive "
            "together lie in the same buffer: look at the tab Memory.",
        ),
    ]
    place, shown = telling.begun(story, "programs")
    return place, shown, story


@app.cell(hide_code=True)
def _(film, place, shown, story, telling):
    telling.told(story, shown, film, place())
    return


@app.cell(hide_code=True)
def _(mo):
    mo.md("""
    **Try:** write `h = flow.exp(-x) + 1`, so that the loop computes the same thing each time.
    Which pass takes the copies away? Look at the list of passes in the page.
    """)
    return


if __name__ == "__main__":
    app.run()
