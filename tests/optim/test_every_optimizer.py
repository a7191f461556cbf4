"""Each optimizer of PyTorch: every argument, in pairs where they interact, states and errors."""

from __future__ import annotations

import copy
import inspect
import itertools

import numpy as np
import pytest

import oneflow_lite as flow
from tests.optim.walk import (
    INERT,
    Run,
    arguments,
    converted,
    error,
    optimizers,
    option_sets,
    values,
    wrong_kinds,
)

torch = pytest.importorskip("torch")
NAMES = [name for name in optimizers(torch) if name != "LBFGS"]
RICH = {
    "SGD": {"momentum": 0.9, "dampening": 0.2},
    "Adam": {"amsgrad": True},
    "RMSprop": {"momentum": 0.9, "centered": True},
    "ASGD": {"t0": 40.0},
}


def tolerance(name: str) -> float:
    # Muon rounds to bfloat16 on the way: a last bit may fall differently, and counts by lr.
    return 1e-2 if name == "Muon" else 1e-10


@pytest.mark.parametrize("name", [*NAMES, "LBFGS", "Optimizer"])
def test_the_signature_is_pytorchs(name):
    ours, theirs = (arguments(getattr(lib.optim, name)) for lib in (flow, torch))
    assert list(ours) == list(theirs)
    for argument, wanted in theirs.items():
        assert ours[argument].kind is wanted.kind
        if argument != "params":  # `minimize` needs none
            assert ours[argument].default == wanted.default, argument


def test_every_argument_is_walked():
    for name in [*NAMES, "LBFGS"]:
        for argument, parameter in arguments(getattr(torch.optim, name)).items():
            if argument not in ("params", "differentiable"):
                others = [x for x in values(name, argument) if x != parameter.default]
                assert others, (name, argument)


@pytest.mark.parametrize("name", NAMES)
def test_a_hundred_steps_agree_for_every_argument(name):
    for options in [{}, *option_sets(torch, name, 1)]:
        ours, theirs = (Run(lib, name, "float64", **options).steps(100) for lib in (flow, torch))
        assert error(ours, theirs) < tolerance(name), options
        for a, start in zip(ours.values(), ours.start, strict=True):
            assert not np.array_equal(a, start)


@pytest.mark.parametrize("name", NAMES)
def test_what_picks_a_kernel_in_pytorch_changes_nothing(name):
    expected = Run(flow, name, "float64").steps(3)
    for argument in set(INERT) & set(arguments(getattr(torch.optim, name))):
        for value in INERT[argument]:
            run = Run(flow, name, "float64", **{argument: value}).steps(3)
            assert error(run, expected) == 0
            assert run.optimizer.param_groups[0][argument] == value


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_arguments_agree_in_pairs(name):
    for options in option_sets(torch, name, 2):
        ours, theirs = (Run(lib, name, "float64", **options).steps(10) for lib in (flow, torch))
        assert error(ours, theirs) < tolerance(name), options


@pytest.mark.parametrize("name", NAMES)
def test_float32_is_as_near_to_the_truth_as_pytorchs(name):
    ours, theirs, truth = (
        Run(lib, name, dtype, weight_decay=0.1).steps(100)
        if name != "Rprop"
        else Run(lib, name, dtype).steps(100)
        for lib, dtype in ((flow, "float32"), (torch, "float32"), (torch, "float64"))
    )
    assert all(x.dtype == np.float32 for x in ours.values())
    assert error(ours, truth) < error(theirs, truth) + (1e-3 if name == "Muon" else 1e-6)


@pytest.mark.parametrize("name", [name for name in NAMES if name not in ("Adafactor", "Muon")])
def test_complex_parameters_agree(name):
    options = {} if name == "Rprop" else {"weight_decay": 0.1}
    for more in ({}, RICH.get(name, {}), {"maximize": True}):
        ours, theirs = (
            Run(lib, name, "complex128", **options, **more).steps(50) for lib in (flow, torch)
        )
        assert error(ours, theirs) < 1e-10


@pytest.mark.parametrize("name", ["Adafactor", "Muon"])
def test_complex_parameters_are_refused(name):
    with pytest.raises(RuntimeError, match=f"{name}.*real parameters"):
        getattr(flow.optim, name)([flow.ones(2, 2, dtype=flow.complex64, requires_grad=True)])


