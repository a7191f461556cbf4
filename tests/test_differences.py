"""Known differences from other libraries; docs/coming_from.md has the table that names these tests.

Each test says what this library does, and beside it what the other one does, where that is
installed. JAX's part was run with version 0.10.2, that of HIPS autograd with 1.9.1.
"""

from __future__ import annotations

import gc
import importlib
import inspect
import math
import threading
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import oneflow_lite as flow
from oneflow_lite import nn


def installed(name: str) -> Any:
    """Return another library, or None."""
    try:
        return importlib.import_module(name)
    except ImportError:
        return None


torch = installed("torch")
jax = installed("jax")
hips = installed("autograd")
BOTH = [flow] if torch is None else [flow, torch]


def both(act: Callable[[Any], Any]) -> list[Any]:
    """Return what a function of the library gives here, and with PyTorch; an error by its class."""
    found: list[Any] = []
    for library in BOTH:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                result = act(library)
        except Exception as error:
            result = type(error)
        found.append(result.tolist() if hasattr(result, "tolist") else result)
    return found


def differ(act: Callable[[Any], Any], here: Any, there: Any) -> None:
    """Hold both results against what the table says; an error may be of a class below the named."""
    assert here != there
    for found, said in zip(both(act), (here, there), strict=False):
        if isinstance(said, type) and isinstance(found, type):
            assert issubclass(found, said), found
        else:
            assert found == said


# PyTorch: tensors


def test_a_size_prints_as_a_tuple() -> None:
    differ(lambda lib: str(lib.zeros(2, 3).shape), "(2, 3)", "torch.Size([2, 3])")
    assert flow.zeros(2, 3).shape.numel() == 6


def test_dtypes_are_those_of_numpy() -> None:
    differ(lambda lib: str(lib.zeros(1).dtype), "float32", "torch.float32")
    differ(lambda lib: lib.float32 == np.float32, True, False)
    differ(lambda lib: str(lib.float16.to_complex())[-9:], "complex64", "complex32")
    assert np.zeros(1, flow.zeros(1).dtype).dtype == flow.float32


def test_random_numbers_are_others() -> None:
    def draw(lib: Any) -> list[float]:
        lib.manual_seed(0)
        return lib.rand(3).tolist()

    drawn = both(draw)
    assert drawn[0] == draw(flow)
    assert torch is None or drawn[0] != drawn[1]


def test_weights_have_the_same_distribution() -> None:
    for lib in BOTH:
        lib.manual_seed(0)
        weight = lib.nn.Linear(400, 300).weight.detach().numpy()
        bound = 1 / np.sqrt(400)
        assert 0.999 * bound < np.abs(weight).max() <= bound
        assert abs(weight.std() - bound / np.sqrt(3)) < 0.01 * bound


def test_slices_may_go_backwards() -> None:
    differ(lambda lib: lib.tensor([1.0, 2.0, 3.0])[::-1], [3.0, 2.0, 1.0], ValueError)


def test_conj_copies() -> None:
    def shares(lib: Any) -> bool:
        z = lib.tensor([1 + 2j])
        y = z.conj()
        z.mul_(2)
        return bool(y[0].real == 2)

    differ(shares, False, True)


def test_resizing_may_leave_others_behind() -> None:
    def shares(lib: Any) -> bool:
        x = lib.ones(3)
        y = x[:]
        x.resize_(5)
        x.fill_(7)
        return bool(y[0] == 7)

    differ(shares, False, True)


@pytest.mark.parametrize("name", ["jagged", "quantize_per_tensor", "qint8"])
def test_kinds_of_tensors_that_are_not_there(name: str) -> None:
    with pytest.raises(NotImplementedError, match=name):
        getattr(flow, name)(flow.ones(2))
    assert torch is None or hasattr(torch, name)


