"""`flow.explore`: what it leaves as it was, when it writes, shows and opens a page."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import types
import weakref
import webbrowser
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import oneflow_lite as flow
from oneflow_lite.errors import ArgumentError, ArgumentTypeError, GradientError, StaleTensorError
from oneflow_lite.explore import exploration
from oneflow_lite.tensors.mode import local
from oneflow_lite.utils.checkpoint import checkpoint
from tests.autograd.leaves import leaf
from tests.explore.schema import check
from tests.explore.test_document_runs import Cube, network

F = flow.nn.functional
ROOT = Path(__file__).resolve().parents[2]


def training() -> list[Any]:
    """Train with all that may go another way while somebody looks, and return the results."""
    flow.manual_seed(3)
    net = flow.nn.Sequential(
        flow.nn.Embedding(7, 6), flow.nn.LayerNorm(6), flow.nn.Dropout(0.3), flow.nn.Linear(6, 5),
        flow.nn.GELU(), flow.nn.Linear(5, 5),
    )  # fmt: skip
    optimizer = flow.optim.AdamW(net.parameters(), lr=0.05)
    results = []
    for step in range(3):
        optimizer.zero_grad()
        index = flow.randint(0, 7, (9,))
        out = checkpoint(net, index, use_reentrant=False)
        out = out + Cube.apply(out) + out[1:4].sum() * out[2].exp().mean()
        out[0, :2] *= 1.5
        loss = F.cross_entropy(out, flow.randint(0, 5, (9,)))
        weight = net[3].weight
        (g,) = flow.autograd.grad(loss, weight, create_graph=True)
        (loss + (g * g).sum()).backward()
        flow.nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        optimizer.step()
        results += [loss, g, *[p.grad.clone() for p in net.parameters()], step]
    return [*results, *net.parameters(), flow.rand(3)]


def same(ours: list[Any], theirs: list[Any]) -> None:
    """Compare bits."""
    for a, b in zip(ours, theirs, strict=True):
        if isinstance(a, flow.Tensor):
            a, b = a.detach().numpy(), b.detach().numpy()
            assert a.dtype == b.dtype
            assert a.tobytes() == b.tobytes()
        else:
            assert a == b


class TestABlock:
    def test_gives_the_same_bits(self, tmp_path: Path) -> None:
        expected = training()
        with flow.explore(path=tmp_path / "p.html") as e:
            got = training()
        same(got, expected)
        check(e.document)
        assert len(e.document["runs"]) >= 6

    def test_leaves_nothing_on(self, tmp_path: Path) -> None:
        state = local.state
        with flow.explore(path=tmp_path / "p.html"):
            assert local.state.general
        assert local.state is state or not local.state.general
        x = leaf(2.0)
        (x * 3).backward()
        assert x.grad.item() == 3

    def test_is_written_when_an_error_ends_it(self, tmp_path: Path) -> None:
        path = tmp_path / "p.html"
        state = local.state.general
        with pytest.raises(ZeroDivisionError) as raised, flow.explore(path=path) as e:
            x = leaf([1.0, 2.0])
            x.exp()
            raised_here = 1 / 0
            assert raised_here
        assert local.state.general is state
        assert "division by zero" in str(raised.value)
        check(e.document)
        error = e.document["error"]
        assert (error["kind"], error["text"]) == ("ZeroDivisionError", "division by zero")
        assert error["source"][0] == Path(__file__).name
        line = Path(__file__).read_text("utf-8").splitlines()[error["source"][1] - 1]
        assert line.strip() == "raised_here = 1 / 0"
        assert "division by zero" in path.read_text("utf-8")
        assert [op["op"] for op in e.document["ops"]] == ["exp"]

    def test_of_a_graph_that_was_overwritten(self, tmp_path: Path) -> None:
        x = leaf([1.0, 2.0])
        with pytest.raises(StaleTensorError), flow.explore(path=tmp_path / "p.html") as e:
            y = x.exp()
            y.detach().mul_(2)
            y.sum().backward()
        assert "at version 1" in e.document["error"]["text"]
        assert "StaleTensorError" in e.document["runs"][0]["error"]

    def test_may_hold_another(self, tmp_path: Path) -> None:
        x = leaf([1.0, 2.0])
        with flow.explore(path=tmp_path / "a.html") as outer:
            y = x * 2
            with flow.explore(path=tmp_path / "b.html") as inner:
                y.sum().backward()
            z = x.exp()
        assert z.requires_grad
        for e in (outer, inner):
            check(e.document)
        names = [op["op"] for op in outer.document["ops"]]
        between = [op["op"] for op in inner.document["ops"]]
        assert between[0] == "sum"
        assert names == ["mul", *between, "exp"]
        assert len(outer.document["runs"]) == len(inner.document["runs"]) == 1
        assert [op["interpreters"] for op in inner.document["ops"]] == [
            ["AutogradInterpreter", "EagerInterpreter"]
        ] * len(between)

    def test_may_run_in_several_threads(self, tmp_path: Path) -> None:
        found: dict[int, Any] = {}

        def work(k: int) -> None:
            x = leaf([float(k)])
            with flow.explore(path=tmp_path / f"{k}.html") as e:
                for _ in range(k + 1):
                    x = x * 2
                x.sum().backward()
            found[k] = e.document

        threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for k, document in found.items():
            check(document)
            forward = [op["op"] for op in document["ops"] if op["run"] is None]
            assert forward == ["mul"] * (k + 1) + ["sum", "ones_like"]

    def test_is_of_its_thread(self, tmp_path: Path) -> None:
        x = leaf([1.0])
        with flow.explore(path=tmp_path / "p.html") as e:
            thread = threading.Thread(target=lambda: (x * 2).sum().backward())
            thread.start()
            thread.join()
        assert x.grad.item() == 2
        assert e.document["ops"] == e.document["runs"] == []

    def test_ends_recording_at_a_limit(self, tmp_path: Path) -> None:
        x = leaf([1.0, 2.0])
        with flow.explore(path=tmp_path / "p.html", limit=10) as e:
            for _ in range(4):  # six ops in the first round, then 7: gradients are added
                (x * 3).sum().backward()
        check(e.document)
        assert x.grad.tolist() == [12.0, 12.0]
        assert len(e.document["ops"]) == 10
        assert len(e.document["runs"]) == 2
        assert [len(run["steps"]) for run in e.document["runs"]] == [3, 3]
        assert e.document["left_out"] == {"ops": 17, "runs": 2}
        with pytest.raises(ArgumentError, match="at least 1"):
            flow.explore(limit=0)

    def test_has_a_document_when_it_is_over(self, tmp_path: Path) -> None:
        with flow.explore(path=tmp_path / "p.html") as e:
            assert "not over" in repr(e)
            with pytest.raises(ArgumentError, match="when the block ends"):
                _ = e.document
        assert "0 ops" in repr(e)
        assert str(tmp_path / "p.html") in repr(e)
        with pytest.raises(ArgumentError, match="entered once"), e:
            pass

    def test_tells_of_programs_and_compiled_functions(self, tmp_path: Path) -> None:
        main = flow.static.Program()
        with flow.static.program_guard(main):
            a = flow.static.data("a", (2,))
            b = (a * 2).exp()
        net = network()

        @flow.compile
        def forward(x: Any) -> Any:
            return net(x).sum()

        with flow.explore(path=tmp_path / "p.html") as e:
            for _ in range(3):
                forward(flow.ones(2, 3))
            flow.static.Executor().run(main, feed={"a": np.ones(2, "float32")}, fetch_list=[b])
        check(e.document)
        (compiled,) = e.document["compiled"]
        assert (compiled["captures"], compiled["hits"]) == (1, 2)
        assert compiled["source"][0] == Path(__file__).name
        assert len(e.document["programs"]) == 1

    def test_keeps_nothing_of_the_caller(self, tmp_path: Path) -> None:
        y = leaf([1.0, 2.0]).exp()
        seen = weakref.ref(y)
        flow.explore(y, path=tmp_path / "a.html")
        with flow.explore(path=tmp_path / "b.html") as e:
            z = y * 2
        assert [t["name"] for t in e.document["tensors"]][:3:2] == ["y", "z"]
        del y, z
        assert seen() is None


class TestATensor:
    def state_of(self, net: Any, loss: Any) -> Any:
        nodes, stack = [], [loss.grad_fn]
        while stack:
            node = stack.pop()
            nodes.append((node.name(), len(node.saved or ()), node.saved is None))
            stack += [n for n, _ in node.edges if n is not None]
        grads = [
            None if p.grad is None else (id(p.grad), p.grad.tolist()) for p in net.parameters()
        ]
        versions = [
            (p._version, p.grad._version if p.grad is not None else 0) for p in net.parameters()
        ]
        return nodes, grads, versions, json.dumps(str(flow.get_rng_state()))

    def test_changes_nothing(self, tmp_path: Path) -> None:
        net = network()
        net(flow.randn(4, 3)).sum().backward()
        calls: list[str] = []
        net[0].weight.register_post_accumulate_grad_hook(lambda p: calls.append("after"))
        net[0].weight.register_hook(lambda g: calls.append("hook"))
        net[2].weight.register_hook(lambda g: g + flow.rand_like(g))
        loss = F.mse_loss(net(flow.randn(4, 3)), flow.randn(4, 2))
        before = self.state_of(net, loss)
        e = flow.explore(loss, path=tmp_path / "p.html")
        assert self.state_of(net, loss) == before
        assert calls == ["hook"]
        check(e.document)
        assert e.document["runs"][0]["rehearsal"]

    def test_shows_what_backward_does(self, tmp_path: Path) -> None:
        net = network()
        net(flow.randn(4, 3)).sum().backward()
        loss = F.mse_loss(net(flow.randn(4, 3)), flow.randn(4, 2))
        (told,) = flow.explore(loss, path=tmp_path / "p.html").document["runs"]
        with flow.explore(path=tmp_path / "p.html") as e:
            loss.backward()
        (real,) = e.document["runs"]
        assert not real["rehearsal"]

        def film(run: Any) -> Any:
            first = run["order"][0]  # ids differ: the real one met fewer nodes before
            return [
                (
                    step["node"] - first, step["released"], step["held"],
                    step["current_grad"], step["acc_grad"],
                    [*step["not_ready"].values()], [*step["dependencies"].values()],
                )
                for step in run["steps"]
            ]  # fmt: skip

        assert film(told) == film(real)
        for step in real["steps"]:
            for grad in step["acc_grad"]:
                assert grad["value"]["text"]
        grads = [p.grad.numpy() for p in net.parameters()]
        shapes = [g["shape"] for s in real["steps"] for g in s["acc_grad"]]
        assert sorted(map(list, (g.shape for g in grads))) == sorted(shapes)

    def test_may_be_several_and_no_scalars(self, tmp_path: Path) -> None:
        x, w = leaf([1.0, 2.0]), leaf(3.0)
        y = x * w
        e = flow.explore([y, y.exp().sum()], path=tmp_path / "p.html")
        check(e.document)
        (run,) = e.document["runs"]
        assert len(run["roots"]) == 2
        labels = {n["label"] for n in e.document["nodes"] if n["kind"] == "leaf"}
        assert labels == {"x", "w"}
        expected = (3 + 3 * np.exp([3.0, 6.0])).astype("float32")
        (told,) = [
            s["acc_grad"] for s in run["steps"] if len(s["acc_grad"]) and s["acc_grad"][0]["shape"]
        ]
        assert told[0]["value"]["text"] == f"[{expected[0]:.4g}, {expected[1]:.4g}]"

    def test_whose_graph_is_gone_is_shown_without_a_film(self, tmp_path: Path) -> None:
        y = leaf([1.0, 2.0]).exp().sum()
        y.backward()
        with pytest.warns(UserWarning, match="FreedGraphError"):
            e = flow.explore(y, path=tmp_path / "p.html")
        check(e.document)
        assert e.document["error"]["kind"] == "FreedGraphError"
        assert [n["name"] for n in e.document["nodes"]][-2:] == ["exp_backward", "sum_backward"]

    @pytest.mark.parametrize(
        ("given", "error"),
        [(3.0, ArgumentTypeError), (flow.ones(2), GradientError), ([flow.ones(2)], GradientError)],
    )
    def test_has_to_require_a_gradient(self, given: Any, error: Any, tmp_path: Path) -> None:
        with pytest.raises(error, match=r"explore\(\): argument 'loss_or_tensors"):
            flow.explore(given, path=tmp_path / "p.html")
        assert not (tmp_path / "p.html").exists()


def test_without_values_nothing_of_them_is_told(tmp_path: Path) -> None:
    path = tmp_path / "p.html"
    secret = 0.123456
    with pytest.raises(ValueError, match="no secret"), flow.explore(path=path, values=False) as e:
        x = flow.full((2, 2), secret, requires_grad=True)
        y = (x * 8.765432).clamp(min=0.345678)
        y.sum().backward()
        raise ValueError("there is no secret here")
    check(e.document)
    text = json.dumps(e.document, separators=(",", ":"))
    assert text.replace("<", r"\u003c") in path.read_text("utf-8")  # and nothing else is in it
    for told in ("1235", "8.765", "0.3456", "no secret", "requires_grad=True"):
        assert told not in text, told
    assert e.document["sources"] == []
    assert e.document["error"] == {
        "kind": "ValueError", "text": "", "source": e.document["error"]["source"],
    }  # fmt: skip
    assert all(tensor["value"] is None for tensor in e.document["tensors"])
    assert e.document["ops"][0]["source"][0] == Path(__file__).name
    clamp = next(op for op in e.document["ops"] if op["op"].startswith("clamp"))
    assert "0.3" not in str(clamp["attrs"])


class TestAScript:
    SCRIPT = """
