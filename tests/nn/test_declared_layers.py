"""Modules without parameters, all that PyTorch has: names, signatures, values, copies, refusals."""

import copy
import importlib
import inspect
import pickle
import re
import traceback
import typing

import numpy as np
import pytest

import oneflow_lite as flow
from oneflow_lite import nn
from oneflow_lite.nn.modules.layer import layer
from tests.nn.layer_cases import CASES, RANDOM

FILES = """
    activation channelshuffle distance dropout flatten fold loss padding pixelshuffle pooling
    upsampling
""".split()
MORE = {"CrossMapLRN2d", "Identity", "LocalResponseNorm"}  # beside others that have parameters
ELSEWHERE = {"MultiheadAttention"}
FORMER = {"size_average", "reduce", "min_value", "max_value"}  # have tests of their own
UNSEEN = {"device", "dtype", "options"}

pytestmark = pytest.mark.filterwarnings(
    "ignore:.*NLLLoss2d:FutureWarning",
    "ignore:.*size_average and reduce:UserWarning",
    "ignore:dropout:UserWarning",
)
by_case = pytest.mark.parametrize(("text", "inputs"), CASES, ids=[text for text, _ in CASES])


def name_of(text):
    return re.match(r"nn\.(\w+)\(", text)[1]


def owed(torch):
    """Return PyTorch's classes without parameters, by name."""
    found = {name: getattr(torch.nn, name) for name in MORE}
    for file in FILES:
        names = importlib.import_module(f"torch.nn.modules.{file}").__all__
        found |= {name: getattr(torch.nn, name) for name in names}
    return {name: cls for name, cls in found.items() if name not in ELSEWHERE}


def build(text, lib):
    return eval(text, {"nn": lib.nn, "flow": lib}).double()


def as_tensors(inputs, lib):
    tensors = [lib.tensor(x.astype("float64") if x.dtype.kind == "f" else x) for x in inputs]
    return [x.requires_grad_() if x.is_floating_point() else x for x in tensors]


def as_tuple(value):
    return value if isinstance(value, tuple) else (value,)


# --- As PyTorch has them --------------------------------------------------------------------------


def parameters(function):
    kinds = inspect.Parameter
    listed = list(inspect.signature(function).parameters.values())[1:]
    if [p.kind for p in listed] == [kinds.VAR_POSITIONAL, kinds.VAR_KEYWORD]:
        return []  # those of torch.nn.Module, which takes none
    return [(p.name, p.kind, p.default) for p in listed]


def arguments(cls):
    return [name for name, _, _ in parameters(cls.__init__)]


def test_every_module_is_there_with_pytorchs_signatures(torch):
    for name, theirs in owed(torch).items():
        ours = getattr(nn, name)
        assert parameters(ours.__init__) == parameters(theirs.__init__), name
        assert parameters(ours.forward) == parameters(theirs.forward), name
        kinds = [base.__name__ for base in theirs.__mro__ if not base.__name__.endswith("Nd")]
        assert set(kinds) <= {base.__name__ for base in ours.__mro__}, name
        assert ours.__doc__ != nn.Module.__doc__
        assert name in nn.__all__


def test_every_argument_has_a_case(torch):
    left = {name: set(arguments(cls)) for name, cls in owed(torch).items()}
    assert set(left) == {name_of(text) for text, _ in CASES}
    for text, _ in CASES:
        name = name_of(text)
        signature = inspect.signature(getattr(nn, name))
        bound = eval(
            text.replace(f"nn.{name}", "bind", 1), {"bind": signature.bind, "flow": flow, "nn": nn}
        )
        for argument, value in bound.arguments.items():
            default = signature.parameters[argument].default
            if isinstance(value, flow.Tensor) or value != default:
                left[name].discard(argument)
    shown = {
        name: names - FORMER - UNSEEN - {"inplace", "args", "kwargs"}
        for name, names in left.items()
    }
    assert not {name: names for name, names in shown.items() if names}


def options_of(module):
    """Return the public attributes of a module."""
    return {
        name: value
        for name, value in vars(module).items()
        if not name.startswith("_") and name != "training" and not callable(value)
    }


def is_compared(text, training):
    """Return whether both libraries draw no random numbers, or are given them."""
    if "Fractional" in text:
        return "flow.full" in text
    return not training or not any(word in text for word in RANDOM)