def test_gradients_are_dense() -> None:
    def sparse(lib: Any) -> bool:
        layer = lib.nn.Embedding(4, 2, sparse=True)
        layer(lib.tensor([1])).sum().backward()
        return layer.weight.grad.is_sparse

    differ(sparse, False, True)
    with pytest.raises(flow.errors.ArgumentError, match="gradients are dense"):
        weight = flow.ones(4, 2, requires_grad=True)
        nn.functional.embedding(flow.tensor([1]), weight, sparse=True)


def test_floating_point_warnings_are_numpys() -> None:
    with pytest.warns(RuntimeWarning, match="divide by zero"):
        assert flow.log(flow.tensor(0.0)).item() == -np.inf
    with np.errstate(divide="ignore"), warnings.catch_warnings():
        warnings.simplefilter("error")
        flow.log(flow.tensor(0.0))
    if torch is not None:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            torch.log(torch.tensor(0.0))


def test_every_mode_pads_any_dimensions() -> None:
    def reflect(lib: Any) -> Any:
        return lib.nn.functional.pad(lib.arange(3.0), (1, 0), mode="reflect")

    differ(reflect, [1.0, 0.0, 1.0, 2.0], NotImplementedError)


def test_functions_that_are_not_there() -> None:
    names = "airy_ai chebyshev_polynomial_t hermite_polynomial_h legendre_polynomial_p".split()
    for name in names:
        assert not hasattr(flow.special, name)
        assert torch is None or hasattr(torch.special, name)


def test_a_bag_may_begin_after_the_first_index() -> None:
    def bags(lib: Any) -> Any:
        offsets = lib.tensor([1, 2])
        return lib.nn.functional.embedding_bag(lib.tensor([0, 1, 2]), lib.ones(4, 2), offsets)

    differ(bags, [[1.0, 1.0], [1.0, 1.0]], RuntimeError)


def test_options_of_linear_cross_entropy_change_nothing() -> None:
    x, weight, target = flow.ones(2, 3), flow.ones(4, 3), flow.tensor([0, 3])
    function = nn.functional.linear_cross_entropy
    plain = function(x, weight, target)
    assert function(x, weight, target, options=object()).item() == plain.item()


def test_indices_on_cuda_are_not_looked_at(device: str) -> None:
    x = flow.tensor([1.0, 2.0, 3.0], device=device)
    index = flow.tensor([4], device=device)
    if device == "cuda":
        assert x[index].tolist() == [2.0]
    else:
        with pytest.raises(IndexError):
            x[index]


# PyTorch: autograd


def test_grad_fills_no_retained_gradient() -> None:
    def retained(lib: Any) -> Any:
        x = lib.tensor(2.0, requires_grad=True)
        y = x * 2
        y.retain_grad()
        lib.autograd.grad(y * 3, x)
        return y.grad

    differ(retained, None, 3.0)


def test_grad_returns_what_hooks_made_of_it() -> None:
    def gradients(lib: Any) -> list[float]:
        x = lib.tensor(2.0, requires_grad=True)
        y = x * 2
        y.register_hook(lambda grad: grad * 10)
        return [g.item() for g in lib.autograd.grad(y * 3, [x, y])]

    differ(gradients, [60.0, 30.0], [60.0, 3.0])


def test_leaves_have_their_turn_last() -> None:
    def order(lib: Any) -> list[str]:
        w, x = (lib.tensor(2.0, requires_grad=True) for _ in range(2))
        said: list[str] = []
        y = x.exp()
        z = y.sin()
        y.register_hook(lambda grad: said.append("y"))
        loss = z * w
        w.register_hook(lambda grad: said.append("w"))
        loss.backward()
        return said

    differ(order, ["y", "w"], ["w", "y"])