@pytest.mark.parametrize("name", NAMES)
def test_state_dicts_have_pytorchs_layout_and_go_on(name):
    options = RICH.get(name, {})
    ours, theirs = (Run(lib, name, "float64", **options).steps(50) for lib in (flow, torch))
    mine, wanted = ours.optimizer.state_dict(), theirs.optimizer.state_dict()
    assert list(mine) == list(wanted)
    for a, b in zip(mine["param_groups"], wanted["param_groups"], strict=True):
        assert {**a, "foreach": 0} == {**b, "foreach": 0}
        assert list(a)[-1] == list(b)[-1] == "params"
    assert list(mine["state"]) == list(wanted["state"])
    for number, kept in wanted["state"].items():
        found = dict(mine["state"][number])
        if name == "SGD":
            found.pop("step")  # counted for dampening, which PyTorch reads off the buffer
        assert list(found) == list(kept)
        assert [tuple(x.shape) for x in found.values()] == [tuple(x.shape) for x in kept.values()]
    # A copy goes on from our own state to the bit, and from PyTorch's as it does itself.
    again, other = Run(flow, name, "float64", lr=9.0), Run(flow, name, "float64", lr=9.0)
    for run, state, source in (
        (again, copy.deepcopy(mine), ours),
        (other, converted(wanted), theirs),
    ):
        with flow.no_grad():
            for param, value in zip(run.params, source.values(), strict=True):
                param.copy_(flow.tensor(value))
        run.rng = copy.deepcopy(source.rng)
        run.optimizer.load_state_dict(state)
        run.steps(50)
    assert error(again, ours.steps(50)) == 0
    assert error(other, theirs.steps(50)) < tolerance(name)


@pytest.mark.parametrize("name", NAMES)
def test_a_rate_may_be_a_tensor_that_changes(name):
    lr = flow.tensor([0.1], dtype=flow.float64)
    x = flow.ones(2, 2, requires_grad=True)
    y = flow.ones(2, 2, requires_grad=True)
    for param, rate in ((x, lr), (y, 0.1)):
        optimizer = getattr(flow.optim, name)([param], lr=rate)
        for step in range(3):
            param.grad = flow.full((2, 2), 0.5)
            optimizer.step()
            if rate is lr:
                lr.fill_(0.1 / (step + 2))
            else:
                optimizer.param_groups[0]["lr"] = 0.1 / (step + 2)
    np.testing.assert_array_equal(x.detach().numpy(), y.detach().numpy())
    with pytest.raises(ValueError, match="lr"):
        getattr(flow.optim, name)([x], lr=flow.ones(2))


# --- Errors -------------------------------------------------------------------------------------

BAD = {
    "lr": [-0.1],
    "betas": [(1.0, 0.9), (0.9, -0.1)],
    "eps": [-1.0],
    "weight_decay": [-0.1],
    "momentum": [-0.1],
    "momentum_decay": [-0.1],
    "lr_decay": [-0.1],
    "initial_accumulator_value": [-0.1],
    "rho": [1.5, -0.1],
    "alpha": [-0.1],
    "etas": [(1.2, 0.5), (0.5, 0.9)],
    "beta2_decay": [0.5],
    "d": [0.5],
    "adjust_lr_fn": ["fastest"],
    "nesterov": [True],
    "line_search_fn": ["weak_wolfe"],
}
BAD_EPS = {"Adafactor": [(-1.0, 1e-3), (None, -1.0)]}


@pytest.mark.parametrize("name", [*NAMES, "LBFGS"])
def test_bad_arguments_raise_what_pytorch_raises(name):
    for argument in arguments(getattr(torch.optim, name)):
        for value in BAD_EPS.get(name, BAD["eps"]) if argument == "eps" else BAD.get(argument, ()):
            x = torch.ones(2, 2, requires_grad=True)
            try:
                optimizer = getattr(torch.optim, name)([x], **{argument: value})
                if name == "LBFGS" and argument == "line_search_fn":
                    x.grad = torch.ones(2, 2)
                    optimizer.step(lambda x=x: x.sum())
            except Exception as wanted:
                with pytest.raises(type(wanted), match=f"{name}.*{argument}"):
                    y = flow.ones(2, 2, requires_grad=True)
                    getattr(flow.optim, name)([y], **{argument: value})


