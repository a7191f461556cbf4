"""vmap as an interpreter of one's own, live."""

import marimo

app = marimo.App(width="full", app_title="vmap as an interpreter")


@app.cell(hide_code=True)
def _(mo):
    mo.md("""
    # vmap as an interpreter of one's own

    For everybody who wants to extend the engine. You will be able to write an interpreter that
    carries a batch through a function of one sample, put it on the stack, and see which ops it
    ran.

    The interpreter below knows four ops. It keeps the batch in the first dimension and shows a
    function one sample.
    """)
    return


@app.cell
def _():
    import marimo as mo
    import telling

    import oneflow_lite as flow

    return flow, mo, telling


@app.cell
def _(flow):
    class Batch(flow.Interpreter):
        """Runs each op once for all samples; `whole` maps the tensor of a sample to its batch."""

        def __init__(self):
            super().__init__()
            self.whole = {}
            self.log = []

        def taken_in(self, batch):
            sample = batch[0].detach()
            self.whole[id(sample)] = (sample, batch)
            return sample

        def taken_out(self, sample):
            return self.whole[id(sample)][1]

        def apply(self, op_expr, inputs, attrs):
            name = op_expr.op_type_name
            sample = self.inner.apply(op_expr, inputs, attrs)
            known = [self.whole.get(id(x)) for x in inputs]
            if any(known):
                given = [k[1] if k else x for k, x in zip(known, inputs, strict=True)]
                if name == "sum":  # the dimensions of the sample, behind that of the batch
                    dims = tuple(range(1, given[0].ndim))
                    attrs = {**attrs, "dim": dims}
                elif name not in ("mul", "add", "tanh", "exp"):
                    raise NotImplementedError(f"{name} has no rule: write one above")
                batch = self.inner.apply(op_expr, given, attrs)
                self.whole[id(sample)] = (sample, batch)
                self.log.append(f"{name}: {tuple(sample.shape)} stands for {tuple(batch.shape)}")
            return sample

    return (Batch,)


@app.cell
def _(mo):
    samples = mo.ui.slider(2, 8, value=3, label="samples", show_value=True)
    samples
    return (samples,)


@app.cell
def _(Batch, flow, samples):
    def f(x):
        return (flow.tanh(x) * x).sum()

    xs = flow.arange(2.0 * samples.value).reshape(-1, 2).requires_grad_()
    batch = Batch()
    with flow.explore(open=False) as film:
        with flow.push_interpreter(batch):
            y = batch.taken_out(f(batch.taken_in(xs)))
        y.sum().backward()
    print(*batch.log, sep="\n")
    assert flow.equal(y, flow.vmap(f)(xs))  # the real one agrees
    y.detach(), xs.grad
    return (film,)


@app.cell(hide_code=True)
def _(telling):
    story = [
        (
            "forward?op=0",
            "**One call.** `f` is called once, with a tensor of the shape of one sample. Your "
            "interpreter sees each of its ops.",
        ),
        (
            "graph",
            "**The batch** goes the same way below: it went through `self.inner`, the "
            "AutogradInterpreter, so the graph is that of the batch. Gradients of all samples "
            "come out of one backward call.",
        ),
        (
            "backward?run=0&step=1",
            "**Backward** runs over the batch. Move the slider: the graph stays as it is, the "
            "shapes grow.",
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
    **Try:** write `flow.sin(x)` in `f`. Your interpreter says what is missing: add the rule.
    The tutorial *vmap on the toy engine* goes on to nested levels.
    """)
    return


if __name__ == "__main__":
    app.run()