def test_a_function_that_no_gradient_reaches_is_not_called() -> None:
    def calls(lib: Any) -> int:
        count = []

        class Twice(lib.autograd.Function):
            @staticmethod
            def forward(ctx: Any, x: Any) -> Any:
                return x * 2

            @staticmethod
            def backward(ctx: Any, dy: Any) -> Any:
                count.append(dy.item())
                return dy * 2

        class Stop(lib.autograd.Function):
            @staticmethod
            def forward(ctx: Any, x: Any) -> Any:
                return x * 1

            @staticmethod
            def backward(ctx: Any, dy: Any) -> Any:
                return None

        x = lib.tensor(1.0, requires_grad=True)
        Stop.apply(Twice.apply(x)).backward()
        return len(count)

    differ(calls, 0, 1)


def test_anomaly_mode_is_the_threads() -> None:
    def seen(lib: Any) -> bool:
        answers: list[bool] = []

        def look() -> None:
            x = lib.tensor(-1.0, requires_grad=True)
            try:
                with np.errstate(all="ignore"):
                    x.sqrt().backward()
            except RuntimeError:
                answers.append(True)
            else:
                answers.append(False)

        with lib.autograd.detect_anomaly():
            thread = threading.Thread(target=look)
            thread.start()
            thread.join()
        return answers[0]

    differ(seen, False, True)


def test_gradients_are_never_one_tensor_twice() -> None:
    def same(lib: Any) -> bool:
        x, y = (lib.ones(2, requires_grad=True) for _ in range(2))
        dx, dy = lib.autograd.grad((x + y).sum(), [x, y])
        return dx is dy or dx.data_ptr() == dy.data_ptr()

    differ(same, False, True)


def test_nodes_have_the_names_of_ops() -> None:
    def name(lib: Any) -> str:
        return (lib.ones(2, requires_grad=True) * 2).grad_fn.name()

    differ(name, "mul_backward", "MulBackward0")
    assert type(flow.ones(2, requires_grad=True).exp().grad_fn) is flow.autograd.graph.Node


def test_there_is_taylor_mode() -> None:
    # The coefficients of exp(x + t) are eˣ / k!, from one call of the function.
    calls: list[Any] = []
    x = flow.tensor(0.5, dtype=flow.float64)
    found = flow.func.taylor(lambda x: calls.append(x) or flow.exp(x), x, 12)
    assert len(calls) == 1
    wanted = [math.exp(0.5) / math.factorial(k) for k in range(13)]
    np.testing.assert_allclose([c.item() for c in found], wanted, rtol=1e-12)
    assert torch is None or not any(hasattr(torch.func, n) for n in ("jet", "taylor", "laplacian"))


def test_a_freed_graph_is_found_before_anything_runs() -> None:
    def half_done(lib: Any) -> bool:
        x, w = (lib.tensor(2.0, requires_grad=True) for _ in range(2))
        y = x.exp()
        y.backward()
        loss = y + w * 3
        with pytest.raises(RuntimeError):
            loss.backward()
        return w.grad is not None

    differ(half_done, False, True)


def test_a_ctx_does_not_keep_its_graph() -> None:
    def readable(lib: Any) -> bool:
        kept: list[Any] = []

        class Square(lib.autograd.Function):
            @staticmethod
            def forward(ctx: Any, x: Any) -> Any:
                ctx.save_for_backward(x)
                kept.append(ctx)
                return x * x

            @staticmethod
            def backward(ctx: Any, dy: Any) -> Any:
                return 2 * dy * ctx.saved_tensors[0]

        y = Square.apply(lib.tensor(2.0, requires_grad=True))
        del y
        gc.collect()
        try:
            return kept[0].saved_tensors[0].item() == 2.0
        except RuntimeError:
            return False

    differ(readable, False, True)


# PyTorch: writes in place and views


def test_expanded_memory_is_not_written() -> None:
    def write(lib: Any) -> Any:
        x = lib.zeros(2).expand(2, 2)
        x[0].add_(1)
        return x

    differ(write, RuntimeError, [[1.0, 1.0], [1.0, 1.0]])