def refused(lib, name, argument, value):
    """Return what a constructor or the first steps raise."""
    x = lib.ones(2, 2, requires_grad=True)

    def closure():
        optimizer.zero_grad()
        loss = (x * x).sum()
        loss.backward()
        return loss

    try:
        optimizer = getattr(lib.optim, name)([x], **{argument: value})
        for _ in range(2):
            optimizer.step(closure)
    except Exception as error:
        return error
    return None


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", [*NAMES, "LBFGS"])
def test_every_option_is_checked(name):
    names = [x for x in arguments(getattr(torch.optim, name)) if x != "params"]
    ours, theirs = ([(x, y) for x in names for y in wrong_kinds(lib)] for lib in (flow, torch))
    for (argument, value), (_, other) in zip(ours, theirs, strict=True):
        error = refused(flow, name, argument, value)
        if argument in ("differentiable", "capturable") and (value is None or type(value) is int):
            assert (error is None) == (value in (None, 0))  # as good as False
        elif refused(torch, name, argument, other) is not None:
            assert error is not None, (argument, value)
        if error is not None:
            assert isinstance(error, flow.errors.FlowError), (argument, value, error)
            assert str(error).startswith(f"{name}(): argument '{argument}': expected"), error


@pytest.mark.parametrize(
    ("name", "options", "expected"),
    [
        ("Adam", {"amsgrad": "False"}, "True or False"),
        ("SGD", {"dampening": "none"}, "a number"),  # unused without momentum
        ("SGD", {"lr": float("inf")}, "finite"),
        ("ASGD", {"t0": (1.0,)}, "a number"),
        ("ASGD", {"alpha": float("inf")}, "finite"),
        ("Rprop", {"step_sizes": (1.0, 0.5)}, "the least and the largest"),
        ("Rprop", {"etas": (0.5,)}, "two numbers"),
        ("RMSprop", {"alpha": 1.5}, "from 0 to 1"),
        ("Muon", {"ns_steps": 5.0}, "whole number"),
        ("LBFGS", {"history_size": 0}, "whole number"),
    ],
)
def test_options_without_sense_are_refused(name, options, expected):
    ((argument, value),) = options.items()
    x = flow.ones(2, 2, requires_grad=True)
    default = arguments(getattr(flow.optim, name))[argument].default
    with pytest.raises((ValueError, TypeError), match=expected) as caught:
        getattr(flow.optim, name)([x], **options)
    assert repr(value) in str(caught.value)
    assert str(caught.value).endswith(f"the default is {default!r}")
    optimizer = getattr(flow.optim, name)([x])
    with pytest.raises((ValueError, TypeError), match=expected):
        optimizer.param_groups.clear()
        optimizer.add_param_group({"params": [x], **options})


def test_tensors_and_numbers_of_numpy_are_numbers():
    x = flow.ones(2, 2, requires_grad=True)
    for lr in (np.float32(0.1), np.array(0.1), flow.tensor(0.1), flow.tensor([0.1]), 1):
        flow.optim.Adam([x], lr=lr, betas=[np.float64(0.9), 0.99])
    flow.optim.Rprop([x], step_sizes=(0, float("inf")))
    flow.optim.Adafactor([x], d=float("inf"))
    flow.optim.SGD([x], maximize=np.True_, nesterov=0)


@pytest.mark.parametrize("name", NAMES)
def test_options_that_do_not_go_together(name):
    x = flow.ones(2, 2, requires_grad=True)
    accepts = inspect.signature(getattr(flow.optim, name)).parameters
    if "fused" in accepts:
        with pytest.raises(RuntimeError, match="fused"):
            getattr(flow.optim, name)([x], fused=True, foreach=True)
    if "differentiable" in accepts:
        with pytest.raises(ValueError, match="differentiable"):
            getattr(flow.optim, name)([x], differentiable=True)
    with pytest.raises(TypeError, match=f"{name}.*lr"):
        getattr(flow.optim, name)([x], lr="fast")


def test_muon_takes_matrices_only():
    for lib in (flow, torch):
        with pytest.raises(ValueError):
            lib.optim.Muon([lib.ones(3, requires_grad=True)])


# --- LBFGS --------------------------------------------------------------------------------------


def fit(lib, steps, dtype="float64", state=None, **options):
    rng = np.random.default_rng(0)
    x, y = (lib.tensor(rng.standard_normal(s).astype(dtype)) for s in (6, (2, 3)))
    params = [x.requires_grad_(), y.requires_grad_()]
    optimizer = lib.optim.LBFGS(params, **options)
    calls = []

    def closure():
        calls.append(1)
        optimizer.zero_grad()
        valley, bowl = x[1:] - x[:-1] * x[:-1], y - 1
        # Of complex parameters the loss takes the squares of the sizes.
        loss = sum((k * abs(z) ** 2).sum() for k, z in ((10, valley), (1, 1 - x), (1, bowl)))
        loss.backward()
        return loss

    losses = [optimizer.step(closure).item() for _ in range(steps)]
    return losses, len(calls), optimizer, params


