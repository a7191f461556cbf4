"""Export to ONNX: onnxruntime computes what eager mode does; what cannot go is named."""

from __future__ import annotations

import io
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import oneflow_lite as flow
from oneflow_lite import nn
from oneflow_lite.errors import (
    ArgumentError,
    ArgumentTypeError,
    CaptureError,
    OnnxError,
    OnnxMissingError,
    RegistrationError,
)
from oneflow_lite.functors import loss_classification
from oneflow_lite.onnx.registry import TRANSLATIONS
from oneflow_lite.onnx.sizes import Points
from oneflow_lite.ops.registry import FUNCTORS, KERNELS
from oneflow_lite.static.ir.tree import flatten

onnx = pytest.importorskip("onnx")
onnxruntime = pytest.importorskip("onnxruntime")
F = nn.functional


@pytest.fixture(autouse=True)
def seed() -> None:
    flow.manual_seed(0)


def runtime(model: Any) -> Any:
    data = model if isinstance(model, bytes) else model.SerializeToString()
    return onnxruntime.InferenceSession(data, providers=["CPUExecutionProvider"])


def tensors(value: Any) -> list[flow.Tensor]:
    found: list[flow.Tensor] = []
    flatten(value, found)
    return found


def check(model: Any, *examples: Any, tolerance: float = 1e-5, **options: Any) -> Any:
    """Export for the first example, and compare with eager mode on all of them."""
    exported = flow.onnx.export(model, examples[0], **options)
    session = runtime(exported)
    if isinstance(model, nn.Module):
        model = model.eval()
    for example in examples:
        args = example if isinstance(example, tuple) else (example,)
        with flow.no_grad():
            want = tensors(model(*args, **options.get("kwargs", {})))
        given = tensors((args, options.get("kwargs", {})))
        names = [x.name for x in exported.graph.input]
        got = session.run(None, dict(zip(names, [x.numpy() for x in given], strict=True)))
        for have, x in zip(got, want, strict=True):
            assert (have.dtype, have.shape) == (x.dtype, x.shape)
            np.testing.assert_allclose(have, x.numpy(), tolerance, tolerance)
    return exported


def ops_of(model: Any) -> list[str]:
    return [node.op_type for node in model.graph.node]


def sizes_of(value: Any) -> list[Any]:
    return [dim.dim_param or dim.dim_value for dim in value.type.tensor_type.shape.dim]


