"""flow.summary: known counts, and a module that is afterwards what it was before."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import oneflow_lite as flow
from oneflow_lite import nn
from oneflow_lite.errors import ArgumentError, ArgumentTypeError


def lenet() -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(1, 6, 5, padding=2),
        nn.Tanh(),
        nn.AvgPool2d(2),
        nn.Conv2d(6, 16, 5),
        nn.Tanh(),
        nn.AvgPool2d(2),
        nn.Flatten(),
        nn.Linear(400, 120),
        nn.Tanh(),
        nn.Linear(120, 84),
        nn.Tanh(),
        nn.Linear(84, 10),
    )


class TestCounts:
    def test_lenet(self) -> None:
        """The counts of LeNet-5 as it is commonly written, one image of 28 by 28 pixels."""
        found = flow.summary(lenet(), (1, 1, 28, 28))
        assert found.parameters == found.trainable == 61_706
        assert [row.parameters for row in found.rows if row.parameters] == [
            61_706, 156, 2416, 48_120, 10_164, 850,
        ]  # fmt: skip
        products = [28 * 28 * 6 * 25, 10 * 10 * 16 * 6 * 25, 400 * 120, 120 * 84, 84 * 10]
        assert [row.multiply_adds for row in found.rows[1:] if row.multiply_adds] == products
        assert found.multiply_adds == sum(products) == 416_520
        sizes = [4704, 4704, 1176, 1600, 1600, 400, 400, 120, 120, 84, 84, 10]
        assert [row.activation_bytes for row in found.rows[1:]] == [4 * size for size in sizes]
        assert found.activation_bytes == 4 * sum(sizes)
        assert found.input_bytes == 28 * 28 * 4
        assert found.parameter_bytes == 61_706 * 4
        assert found.rows[1].output_shapes == ((1, 6, 28, 28),)

    def test_grouped_and_transposed_convolutions(self) -> None:
        found = flow.summary(nn.Conv2d(8, 16, 3, groups=4), (2, 8, 6, 6))
        assert found.multiply_adds == 2 * 16 * 4 * 4 * (8 // 4) * 9
        found = flow.summary(nn.ConvTranspose2d(8, 4, 3, stride=2), (2, 8, 6, 6))
        assert found.multiply_adds == 2 * 8 * 6 * 6 * 4 * 9

    def test_a_transformer_layer(self) -> None:
        length, width, hidden = 7, 16, 32
        layer = nn.TransformerEncoderLayer(width, 4, hidden, batch_first=True)
        found = flow.summary(layer, (2, length, width))
        projections = 4 * length * width * width
        attention = 2 * length * length * width
        feed_forward = 2 * length * width * hidden
        assert found.multiply_adds == 2 * (projections + attention + feed_forward)
        assert found.parameters == 4 * width * (width + 1) + 2 * width * hidden + hidden + 5 * width

    @pytest.mark.parametrize(("kind", "gates"), [(nn.LSTM, 4), (nn.GRU, 3), (nn.RNN, 1)])
    def test_recurrent_layers(self, kind: Any, gates: int) -> None:
        found = flow.summary(kind(5, 6), (3, 2, 5))
        assert found.multiply_adds == 3 * 2 * gates * 6 * (5 + 6)
        assert found.rows[0].output_shapes[:2] == ((3, 2, 6), (1, 2, 6))

    def test_products_of_other_kinds(self) -> None:
        class Products(nn.Module):
            def forward(self, x: Any) -> Any:
                return flow.einsum("bij,bjk->bik", x, x.mT).sum() + flow.dot(x[0, 0], x[0, 1])

        assert flow.summary(Products(), (2, 3, 5)).multiply_adds == 2 * 3 * 3 * 5 + 5

    def test_frozen_and_shared_parameters(self) -> None:
        class Tied(nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.embed, self.head = nn.Embedding(10, 4), nn.Linear(4, 10)
                self.head.weight = self.embed.weight
                self.head.bias.requires_grad_(False)

            def forward(self, x: Any) -> Any:
                return self.head(self.embed(x))

        found = flow.summary(Tied(), (2, 3), dtype=flow.int64)
        assert (found.parameters, found.trainable, found.frozen) == (50, 40, 10)
        assert [(row.path, row.parameters, row.shared) for row in found.rows] == [
            ("", 50, 0), ("embed", 40, 0), ("head", 10, 40),
        ]  # fmt: skip
        assert "10 + 40 shared" in str(found)
        assert found.parameter_bytes == 200

    def test_modules_that_are_called_twice_or_not_at_all(self) -> None:
        class Twice(nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.block = nn.Sequential(nn.Linear(3, 3))
                self.again = self.block
                self.idle = nn.Linear(9, 9)

            def forward(self, x: Any) -> Any:
                return self.again(self.block(x))

        found = flow.summary(Twice(), (1, 3))
        assert [(row.path, row.calls, row.same_as) for row in found.rows] == [
            ("", 1, None),
            ("block", 2, None),
            ("block.0", 2, None),
            ("again", 2, "block"),
            ("idle", 0, None),
        ]
        assert found.multiply_adds == 18
        assert found.activation_bytes == 2 * 3 * 4
        assert found.parameters == 12 + 90
        assert "not called" in str(found) and "(block again)" in str(found)


class TestInputs:
    def test_several_inputs_shapes_and_keywords(self) -> None:
        class Net(nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.embed = nn.Embedding(5, 2, dtype=flow.float64)

            def forward(self, words: Any, scale: Any, *, times: int, shift: Any) -> Any:
                assert words.dtype == flow.int64 and scale.dtype == flow.float64
                return {"sum": self.embed(words) * scale * times + shift, "words": [words]}

        shift = flow.ones(1, 2, dtype=flow.float64)
        options = {"kwargs": {"times": 2, "shift": shift}}
        found = flow.summary(Net(), (4,), (4, 2), dtype=["int64", None], **options)
        assert found.rows[0].output_shapes == ((4, 2), (4,))
        assert found.input_bytes == 4 * 8 + 8 * 8 + 2 * 8
        given = flow.summary(Net(), flow.zeros(4, dtype=flow.int64), (4, 2), **options)
        assert given.rows == found.rows

    def test_a_module_without_inputs_or_tensors(self) -> None:
        class Nothing(nn.Module):
            def forward(self) -> None:
                return None

        assert "no tensor" in str(flow.summary(Nothing()))

    def test_what_is_wrong_is_said(self) -> None:
        with pytest.raises(ArgumentTypeError, match=r"summary\(\).*module.*a Module.*function"):
            flow.summary(lambda x: x, (1,))
        with pytest.raises(ArgumentError, match=r"mode.*'eval', 'train', 'same'.*'test'"):
            flow.summary(nn.ReLU(), (1,), mode="test")
        with pytest.raises(ArgumentError, match=r"depth.*-1"):
            flow.summary(nn.ReLU(), (1,), depth=-1)
        with pytest.raises(ArgumentError, match="one for each input"):
            flow.summary(nn.ReLU(), (1,), dtype=[None, None])
        with pytest.raises(ArgumentError, match="at least 0"):
            flow.summary(nn.ReLU(), (-1, 3))
        with pytest.raises(flow.errors.ShapeError) as caught:
            flow.summary(nn.Linear(3, 4), (2, 5))
        assert "Linear was called with a tensor of shape (2, 5)" in caught.value.__notes__[-1]


class Restless(nn.Module):
    """A module that changes all it can at each call."""

    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.BatchNorm1d(3)
        self.drop = nn.Dropout(0.5)
        self.lazy = nn.LazyLinear(2)
        self.register_buffer("steps", flow.zeros(()))
        self.last = flow.zeros(2)
        self.log: list[int] = []
        self.drop.eval()

    def forward(self, x: Any) -> Any:
        self.steps += 1
        self.last.fill_(7)
        self.log.append(1)
        self.new = nn.ReLU()
        y = self.lazy(self.drop(self.norm(x)))
        return y + flow.rand(2)


def state(module: nn.Module) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for path, each in module.named_modules():
        for name, value in vars(each).items():
            if isinstance(value, dict):
                value = {k: (id(v), type(v), repr(v)) for k, v in value.items()}
            elif isinstance(value, flow.Tensor):
                value = (id(value), value._version, value.numpy().copy())
            elif isinstance(value, list):
                value = (id(value), list(value))
            found[f"{path}/{name}"] = repr(value)
        found[f"{path}/class"] = type(each)
    return found


@pytest.mark.parametrize("mode", ["eval", "train", "same"])
@pytest.mark.parametrize("fails", [False, True])
def test_nothing_is_left_behind(mode: str, fails: bool) -> None:
    module = Restless()
    calls: list[int] = []
    module.norm.register_forward_hook(lambda *_: calls.append(1))
    flow.manual_seed(3)
    before, drawn = state(module), flow.rand(2)
    flow.manual_seed(3)
    versions = {name: buffer._version for name, buffer in module.named_buffers()}
    if fails:
        with pytest.raises(flow.errors.FlowError):
            flow.summary(module, (4, 5), mode=mode)
    else:
        found = flow.summary(module, (4, 3), mode=mode)
        assert found.rows[0].output_shapes == ((4, 2),)
        assert found.parameters == 6 + 8  # with those of the lazy layer
        assert calls == [1]
    assert state(module) == before
    assert {name: buffer._version for name, buffer in module.named_buffers()} == versions
    assert np.array_equal(flow.rand(2).numpy(), drawn.numpy())
    assert flow.is_grad_enabled() and flow.tensors.mode.local.state.interpreter is None


def test_it_runs_without_gradients_in_the_mode_that_is_asked_for() -> None:
    class Net(nn.Module):
        def forward(self, x: Any) -> Any:
            modes.append((self.training, flow.is_grad_enabled()))
            return x

    modes: list[tuple[bool, bool]] = []
    net = Net().eval()
    for mode in ("eval", "train", "same"):
        flow.summary(net, (1,), mode=mode)
    assert modes == [(False, False), (True, False), (False, False)]


def test_text_and_html_agree() -> None:
    found = flow.summary(lenet(), (1, 1, 28, 28), depth=0)
    text, page = str(found), found._repr_html_()
    assert repr(found) == text
    assert "Linear" not in text and "Linear" not in page
    for part in ("61,706", "416,520", "(1, 10)"):
        assert part in text and part in page
    deep = flow.summary(lenet(), (1, 1, 28, 28))._repr_html_()
    assert deep.count("<tr>") == 1 + 13 + 4