def results_of(module, text, inputs, lib):
    """Call a module; return the results, then the gradients of inputs and parameters."""
    tensors = leaves = as_tensors(inputs, lib)
    if "CTCLoss" in text:  # PyTorch's gradient is that of the logarithm's input
        tensors = [leaves[0].log_softmax(-1), *leaves[1:]]
    results = as_tuple(module(*tensors))
    factor = 1 + np.arange(results[0].numel()).reshape(results[0].shape) % 5 / 4
    (results[0] * lib.tensor(factor)).sum().backward()
    grads = [x.grad for x in (*leaves, *module.parameters()) if x.is_floating_point()]
    module.zero_grad()
    if "CrossMapLRN2d" in text:  # PyTorch's gradient is not that of its function
        grads = []
    return [x if x is None else x.detach().numpy() for x in (*results, *grads)]


@by_case
def test_module_agrees_with_pytorch(torch, text, inputs):
    ours, theirs = build(text, flow), build(text, torch)
    assert repr(ours) == repr(theirs)
    assert options_of(ours) == options_of(theirs)
    assert list(ours.state_dict()) == list(theirs.state_dict())
    ours.load_state_dict({k: flow.tensor(v.numpy()) for k, v in theirs.state_dict().items()})
    again = pickle.loads(pickle.dumps(copy.deepcopy(ours)))
    assert repr(again) == repr(ours)
    for training in (True, False):
        if not is_compared(text, training):
            continue
        wanted = results_of(theirs.train(training), text, inputs, torch)
        mine = results_of(ours.train(training), text, inputs, flow)
        copied = results_of(again.train(training), text, inputs, flow)
        for a, b, c in zip(mine, wanted, copied, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-7, atol=1e-11)
            np.testing.assert_array_equal(a, c)


def test_modules_can_overwrite_their_input(torch):
    names = [n for n, cls in owed(torch).items() if "inplace" in arguments(cls)]
    assert len(names) == 19
    for name in set(names) - {"AlphaDropout", "FeatureAlphaDropout"}:
        args = {"Threshold": (0.1, 7)}.get(name, ())
        ours = getattr(nn, name)(*args, inplace=True).eval()
        theirs = getattr(torch.nn, name)(*args, inplace=True).eval()
        assert repr(ours) == repr(theirs)
        data = np.array([[-4.0, -0.5], [0.25, 7.0]])
        leaf, outer = flow.tensor(data, requires_grad=True), torch.tensor(data, requires_grad=True)
        x = leaf * 1
        y = ours(x)
        assert y is x
        y.sum().backward()
        theirs(outer * 1).sum().backward()
        np.testing.assert_allclose(y.detach().numpy(), theirs(torch.tensor(data)).numpy())
        np.testing.assert_allclose(leaf.grad.numpy(), outer.grad.numpy())


# --- Random numbers -------------------------------------------------------------------------------


def test_dropout_scales_what_it_keeps():
    flow.manual_seed(0)
    x = flow.ones(2000, requires_grad=True)
    y = nn.Dropout(0.25)(x)
    values, counts = np.unique(y.detach().numpy(), return_counts=True)
    np.testing.assert_allclose(values, [0.0, 1 / 0.75], rtol=1e-6)
    assert abs(counts[0] - 500) < 100
    y.sum().backward()
    np.testing.assert_array_equal(x.grad.numpy(), y.detach().numpy())
    flow.manual_seed(0)
    np.testing.assert_array_equal(nn.Dropout(0.25)(x).detach().numpy(), y.detach().numpy())


@pytest.mark.parametrize(("name", "ndim"), [("Dropout1d", 3), ("Dropout2d", 4), ("Dropout3d", 5)])
def test_dropout_of_channels_drops_whole_channels(name, ndim):
    flow.manual_seed(0)
    y = getattr(nn, name)(0.5)(flow.ones(20, 30, *[2] * (ndim - 2))).numpy().reshape(600, -1)
    assert set(np.unique(y)) == {0.0, 2.0}
    assert (y == y[:, :1]).all()
    assert 200 < (y[:, 0] == 0).sum() < 400


@pytest.mark.parametrize("name", ["Dropout", "Dropout1d", "Dropout2d", "Dropout3d"])
def test_dropout_overwrites_its_input_only_when_asked(name):
    for inplace in (False, True):
        x = flow.ones(2, 3, 4, 5, 6)[(0,) * {"Dropout1d": 2, "Dropout2d": 1}.get(name, 0)]
        assert not getattr(nn, name)(1.0, inplace)(x).any()
        assert x.any() != inplace