def test_a_view_from_before_requires_grad_stays_a_constant() -> None:
    def requires(lib: Any) -> bool:
        base = lib.zeros(3)
        view = base[:2]
        base.requires_grad_()
        return view.requires_grad

    differ(requires, False, True)


def test_a_view_made_under_no_grad_is_a_constant() -> None:
    def requires(lib: Any) -> bool:
        base = lib.zeros(3, requires_grad=True)
        with lib.no_grad():
            return base[:2].requires_grad

    differ(requires, False, True)


def test_a_leaf_keeps_its_shape() -> None:
    def transposed(lib: Any) -> tuple[int, ...]:
        leaf = lib.zeros(2, 3, requires_grad=True)
        with lib.no_grad():
            leaf.t_()
        return tuple(leaf.shape)

    differ(transposed, RuntimeError, (3, 2))


def test_a_number_over_a_tensor_keeps_the_tensor() -> None:
    def overwritten(lib: Any) -> Any:
        x = lib.tensor([2.0], requires_grad=True)
        d = x * 1
        y = 2 / d
        d.add_(1)
        y.backward()
        return x.grad

    differ(overwritten, RuntimeError, [-0.5])


def test_polar_keeps_the_angle() -> None:
    def overwritten(lib: Any) -> Any:
        r = lib.tensor([2.0], requires_grad=True)
        angle = lib.tensor([0.0])
        y = lib.polar(r, angle)
        angle.add_(1)
        y.real.sum().backward()
        return r.grad

    differ(overwritten, RuntimeError, [1.0])


@pytest.mark.parametrize(("write", "here"), [("copy_", [0, 0, 1, 2]), ("add_", [0, 1, 3, 5])])
def test_operands_may_overlap_what_is_written(write: str, here: list[float]) -> None:
    def shifted(lib: Any) -> Any:
        x = lib.arange(4.0)
        getattr(x[1:], write)(x[:-1])  # read before anything is written
        return x

    differ(shifted, here, RuntimeError)


def test_a_tensor_may_be_multiplied_by_itself_in_place() -> None:
    def squared(lib: Any) -> Any:
        x = lib.tensor([1.0, 2.0], requires_grad=True)
        y = x * 1
        y.mul_(y)
        y.sum().backward()
        return x.grad

    differ(squared, [2.0, 4.0], RuntimeError)


def test_a_view_of_a_constant_that_joined_the_graph_is_written() -> None:
    def written(lib: Any) -> Any:
        x, w = lib.tensor([1.0, 2.0]), lib.tensor([3.0, 4.0], requires_grad=True)
        view = x[:1]
        x.mul_(w)
        view.add_(1)
        x.sum().backward()
        return w.grad

    differ(written, [1.0, 2.0], RuntimeError)


def test_a_write_that_saved_nothing_is_run_twice() -> None:
    def twice(lib: Any) -> Any:
        x = lib.tensor([1.0, 2.0], requires_grad=True)
        y = x.clone()
        y[0].add_(1)
        y.backward(lib.ones(2))
        y.backward(lib.ones(2))
        return x.grad

    differ(twice, [2.0, 2.0], RuntimeError)


def test_a_hook_of_a_view_is_called_with_the_gradient_of_the_old_value() -> None:
    def seen(lib: Any) -> list[Any]:
        x = lib.tensor([1.0, 2.0], requires_grad=True)
        view = (x * 1)[:1]
        got: list[Any] = []
        view.register_hook(lambda grad: got.append(grad.tolist()))
        view.mul_(10)
        view.sum().backward()
        return got

    differ(seen, [[10.0]], [])


def test_the_value_that_is_overwritten_gets_no_gradient() -> None:
    def gradient(lib: Any) -> Any:
        x = lib.tensor([5.0, 6.0], requires_grad=True)
        y = lib.zeros(2)
        y[lib.tensor([0, 0])] = x
        assert y.tolist() == [6.0, 0.0]
        y.sum().backward()
        return x.grad

    differ(gradient, [0.0, 1.0], [1.0, 1.0])


