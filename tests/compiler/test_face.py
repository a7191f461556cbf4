"""`flow.compile` and `flow.explain`: functions keep what they are, and options reach the calls."""

from __future__ import annotations

import abc
import copy
import functools
import gc
import inspect
import operator
import pickle
import subprocess
import sys
import types
import weakref
from typing import ClassVar
from unittest import mock

import pytest

import oneflow_lite as flow
from oneflow_lite import nn
from tests.compiler import kinds_of_modules
from tests.compiler.constructs import define
from tests.compiler.kinds_of_modules import KINDS, Plain

pytestmark = pytest.mark.filterwarnings("ignore:flow.compile")
NOT_CALLED = {("OwnCallAlone", "in place")}  # its __call__ asks none of Module's
NOT_REPLAYED = {"OwnGetattribute"}


def told(said):
    return said.captures, said.hits, said.fallbacks


def call(function, times=3):
    return [function(flow.tensor([float(k)])).item() for k in range(times)]


# --- Functions ------------------------------------------------------------------------------------


def plain(x: flow.Tensor, times: float = 2.0) -> flow.Tensor:
    """Double."""
    return x * times


plain.version = 1
double = flow.compile(plain)


@flow.compile(fullgraph=True)
def decorated(x):
    return x * 2


def test_a_function_keeps_what_it_is():
    for name in (*functools.WRAPPER_ASSIGNMENTS, "__defaults__", "__code__", "version"):
        assert getattr(double, name) == getattr(plain, name), name
    assert double.__wrapped__ is plain and inspect.unwrap(double) is plain
    assert inspect.signature(double) == inspect.signature(plain)
    assert inspect.getsource(double) == inspect.getsource(plain)
    assert not hasattr(double, "colour")
    assert functools.wraps(double)(lambda x: x).__name__ == "plain"
    double.mode = double.fullgraph = double.function = "mine"  # as of any function
    assert call(double) == [0, 2, 4] and double.mode == "mine" and not hasattr(plain, "mode")
    assert double(x=flow.ones(1), times=3.0).item() == 3
    double.explain = "mine"
    assert double.explain == "mine" and flow.explain(double).hits > 0
    del double.mode, double.fullgraph, double.function, double.explain


def test_arguments_of_any_name():
    f = flow.compile(lambda self, name, function: self * name + function)
    called = [f(self=flow.ones(1), name=k, function=2).item() for k in (1, 1, 3)]
    assert called == [3, 3, 5] and f.explain().hits == 1


def pickled(value):
    return pickle.loads(pickle.dumps(value))


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, pickled])
def test_copies_of_functions(copied):
    assert copied(decorated) is decorated
    assert copied(Methods.method) is Methods.method
    double.note = [1]
    made = copied(double)
    assert (made is double) == (copied is not pickled)
    assert call(made) == [0, 2, 4] and made.note == [1] and made.__wrapped__ is plain
    triple = flow.compile(functools.partial(plain, times=3.0))
    made = copied(triple)
    assert call(made) == call(triple) == [0, 3, 6] and flow.explain(made).hits == 2
    assert made is not triple
    if sys.version_info < (3, 14):  # from there on it becomes a method, as functions do
        assert made._orig_mod is not triple._orig_mod


def test_a_local_function_is_pickled_as_little_as_others():
    with pytest.raises((AttributeError, pickle.PicklingError), match="local"):
        pickle.dumps(flow.compile(lambda x: x))


# --- Methods --------------------------------------------------------------------------------------


class Methods(abc.ABC):
    scale = 2.0

    @flow.compile
    def method(self, x):
        return x * self.scale

    @staticmethod
    @flow.compile
    def static(x):
        return x * 2

    @flow.compile
    @staticmethod
    def compiled_static(x):
        return x * 2

    @classmethod
    @flow.compile
    def of_class(cls, x):
        return x * cls.scale

    @flow.compile
    @classmethod
    def compiled_of_class(cls, x):
        return x * cls.scale

    @property
    @flow.compile
    def read(self):
        return flow.ones(1) * self.scale

    partly = functools.partialmethod(flow.compile(lambda self, by, x: x * by), 2.0)
    function = flow.compile(flow.exp)
    object_called = flow.compile(operator.neg)
    bound = flow.compile("{:.1f}".format)

    @flow.compile
    @abc.abstractmethod
    def abstract(self): ...


class Concrete(Methods):
    def abstract(self):
        return super().abstract()