@pytest.mark.parametrize("options", [{}, *option_sets(torch, "LBFGS", 1)], ids=str)
@pytest.mark.parametrize("search", [{}, {"line_search_fn": "strong_wolfe"}], ids=["fixed", "wolfe"])
def test_lbfgs_agrees(options, search):
    ours, theirs = (fit(lib, 3, **(search | options)) for lib in (flow, torch))
    assert ours[1] == theirs[1]
    np.testing.assert_allclose(ours[0], theirs[0], rtol=1e-6, atol=1e-12)
    for a, b in zip(ours[3], theirs[3], strict=True):
        np.testing.assert_allclose(a.detach().numpy(), b.detach().numpy(), rtol=1e-6, atol=1e-9)
    mine, wanted = (run[2].state_dict()["state"][0] for run in (ours, theirs))
    assert set(mine) == set(wanted)
    assert (mine["func_evals"], mine["n_iter"]) == (wanted["func_evals"], wanted["n_iter"])


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("search", [None, "strong_wolfe"])
def test_lbfgs_ends_where_rounding_is_all_that_is_left(search, dtype):
    def losses(lib, seed):
        rng = np.random.default_rng(seed)
        x, y, w = (lib.tensor(rng.standard_normal(s).astype(dtype)) for s in ((10, 3), 10, 3))
        options = {"tolerance_change": 0, "line_search_fn": search}
        optimizer = lib.optim.LBFGS([w.requires_grad_()], **options)

        def closure():
            optimizer.zero_grad()
            loss = ((x @ w - y) ** 2).mean()
            loss.backward()
            return loss

        return [optimizer.step(closure).item() for _ in range(4)]

    tolerance = {"float32": 1e-6, "float64": 1e-14}[dtype]
    for seed in range(23):
        ours, theirs = (losses(lib, seed) for lib in (flow, torch))
        np.testing.assert_allclose(ours, theirs, rtol=tolerance, err_msg=str(seed))


def test_lbfgs_of_complex_parameters():
    ours, theirs = (fit(lib, 2, dtype="complex128") for lib in (flow, torch))
    np.testing.assert_allclose(ours[0], theirs[0], rtol=1e-6)


def test_lbfgs_goes_on_from_pytorchs_state():
    options = {"max_iter": 6, "line_search_fn": "strong_wolfe"}
    theirs = fit(torch, 2, **options)
    _, _, optimizer, params = fit(flow, 0, **options)
    with flow.no_grad():
        for a, b in zip(params, theirs[3], strict=True):
            a.copy_(flow.tensor(b.detach().numpy()))
    optimizer.load_state_dict(converted(theirs[2].state_dict()))
    wanted = fit(torch, 3, **options)[0][-1]
    x, y = params

    def closure():
        optimizer.zero_grad()
        valley, bowl = x[1:] - x[:-1] * x[:-1], y - 1
        loss = sum((k * abs(z) ** 2).sum() for k, z in ((10, valley), (1, 1 - x), (1, bowl)))
        loss.backward()
        return loss

    assert optimizer.step(closure).item() == pytest.approx(wanted, rel=1e-9)
    optimizer.step(closure)
    assert closure().item() == pytest.approx(fit(torch, 5, **options)[0][-1], rel=1e-3)