class Classifier(nn.Module):
    """An encoder of a transformer over words."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(11, 8)
        layer = nn.TransformerEncoderLayer(8, 2, 16, activation="gelu", batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, 2)
        self.head = nn.Linear(8, 3)

    def forward(self, words: Any) -> Any:
        return self.head(self.encoder(self.embed(words)).mean(1)).softmax(-1)


class TestModels:
    def test_mlp(self) -> None:
        net = nn.Sequential(
            nn.Linear(3, 8), nn.ReLU(inplace=True), nn.Dropout(0.5), nn.Linear(8, 2), nn.Tanh()
        )
        made = check(net, flow.randn(5, 3))
        assert ops_of(made) == ["Gemm", "Add", "Relu", "Gemm", "Add", "Tanh", "Identity"]
        assert [x.name for x in made.graph.initializer] == [
            "0.weight", "0.bias", "3.weight", "3.bias",
        ]  # fmt: skip
        assert [x.name for x in made.graph.input] == ["input"]
        assert net.training is False  # as check left it

    def test_cnn(self) -> None:
        net = nn.Sequential(
            nn.Conv2d(2, 4, 3, padding=1, stride=2), nn.BatchNorm2d(4), nn.LeakyReLU(),
            nn.MaxPool2d(3, 2, 1, ceil_mode=True), nn.Conv2d(4, 4, 3, padding=1, groups=2),
            nn.GroupNorm(2, 4), nn.AvgPool2d(2), nn.ConvTranspose2d(4, 2, 3, 2, output_padding=1),
            nn.InstanceNorm2d(2, affine=True), nn.AdaptiveAvgPool2d(1), nn.Flatten(),
            nn.Linear(2, 3),
        )  # fmt: skip
        net(flow.randn(6, 2, 18, 18))  # statistics
        made = check(
            net, flow.randn(2, 2, 18, 18), flow.randn(7, 2, 18, 18), dynamic_axes={"input": [0]}
        )
        assert {"Conv", "MaxPool", "AveragePool", "ConvTranspose"} <= set(ops_of(made))

    def test_transformer(self) -> None:
        words = {"words": {0: "batch", 1: "time"}}
        examples = [flow.randint(0, 11, shape) for shape in ((2, 5), (1, 9), (4, 1))]
        made = check(Classifier(), *examples, dynamic_axes=words, output_names=["share"])
        assert {"Gelu", "LayerNormalization", "Softmax"} <= set(ops_of(made))
        assert sizes_of(made.graph.input[0]) == ["batch", "time"]
        assert sizes_of(made.graph.output[0]) == ["batch", 3]
        assert made.graph.output[0].name == "share"

    @pytest.mark.parametrize("kind", [nn.LSTM, nn.GRU, nn.RNN])
    @pytest.mark.parametrize("batch_first", [False, True])
    def test_recurrent_layers(self, kind: Any, batch_first: bool) -> None:
        net = kind(3, 4, num_layers=2, bidirectional=True, batch_first=batch_first)
        made = check(
            net,
            flow.randn(5, 2, 3),
            flow.randn(7, 1, 3),
            dynamic_axes={"input": {0: "a", 1: "b"}},
        )
        assert ops_of(made).count(kind.__name__) == 4
        assert not {"MatMul", "Gemm"} & set(ops_of(made))  # ONNX's op multiplies the input

    def test_recurrent_layers_of_other_kinds(self) -> None:
        check(nn.RNN(3, 4, nonlinearity="relu", bias=False), flow.randn(5, 2, 3))
        check(nn.GRU(3, 4), (flow.randn(5, 2, 3), flow.randn(1, 2, 4)))
        check(nn.LSTMCell(3, 4), (flow.randn(2, 3), (flow.randn(2, 4), flow.randn(2, 4))))
        with pytest.raises(OnnxError, match="an LSTM with proj_size"):
            flow.onnx.export(nn.LSTM(3, 4, proj_size=2), flow.randn(5, 2, 3))

    def test_attention_with_masks(self) -> None:
        def attend(q: Any, k: Any, mask: Any) -> Any:
            plain = F.scaled_dot_product_attention(q, k, k)
            causal = F.scaled_dot_product_attention(q, k, k, is_causal=True)
            return plain, causal, F.scaled_dot_product_attention(q, k, k, attn_mask=mask)

        mask = flow.tensor([[True, False, True], [True, True, True], [False, False, True]])
        check(attend, (flow.randn(2, 2, 3, 4), flow.randn(2, 2, 3, 4), mask))

    def test_losses(self) -> None:
        target = flow.tensor([0, 2, -100, 1])
        check(
            lambda x, t: (F.cross_entropy(x, t), F.mse_loss(x, x * 2), F.huber_loss(x, x.exp())),
            (flow.randn(4, 3), target),
        )

    def test_losses_of_many_classes(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(loss_classification, "_MANY", 1)
        target = flow.tensor([0, 2, -100, 1])
        check(lambda x, t: F.cross_entropy(x, t), (flow.randn(4, 3), target))

    def test_interpolation(self) -> None:
        x = flow.randn(1, 2, 4, 5)
        for options in (
            {"size": (7, 9), "mode": "nearest"},
            {"size": (8, 10), "mode": "bilinear"},
            {"scale_factor": 2.0, "mode": "bilinear", "align_corners": True},
            {"size": (8, 10), "mode": "bicubic"},
        ):
            check(lambda x, options=options: F.interpolate(x, **options), x)

    def test_a_trained_program(self) -> None:
        main, startup = flow.static.Program(), flow.static.Program()
        with flow.static.program_guard(main, startup):
            x = flow.static.data("x", [8, 3])
            target = flow.static.data("target", [8, 1])
            net = nn.Sequential(
                nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Dropout(0.5), nn.Linear(4, 1)
            )
            y = net(x)
            flow.optim.SGD(lr=0.1).minimize(F.mse_loss(y, target))
        executor, scope = flow.static.Executor(), flow.static.Scope()
        executor.run(startup, scope=scope)
        feed = {"x": flow.randn(8, 3).numpy(), "target": flow.randn(8, 1).numpy()}
        for _ in range(3):
            executor.run(main, feed, scope=scope)
        made = flow.onnx.export(main, fetch_list=[y], scope=scope, output_names=["y"])
        assert [x.name for x in made.graph.input] == ["x"]  # the loss has no part in it
        (want,) = executor.run(main.clone(for_test=True), feed, [y], scope)
        (have,) = runtime(made).run(None, {"x": feed["x"]})
        np.testing.assert_allclose(have, want, 1e-5, 1e-6)
        with flow.static.scope_guard(scope):
            assert flow.onnx.export(main, fetch_list=[y.name]).graph.output[0].name == y.name


class TestCalls:
    def test_containers_keywords_and_names(self) -> None:
        def model(pair: Any, *rest: Any, scale: Any, flag: bool = False) -> Any:
            return {"sum": pair[0] + pair[1] * scale, "rest": [*rest, 5], "flag": flag}

        a, b, c, d = (flow.randn(2) for _ in range(4))
        made = check(model, ((a, b), c), kwargs={"scale": d})
        assert [x.name for x in made.graph.input] == ["pair_0", "pair_1", "rest", "scale"]
        assert [x.name for x in made.graph.output] == ["output_0", "output_1"]
        names = {"input_names": ["a", "b", "c", "d"], "output_names": ["x", "y"]}
        made = check(model, ((a, b), c), kwargs={"scale": d}, **names)
        assert [x.name for x in made.graph.output] == ["x", "y"]

    def test_results_that_are_inputs_or_parameters(self) -> None:
        class Net(nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.weight = nn.Parameter(flow.ones(3))

            def forward(self, x: Any) -> Any:
                return x, self.weight, x

        made = check(Net(), flow.randn(2))
        assert [x.name for x in made.graph.input] == ["x"]

    def test_one_parameter_of_two_names_is_there_once(self) -> None:
        net = nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 3))
        net[1].weight = net[0].weight
        made = check(net, flow.randn(2, 3))
        assert len(made.graph.initializer) == 3

    def test_the_module_is_as_before(self) -> None:
        net = nn.Sequential(nn.BatchNorm1d(3), nn.Dropout(0.5), nn.Linear(3, 2))
        net[1].eval()
        before = {name: x.numpy().copy() for name, x in net.state_dict().items()}
        asked = []
        net.register_forward_hook(lambda *_: asked.append(flow.onnx.is_in_onnx_export()))
        flow.onnx.export(net, flow.randn(2, 3))
        assert asked == [True] and flow.onnx.is_in_onnx_export() is False
        assert [m.training for m in net.modules()] == [True, True, False, True]
        for name, x in net.state_dict().items():
            assert np.array_equal(x.numpy(), before[name])
        net(flow.randn(2, 3)).sum().backward()
        assert net[2].weight.grad is not None

    def test_a_mode_is_put_back_after_an_error(self) -> None:
        class Reads(nn.Module):
            def forward(self, x: Any) -> Any:
                return x * x.sum().item()

        net = Reads()
        with pytest.raises(CaptureError, match="item"):
            flow.onnx.export(net, flow.ones(2))
        assert net.training and not flow.onnx.is_in_onnx_export()

    def test_state_that_changes_is_said(self) -> None:
        class Counts(nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.register_buffer("steps", flow.zeros(()))

            def forward(self, x: Any) -> Any:
                self.steps += 1
                return x * self.steps

        with pytest.warns(UserWarning, match="steps changes with every call"):
            made = flow.onnx.export(Counts(), flow.ones(2))
        assert runtime(made).run(None, {"x": np.ones(2, np.float32)})[0].tolist() == [1, 1]

    def test_files(self, tmp_path: Path) -> None:
        net, x = nn.Linear(2, 2), flow.randn(1, 2)
        path = tmp_path / "net.onnx"
        made = flow.onnx.export(net, x, path)
        stream = io.BytesIO()
        flow.onnx.export(net, (x,), stream)
        assert path.read_bytes() == stream.getvalue() == made.SerializeToString()
        assert made.producer_name == "oneflow_lite" and made.graph.name == "Linear"
        with pytest.raises(OnnxError):
            flow.onnx.export(flow.linalg.det, flow.eye(2), path)
        assert path.read_bytes() == stream.getvalue()

    def test_large_models_keep_their_numbers_beside(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        import oneflow_lite.onnx.exporting as exporting

        monkeypatch.setattr(exporting, "_ONE_FILE", 1000)
        net, x = nn.Linear(40, 40), flow.randn(1, 40)
        path = tmp_path / "net.onnx"
        flow.onnx.export(net, x, str(path))
        assert (tmp_path / "net.onnx.data").exists()
        session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
        np.testing.assert_allclose(
            session.run(None, {"input": x.numpy()})[0], net(x).detach().numpy(), 1e-5, 1e-6
        )

    @pytest.mark.parametrize("opset", [18, 19, 20, 21])
    def test_opsets(self, opset: int) -> None:
        made = check(
            nn.Sequential(nn.Linear(2, 2), nn.GELU()), flow.randn(1, 2), opset_version=opset
        )
        assert made.opset_import[0].version == opset
        assert ("Gelu" in ops_of(made)) is (opset >= 20)


class TestDynamicAxes:
    def test_sizes_in_attributes_are_computed(self) -> None:
        def model(x: Any) -> Any:
            n, t, c = x.shape
            flat = x.reshape(n * t, c)
            ramp = flow.arange(t).reshape(1, t, 1)
            return flat.reshape(n, t * c), x + ramp, x[:, t - 1], x.sum() / n, flow.ones(2 * n, t)

        examples = [flow.randn(*shape) for shape in ((2, 3, 4), (5, 1, 4), (1, 7, 4))]
        made = check(model, *examples, dynamic_axes={"x": {0: "n", 1: "t"}})
        assert sizes_of(made.graph.output[1]) == ["n", "t", 4]

    def test_negative_axes_and_names_of_outputs(self) -> None:
        axes = {"x": {-2: "rows"}, "out": {0: "total"}}
        made = check(
            lambda x: x.reshape(-1), flow.randn(2, 3), flow.randn(5, 3),
            dynamic_axes=axes, output_names=["out"],
        )  # fmt: skip
        assert sizes_of(made.graph.input[0]) == ["rows", 3]
        assert sizes_of(made.graph.output[0]) == ["total"]

    def test_axes_of_one_size_without_a_name_go_together(self) -> None:
        check(
            lambda x, y: x + y, (flow.randn(1, 3), flow.randn(1, 3)),
            (flow.randn(4, 3), flow.randn(4, 3)), dynamic_axes={"x": [0], "y": [0]},
        )  # fmt: skip

    def test_spatial_sizes(self) -> None:
        net = nn.Sequential(nn.Conv2d(1, 2, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2))
        check(
            net, flow.randn(1, 1, 8, 8), flow.randn(2, 1, 11, 6),
            dynamic_axes={"input": {0: "n", 2: "h", 3: "w"}},
        )  # fmt: skip

    def test_ops_that_depend_on_a_size(self) -> None:
        def sums(x: Any) -> Any:
            total = x[0]
            for i in range(1, x.shape[0]):
                total = total + x[i]
            return total

        check(sums, flow.randn(3, 2))
        with pytest.raises(OnnxError, match=r"which ops run depends on the size of time.*getitem"):
            flow.onnx.export(sums, flow.randn(3, 2), dynamic_axes={"x": {0: "time"}})

    def test_numbers_that_are_no_polynomials(self) -> None:
        def halves(x: Any) -> Any:
            return x[: x.shape[0] // 2]

        with pytest.raises(OnnxError, match="depends on the dynamic sizes otherwise"):
            flow.onnx.export(halves, flow.randn(4, 2), dynamic_axes={"x": [0]})

    def test_points_prove_the_polynomial(self) -> None:
        points = Points({"a": 2, "b": 5})
        sizes = list(points)
        product = points.fitted([3 * at["a"] * at["b"] + at["b"] + 7 for at in sizes])
        assert str(product) == "7 + b + 3*a*b" and product.base == 42
        assert points.fitted([at["a"] ** 2 for at in sizes]).terms is None
        assert points.fitted([math.ceil(at["a"] / 2) for at in sizes]).terms is None


class TestErrors:
    def test_all_ops_without_a_translation_are_named_at_once(self) -> None:
        def model(x: Any) -> Any:
            return flow.linalg.det(x) + flow.lgamma(x).sum() + flow.lgamma(x * 2).sum() + x.exp()

        with pytest.raises(OnnxError) as caught:
            flow.onnx.export(model, flow.eye(2))
        text = str(caught.value)
        assert "no translation to ONNX of 2 ops" in text
        assert "linalg_det (at test_onnx.py:" in text and "lgamma (at test_onnx.py:" in text
        assert "register_onnx" in text

    def test_ops_that_the_outputs_do_not_need_are_left_out(self) -> None:
        def model(x: Any) -> Any:
            flow.linalg.det(x)
            return x.exp()

        assert ops_of(check(model, flow.eye(2))) == ["Exp", "Identity"]

    def test_a_translation_of_ones_own(self) -> None:
        @flow.register_op("test_cube")
        def cube(xp: Any, x: Any) -> Any:
            return x * x * x

        try:
            with pytest.raises(OnnxError, match="test_cube"):
                flow.onnx.export(cube, flow.ones(2))

            @flow.onnx.register_onnx("test_cube")
            def _(g: Any, x: Any) -> Any:
                return g.Pow(x, g.number(3, x))

            assert ops_of(check(cube, flow.randn(3))) == ["Pow", "Identity"]
            with pytest.raises(RegistrationError, match="registered already"):
                flow.onnx.register_onnx("test_cube")(lambda g, x: x)
        finally:
            TRANSLATIONS.remove("test_cube")
            for registry in (FUNCTORS, KERNELS):
                registry.remove("test_cube")

    def test_writes_through_shared_memory(self) -> None:
        def reads_the_base(x: Any) -> Any:
            y = x * 1
            y[0].add_(1)
            return y

        with pytest.raises(OnnxError, match="shares memory with a tensor that was written"):
            flow.onnx.export(reads_the_base, flow.ones(2, 3))

        def reads_the_view(x: Any) -> Any:
            y = x * 1
            row = y[0]
            row.add_(1)
            return row * 2

        check(reads_the_view, flow.randn(2, 3))

        def writes_the_base(x: Any) -> Any:
            y = x * 1
            y[:, 1] = 5
            y.relu_()
            return y, y[0]

        check(writes_the_base, flow.randn(2, 3))

    @pytest.mark.parametrize(
        ("options", "match"),
        [
            ({"opset_version": 7}, "opset_version.*from 18 to"),
            ({"input_names": ["a", "b"]}, "input_names.*1 different names"),
            ({"output_names": ["x"]}, "output_names.*that no input has"),
            ({"dynamic_axes": {"y": [0]}}, "dynamic_axes.*'x', 'output'.*y"),
            ({"dynamic_axes": {"x": [3]}}, "axes of 'x', from 0 to 0"),
        ],
    )
    def test_bad_options(self, options: dict[str, Any], match: str) -> None:
        with pytest.raises(ArgumentError, match=match):
            flow.onnx.export(lambda x: x + 1, flow.ones(2), **options)

    def test_bad_models(self) -> None:
        with pytest.raises(ArgumentTypeError, match=r"model.*a Module, a function or a Program"):
            flow.onnx.export(5, flow.ones(2))
        with pytest.raises(OnnxError, match="returned no tensor"):
            flow.onnx.export(lambda x: 3, flow.ones(2))

    def test_bad_programs(self) -> None:
        main, startup = flow.static.Program(), flow.static.Program()
        with flow.static.program_guard(main, startup):
            y = nn.Linear(2, 2)(flow.static.data("x", [1, 2]))
        with pytest.raises(ArgumentError, match="fetch_list"):
            flow.onnx.export(main)
        with pytest.raises(ArgumentError, match="variables of the Program.*nothing"):
            flow.onnx.export(main, fetch_list=["nothing"])
        with pytest.raises(ArgumentError, match="dynamic_axes.*export the module"):
            flow.onnx.export(main, fetch_list=[y], dynamic_axes={"x": [0]})
        with pytest.raises(ArgumentError, match="run the startup program"):
            flow.onnx.export(main, fetch_list=[y], scope=flow.static.Scope())

    def test_without_the_package(self, monkeypatch: pytest.MonkeyPatch) -> None:
        import sys

        monkeypatch.setitem(sys.modules, "onnx", None)
        with pytest.raises(OnnxMissingError, match=r"oneflow_lite\[onnx\]"):
            flow.onnx.export(nn.Linear(1, 1), flow.ones(1, 1))