@pytest.mark.parametrize(
    "name", "method static compiled_static of_class compiled_of_class partly".split()
)
def test_methods(name):
    for owner in (Concrete(), Concrete()):
        assert call(getattr(owner, name)) == [0, 2, 4]
    if "static" in name or "class" in name:
        assert call(getattr(Concrete, name)) == [0, 2, 4]
    found = inspect.getattr_static(Methods, name)
    if name != "partly":
        assert getattr(Concrete(), name).explain().hits > 0
        assert flow.explain(getattr(Concrete(), name)).hits > 0
        assert (type(found) is staticmethod) == ("static" in name)
        assert (type(found) is classmethod) == ("class" in name)


def test_what_a_method_is():
    one, other = Concrete(), Concrete()
    method = one.method
    assert type(method) is types.MethodType and method.__self__ is one
    assert method == one.method != other.method and method.__name__ == "method"
    assert inspect.signature(method) == inspect.signature(lambda x: x)
    assert pickle.loads(pickle.dumps(method)).__func__ is Methods.method
    assert Methods.method.__get__(one) == method
    assert one.read.item() == 2
    assert one.object_called(3) == -3 and one.bound(2) == "2.0"  # these never become methods
    with pytest.raises(TypeError):
        Methods()


def test_a_compiled_method_of_one_object():
    one = Concrete()
    method = flow.compile(one.method.__get__(one))
    other = copy.deepcopy(flow.compile(types.MethodType(Methods.method.__wrapped__, one)))
    one.scale = 3.0
    assert call(method) == [0, 3, 6] and call(other) == [0, 2, 4]


# --- Other objects that are called ----------------------------------------------------------------


class Called:
    """Attributes are items, and what is missing raises what a dict raises."""

    def __init__(self, **options):
        self.__dict__["options"] = options

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return self.options[name]

    def __call__(self, x):
        return x * self.options["scale"]

    def __len__(self):
        return len(self.options)

    def explain(self):
        return "mine"


class Small:
    __slots__ = ("scale",)

    def __call__(self, x):
        return x * self.scale


def test_objects():
    plain = Called(scale=2.0)
    f = flow.compile(plain)
    assert call(f) == [0, 2, 4] and isinstance(f, Called) and len(f) == 1
    assert f.explain() == "mine" and sum(told(flow.explain(f))) == 3
    assert f.scale == 2.0 and f.explain.__self__ is f
    for read in (lambda f: f.colour, lambda f: hasattr(f, "colour")):
        with pytest.raises(KeyError):
            read(f)
    assert [call(made(f)) for made in (copy.copy, copy.deepcopy, pickled)] == [[0, 2, 4]] * 3
    small = flow.compile(Small())
    small.scale = 3.0
    assert call(small) == [0, 3, 6] and small._orig_mod.scale == 3.0
    assert call(flow.compile(operator.neg), 2) == [0, -1]
    assert flow.compile(operator.neg).__name__ == "neg"


def test_a_mock():
    for mocked in (mock.Mock(return_value=3), mock.MagicMock(return_value=3)):
        f = flow.compile(mocked)
        assert f(1) == 3 and f.called and mocked.call_args == ((1,),)
        assert f.explain().fallbacks == 1  # of the attributes that it makes up, this is none
    f.__len__.return_value = 5
    assert len(f) == len(mocked) == 5


def test_a_class():
    class Holder:
        def __init__(self, x):
            self.x = x

    made = flow.compile(Holder)(flow.ones(2))
    assert type(made) is Holder and flow.compile(Holder).__name__ == "Holder"


# --- Modules --------------------------------------------------------------------------------------


@pytest.mark.parametrize("way", ["compile", "in place"])
@pytest.mark.parametrize("kind", KINDS)
def test_calls_reach_the_recordings(kind, way):
    module = KINDS[kind]()
    if way == "compile":
        compiled = flow.compile(module)
        assert compiled is not module and compiled._orig_mod is module
    else:
        assert module.compile() is None
        compiled = module
    for k in range(4):
        compiled(flow.tensor([1.0, k]))
    said = flow.explain(compiled)
    if (kind, way) in NOT_CALLED:
        assert told(said) == (0, 0, 0)
    elif kind in NOT_REPLAYED:
        assert said.fallbacks and said.reasons
    else:
        assert said.captures == 1 and said.hits + said.fallbacks == 3
    if kind == "OwnExplain":
        assert compiled.explain() == "it doubles"
    else:
        assert compiled.explain() == said
    if way == "compile":
        with pytest.raises(TypeError, match="compile it first"):
            flow.explain(module)
        module(flow.ones(2))
        assert flow.explain(compiled) == said  # the original is called as it ever was