@pytest.mark.parametrize("name", ["AlphaDropout", "FeatureAlphaDropout"])
def test_alpha_dropout_keeps_mean_and_variance(name):
    flow.manual_seed(0)
    x = flow.randn(200, 300)
    before = x.numpy().copy()
    y = getattr(nn, name)(0.3, inplace=True)(x)
    np.testing.assert_array_equal(x.numpy(), before)
    assert abs(y.mean().item()) < 0.02
    assert abs(y.std().item() - 1) < 0.02


def test_random_slopes_and_windows():
    flow.manual_seed(0)
    slopes = -nn.RReLU(0.25, 0.75)(flow.full((1000,), -1.0))
    assert 0.25 <= slopes.min() < 0.27
    assert 0.73 < slopes.max() < 0.75
    pool = nn.FractionalMaxPool2d(2, output_size=5)
    x = flow.arange(144.0).reshape(1, 12, 12)
    assert any((pool(x) != pool(x)).any() for _ in range(5))


def test_parametric_relu_is_learned():
    module = nn.PReLU(3, init=0.1, dtype=flow.float64)
    assert module.weight.tolist() == [0.1] * 3
    module.weight.data.fill_(2)
    module.reset_parameters()
    assert module.weight.tolist() == [0.1] * 3
    module(-flow.ones(1, 3, dtype=flow.float64)).sum().backward()
    assert module.weight.grad.tolist() == [-1.0] * 3


def test_normalization_over_neighbours_is_differentiated_as_it_is_defined():
    x = flow.tensor(np.random.default_rng(0).normal(size=(1, 5, 2, 2)), requires_grad=True)
    args = (3, 0.5, 1.5, 2.0)
    modules = (
        nn.LocalResponseNorm(*args),
        nn.CrossMapLRN2d(*args),
        nn.CrossMapLRN2d(4, 2 / 3, *args[2:]),
    )
    wanted, *others = [
        flow.autograd.grad((module(x) * flow.arange(2.0)).sum(), x)[0].numpy() for module in modules
    ]
    for dx in others:
        np.testing.assert_allclose(dx, wanted)


# --- Former arguments -----------------------------------------------------------------------------


def test_former_arguments_are_translated_with_a_warning_at_the_call(torch):
    names = [n for n, cls in owed(torch).items() if "size_average" in arguments(cls)]
    assert len(names) == 18
    former = [{"reduce": False}, {"size_average": False}, {"size_average": True}, {"reduce": True}]
    for name in [*names, "_Loss", "_WeightedLoss"]:
        ours = getattr(nn, name, None) or getattr(nn.modules.loss, name)
        for given, meant in zip(former, ("none", "sum", "mean", "mean"), strict=True):
            with pytest.warns(UserWarning, match=f"{name}.*{meant}") as caught:
                assert ours(**given).reduction == meant
            assert caught[-1].filename == __file__


def test_former_names_are_translated_with_a_warning_at_the_call():
    with pytest.warns(FutureWarning) as caught:
        module = nn.Hardtanh(min_value=-3.0, max_value=2.0)
    assert (module.min_val, module.max_val) == (-3.0, 2.0)
    assert [w.filename for w in caught] == [__file__] * 2
    with pytest.warns(FutureWarning, match="NLLLoss2d") as caught:
        nn.NLLLoss2d()
    assert caught[0].filename == __file__


# --- Refusals -------------------------------------------------------------------------------------

X1, X2 = flow.ones(3), flow.ones(2, 2)


