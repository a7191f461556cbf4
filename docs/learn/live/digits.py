"""A network on digits, live: from Module to optimizer, with a slider for the learning rate."""

import marimo

app = marimo.App(width="full", app_title="A network on digits")


@app.cell(hide_code=True)
def _(mo):
    mo.md("""
    # A network on digits

    For everybody who trains a network for the first time. You will be able to say what happens
    to each parameter in one step: the module computes, `backward` fills `.grad`, and the
    optimizer writes.
    """)
    return


@app.cell
def _():
    import marimo as mo
    import telling
    from sklearn.datasets import load_digits

    import oneflow_lite as flow
    from oneflow_lite import nn

    return flow, load_digits, mo, nn, telling


@app.cell
def _(mo):
    rate = mo.ui.slider(
        steps=[0.001, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0],
        value=0.1,
        label="learning rate",
        show_value=True,
    )
    steps = mo.ui.slider(5, 100, 5, value=40, label="steps", show_value=True)
    mo.hstack([rate, steps], justify="start", gap=2)
    return rate, steps


@app.cell
def _(flow, load_digits, nn):
    scans = load_digits()
    images = flow.tensor(scans.images / 16, dtype=flow.float32)
    labels = flow.tensor(scans.target, dtype=flow.int64)

    class Network(nn.Module):
        def __init__(self):
            super().__init__()
            self.hidden = nn.Linear(64, 32)
            self.scores = nn.Linear(32, 10)

        def forward(self, images):
            return self.scores(self.hidden(images.flatten(1)).relu())

    return Network, images, labels


@app.cell
def _(Network, flow, images, labels, nn, rate, steps, telling):
    flow.manual_seed(0)
    network = Network()
    optimizer = flow.optim.SGD(network.parameters(), lr=rate.value)

    def step():
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(network(images[:512]), labels[:512])
        loss.backward()
        optimizer.step()
        return loss.item()

    with flow.explore(open=False) as film:
        losses = [step()]
    losses += [step() for _ in range(steps.value)]
    right = (network(images[512:]).argmax(1) == labels[512:]).float().mean().item()
    telling.curve(losses, f"the loss; {right:.1%} of the other digits are read")
    return (film,)


@app.cell(hide_code=True)
def _(telling):
    story = [
        (
            "forward?op=0",
            "**The module computes.** `forward` is called; each op knows the module that it ran "
            "in.",
        ),
        (
            "graph",
            "**The graph** gathers the nodes by module. Press a box to open it. The leaves are "
            "the parameters.",
        ),
        (
            "backward?run=0&step=1",
            "**`backward`** starts at the loss. The first rule turns it into the gradient of the "
            "scores.",
        ),
        (
            "backward?run=0&step=6",
            "**Parameters** receive their gradients as soon as the layers above have run. The "
            "memory of a layer is let go of at the same time: see the curve below the picture.",
        ),
        (
            "forward?op=25",
            "**The optimizer** writes each parameter in place, by one op with an update rule. "
            "These are the last ops of the forward list.",
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
    **Try:** set the learning rate to 3. Then write `momentum=0.9` into the optimizer, and find
    the op that changed.
    """)
    return


if __name__ == "__main__":
    app.run()