class Many:
    """Its special methods read a list outside."""

    numbers: ClassVar = [1.0]

    def __call__(self, x):
        return x

    def __len__(self):
        return int(self.numbers[0])

    def __iter__(self):
        return iter([self.numbers[0], 2.0])

    def __contains__(self, value):
        return value == self.numbers[0]

    def __mul__(self, other):
        return other * self.numbers[0]


def test_special_methods_of_a_compiled_object_are_observed():
    many = flow.compile(Many())
    for read in (
        lambda x: x * len(many),
        lambda x: next(x * k for k in many),
        lambda x: x * 5 if 5.0 in many else x,
        lambda x: many * x,
    ):
        Many.numbers[0], f = 1.0, flow.compile(read)
        assert [f(flow.ones(1)).item() for _ in range(3)] == [1, 1, 1] and f.explain().hits == 2
        Many.numbers[0] = 5.0
        assert [f(flow.ones(1)).item() for _ in range(3)] == [5, 5, 5] and f.explain().hits == 4


def test_imports_inside_of_a_function(monkeypatch):
    monkeypatch.setattr(kinds_of_modules, "factor", 2.0, raising=False)
    text = (
        "def f(x):\n import os.path\n from . import kinds_of_modules as k\n return x * k.factor\n"
    )
    f = flow.compile(define(text, __package__="tests.compiler")["f"])
    assert [f(flow.ones(1)).item() for _ in range(3)] == [2, 2, 2] and f.explain().hits == 2
    kinds_of_modules.factor = 3.0
    assert f(flow.ones(1)).item() == 3


class Options(dict):
    """A dict whose items are attributes, by the methods of dict."""

    __getattr__ = dict.get
    __setattr__ = dict.__setitem__


def test_attributes_by_the_methods_of_dict():
    options = Options(scale=2.0)

    @flow.compile
    def f(x):
        options.last = x * options.scale
        return options.last + 1

    found = [(f(flow.ones(1)).item(), options["last"].item()) for _ in range(4)]
    assert found == [(3, 2)] * 4 and f.explain().hits >= 2
    options.scale = 3.0
    assert f(flow.ones(1)).item() == 4


def test_no_class_of_a_user_is_extended():
    before = Plain.__subclasses__()
    flow.compile(Plain())(flow.ones(2))
    module = Plain()
    module.compile()
    assert Plain.__subclasses__() == before and type(module) is Plain


def test_copies_replay_their_own():
    copy.copy(Plain())  # Python notes in a class that is copied the slots it has
    for way in ("compile", "in place"):
        module = Plain()
        module.compile()
        compiled = flow.compile(Plain()) if way == "compile" else module
        for _ in range(3):
            compiled(flow.ones(2))
        for made in (copy.copy(compiled), copy.deepcopy(compiled), pickled(compiled)):
            assert told(flow.explain(made)) == (0, 0, 0)
            made.scale = 5.0
            for k in range(3):
                assert made(flow.ones(2)).tolist() == [5, 10]
                assert compiled(flow.ones(2)).tolist() == [2, 4]
            assert told(flow.explain(made)) == (1, 2, 0)
        assert told(flow.explain(compiled)) == (1, 11, 0)


def test_in_another_process():
    compiled = [flow.compile(Plain()), Plain(), double, decorated, Concrete().method]
    compiled[1].compile()
    code = """if True:
        import pickle, sys
        import oneflow_lite as flow
        for f in pickle.load(sys.stdin.buffer):
            print([f(flow.ones(2)).tolist() for _ in range(3)], flow.explain(f).hits)
    """
    found = subprocess.run(
        [sys.executable, "-c", code],
        input=pickle.dumps(compiled),
        stdout=subprocess.PIPE,
        check=True,
    )
    twice = "[[2.0, 2.0], [2.0, 2.0], [2.0, 2.0]] 2"
    scaled = "[[2.0, 4.0], [2.0, 4.0], [2.0, 4.0]] 2"
    assert found.stdout.decode().split("\n")[:5] == [scaled, scaled, twice, twice, twice]


def test_what_is_dropped_is_freed():
    gc.collect()
    gc.disable()
    try:
        module = Plain()
        compiled, refs = flow.compile(module), [weakref.ref(module)]
        refs.append(weakref.ref(compiled))
        del module
        assert refs[0]() is not None
        del compiled
        assert refs[0]() is refs[1]() is None  # at once: it is in no cycle
    finally:
        gc.enable()
    for make in (lambda: flow.compile(Plain()), Plain):
        compiled = make()
        compiled.compile()
        for _ in range(3):
            compiled(flow.ones(2))
        refs = [weakref.ref(compiled), weakref.ref(compiled.weight)]
        del compiled
        gc.collect()
        assert [ref() for ref in refs] == [None, None]