def test_data_that_is_replaced_leaves_views_behind() -> None:
    def gradient(lib: Any) -> Any:
        x = lib.ones(3, requires_grad=True)
        base = x * 1
        view = base[:2]
        base.data = lib.zeros(3)
        view.mul_(2)
        assert base.tolist() == [0.0, 0.0, 0.0]
        base.sum().backward()
        return x.grad

    differ(gradient, [1.0, 1.0, 1.0], [2.0, 2.0, 1.0])


# PyTorch: modules, optimizers, compile


def test_optimizers_that_are_not_there() -> None:
    with pytest.raises(NotImplementedError, match="gradients are dense"):
        flow.optim.SparseAdam([flow.ones(1)])
    if torch is not None:
        theirs = {n for n, c in vars(torch.optim).items() if inspect.isclass(c)}
        missing = theirs - set(dir(flow.optim))
        assert missing == {"SparseAdam"}


def test_updates_are_outside_the_graph() -> None:
    def make(lib: Any) -> bool:
        lib.optim.Adam([lib.ones(1, requires_grad=True)], differentiable=True)
        return True

    differ(make, ValueError, True)


def test_foreach_and_fused_change_nothing() -> None:
    answers = []
    for options in ({}, {"foreach": True}, {"fused": True}):
        x = flow.tensor([1.0, 2.0], requires_grad=True)
        optimizer = flow.optim.Adam([x], lr=0.1, **options)
        (x * x).sum().backward()
        with flow.push_interpreter(Counting()) as counting:
            optimizer.step()
        answers.append((x.tolist(), counting.ops))
    assert answers[0] == answers[1] == answers[2]


class Counting(flow.Interpreter):
    """Writes down the ops that pass."""

    def __init__(self) -> None:
        self.ops: list[str] = []

    def apply(self, op_expr: Any, inputs: tuple[Any, ...], attrs: dict[str, Any]) -> Any:
        self.ops.append(op_expr.op_type_name)
        return self.inner.apply(op_expr, inputs, attrs)


def test_files_never_carry_code_whatever_is_asked_for() -> None:
    assert inspect.signature(flow.load).parameters["weights_only"].default is None
    if torch is not None:
        import io

        file = io.BytesIO()
        torch.save(torch.nn.Linear(1, 1), file)
        file.seek(0)
        with pytest.raises(flow.errors.SerializationError):
            flow.load(file, weights_only=False)


def test_processes_are_started_by_mpiexec() -> None:
    # `multiprocessing.spawn` starts processes here, too; they are not in one world.
    assert callable(flow.multiprocessing.spawn)
    with pytest.raises(NotImplementedError, match="mpiexec"):
        flow.distributed.TCPStore("localhost", 1)


def test_another_shape_is_another_recording() -> None:
    double = flow.compile(lambda x: x * 2)
    for size in (2, 3, 4):
        double(flow.ones(size))
    assert double.explain().captures == 3
    with pytest.raises(TypeError):
        flow.compile(lambda x: x, dynamic=True)


def test_a_value_that_python_reads_makes_the_whole_call_eager() -> None:
    @flow.compile
    def scaled(x: Any) -> Any:
        y = x * 2
        return y / y.max().item()

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert scaled(flow.tensor([1.0, 2.0])).tolist() == [0.5, 1.0]
    assert (scaled.explain().captures, scaled.explain().fallbacks) == (0, 1)


# OneFlow


def test_nodes_run_by_their_numbers() -> None:
    """OneFlow's queue is first come, first served: it would run exp, whose gradient comes first."""
    x = flow.tensor(2.0, requires_grad=True)
    early, late = x.exp(), x.sin()
    with flow.autograd.trace(x=x) as trace:
        (early + late).backward()
    ran = [trace.name(step.node) for step in trace.steps[1:]]
    assert ran == ["add_backward#3", "sin_backward#2", "exp_backward#1", "x"]


