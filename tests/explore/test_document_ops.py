"""Ops of an exploration: what a pushed interpreter sees, and where each comes from."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import oneflow_lite as flow
from tests.autograd.leaves import leaf
from tests.explore.schema import check
from tests.explore.test_document_runs import PROGRAMS, Cube, explored, network, programs

HERE = Path(__file__).name


class Seen(flow.Interpreter):
    """Writes down ops by itself."""

    def __init__(self) -> None:
        self.ops: list[Any] = []

    def apply(self, op_expr: Any, inputs: Any, attrs: Any) -> Any:
        before = [None if x is None else x._version for x in inputs]
        result = super().apply(op_expr, inputs, attrs)
        after = [None if x is None else x._version for x in inputs]
        outputs = result if type(result) is tuple else (result,)
        self.ops.append(
            (
                op_expr.op_type_name,
                [None if x is None else (list(x.shape), str(x.dtype)) for x in inputs],
                [(list(y.shape), str(y.dtype)) for y in outputs],
                [None if b is None else [b, a] for b, a in zip(before, after, strict=True)],
            )
        )
        return result


@programs
def test_ops_are_those_of_an_interpreter(program: Any, tmp_path: Path) -> None:
    seen = Seen()

    def watched() -> None:
        with flow.push_interpreter(seen):
            program()

    document, _ = explored(watched, tmp_path)
    tensors = document["tensors"]

    def facts(i: Any) -> Any:
        return None if i is None else (tensors[i]["shape"], tensors[i]["dtype"])

    told = [
        (
            op["op"],
            [facts(i) for i in op["inputs"]],
            [facts(i) for i in op["outputs"]],
            [None if i is None else op["versions"].get(str(i), [0, 0]) for i in op["inputs"]],
        )
        for op in document["ops"]
        if op["interpreters"] and op["outputs"]
    ]
    assert len(told) == len(seen.ops)
    for ours, theirs in zip(told, seen.ops, strict=True):
        assert ours == theirs


@programs
def test_every_op_says_where_it_is_from(program: Any, tmp_path: Path) -> None:
    document, _ = explored(program, tmp_path)
    for op in document["ops"]:
        assert op["source"] is not None, op
        assert op["kernel"], op
        if op["interpreters"]:
            assert op["interpreters"] == ["AutogradInterpreter", "EagerInterpreter"]
            assert op["functor"] or op["functors"] == ["replay_view"], op
    for node in document["nodes"]:
        assert node["rule"] or node["kind"] in ("leaf", "root"), node
        assert node["source"] is not None or node["kind"] in ("leaf", "root"), node
        for saved in node["saved"]:
            assert saved["why"], node


class TestPlaces:
    def test_of_the_user(self, tmp_path: Path) -> None:
        lines = []

        def program() -> None:
            x = leaf([1.0, 2.0])
            lines.append(inspect.currentframe().f_lineno + 1)  # type: ignore[union-attr]
            flow.relu(x)

        document, _ = explored(program, tmp_path)
        (op,) = document["ops"]
        assert op["source"] == [HERE, lines[0]]
        (source,) = [s for s in document["sources"] if s["name"] == HERE]
        line = source["text"].splitlines()[lines[0] - source["first"]]
        assert line.strip() == "flow.relu(x)"

    def test_of_functor_kernel_and_rule(self, tmp_path: Path) -> None:
        document, _ = explored(lambda: flow.relu(leaf([1.0])), tmp_path)
        (op,) = document["ops"]
        root = Path(flow.__file__).parents[1]
        for place in (op["functor"], op["kernel"], document["nodes"][op["node"]]["rule"]):
            file, _, line = place.partition(":")
            text = "\n".join((root / file).read_text("utf-8").splitlines()[int(line) - 1 :][:2])
            assert "def relu" in text, place
        assert op["functors"] == ["relu"]
        assert op["saved"][0]["why"] == "the gradient of x needs it: its rule says saves='y'"
        assert op["saved"][0]["tensor"] == op["outputs"][0]

    def test_of_composed_functors(self, tmp_path: Path) -> None:
        x = leaf([1.0])

        def program() -> None:
            flow.nn.functional.mse_loss(x, flow.zeros(1))

        document, _ = explored(program, tmp_path)
        found = [op["functors"] for op in document["ops"][1:]]
        assert found == [["mse_loss", "sub"], ["mse_loss", "square"], ["mse_loss", "mean"]]

    def test_of_modules(self, tmp_path: Path) -> None:
        class Block(flow.nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.body = network()
                self.extra = flow.nn.ModuleList([flow.nn.ReLU()])

            def forward(self, x: Any) -> Any:
                return self.extra[0](self.body(x)) * 2

        net, other = Block(), Block()

        def program() -> None:
            net(flow.ones(2, 3))
            other(flow.ones(2, 3))
            flow.relu(net.body[0].weight)

        document, _ = explored(program, tmp_path)
        modules = [op["module"] for op in document["ops"]]
        one = ["Block.body.0", "Block.body.0", "Block.body.1", "Block.body.2", "Block.body.2",
               "Block.extra.0", "Block"]  # fmt: skip
        assert modules == ["", *one, "", *[m.replace("Block", "Block#2") for m in one], ""]
        kinds = {part["path"]: part["kind"] for part in document["modules"]}
        assert kinds["Block.body"] == "Sequential"
        assert kinds["Block#2.extra.0"] == "ReLU"
        names = {t["name"] for t in document["tensors"]}
        assert {"Block.body.0.weight", "Block#2.body.2.bias"} <= names

    def test_of_a_custom_function(self, tmp_path: Path) -> None:
        x = leaf([1.0, 2.0])
        document, _ = explored(lambda: Cube.apply(x), tmp_path)
        inner, call = document["ops"]
        assert (inner["op"], inner["node"]) == ("pow", None)
        assert (call["op"], call["interpreters"]) == ("Cube", [])
        node = document["nodes"][call["node"]]
        assert (node["name"], node["kind"]) == ("CubeBackward", "function")
        assert document["tensors"][node["tensor"]]["value"]["text"] == "[1, 8]"
        assert call["saved"][0]["why"] == "ctx.save_for_backward() kept it in forward"
        line = inspect.getsourcelines(Cube.backward)[1]
        assert node["rule"] == f"test_document_runs.py:{line}"


def test_packed_tensors_are_told(tmp_path: Path) -> None:
    x = leaf([1.0, 2.0])

    def program() -> None:
        with flow.autograd.graph.saved_tensors_hooks(lambda t: t.numpy().copy(), flow.tensor):
            y = x.exp()
        (y * x).sum().backward()

    document, _ = explored(program, tmp_path)
    exp, mul = document["ops"][:2]
    (result,) = exp["saved"]
    assert (result["packed"], result["tensor"]) == (True, exp["outputs"][0])
    assert [(s["packed"], s["tensor"]) for s in mul["saved"]] == [
        (False, mul["inputs"][1]),
        (False, mul["inputs"][0]),
    ]
    assert document["nodes"][exp["node"]]["saved"] == exp["saved"]


class TestWrites:
    def test_rebase_histories(self, tmp_path: Path) -> None:
        x = leaf([1.0, 2.0, 3.0, 4.0])

        def program() -> Any:
            y = x * 2
            row = y[:2]
            row.mul_(3)
            return y.sum() + row.sum()

        document, _ = explored(program, tmp_path)
        names = {part["id"]: part["name"] for part in document["nodes"]}
        (write,) = [op for op in document["ops"] if op["writes"]]
        assert write["op"] == "copy_"
        (row,) = write["writes"]
        base = document["tensors"][row]["view_of"]
        assert write["versions"][str(row)] == [0, 1]
        assert write["written"][str(row)]["text"] == "[6, 12]"
        moved = {m["tensor"]: (names[m["old"]], names[m["new"]]) for m in write["rebased"]}
        assert moved == {
            base: ("mul_backward", "copy_slices_backward"),
            row: ("getitem_backward", "getitem_backward"),
        }
        (new,) = [m["new"] for m in write["rebased"] if m["tensor"] == base]
        assert document["nodes"][new]["op"] == write["id"]
        assert document["tensors"][base]["memory"] == document["tensors"][row]["memory"]

    def test_reach_other_views_when_these_are_used(self, tmp_path: Path) -> None:
        x = leaf([1.0, 2.0, 3.0, 4.0])

        def program() -> Any:
            y = x * 2
            first, second = y[:2], y[1:3]
            first.mul_(3)
            return second.exp()

        document, _ = explored(program, tmp_path)
        (exp,) = [op for op in document["ops"] if op["op"] == "exp"]
        (moved,) = exp["rebased"]
        assert moved["tensor"] == exp["inputs"][0]
        assert moved["old"] != moved["new"]

    def test_of_leaves_change_no_history(self, tmp_path: Path) -> None:
        x = leaf([1.0, 2.0])

        def program() -> None:
            with flow.no_grad():
                x.add_(1)
            x.sum()

        document, _ = explored(program, tmp_path)
        assert [op["rebased"] for op in document["ops"]] == [[]] * len(document["ops"])
        assert document["ops"][1]["versions"] == {"0": [0, 1]}

    def test_before_a_tensor_becomes_a_leaf(self, tmp_path: Path) -> None:
        def program() -> None:
            x = flow.zeros(2)
            x.fill_(3)
            x.requires_grad_().exp()

        document, _ = explored(program, tmp_path)
        assert [op["rebased"] for op in document["ops"]] == [[], [], []]
        assert document["tensors"][document["ops"][2]["inputs"][0]]["leaf"]


class TestTensors:
    def test_have_names(self, tmp_path: Path) -> None:
        with flow.explore(path=tmp_path / "p.html") as e:
            x = leaf([1.0])
            parts = [x * 2, x * 3]
            last = {"a": parts[0] + parts[1]}
        assert last["a"].item() == 5
        names = [t["name"] for t in e.document["tensors"]]
        assert {"x", "parts[0]", "parts[1]", "last['a']"} <= {*names}
        (label,) = [n["label"] for n in e.document["nodes"] if n["kind"] == "leaf"]
        assert label == "x"

    def test_have_values(self, tmp_path: Path) -> None:
        picture = np.linspace(-1, 1, 200 * 70).reshape(200, 70)
        picture[0, 0], picture[4, 2] = np.nan, np.inf
        small, large = flow.tensor([[1.0, 2.5], [float("-inf"), 4]]), flow.tensor(picture)

        def program() -> None:
            flow.exp(small)
            flow.exp(large)
            flow.exp(flow.tensor(3.0))
            flow.add(flow.tensor([1, 2]), 3)
            flow.exp(flow.tensor([1 + 2j]))

        document, _ = explored(program, tmp_path)
        values = [document["tensors"][op["inputs"][0]]["value"] for op in document["ops"]]
        assert values[0] == {
            "text": "[[1, 2.5], [-inf, 4]]", "rows": [[1, 2.5], ["-inf", 4]], "low": 1, "high": 4,
        }  # fmt: skip
        rows = values[1]["rows"]
        assert (len(rows), len(rows[0])) == (50, 35)
        assert rows[0][:2] == ["nan", round(picture[0, 2], 3)]
        assert rows[1][1] == "inf"
        assert (values[1]["low"], values[1]["high"]) == (picture[0, 1], 1)
        assert "..." in values[1]["text"]
        assert len(values[1]["text"]) <= 120
        assert [v["text"] for v in values[2:]] == ["3", "[1, 2]", "[1+2j]"]

    def test_long_vectors_and_filters_are_images(self, tmp_path: Path) -> None:
        filters = flow.arange(2 * 2 * 3 * 2).reshape(2, 2, 3, 2)
        vector = flow.tensor([*range(99), float("nan")])
        others = flow.ones(2, 2, 30, 30), flow.ones(3)

        def program() -> None:
            for each in (filters, vector, *others):
                flow.neg(each)

        document, _ = explored(program, tmp_path)
        values = [document["tensors"][op["inputs"][0]]["value"] for op in document["ops"]]
        gap = [None] * 5
        first = [[0, 1, None, 6, 7], [2, 3, None, 8, 9], [4, 5, None, 10, 11]]
        second = [[n if n is None else n + 12 for n in row] for row in first]
        assert values[0]["rows"] == [*first, gap, *second]
        assert (values[0]["low"], values[0]["high"]) == (0, 23)
        assert values[1]["rows"] == [[float(n) for n in range(0, 99, 2)]]
        assert [value.get("nan", False) for value in values] == [False, True, False, False]
        assert ["rows" in value for value in values] == [True, True, False, False]

    def test_at_the_ends_of_the_numbers(self, tmp_path: Path) -> None:
        tiny, huge = np.nextafter(0, 1), np.finfo("d").max
        given = [[[tiny, 0], [0, tiny]], [[huge, -huge], [0, 1]], [[np.nan] * 2] * 2]

        def program() -> None:
            for each in given:
                flow.tensor(each, dtype=flow.float64).neg()

        document, _ = explored(program, tmp_path)
        values = [document["tensors"][op["inputs"][0]]["value"] for op in document["ops"]]
        assert [value["high"] for value in values] == [tiny, huge, 0]
        assert values[1]["rows"][0] == [pytest.approx(huge), pytest.approx(-huge)]
        assert values[2]["rows"] == [["nan", "nan"]] * 2

    def test_attributes_are_short(self, tmp_path: Path) -> None:
        x = flow.ones(1000)
        document, _ = explored(lambda: x[list(range(1000))], tmp_path)
        told = [text for op in document["ops"] for text in op["attrs"].values()]
        assert max(map(len, told)) <= 80

    def test_images_become_small_when_there_are_many(self, tmp_path: Path) -> None:
        x = flow.ones(64, 64)

        def program() -> None:
            y = x
            for _ in range(80):
                y = y + 1

        document, _ = explored(program, tmp_path)
        sides = [len(t["value"]["rows"]) for t in document["tensors"] if t["shape"]]
        assert sides[0] == 64
        assert sides[-1] == 8

    def test_of_bfloat16(self, tmp_path: Path) -> None:
        pytest.importorskip("ml_dtypes")
        x = flow.ones(2, 3, dtype=flow.bfloat16)
        document, _ = explored(lambda: x + 1, tmp_path)
        assert {t["dtype"] for t in document["tensors"]} >= {"bfloat16", "float32"}
        assert document["tensors"][0]["value"]["text"] == "[[1, 1, 1], [1, 1, 1]]"


def test_an_op_that_fails_is_in_it(tmp_path: Path) -> None:
    with pytest.raises(flow.errors.ShapeError), flow.explore(path=tmp_path / "p.html") as e:
        flow.ones(2) + flow.ones(3)
    check(e.document)
    assert e.document["ops"][-1]["error"].startswith("ShapeError: add(): ")
    assert e.document["ops"][-1]["outputs"] == []


def test_variables_of_a_program_that_is_captured_have_no_values(tmp_path: Path) -> None:
    def capture() -> None:
        with flow.static.program_guard(flow.static.Program(), flow.static.Program()):
            flow.nn.Linear(3, 5)(flow.static.data("x", [2, 3]))

    document, _ = explored(capture, tmp_path)
    outputs = [t for t in document["tensors"] if t["shape"] == [2, 5]]
    assert outputs
    assert [t.get("value") for t in outputs] == [None] * len(outputs)


def test_programs_have_different_names() -> None:
    assert len({p.__name__ for p in PROGRAMS}) == len(PROGRAMS)


def test_inside_of_a_transform_the_whole_batch_is_shown(tmp_path: Path) -> None:
    x = flow.tensor([[1.0, 2.0], [3.0, 4.0]])

    def program() -> None:
        flow.vmap(lambda row: row * 2)(x)
        flow.func.jvp(lambda t: t * 3, (x[0],), (x[1],))

        flow.exp(x)  # a plain one: the interpreter of transforms hands it on

    document, _ = explored(program, tmp_path)
    outer, inner = "AutogradInterpreter", "EagerInterpreter"
    ways = {op["op"]: op["interpreters"] for op in document["ops"]}
    assert ways["exp"] == [outer, inner]
    assert ways["mul"] == ways["leave_batch"] == [outer, "TransformInterpreter", inner]
    shown = [
        (document["tensors"][op["outputs"][0]]["shape"], document["tensors"][op["outputs"][0]])
        for op in document["ops"]
        if op["op"] == "mul"
    ]
    texts = [(shape, tensor["value"]["text"]) for shape, tensor in shown]
    assert ([2], "[[2, 4], [6, 8]]") in texts
    assert ([2], "[3, 6]") in texts
