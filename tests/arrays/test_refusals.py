"""Arguments of wrong types are named, from annotations, when a call fails."""

import types
from typing import Any

import pytest

import oneflow_lite as flow
from oneflow_lite import nn
from oneflow_lite.arrays.refusals import guarded
from oneflow_lite.errors import ArgumentTypeError
from tests.hostile.calls import calls
from tests.hostile.values import VALUES
from tests.hostile.walk import walk

NORMAL = flow.distributions.Normal(0.0, 1.0)
WRONG = {
    "Normal.rsample(): argument 'sample_shape': expected Sequence[int], got int 3": lambda: (
        NORMAL.sample(3)
    ),
    "Normal.expand(): argument '_instance': expected Distribution | None, got bytes": lambda: (
        NORMAL.expand((2,), b"")
    ),
    "Categorical(): argument 'probs': expected Tensor | float | None, got str 'abc'": lambda: (
        flow.distributions.Categorical(probs="abc")
    ),
    "fuse_conv_bn_eval(): argument 'conv': expected": lambda: nn.utils.fuse_conv_bn_eval([1], 2),
    "xavier_uniform_(): argument 'gain': expected a float": lambda: nn.init.xavier_uniform_(
        flow.ones(2, 2), gain=b"x"
    ),
    "Dropout(): argument 'p': expected": lambda: nn.Dropout("abc"),
    "LSTM(): argument 'input': expected Tensor | PackedSequence, got list": lambda: nn.LSTM(2, 3)(
        [1.0]
    ),
    "CircularPad1d(): argument 'input': expected a Tensor": lambda: nn.CircularPad1d(1)(None),
}


@pytest.mark.parametrize("says", WRONG)
def test_the_error_names_call_argument_and_type(says):
    with pytest.raises(ArgumentTypeError) as caught:
        WRONG[says]()
    assert str(caught.value).startswith(says)


@pytest.mark.parametrize(
    ("call", "kind"),
    [
        (lambda: nn.ModuleDict().pop("a"), KeyError),
        (lambda: nn.Linear(2, 2).get_submodule(1), TypeError),
        (lambda: nn.Sequential().pop(3), IndexError),
        (lambda: flow.ones(2)[int], IndexError),
    ],
)
def test_the_error_is_of_the_class_that_python_raises_there(call, kind):
    with pytest.raises(kind) as caught:
        call()
    assert isinstance(caught.value, flow.errors.FlowError)


class Big(int):
    """A number that is none of NumPy's."""


def scaled(x: float, factor: int | None = None, *rest: str, names: list[str] | None = None) -> Any:
    return x * factor + sum(names or ())


@pytest.mark.parametrize(
    ("args", "kwargs", "argument"),
    [
        ((None, 2), {}, "x"),
        ((2.0, "a"), {}, "factor"),
        ((2.0, None, 3), {}, "rest[0]"),
        ((2.0, 3), {"names": [1, "a"]}, "names"),
        ((2.0, Big(2)), {"names": [1, "a"]}, "names"),
    ],
)
def test_the_argument_that_differs_from_its_annotation_is_named(args, kwargs, argument):
    own = types.FunctionType(scaled.__code__, {"__name__": "oneflow_lite"}, "scaled")
    own.__defaults__, own.__annotations__ = scaled.__defaults__, scaled.__annotations__
    own.__kwdefaults__ = scaled.__kwdefaults__
    from_library = guarded(own)
    with pytest.raises(
        ArgumentTypeError, match=rf"scaled\(\): argument '{argument}'".replace("[", r"\[")
    ):
        from_library(*args, **kwargs)


def test_an_error_of_a_users_function_stays_as_it_is():
    error = KeyError("mine")

    def fails(*_):
        raise error

    class Own(nn.Module):
        def forward(self, x: str) -> Any:
            return x.no_such

    with pytest.raises(KeyError) as caught:
        flow.optim.lr_scheduler.LambdaLR(flow.optim.SGD([flow.ones(1)], 0.1), fails)
    assert caught.value is error
    with pytest.raises(AttributeError, match="no_such"):
        Own()(flow.ones(2))


@pytest.mark.slow
@pytest.mark.parametrize("part", ["distributions.", "nn.init", "optim.lr_scheduler", "sparse"])
def test_hostile_values_are_answered_by_our_errors(part):
    """One in 40 cases; a few values that no annotation excludes may still fail as Python does."""
    chosen = [call for call in calls() if part in call.name]
    found = [each for each in walk(chosen, every=len(VALUES)) if each.kind != "warning"]
    assert len(found) <= 3, "\n".join(map(str, found))
