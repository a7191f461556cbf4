"""The HTML in notebooks: it parses, says what is there, copies nothing in secret, never raises."""

from __future__ import annotations

from html.parser import HTMLParser
from typing import Any

import pytest

import oneflow_lite as flow
from oneflow_lite.interop import notebook
from oneflow_lite.tensors.html_text import Html, block, element, escaped, joined, table, tree

VOID = {"br", "hr", "img"}


class Seen(HTMLParser):
    """Elements and text of HTML that must be well formed."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[str] = []
        self.words: list[str] = []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.tags.append(tag)
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if "style" not in self.open:
            self.words.append(data)

    @property
    def text(self) -> str:
        return " ".join(self.words)


def shown(value: Any) -> Seen:
    page = value._repr_html_()
    assert type(page) is str
    return Seen(page)


class TestHtml:
    def test_everything_that_is_not_html_is_escaped(self) -> None:
        hostile = '<script>alert("x")</script>'
        made = block(
            table([hostile], [[hostile, hostile]], caption=hostile, totals=[[hostile]]),
            tree(hostile, [element("p", hostile, title=hostile)]),
            label=hostile,
        )
        assert "<script" not in made
        assert Seen(made).text.count(hostile) == 7
        assert escaped(Html("<b>")) == joined([Html("<b>")]) == "<b>"

    def test_tables_have_headers_for_readers(self) -> None:
        made = table(["a", "b"], [[1, 2]], numbers=[1])
        assert made.count('scope="col"') == 2
        assert made.count('scope="row"') == 1
        assert '<td class="number">2</td>' in made

    def test_no_colour_is_fixed(self) -> None:
        style = block(label="x")
        assert "#" not in style
        assert "rgb" not in style
        assert "currentColor" in style


class TestTensors:
    def test_values_and_facts(self) -> None:
        x = flow.tensor([[1.0, 2.5]], requires_grad=True)
        text = shown(x).text
        assert "[[1.0000, 2.5000]]" in text
        for word in ("(1, 2)", "float32", "cpu", "True", "None"):
            assert word in text
        assert "<mul_backward>" in shown(x * 2).text

    def test_long_ones_are_shortened_as_by_repr(self) -> None:
        x = flow.arange(3000).reshape(50, 60)
        (values,) = [word for word in shown(x).words if word.startswith("[[")]
        assert "..." in values
        assert values.split() == repr(x).removeprefix("tensor(").removesuffix(")").split()
        with flow.printoptions(threshold=10, edgeitems=1):
            assert "[[   0,  ...,   59]" in shown(x).text

    def test_kinds_of_tensors(self) -> None:
        parameter = flow.nn.Parameter(flow.ones(2))
        assert 'aria-label="parameter"' in parameter._repr_html_()
        assert "not known yet" in shown(flow.nn.UninitializedParameter()).text
        assert "[]" in shown(flow.ones(0, 3)).text
        sparse = flow.sparse_coo_tensor([[0, 1], [2, 0]], [3.0, 4.0], (2, 3))
        text = shown(sparse).text
        assert "2 values" in text and "(2, 3)" in text and "[3., 4.]" in text
        x = flow.tensor([1.0]).to_global(flow.placement("cpu", ranks=[0]), flow.sbp.broadcast)
        text = shown(x).text
        assert "sbp B " in text and "of shape (1,)" in text

    def test_a_global_tensor_asks_no_other_rank(self, monkeypatch: pytest.MonkeyPatch) -> None:
        x = flow.tensor([1.0]).to_global(flow.placement("cpu", ranks=[0]), flow.sbp.broadcast)

        def refuse(self: Any) -> Any:
            raise AssertionError("all ranks would have to take part")

        monkeypatch.setattr(type(x._data), "get", refuse)
        assert "not known (" not in shown(x).text

    def test_a_variable_of_a_program(self) -> None:
        with flow.static.program_guard(flow.static.Program()):
            x = flow.static.data("images", [2, 3])
            text = shown(x).text
        assert "images" in text and "Executor.run" in text

    def test_what_cannot_be_found_out_is_said(self) -> None:
        base = flow.ones(3)
        with flow.no_grad():
            view = base[:2]
        base.mul_(flow.ones(3, requires_grad=True))
        with pytest.raises(flow.errors.InplaceError):
            _ = view.grad_fn
        assert "not known (InplaceError)" in shown(view).text
        assert shown(flow.Tensor.__new__(flow.Tensor)).text.count("not known") >= 4

    def test_only_what_is_shown_leaves_a_device(
        self, device: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        if device == "cpu":
            pytest.skip("nothing leaves the host")
        x = flow.zeros(1000, 1000, device=device)
        copied = []
        kind = type(x._data)
        get = kind.get
        monkeypatch.setattr(kind, "get", lambda self: copied.append(self.size) or get(self))
        text = shown(x).text
        assert "..." in text and "cuda:0" in text
        assert copied == [36]


class Tied(flow.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embed = flow.nn.Embedding(10, 4)
        self.norm = flow.nn.BatchNorm1d(4)
        self.head = flow.nn.Linear(4, 10)
        self.head.weight = self.embed.weight
        self.again = self.norm
        self.norm.weight.requires_grad_(False)
        self.nothing = None
        self.register_module("absent", None)


class TestModules:
    def test_the_tree(self) -> None:
        seen = shown(Tied())
        text = " ".join(seen.text.split())
        assert "Tied , 58 parameters, 4 of them frozen" in text  # 40 + 4 + 4 + 10
        assert "(10, 4) float32, shared with embed.weight, which counts once" in text
        assert "running_mean (4,) float32, buffer" in text
        assert "(4,) float32, frozen" in text
        assert "is norm again" in text
        assert "(absent): None" in text
        assert seen.tags.count("details") == 4

    def test_a_lazy_module(self) -> None:
        text = shown(flow.nn.LazyLinear(3)).text
        assert "of a shape not known yet" in text
        assert "2 of a shape not known yet" in text

    def test_it_never_raises(self) -> None:
        class Broken(flow.nn.Module):
            def extra_repr(self) -> str:
                raise ValueError("no")

        assert "not known (ValueError)" in shown(Broken()).text
        assert "not known (" in Seen(notebook.module_html(object())).text

    def test_a_compiled_module_shows_what_it_stands_for(self) -> None:
        assert "Linear" in shown(flow.compile(flow.nn.Linear(2, 3))).text