OVERFLOWING = {
    "exp": lambda x: (x * x).exp().sum(),
    "power": lambda x: (x**30).sum(),
    "pole": lambda x: (1 / x**8).sum(),
    "log": lambda x: -x.log().sum() + x.sum(),  # NaN beyond 0
    "wide": lambda x: ((x - 3) ** 2 * 1e20).sum(),  # the slope overflows
    "line": lambda x: x.sum(),  # the cubic through two points is a line, too
    "root": lambda x: (x * x).sum().sqrt(),
}


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("lr", [1, 1e10])
@pytest.mark.parametrize("name", OVERFLOWING)
def test_a_line_search_comes_back_from_where_values_overflow(name, lr):
    x = flow.tensor([1.0, 2.0], requires_grad=True)
    optimizer = flow.optim.LBFGS([x], lr=lr, line_search_fn="strong_wolfe")

    def closure():
        optimizer.zero_grad()
        loss = OVERFLOWING[name](x)
        loss.backward()
        return loss

    losses = [optimizer.step(closure).item() for _ in range(4)]
    assert np.isfinite(x.detach().numpy()).all()
    assert losses == sorted(losses, reverse=True)
    if lr == 1:
        assert losses[-1] < losses[0]
    if (name, lr) == ("wide", 1):
        np.testing.assert_allclose(x.detach().numpy(), [3, 3])


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize(
    ("loss", "start", "lr"),
    [
        (lambda x: (x * x).exp().sum() * float("nan"), 1.0, 1),
        (lambda x: (x * 1e30).sum() ** 2 * 0, 1.0, 1),  # inf * 0
        (lambda x: (1 / x).sum(), 0.0, 1),
        (lambda x: (x * x).exp().sum(), 1.0, 0.0),
    ],
)
def test_a_line_search_stays_where_there_is_no_direction(loss, start, lr):
    x = flow.full((2,), start, requires_grad=True)
    optimizer = flow.optim.LBFGS([x], lr=lr, line_search_fn="strong_wolfe")

    def closure():
        optimizer.zero_grad()
        value = loss(x)
        value.backward()
        return value

    before = loss(x).item()
    assert optimizer.step(closure).item() == pytest.approx(before, nan_ok=True)
    assert x.tolist() == [start, start]


def test_a_line_search_that_fails_leaves_the_parameters_where_they_were():
    x = flow.ones(2, requires_grad=True)
    optimizer = flow.optim.LBFGS([x], line_search_fn="strong_wolfe")
    calls = itertools.count()

    def closure():
        optimizer.zero_grad()
        loss = (x * x).sum()
        loss.backward()
        if next(calls):
            raise KeyError("in the second call")
        return loss

    with pytest.raises(KeyError):
        optimizer.step(closure)
    assert x.tolist() == [1.0, 1.0]


def test_lbfgs_is_refused_where_it_cannot_be():
    x, y = (flow.ones(2, requires_grad=True) for _ in range(2))
    with pytest.raises(ValueError, match="group"):
        flow.optim.LBFGS([{"params": [x]}, {"params": [y]}])
    with pytest.raises(TypeError):
        flow.optim.LBFGS([x]).step()


# --- Captured -----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
def test_programs_and_compiled_steps_do_the_same(name):
    rng = np.random.default_rng(0)
    start, batches = rng.standard_normal((4, 3)), rng.standard_normal((6, 5, 4))
    results = []
    for compiled in (False, True):
        w = flow.tensor(start, requires_grad=True)
        optimizer = getattr(flow.optim, name)([w], lr=0.01)
        scheduler = flow.optim.lr_scheduler.ExponentialLR(optimizer, 0.9)

        def step(x, w=w, optimizer=optimizer):
            optimizer.zero_grad()
            (x @ w).square().mean().backward()
            optimizer.step()

        run = flow.compile(step, fullgraph=True) if compiled else step
        for batch in batches:
            run(flow.tensor(batch))
            scheduler.step()
        if compiled:
            assert run.explain().hits >= 3
        results.append(w.detach().numpy())
    main, startup = flow.static.Program(), flow.static.Program()
    with flow.static.program_guard(main, startup):
        x = flow.static.data("x", [5, 4], "float64")
        w = flow.nn.Parameter(flow.tensor(start))
        optimizer = getattr(flow.optim, name)(lr=0.01)
        ops, _ = optimizer.minimize((x @ w).square().mean())
    scheduler = flow.optim.lr_scheduler.ExponentialLR(optimizer, 0.9)
    assert [op.type for op in ops] == [optimizer._op]
    executor, scope = flow.static.Executor(), flow.static.Scope()
    executor.run(startup, scope=scope)
    for batch in batches:
        executor.run(main, feed={"x": batch}, scope=scope)
        scheduler.step()
    held = [scope.find_var(name) for name in ops[0].inputs[:1]]
    for value in itertools.chain(results[1:], held):
        np.testing.assert_allclose(np.asarray(value), results[0], rtol=1e-12)


# --- A step or a load is done whole, or not at all ------------------------------------------------


def _view(x: object) -> object:
    """All of a value: bytes, shapes and dtypes of tensors, and the rest as text."""
    if isinstance(x, flow.Tensor):
        known = x.dtype, x.shape, x._version
        return known if x.is_meta else (*known, x.detach().numpy().tobytes())
    if isinstance(x, dict):
        return {id(k) if isinstance(k, flow.Tensor) else k: _view(v) for k, v in x.items()}
    return [_view(v) for v in x] if isinstance(x, (list, tuple)) else repr(x)