def test_a_graph_is_recorded_again_for_another_shape() -> None:
    class Doubling(nn.Graph):
        def build(self, x: Any) -> Any:
            return x * 2

    graph = Doubling()
    assert graph(flow.ones(2)).tolist() == [2.0, 2.0]
    assert graph(flow.ones(3)).tolist() == [2.0, 2.0, 2.0]


def test_ops_are_found_from_python() -> None:
    """OneFlow's kernels and interpreters are C++; here a user pushes one."""
    with flow.push_interpreter(Counting()) as counting:
        x = flow.ones(2, requires_grad=True)
        (x * 2).relu().sum().backward()
    assert {"mul", "relu", "relu_grad"} <= set(counting.ops)


# Paddle


def test_what_requires_a_gradient_says_so() -> None:
    x = flow.tensor([1.0])
    assert x.requires_grad is False
    assert not hasattr(x, "stop_gradient")
    assert nn.Linear(1, 1).weight.requires_grad


def test_capture_needs_a_guard() -> None:
    assert not hasattr(flow, "enable_static")
    with pytest.raises(flow.errors.CaptureError, match="program_guard"):
        flow.static.data("x", [1])
    with flow.static.program_guard(flow.static.Program()):
        assert flow.static.data("x", [1]).name == "x"
    assert flow.ones(1).item() == 1.0


@pytest.mark.parametrize("size", [None, -1])
def test_a_program_has_fixed_shapes(size: Any) -> None:
    with (
        flow.static.program_guard(flow.static.Program()),
        pytest.raises(ValueError, match=r"flow\.compile"),
    ):
        flow.static.data("x", [size, 16])


def test_arguments_have_the_names_of_pytorch() -> None:
    weight = nn.Linear(3, 2).weight  # Paddle's has the shape (3, 2)
    assert weight.shape == (2, 3)
    with pytest.raises(TypeError):
        flow.optim.SGD([weight], learning_rate=0.1)
    assert not hasattr(flow.optim.SGD([weight], lr=0.1), "clear_grad")
    x = flow.ones(2, 3)
    assert flow.sum(x, dim=1).tolist() == flow.sum(x, axis=1).tolist() == [3.0, 3.0]


def test_temporaries_are_not_in_the_scope() -> None:
    main, scope = flow.static.Program(), flow.static.Scope()
    with flow.static.program_guard(main):
        h = flow.static.data("x", [2]) * 2
        y = h + 1
    executor = flow.static.Executor()
    (out,) = executor.run(main, {"x": np.ones(2, np.float32)}, [y], scope=scope)
    assert out.tolist() == [3.0, 3.0]
    assert scope.find_var(h.name) is None


def test_loops_are_differentiated_to_any_order() -> None:
    """JAX refuses a while_loop in reverse mode."""
    x = flow.tensor(2.0, requires_grad=True)
    state = (flow.tensor(0), flow.tensor(1.0))
    _, y = flow.static.nn.while_loop(lambda i, p: i < 3, lambda i, p: (i + 1, p * x), state)
    derivatives = [y]
    for _ in range(3):
        (slope,) = flow.autograd.grad(derivatives[-1], x, create_graph=True)
        derivatives.append(slope)
    assert [d.item() for d in derivatives] == [8.0, 12.0, 12.0, 6.0]
    if jax is not None:
        with pytest.raises(ValueError, match="Reverse-mode"):
            jax.grad(
                lambda x: jax.lax.while_loop(
                    lambda s: s[0] < 3, lambda s: (s[0] + 1, s[1] * x), (0, 1.0)
                )[1]
            )(2.0)


# JAX and HIPS autograd


def test_gradients_of_tensors_and_of_functions() -> None:
    x = flow.tensor(3.0, requires_grad=True)
    (x * x).backward()
    assert x.grad.item() == flow.func.grad(lambda x: x * x)(flow.tensor(3.0)).item() == 6.0
    with pytest.raises(TypeError):  # HIPS autograd and JAX take Python numbers
        flow.func.grad(lambda x: x * x)(3.0)
    for library in (jax, hips):
        assert library is None or library.grad(lambda x: x * x)(3.0) == 6.0