def test_what_is_compiled_twice():
    module = Plain()
    compiled = flow.compile(flow.compile(module), fullgraph=True)
    assert compiled._orig_mod is module
    assert flow.compile(flow.compile(plain)).__wrapped__ is plain
    for function in (compiled, flow.compile(double, fullgraph=True)):
        function(flow.ones(2))
        with pytest.raises(flow.errors.CaptureError):
            flow.compile(flow.compile(lambda x: bool(x.sum() > 0)), fullgraph=True)(flow.ones(2))
    module.compile()
    module.compile(fullgraph=True)
    for _ in range(3):
        assert flow.compile(module)(flow.ones(2)).tolist() == module(flow.ones(2)).tolist()


def test_one_module_behind_two():
    module = nn.Sequential(Plain(), Plain())
    module[0] = flow.compile(module[0])
    whole = flow.compile(module)
    parts = [whole(flow.ones(2)).tolist() for _ in range(3)]
    assert flow.explain(whole).hits == 2 and parts == [[4, 16]] * 3
    assert list(module.state_dict()) == ["0.weight", "0.total", "1.weight", "1.total"]
    assert [module(flow.ones(2)).tolist() for _ in range(3)] == parts
    assert flow.explain(module[0]).hits == 2
    other = Plain()
    other.weight = module[0].weight  # shared, and trained once
    both = nn.ModuleList([module, flow.compile(other)])
    assert len(list(both.parameters())) == 2


def test_wrappers_of_modules():
    compiled = flow.compile(Plain())
    for wrapped in (nn.DataParallel(compiled), flow.optim.swa_utils.AveragedModel(compiled)):
        assert wrapped(flow.ones(1, 2)).tolist() == [[2, 4]]
        assert [name for name in wrapped.state_dict() if "weight" in name] == ["module.weight"]


def test_layers_are_known_by_their_class():
    layer, compiled = (make(nn.ConvTranspose1d(2, 3, 1)) for make in (lambda m: m, flow.compile))
    names = []
    for module in (layer, compiled):
        nn.utils.parametrizations.spectral_norm(module)
        names.append(
            (
                module.parametrizations.weight[0].dim,
                type(module._orig_mod) if module is compiled else type(module),
            )
        )
    assert names[0][0] == names[1][0] == 1 and names[0][1].__name__ == names[1][1].__name__


def test_options_reach_the_calls():
    class Reads(Plain):
        def forward(self, x):
            return x * x.sum().item()

    compiled, module = flow.compile(Reads(), fullgraph=True), Reads()
    module.compile(fullgraph=True)
    for called in (compiled, module, copy.deepcopy(compiled), copy.deepcopy(module)):
        with pytest.raises(flow.errors.CaptureError):
            called(flow.ones(2))
    for called in (
        flow.compile(Plain(), mode="work_queue"),
        flow.compile(plain, mode="work_queue"),
    ):
        assert [called(flow.ones(2))[0].item() for _ in range(3)] == [2, 2, 2]
    for compile in (flow.compile, lambda m, **options: m.compile(**options)):
        with pytest.raises(ValueError, match="mode"):
            compile(Plain(), mode="quick")
        with pytest.raises(TypeError, match="colour"):
            compile(Plain(), colour="red")
    module = Plain()
    with pytest.raises(ValueError, match="mode"):
        module.compile(mode="quick")
    assert vars(module).keys() == vars(Plain()).keys()


@pytest.mark.filterwarnings("default:flow.compile")
def test_a_warning_names_the_line_that_called():
    class Reads(Plain):
        def forward(self, x):
            return x * x.sum().item()

    module, outer = Reads(), nn.Sequential(flow.compile(Reads()))
    module.compile()
    called = module, flow.compile(Reads()), flow.compile(Reads().forward), outer
    for each in called:
        with pytest.warns(UserWarning, match="runs eagerly") as caught:
            each(flow.ones(2))
        assert [w.filename for w in caught] == [__file__]


@pytest.mark.parametrize("value", [3, None, plain, Plain(), nn.Linear, Called(scale=1)])
def test_what_is_not_compiled(value):
    with pytest.raises(TypeError, match=r"explain\(\): argument 'compiled': .* compile it first"):
        flow.explain(value)
    if not callable(value) and value is not None:
        with pytest.raises(TypeError, match="model"):
            flow.compile(value)