@pytest.mark.parametrize(
    ("build", "error", "text"),
    [
        (lambda: nn.Dropout(1.5), ValueError, r"Dropout\(\): argument 'p'"),
        (lambda: nn.Dropout2d(-1), ValueError, r"Dropout2d\(\): argument 'p'"),
        (lambda: nn.Hardtanh(1.0, -1.0), AssertionError, "max_val"),
        (lambda: nn.Unflatten(1, 3), TypeError, "unflattened_size"),
        (lambda: nn.HuberLoss(delta="1"), TypeError, "delta"),
        (lambda: nn.TripletMarginLoss(0), ValueError, "margin"),
        (lambda: nn.TripletMarginWithDistanceLoss(margin=-1), ValueError, "margin"),
        (lambda: nn.MultiMarginLoss(3), ValueError, "'p'"),
        (lambda: nn.MultiMarginLoss(weight=X2), ValueError, "weight"),
        (lambda: nn.LinearCrossEntropyLoss(2, 2, weight=X1), RuntimeError, "weight"),
        (lambda: nn.LinearCrossEntropyLoss(2, 2, label_smoothing=2), RuntimeError, "label_smooth"),
        (lambda: nn.FractionalMaxPool2d(2), ValueError, "neither"),
        (lambda: nn.FractionalMaxPool3d(2, 3, 0.5), ValueError, "both"),
        (lambda: nn.FractionalMaxPool2d(2, output_ratio=1.5), ValueError, "output_ratio"),
        (lambda: nn.FractionalMaxPool3d(0, 3), ValueError, "kernel_size"),
        (lambda: nn.Softmax2d()(X1), ValueError, "3 or 4 dimensions"),
        (lambda: nn.CrossMapLRN2d(3)(X1), ValueError, "4 dimensions"),
        (lambda: nn.CircularPad1d(1)(X1), ValueError, "2 or 3 dimensions"),
        (lambda: nn.ReflectionPad2d(1)(X2), RuntimeError, "3 or 4 dimensions"),
        (lambda: nn.ReplicationPad3d(1)(X2), RuntimeError, "4 or 5 dimensions"),
        (lambda: nn.MSELoss(reduction="median")(X1, X1), ValueError, "reduction"),
        (lambda: nn.BCELoss(weight=[1.0]), TypeError, "tensor"),
        (lambda: nn.ReLU(False, 1), TypeError, r"ReLU.__init__\(\) takes"),
        (lambda: nn.MaxPool2d(), TypeError, r"MaxPool2d.__init__\(\) missing"),
        (lambda: nn.GaussianNLLLoss(True), TypeError, r"GaussianNLLLoss.__init__\(\) takes"),
        (lambda: nn.Tanh(1), TypeError, "__init__"),
    ],
)
def test_bad_arguments(build, error, text):
    with pytest.raises(error, match=text):
        build()


# --- What stands on them --------------------------------------------------------------------------


def test_weights_move_with_the_module(device):
    loss = nn.CrossEntropyLoss(weight=flow.ones(2)).double().to(device)
    assert (loss.weight.dtype, loss.weight.device.type) == (flow.float64, device)
    x = flow.zeros(1, 2, dtype=flow.float64, device=device)
    assert loss(x, flow.tensor([1], device=device)).item() == pytest.approx(np.log(2))
    loss.weight = None
    assert not loss.state_dict()


def test_users_subclasses_are_their_own(torch):
    class Counting(nn.LeakyReLU):
        calls: int = 0

        def forward(self, input):
            self.calls += 1
            return super().forward(input)

    class Weighted(nn.modules.loss._WeightedLoss):
        def __init__(self, scale, weight=None, reduction="mean"):
            super().__init__(weight, reduction=reduction)
            self.scale = scale

        def forward(self, input, target):
            error = (input - target) * self.weight * self.scale
            return nn.functional.mse_loss(error, flow.zeros_like(error), reduction=self.reduction)

    module = Counting(0.5)
    assert module(flow.tensor([-2.0])).item() == -1
    assert (module.calls, repr(module)) == (1, "Counting(negative_slope=0.5)")
    assert Weighted(2.0, flow.ones(2), "sum")(flow.ones(2), flow.zeros(2)).item() == 8


def test_what_is_written_for_a_declaration_stands_at_its_place():
    @layer("leaky_relu", "input", shows="{slope}")
    class Sloped(nn.Module):
        slope: "float" = 0.5

        def __post_init__(self):
            self.twice = 2 * self.slope

    assert repr(Sloped()) == "Sloped(0.5)"
    assert (Sloped(0.25).twice, Sloped.__init__.__qualname__) == (
        0.5,
        f"{Sloped.__qualname__}.__init__",
    )
    assert inspect.get_annotations(nn.LeakyReLU.__init__) == {
        "negative_slope": "float",
        "inplace": "bool",
        "return": "None",
    }

    @layer("tanh")
    class Bent(nn.Module):
        pass

    module = Bent()
    bent = flow.compile(lambda x: module(x))
    bent(flow.ones(1)), bent(flow.ones(1))
    assert (bent.explain().captures, bent.explain().hits) == (1, 1)
    with pytest.raises(TypeError) as caught:
        nn.LeakyReLU()(3)
    frames = traceback.extract_tb(caught.value.__traceback__)
    here = [f for f in frames if f.filename.startswith(nn.modules.activation.__file__)]
    assert any(f.name == "forward" and "F.leaky_relu" in (f.line or "") for f in here)


def test_type_hints_can_be_read_anywhere():
    loss = nn.CrossEntropyLoss()
    loss.__annotations__ = typing.get_type_hints(loss, globalns={}, localns={})
    assert loss(flow.zeros(1, 2), flow.tensor([0])).item() == pytest.approx(np.log(2))