def test_the_gradient_of_a_complex_number_is_conjugated() -> None:
    z = flow.tensor(1 + 2j, requires_grad=True)
    (z * z).real.backward()
    assert z.grad.item() == 2 - 4j
    if torch is not None:
        theirs = torch.tensor(1 + 2j, requires_grad=True)
        (theirs * theirs).real.backward()
        assert theirs.grad.item() == 2 - 4j
    for library in (jax, hips):
        if library is not None:
            numpy = importlib.import_module(f"{library.__name__}.numpy")
            assert complex(library.grad(lambda z: numpy.real(z * z))(1 + 2j)) == 2 + 4j


def test_arrays_are_written_in_place() -> None:
    x = flow.tensor([1.0, 2.0], requires_grad=True)
    y = x * 1
    y[0] = 5.0
    (y * y).sum().backward()
    assert x.grad.tolist() == [0.0, 4.0]
    if jax is not None:
        with pytest.raises(TypeError, match="immutable"):
            jax.numpy.ones(2)[0] = 5.0
    if hips is not None:

        def write(x: Any) -> Any:
            y = x * 1
            y[0] = 5.0
            return y.sum()

        with pytest.raises(TypeError):
            hips.grad(write)(np.ones(2))


def test_random_numbers_come_from_a_generator_that_is_there() -> None:
    flow.manual_seed(0)
    first, second = flow.rand(2).tolist(), flow.rand(2).tolist()
    flow.manual_seed(0)
    assert first != second
    assert flow.rand(2).tolist() == first
    if jax is not None:
        key = jax.random.key(0)
        assert jax.random.uniform(key) == jax.random.uniform(key)


def test_wide_dtypes_need_no_switch() -> None:
    assert flow.tensor([1.0]).dtype == flow.float32
    assert flow.tensor(np.array([1.0])).dtype == flow.float64
    assert flow.tensor([1]).dtype == flow.int64
    if jax is not None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            assert jax.numpy.array([1.0], dtype=np.float64).dtype == np.float32
        assert jax.numpy.array([1]).dtype == np.int32


def test_an_index_outside_raises() -> None:
    with pytest.raises(IndexError):
        flow.tensor([1, 2, 3])[5]
    assert jax is None or jax.numpy.array([1, 2, 3])[5] == 3


def test_a_compiled_function_looks_at_what_it_reads() -> None:
    options = {"scale": 2.0}

    def scaled(x: Any) -> Any:
        return x * options["scale"]

    ours = flow.compile(scaled)
    theirs = None if jax is None else jax.jit(scaled)
    assert ours(flow.ones(1)).item() == 2.0
    assert theirs is None or theirs(np.ones(1)) == 2.0
    options["scale"] = 3.0
    assert ours(flow.ones(1)).item() == 3.0
    assert theirs is None or theirs(np.ones(1)) == 2.0


def test_a_decision_by_a_value_runs_eagerly() -> None:
    def absolute(x: Any) -> Any:
        return x if x.sum() > 0 else -x

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert flow.compile(absolute)(-flow.ones(2)).tolist() == [1.0, 1.0]
    if jax is not None:
        with pytest.raises(jax.errors.TracerBoolConversionError):
            jax.jit(absolute)(np.ones(2))


@pytest.mark.parametrize(
    ("name", "at", "here", "there"),
    [("abs", 0.0, 0.0, 1.0), ("clip", 1.0, 1.0, 0.5)],
)
def test_kinks_have_pytorchs_subgradients(name: str, at: float, here: float, there: float) -> None:
    bounds = (0.0, 1.0) if name == "clip" else ()
    x = flow.tensor(at, requires_grad=True)
    getattr(flow, name)(x, *bounds).backward()
    assert x.grad.item() == here
    if jax is not None:
        assert jax.grad(lambda x: getattr(jax.numpy, name)(x, *bounds))(at) == there