def _mistakes(optimizer, param, group):
    """Yield functions that spoil something that a step reads."""
    odd = [None, "text", 3.0, 10**400, 1j, (), flow.ones(7), flow.tensor(1j), np.ones(2)]
    odd += [flow.ones(3, 2, device="meta"), flow.ones(3, 2, dtype=flow.int64)]
    for key in [*optimizer.state.get(param, {})]:
        for value in odd:
            yield lambda k=key, v=value: optimizer.state[param].__setitem__(k, v)
    for key in [key for key in group if key != "params"]:
        yield lambda k=key: group.pop(k)
        for value in [*odd, flow.ones(2), (0.9,), ("a", "b"), (1.0, 2.0), [], object()]:
            yield lambda k=key, v=value: group.__setitem__(k, v)
    for value in (flow.ones(4), flow.ones(1, 2).expand(3, 2), flow.ones(3, 2, device="meta")):
        yield lambda v=value: setattr(param, "data", v)
    yield lambda: setattr(param, "data", flow.ones(3, 2, dtype=flow.complex64))
    yield lambda: setattr(param.grad, "data", flow.ones(2, 3))
    yield lambda: setattr(param.grad, "data", flow.ones(3, 2, dtype=flow.complex64))
    for value in odd:
        yield lambda v=value: optimizer.state.__setitem__(param, v)
        yield lambda v=value: group["params"].__setitem__(1, v)
    yield lambda: group.pop("params")


@pytest.mark.slow(but=2)
@pytest.mark.filterwarnings("ignore:invalid value")  # some odd values are legal
@pytest.mark.parametrize(
    ("name", "steps"),
    [(name, n) for name in ["Adam", *(x for x in NAMES if x != "Adam")] for n in (0, 1)],
)
def test_no_mistake_is_half_a_step(name, steps):
    options = {"SGD": {"momentum": 0.9}, "Adam": {"amsgrad": True}}.get(name, {})

    def made():
        params = [flow.ones(3, 2, requires_grad=True) for _ in range(4)]
        groups = [{"params": params[:2]}, {"params": params[2:]}]
        optimizer = getattr(flow.optim, name)(groups, lr=0.1, **options)
        for param in params:
            param.grad = flow.ones(3, 2)
        for _ in range(steps):
            optimizer.step()
        return optimizer, params

    refused = 0
    for number in range(len(list(_mistakes(*_of(*made()))))):
        optimizer, params = made()
        [*_mistakes(*_of(optimizer, params))][number]()

        def seen(optimizer=optimizer, params=params):
            return _view([params, dict(optimizer.state), optimizer.param_groups])

        before = seen()
        try:
            optimizer.step()
        except flow.errors.FlowError:
            refused += 1
            assert seen() == before
    assert refused > 30


def _of(optimizer, params):
    return optimizer, params[3], optimizer.param_groups[1]


@pytest.mark.parametrize("search", [None, "strong_wolfe"])
def test_lbfgs_takes_a_step_whole_or_not_at_all(search):
    x = flow.tensor([3.0, -2.0], requires_grad=True)
    optimizer = flow.optim.LBFGS([x], lr=0.1, line_search_fn=search)
    calls, last = 0, 1 << 30

    def closure():
        nonlocal calls
        calls += 1
        if calls == last:
            raise OSError("no more power")
        optimizer.zero_grad()
        loss = (x**4).sum() + x.prod()
        loss.backward()
        return loss

    optimizer.step(closure)
    before = repr([x.tolist(), optimizer.state_dict()])
    for ahead in range(1, 5):
        last = calls + ahead
        with pytest.raises(OSError, match="power"):
            optimizer.step(closure)
        assert repr([x.tolist(), optimizer.state_dict()]) == before
    state = optimizer.state_dict()
    kept = state["state"][0]
    for key in kept.keys() - {"al"}:  # which is written anew in each step
        for value in (None, "text", [], [1], flow.ones(3), {}, [flow.ones(3)] * 9):
            wrong = {**state, "state": {0: {**kept, key: value}}}
            with pytest.raises(flow.errors.ArgumentError, match="load_state_dict"):
                optimizer.load_state_dict(wrong)
            assert repr([x.tolist(), optimizer.state_dict()]) == before
    optimizer.load_state_dict(state)
    optimizer.step(closure)