import sys
import oneflow_lite as flow
from beside import factor
assert __name__ == "__main__" and sys.argv[1:] == ["--rate", "3"], sys.argv
weight = flow.ones(2, requires_grad=True)
(weight * factor).sum().backward()
print("ran")
sys.exit(5)
"""

    def run(self, folder: Path, *arguments: str) -> Any:
        (folder / "beside.py").write_text("factor = 3\n")
        (folder / "script.py").write_text(self.SCRIPT)
        return subprocess.run(
            [sys.executable, "-m", "oneflow_lite.explore", *arguments],
            cwd=folder, capture_output=True, text=True, check=False, timeout=120,
            env={"PYTHONPATH": str(ROOT), "PATH": ""},
        )  # fmt: skip

    def test_is_run_as_it_would_be(self, tmp_path: Path) -> None:
        done = self.run(tmp_path, "script.py", "--rate", "3")
        assert (done.returncode, done.stdout) == (5, "ran\n")
        assert done.stderr == "explored: script.html\n"
        text = (tmp_path / "script.html").read_text("utf-8")
        assert "weight * factor" in text

    def test_may_name_a_page_and_leave_values_out(self, tmp_path: Path) -> None:
        done = self.run(tmp_path, "script.py", "--rate", "3", "--out", "x.html", "--no-values")
        assert done.returncode == 5
        text = (tmp_path / "x.html").read_text("utf-8")
        assert "weight * factor" not in text
        assert "script.py" in text

    def test_that_fails_is_shown_too(self, tmp_path: Path) -> None:
        done = self.run(tmp_path, "script.py", "--rate", "4")
        assert done.returncode == 1
        assert "AssertionError" in done.stderr
        assert "AssertionError" in (tmp_path / "script.html").read_text("utf-8")

    def test_that_is_not_there(self, tmp_path: Path) -> None:
        done = self.run(tmp_path, "other.py")
        assert done.returncode == 2
        assert "no file 'other.py'" in done.stderr


class TestShowing:
    def test_opens_nothing_here(self, tmp_path: Path, monkeypatch: Any) -> None:
        opened: list[str] = []
        monkeypatch.setattr(webbrowser, "open", opened.append)
        with flow.explore(path=tmp_path / "p.html"):
            pass
        assert opened == []
        with flow.explore(path=tmp_path / "p.html", open=True):
            pass
        assert opened == [(tmp_path / "p.html").as_uri()]

    def test_opens_where_a_person_sees_it(self, monkeypatch: Any) -> None:
        for name in ("CI", "PYTEST_CURRENT_TEST", "PYTEST_VERSION"):
            monkeypatch.delenv(name, raising=False)
        monkeypatch.setattr(sys, "platform", "linux")
        monkeypatch.setattr(sys, "stdout", types.SimpleNamespace(isatty=lambda: True))
        monkeypatch.setattr(webbrowser, "get", lambda: None)
        monkeypatch.setenv("DISPLAY", ":0")
        assert exploration.opens_browser()
        monkeypatch.setenv("CI", "true")
        assert not exploration.opens_browser()
        monkeypatch.delenv("CI")
        monkeypatch.setenv("DISPLAY", "")
        monkeypatch.delenv("WAYLAND_DISPLAY", raising=False)
        assert not exploration.opens_browser()
        monkeypatch.setattr(sys, "platform", "darwin")
        assert exploration.opens_browser()
        monkeypatch.setattr(sys, "stdout", types.SimpleNamespace(isatty=lambda: False))
        assert not exploration.opens_browser()

    def test_a_page_without_a_path_is_a_temporary_file(self) -> None:
        e = flow.explore(leaf(2.0).exp())
        assert e.path is not None
        text = e.path.read_text("utf-8")
        e.path.unlink()
        assert text.lower().startswith("<!doctype html>")

    def test_a_notebook_shows_it_inline(self, monkeypatch: Any) -> None:
        shown: list[Any] = []
        shell = types.SimpleNamespace(kernel=object())
        monkeypatch.setitem(
            sys.modules, "IPython", types.SimpleNamespace(get_ipython=lambda: shell)
        )
        monkeypatch.setitem(
            sys.modules, "IPython.display", types.SimpleNamespace(display=shown.append)
        )
        with flow.explore() as e:
            leaf(2.0).exp()
        assert shown == [e]
        assert e.path is None
        page = e._repr_html_()
        assert page.startswith("<iframe")
        assert "srcdoc=" in page
        assert "exp" in page
        e = flow.explore(leaf(2.0).exp())  # shown as the result of its cell
        assert shown == shown[:1]
        assert e.path is None

    def test_may_be_written_again(self, tmp_path: Path) -> None:
        e = flow.explore(leaf(2.0).exp(), path=tmp_path / "a.html", title="<Exponential>")
        assert e.write(tmp_path / "b.html") == tmp_path / "b.html"
        texts = [(tmp_path / name).read_text("utf-8") for name in ("a.html", "b.html")]
        assert texts[0] == texts[1]
        assert "<title>&lt;Exponential&gt;" in texts[0]


def test_the_module_can_be_called_too(tmp_path: Path) -> None:
    code = (
        "import oneflow_lite.explore, oneflow_lite as flow\n"
        "x = flow.ones(1, requires_grad=True)\n"
        "e = flow.explore(x * 2, path='p.html')\n"
        "print([t['name'] for t in e.document['tensors'] if t['leaf']])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False,
        env={"PYTHONPATH": str(ROOT), "PATH": ""}, timeout=120,
    )  # fmt: skip
    assert done.stdout == "['x']\n", done.stderr