def test_the_norm_of_nothing_has_a_gradient() -> None:
    x = flow.zeros(2, requires_grad=True)
    flow.linalg.norm(x).backward()
    assert x.grad.tolist() == [0.0, 0.0]
    for library in (jax, hips):
        if library is not None:
            norm = importlib.import_module(f"{library.__name__}.numpy").linalg.norm
            with np.errstate(all="ignore"), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                assert np.isnan(library.grad(norm)(np.zeros(2))).all()


def test_vmap_runs_once_and_refuses_to_read_a_value() -> None:
    calls: list[tuple[int, ...]] = []

    def square(x: Any) -> Any:
        calls.append(x.shape)
        return x * x

    assert flow.vmap(square)(flow.arange(3.0)).tolist() == [0.0, 1.0, 4.0]
    assert calls == [()]
    with pytest.raises(flow.errors.TransformError, match="where"):
        flow.vmap(lambda x: x if x > 1 else -x)(flow.arange(3.0))
    if jax is not None:
        picked = jax.vmap(lambda x: jax.lax.cond(x > 1, lambda: x, lambda: -x))
        assert picked(jax.numpy.arange(3.0)).tolist() == [0.0, -1.0, 2.0]


def test_numpys_own_functions_record() -> None:
    x = flow.tensor([0.0, 1.0], requires_grad=True)
    np.sum(np.sin(x) * 2).backward()
    assert x.grad.tolist() == (2 * np.cos(np.float32([0.0, 1.0]))).tolist()
    if hips is not None:  # which has a namespace of its own for that
        sin = importlib.import_module("autograd.numpy").sin
        assert sin is not np.sin


# Chainer


def test_a_gradient_is_a_tensor_with_a_graph_where_asked_for() -> None:
    x = flow.tensor(2.0, requires_grad=True)
    (slope,) = flow.autograd.grad(x**3, x, create_graph=True)
    slope.backward()
    assert type(x.grad) is flow.Tensor
    assert not hasattr(x, "grad_var")
    assert x.grad.item() == 12.0


def test_modes_belong_to_modules_and_threads() -> None:
    """Chainer's `using_config("train", False)` is `eval()`, its `no_backprop_mode` is `no_grad`."""
    net = nn.Dropout(0.5)
    x = flow.ones(100, requires_grad=True)
    assert net(x).tolist() != x.tolist()
    net.eval()
    assert net(x).tolist() == x.tolist()
    with flow.no_grad():
        assert not (x * 2).requires_grad
    assert not hasattr(flow, "config")


def test_an_optimizer_takes_parameters() -> None:
    """Chainer's takes the model by `setup`, and `update` calls the loss."""
    net = nn.Linear(1, 1)
    optimizer = flow.optim.SGD(net.parameters(), lr=0.1)
    assert not hasattr(optimizer, "setup")
    before = net.weight.item()
    net(flow.ones(1, 1)).sum().backward()
    optimizer.step()
    assert net.weight.item() == pytest.approx(before - 0.1)


def test_a_layer_that_learns_its_size_says_so() -> None:
    """Chainer's `Linear(None, 10)` is `LazyLinear(10)`."""
    with pytest.raises(TypeError):
        nn.Linear(None, 10)
    layer = nn.LazyLinear(10)
    layer(flow.ones(2, 7))
    assert layer.weight.shape == (10, 7)


def test_a_part_of_a_graph_is_cut_by_detach() -> None:
    """Chainer's `unchain_backward` changes the graph; `detach` makes a tensor without one."""
    x = flow.tensor(2.0, requires_grad=True)
    y = x * 3
    cut = y.detach()
    assert not hasattr(y, "unchain_backward")
    (cut * x + y).backward()
    assert x.grad.item() == 9.0
