"""flow.save and flow.load: what goes through a file, what is refused, and what stays unharmed."""

import io
import itertools
import json
import math
import os
import pickle
import struct
import subprocess
import sys
import threading
import types
from collections import Counter, OrderedDict, defaultdict

import numpy as np
import pytest

import oneflow_lite as flow
from oneflow_lite import nn, optim
from oneflow_lite.errors import SerializationError, StaleTensorError
from oneflow_lite.files.description import CHECKSUM, STRUCTURE, checksum
from oneflow_lite.files.serialization import load, save

DTYPES = [
    flow.float16, flow.float32, flow.float64, flow.int8, flow.int16, flow.int32, flow.int64,
    flow.uint8, flow.bool, flow.complex64, flow.complex128,
]  # fmt: skip


def to_bytes(obj) -> bytes:
    file = io.BytesIO()
    save(obj, file)
    return file.getvalue()


def through_a_file(obj):
    return load(io.BytesIO(to_bytes(obj)))


def assert_equal(a, b) -> None:
    if isinstance(b, flow.Tensor):
        assert type(a) is type(b)
        assert a.dtype is b.dtype
        assert a.shape == b.shape
        assert (a.requires_grad, a.is_leaf) == (b.requires_grad, True)
        np.testing.assert_array_equal(a.numpy(), b.detach().numpy())
    elif isinstance(b, dict):
        assert type(a) is type(b) and list(a) == list(b)
        for key in b:
            assert_equal(a[key], b[key])
    elif isinstance(b, (list, tuple)):
        assert type(a) is type(b)
        for x, y in zip(a, b, strict=True):
            assert_equal(x, y)
    else:
        assert type(a) is type(b)
        assert a == b


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("shape", [(), (3,), (2, 3), (0,), (2, 0, 3), (1, 1)], ids=str)
def test_every_dtype_and_shape(dtype, shape):
    array = (np.random.default_rng(0).standard_normal(shape) * 9).astype(dtype)
    if dtype.kind == "c":
        array = array + dtype.type(2j)
    tensor = flow.from_numpy(np.asarray(array, dtype))
    assert_equal(through_a_file({"x": tensor})["x"], tensor)


def test_special_values_and_memory_layouts():
    base = flow.arange(24.0).reshape(2, 3, 4)
    state = {
        "special": flow.tensor([math.nan, math.inf, -math.inf, -0.0, 1e-45]),
        "transposed": base.transpose(0, 2),
        "reversed": base.flip(1),
        "strided": base[:, ::2, 1:],
        "expanded": flow.ones(1, 3).expand(4, 3),
        "computed": flow.ones(2, requires_grad=True) * 2,
    }
    loaded = through_a_file(state)
    assert_equal(loaded, state)
    assert np.signbit(loaded["special"].numpy()[3])
    for name, tensor in loaded.items():
        assert tensor.requires_grad == (name == "computed")
        tensor.detach().fill_(1)  # own, writable memory


def test_a_module_goes_through_a_file(tmp_path):
    path = tmp_path / "net.safetensors"
    net = nn.Sequential(nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2), nn.Embedding(3, 2))
    save(net.state_dict(), path)
    twin = nn.Sequential(nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2), nn.Embedding(3, 2))
    twin.load_state_dict(load(str(path)))
    assert_equal(dict(twin.state_dict()), dict(net.state_dict()))
    assert os.listdir(tmp_path) == ["net.safetensors"]


def test_an_optimizer_goes_through_a_file():
    x = nn.Parameter(flow.ones(2))
    optimizer = optim.Adam([x], amsgrad=True)
    x.grad = flow.ones(2)
    optimizer.step()
    assert_equal(through_a_file(optimizer.state_dict()), optimizer.state_dict())


def test_everything_between_the_tensors_survives():
    obj = {
        "model": OrderedDict({"a.b": flow.ones(1), "a": {"b": flow.zeros(2)}}),
        "numbers": [1, -2, 0.1, 1e300, True, None, "text", 10**30],
        "betas": (0.9, (0.999,)),
        7: {0: "zero", -1: flow.tensor(1)},
        "": flow.tensor([2.0]),
        "__metadata__": flow.tensor([3.0]),
        "empty": [{}, [], ()],
        "ünï\n\"'": flow.tensor(4),
    }
    loaded = through_a_file(obj)
    assert_equal(loaded, obj)
    assert math.isnan(through_a_file([math.nan])[0])
    assert through_a_file([math.inf]) == [math.inf]
    assert_equal(through_a_file(flow.ones(3)), flow.ones(3))
    assert_equal(through_a_file(OrderedDict()), OrderedDict())


def test_names_that_share_a_tensor_share_it_again():
    net = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2))
    net[1].weight = net[0].weight
    data = to_bytes(net.state_dict())
    state = load(io.BytesIO(data))
    state["1.weight"].fill_(3)
    assert (state["0.weight"] == 3).all()
    state = load(io.BytesIO(to_bytes(net.state_dict(keep_vars=True))))
    assert state["1.weight"] is state["0.weight"]
    assert len(data) < len(to_bytes(nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2)).state_dict()))
    net.load_state_dict(state)


def test_other_libraries_read_flat_state_dicts():
    safetensors = pytest.importorskip("safetensors.numpy")
    net = nn.Linear(2, 3)
    found = safetensors.load(to_bytes(net.state_dict()))
    assert set(found) == {"weight", "bias"}
    np.testing.assert_array_equal(found["weight"], net.weight.detach().numpy())


def test_files_of_other_libraries_are_read():
    safetensors = pytest.importorskip("safetensors.numpy")
    arrays = {"b": np.ones((2, 3), np.float16), "a": np.array(3), "c": np.array([True, False])}
    loaded = load(io.BytesIO(safetensors.save(arrays, {"format": "np"})))
    assert set(loaded) == set(arrays)
    for name, array in arrays.items():
        assert_equal(loaded[name], flow.from_numpy(array))


def test_pytorchs_weights_are_read(tmp_path):
    torch = pytest.importorskip("torch")
    safetensors = pytest.importorskip("safetensors.torch")
    theirs = torch.nn.Linear(2, 3)
    safetensors.save_file(theirs.state_dict(), tmp_path / "w.safetensors")
    ours = nn.Linear(2, 3)
    ours.load_state_dict(load(tmp_path / "w.safetensors"))
    np.testing.assert_array_equal(ours.weight.detach().numpy(), theirs.weight.detach().numpy())
    data = safetensors.save({"x": torch.ones(2, dtype=torch.bfloat16)})
    assert load(io.BytesIO(data))["x"].dtype == flow.bfloat16
    data = safetensors.save({"x": torch.ones(2).to(torch.float8_e4m3fn)})
    with pytest.raises(SerializationError, match="F8_E4M3"):
        load(io.BytesIO(data))


def test_bfloat16_and_unsigned_integers():
    for name in ("bfloat16", "uint16", "uint32", "uint64"):
        state = {"x": flow.tensor([1, 2, 250]).to(getattr(flow, name))}
        assert_equal(through_a_file(state), state)


def test_arrays_stay_arrays():
    array = np.arange(6.0).reshape(2, 3)
    state = {"a": array, "b": [array, np.array(True)], "t": flow.from_numpy(array)}
    loaded = through_a_file(state)
    assert type(loaded["a"]) is np.ndarray and loaded["a"].flags.writeable
    np.testing.assert_array_equal(loaded["a"], array)
    assert loaded["b"][0] is loaded["a"]
    assert (loaded["b"][1].dtype, loaded["b"][1].shape) == (np.bool_, ())
    assert type(loaded["t"]) is flow.Tensor
    for wrong in (np.array(["a"]), np.array([None]), np.ones(1, np.longdouble)):
        with pytest.raises(SerializationError, match="array of"):
            to_bytes({"x": wrong})
    generator = np.random.RandomState(3)
    again = np.random.RandomState(0)
    again.set_state(through_a_file(generator.get_state()))
    assert again.rand() == generator.rand()


class _Letters(str):
    pass


KINDS = {
    "complex": 1 + 2j,
    "bytes": b"\x00\xff",
    "bytearray": bytearray(b"ab"),
    "set": {1, "a", (2, None), frozenset((3,))},
    "frozenset": frozenset((1, 2.5)),
    "ordered": OrderedDict(b=OrderedDict(), a={}),
    "counter": Counter("aab"),
    "defaultdict": defaultdict(list, a=[1]),
    "size": flow.ones(2, 3).shape,
    "device": flow.device("cuda:1"),
    "dtypes": [flow.float32, flow.bool, flow.bfloat16],
    "scalars": [kind(1) for kind in (
        np.bool_, np.int8, np.uint64, np.float16, np.float32, np.float64, np.complex64,
        np.complex128,
    )],
    "keys": {True: 1, 2: 3, None: 4, 1.5: 5, (1, "a"): 6, b"x": 7, 1j: 8, np.int64(9): 9},
}  # fmt: skip


@pytest.mark.parametrize("name", KINDS)
def test_every_kind_comes_back_as_it_was(name):
    kind = KINDS[name]
    loaded = through_a_file({"x": kind})["x"]
    assert loaded == kind and type(loaded) is type(kind)
    if isinstance(kind, (list, dict)):
        assert [*map(type, loaded)] == [*map(type, kind)]
    if name == "defaultdict":
        assert loaded["b"] == []
    if name == "dtypes":
        assert all(a is b for a, b in zip(loaded, kind, strict=True))


def test_kinds_of_tensors_flags_and_attributes():
    note = nn.Parameter(flow.ones(1))
    note.decay, note._group = False, {"name": ("x", 1)}
    state = {
        "parameter": nn.Parameter(flow.ones(2)),
        "frozen": nn.Parameter(flow.tensor([1]), requires_grad=False),
        "buffer": nn.Buffer(flow.ones(2)),
        "passing": nn.Buffer(flow.ones(2), persistent=False),
        "leaf": flow.ones(2, dtype=flow.complex64).requires_grad_(),
        "result": flow.ones(2, requires_grad=True) * 2,
        "note": note,
    }
    loaded = through_a_file(state)
    assert_equal(loaded, state)
    assert loaded["buffer"].persistent and not loaded["passing"].persistent
    assert (loaded["note"].decay, loaded["note"]._group) == (False, {"name": ("x", 1)})
    loaded["parameter"].sum().backward()
    note.hook = len
    with pytest.raises(SerializationError, match=r"'note\.hook' is of type builtin"):
        to_bytes(state)


def test_memory_is_shared_again():
    base, alone = flow.arange(6.0), flow.arange(9.0)
    weight = nn.Parameter(flow.ones(2, 2))
    state = {
        "turned": base.reshape(2, 3).t(), "base": base, "end": base[4:], "spread": base[::5],
        "weight": weight, "cut": weight.detach(), "half": weight.data[0],
        "left": alone[:5], "right": alone[3:8], "apart": flow.arange(2.0), "again": weight,
    }  # fmt: skip
    loaded = through_a_file(state)
    for name, x in state.items():
        assert loaded[name].tolist() == x.tolist() and type(loaded[name]) is type(x)
    assert loaded["again"] is loaded["weight"]
    arrays = [x.detach().numpy() for x in loaded.values()]
    before = [x.detach().numpy() for x in state.values()]
    for i, j in itertools.product(range(len(arrays)), repeat=2):
        assert np.shares_memory(arrays[i], arrays[j]) == np.shares_memory(before[i], before[j])
    y = (loaded["weight"] ** 2).sum()
    loaded["half"].zero_()
    with pytest.raises(StaleTensorError):
        y.backward()
    # Of two halves nothing is joined: a small part of a large tensor stays small.
    assert len(to_bytes([flow.zeros(10**6)[:2], flow.zeros(10**6)[2:4]])) < 1000


def test_sparse_tensors(tmp_path):
    values = flow.tensor([1.0, 2.0, 3.0], requires_grad=True)
    x = flow.sparse_coo_tensor([[0, 0, 2], [1, 1, 0]], values, (3, 2))
    loaded = through_a_file({"x": x, "y": x.coalesce()})
    assert not loaded["x"].is_coalesced() and loaded["y"].is_coalesced()
    for y in loaded.values():
        assert y.shape == x.shape and y.to_dense().tolist() == x.to_dense().tolist()
    assert loaded["x"]._values().requires_grad


def test_a_list_that_occurs_twice_is_two_lists():
    torch = pytest.importorskip("torch")
    for lib, same in ((torch, True), (flow, False)):
        file, twice = io.BytesIO(), [1]
        lib.save([twice, twice], file)
        one, two = lib.load(io.BytesIO(file.getvalue()))
        assert one == two == twice and (one is two) == same


def test_what_agrees_with_pytorch():
    torch = pytest.importorskip("torch")

    def kinds(lib):
        weight = lib.nn.Parameter(lib.ones(2, 2))
        state = {
            "tensor": lib.ones(2), "leaf": lib.ones(2, requires_grad=True), "weight": weight,
            "result": weight * 2, "view": weight.data[1], "array": np.ones(2, np.int16),
            "scalar": np.float32(3), "size": weight.shape, "ordered": OrderedDict(a=(1, {2})),
        }  # fmt: skip
        file = io.BytesIO()
        lib.save(state, file)
        loaded = lib.load(io.BytesIO(file.getvalue()), weights_only=False)
        loaded["weight"].data.zero_()
        return [
            (
                name,
                type(x).__name__,
                getattr(x, "requires_grad", None),
                np.array(x.tolist()).tolist(),
            )
            if hasattr(x, "tolist")
            else (name, type(x).__name__, str(x).removeprefix("torch.Size"))
            for name, x in loaded.items()
            if name != "size"
        ] + [type(loaded["size"]).__name__]

    assert kinds(flow) == kinds(torch)


def test_versions_and_extra_state_of_modules_are_kept():
    class Counting(nn.Module):
        _version = 3

        def __init__(self) -> None:
            super().__init__()
            self.inner = nn.Linear(1, 1)
            self.calls, self.read = 0, None

        def get_extra_state(self):
            return {"calls": self.calls, "last": (1.5, None)}

        def set_extra_state(self, state):
            self.calls = state["calls"]

        def _load_from_state_dict(self, state_dict, prefix, local_metadata, *rest):
            self.read = local_metadata.get("version")
            super()._load_from_state_dict(state_dict, prefix, local_metadata, *rest)

    module, twin = Counting(), Counting()
    module.calls = 7
    state = through_a_file(module.state_dict())
    assert type(state) is OrderedDict
    assert state._metadata == module.state_dict()._metadata
    twin.load_state_dict(state)
    assert (twin.calls, twin.read) == (7, 3)
    plain = through_a_file(dict(module.state_dict()))
    assert type(plain) is dict
    twin.load_state_dict(plain)
    assert twin.read is None


@pytest.mark.parametrize("version", [1, 2, 3])
def test_files_of_every_version_are_read(version):
    safetensors = pytest.importorskip("safetensors.numpy")
    entry = '{"tensor": "x", "dtype": "float32"}'
    root = f'{{"dict": [["x", {entry}], ["y", {{"list": [{entry}]}}]]}}'
    structure = f'{{"version": {version}, "root": {root}}}'
    arrays = {"x": np.ones(3, np.float32)}
    metadata = {STRUCTURE: structure, CHECKSUM: str(checksum(structure, arrays))}
    loaded = load(io.BytesIO(safetensors.save(arrays, metadata)))
    assert_equal(loaded, {"x": flow.ones(3), "y": [flow.ones(3)]})
    assert loaded["x"] is loaded["y"][0]


def test_a_file_asks_for_the_version_that_it_needs():
    def version(obj):
        data = to_bytes(obj)
        (length,) = struct.unpack("<Q", data[:8])
        return json.loads(json.loads(data[8 : 8 + length])["__metadata__"][STRUCTURE])["version"]

    net = nn.Linear(1, 1)
    assert version(net.state_dict()) == 2
    assert version([nn.Parameter(flow.ones(1)), np.ones(1)]) == 2  # read as tensors, as ever
    assert version({"x": 1j}) == version([net.weight, net.weight[0]]) == 3


class Bomb:
    """A class of which a pickle may hold an instance."""

    def __reduce__(self):
        return os._exit, (3,)


def test_pickles_are_refused_and_never_run():
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        text = r"posix\._exit.*executed" if protocol > 1 else "damaged"
        with pytest.raises(SerializationError, match=text):
            load(io.BytesIO(pickle.dumps(Bomb(), protocol)))


STATE = {"w": flow.arange(12.0).reshape(3, 4), "n": flow.tensor(5), "lr": 0.1}
STATE |= {"row": nn.Parameter(STATE["w"][1]), "id": b"x"}


def test_every_truncation_is_noticed():
    data = to_bytes(STATE)
    for length in range(len(data)):
        with pytest.raises(SerializationError):
            load(io.BytesIO(data[:length]))
    with pytest.raises(SerializationError):
        load(io.BytesIO(data + b"\0"))


def test_every_damaged_byte_is_noticed():
    data = to_bytes(STATE)
    for position in range(len(data)):
        for flip in (1 << bit for bit in range(8)):
            damaged = bytearray(data)
            damaged[position] ^= flip
            try:
                loaded = load(io.BytesIO(bytes(damaged)))
            except SerializationError:
                continue
            assert_equal(loaded, STATE)  # of the header's padding


def test_two_records_of_one_name():
    header = b'{"x":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},'
    header += b'"x":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}}'
    with pytest.raises(SerializationError, match="damaged"):
        load(io.BytesIO(struct.pack("<Q", len(header)) + header + b"\1"))


@pytest.mark.parametrize(
    "data",
    [b"", b"x", b"hello world, this is text", b"\x93NUMPY\x01\x00", b"\0" * 64, b"\xff" * 64,
     struct.pack("<Q", 2) + b"[]", struct.pack("<Q", 4) + b"null"],
)  # fmt: skip
def test_foreign_files_are_refused(data):
    with pytest.raises(SerializationError, match="safetensors"):
        load(io.BytesIO(data))


@pytest.mark.parametrize(
    "structure",
    [
        "not json", "3", "[]", "{}", '{"version": 1}', '{"version": "1", "root": 1}',
        '{"version": 1, "root": {"heap": [1]}}', '{"version": 1, "root": {"dict": [[1]]}}',
        '{"version": 1, "root": {"tensor": "missing", "dtype": "float32"}}',
        '{"version": 1, "root": {"tensor": "x", "dtype": "complex64"}}',
        '{"version": 1, "root": {"tensor": ["x"], "dtype": "float32"}}',
        '{"version": 1, "root": {"dict": [[[1], 2]]}}',
        '{"version": 1, "root": {"list": 3}}', '{"version": 1, "root": [1]}',
        '{"version": 1, "root": {}}', '{"version": 99, "root": 1}',
        '{"version": 3, "root": {"bytes": "*"}}', '{"version": 3, "root": {"complex": [1]}}',
        *[f'{{"version": 3, "root": {{{root}}}}}' for root in (
            '"scalar": ["object", 1]', '"scalar": ["int8", 1000]', '"set": [{}]', '"size": "a"',
            '"dtype": "V8"', '"device": "disk"', '"defaultdict": ["eval", []]', '"eval": 1',
        )],
        *[f'{{"version": 3, "root": {{"tensor": "x", "dtype": "float32", {more}}}}}' for more in (
            '"kind": "Module"', '"attributes": 3', '"object": []', '"view": [2, [2], [1]]',
            '"view": [0, [3], [-1]]', '"view": [0, [2, 2], [1]]', '"view": [0, [9], [0], 1]',
        )],
        '{"version": 3, "root": {"sparse": [{"tensor": "x", "dtype": "float32"}, 1, [3], true]}}',
        '{"version": 1, "root": ' + '{"list": [' * 5000 + "]}" * 5000 + "}",
    ],
    ids=range(35),
)  # fmt: skip
def test_descriptions_that_make_no_sense_are_refused(structure):
    safetensors = pytest.importorskip("safetensors.numpy")
    arrays = {"x": np.ones(3, np.float32)}
    metadata = {STRUCTURE: structure, CHECKSUM: str(checksum(structure, arrays))}
    with pytest.raises(SerializationError):
        load(io.BytesIO(safetensors.save(arrays, metadata)))


def described_as(root: str, **arrays: np.ndarray) -> bytes:
    """A file of arrays with a description of one's own, and the right checksum."""
    safetensors = pytest.importorskip("safetensors.numpy")
    structure = f'{{"version": 3, "root": {root}}}'
    metadata = {STRUCTURE: structure, CHECKSUM: str(checksum(structure, arrays))}
    return safetensors.save(arrays, metadata)


def test_an_error_names_the_file_and_the_entry(tmp_path):
    path = tmp_path / "weights"
    entry = '["b", {"tensor": "w", "dtype": "int64"}]'
    path.write_bytes(described_as(f'{{"dict": [["a", {{"dict": [{entry}]}}]]}}', w=np.ones(1)))
    text = rf"^load\(\): file '{path}': .*entry 'a\.b'.*'w' is of float64"
    with pytest.raises(SerializationError, match=text):
        load(path)
    with open(path, "rb") as file, pytest.raises(SerializationError, match=text):
        load(file)


def test_sparse_tensors_that_lie():
    def sparse(places, coalesced="true", times=1):
        parts = '{"tensor": "i", "dtype": "int64"}, {"tensor": "v", "dtype": "float64"}'
        one = f'{{"sparse": [{parts}, [3, {1 << 40}], {coalesced}]}}'
        places = np.array(places)
        root = f'{{"list": [{", ".join([one] * times)}]}}'
        return described_as(root, i=places, v=np.ones(places.shape[1]))

    (found,) = load(io.BytesIO(sparse([[0, 1, 1], [2, 0, 1]])))
    assert found.is_coalesced() and found._indices().tolist() == [[0, 1, 1], [2, 0, 1]]
    for places in ([[0, 1, 1], [2, 1, 0]], [[0, 0], [1, 1]], [[1, 0], [0, 0]]):
        assert not load(io.BytesIO(sparse(places, "false")))[0].is_coalesced()
        with pytest.raises(SerializationError, match="not sorted"):
            load(io.BytesIO(sparse(places)))
    many = np.stack([np.zeros(100_000, np.int64), np.arange(100_000)])
    assert len(load(io.BytesIO(sparse(many, times=10)))) == 10
    with pytest.raises(SerializationError, match="again and again"):
        load(io.BytesIO(sparse(many, times=1000)))


@pytest.mark.parametrize(
    ("obj", "text"),
    [
        (nn.Linear(1, 1), "state_dict"),
        ({"a": [2**20_000]}, "'a.0' is an int of 20001 bits"),
        ({"a": {"b": [1, object()]}}, "a.b.1"),
        ({"f": len}, "'f'"),
        ({"array": np.array(["a"])}, "array"),
        (nn.Linear(1, 1), "never carries code"),
        ({flow.ones(1): 2}, "key"),
        ({(1, object()): 2}, "key"),
        ({_Letters("a"): 2}, "key"),
        ({"text": _Letters("a")}, "_Letters"),
        ({"default": defaultdict(lambda: 0)}, "defaultdict"),
        ({"masked": np.ma.array([1], mask=[True])}, "MaskedArray"),
        ({"wide": np.longdouble(1)}, "float128|longdouble"),
        ({"mapping": types.MappingProxyType({})}, "mappingproxy"),
        ({"lazy": nn.LazyLinear(1).weight}, "UninitializedParameter"),
    ],
)
def test_what_is_no_state_is_refused_and_writes_nothing(tmp_path, obj, text):
    path = tmp_path / "x"
    with pytest.raises(SerializationError, match=text):
        save(obj, path)
    assert os.listdir(tmp_path) == []


def test_an_object_that_contains_itself():
    obj: list = []
    obj.append(obj)
    with pytest.raises(SerializationError, match="itself"):
        to_bytes(obj)


def test_a_failed_write_leaves_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "x.safetensors"
    save(STATE, path)
    before = path.read_bytes()
    with pytest.raises(SerializationError):
        save({"x": len}, path)

    def fail(*args):
        raise OSError("disk full")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(OSError, match="disk full"):
        save({"x": flow.ones(1)}, path)
    monkeypatch.undo()
    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(OSError, match="disk full"):
        save({"x": flow.ones(1)}, path)
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == ["x.safetensors"]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="the system has no pipes with names")
def test_a_pipe_is_written_and_stays(tmp_path):
    path, got = tmp_path / "pipe", []
    os.mkfifo(path)
    reader = threading.Thread(target=lambda: got.append(path.read_bytes()))
    reader.start()
    save(STATE, path)
    reader.join()
    assert_equal(load(io.BytesIO(got[0])), STATE)
    assert path.is_fifo() and os.listdir(tmp_path) == ["pipe"]


def test_a_file_that_takes_some_bytes_at_a_time(tmp_path):
    class Slow(io.RawIOBase):
        most = 100

        def write(self, data):
            taken.append(bytes(data[: self.most]))
            return len(taken[-1])

    taken = []
    save(STATE, Slow())
    assert len(taken) > 3
    assert_equal(load(io.BytesIO(b"".join(taken))), STATE)  # entries of a header have no order
    Slow.most = 0
    with pytest.raises(OSError, match="takes no more"):
        save(STATE, Slow())


def test_a_name_may_be_as_long_as_the_system_allows(tmp_path):
    path = tmp_path / ("n" * 250)
    save(STATE, path)
    save(STATE, path)
    assert_equal(load(path), STATE)
    assert os.listdir(tmp_path) == [path.name]


def test_what_a_killed_save_left_is_removed_by_the_next(tmp_path):
    code = """
import os, signal, sys, oneflow_lite as flow
os.replace = lambda *args: os.kill(os.getpid(), signal.SIGKILL)
flow.save({"x": flow.ones(3)}, sys.argv[1])
"""
    path = tmp_path / "x"
    for _ in range(2):
        subprocess.run([sys.executable, "-c", code, path], check=False)
        assert [name[-4:] for name in os.listdir(tmp_path)] == [".tmp"]
    save(STATE, tmp_path / "another")
    assert len(os.listdir(tmp_path)) == 2
    save(STATE, path)
    assert sorted(os.listdir(tmp_path)) == ["another", "x"]


def test_a_save_that_goes_on_is_left_alone(tmp_path, monkeypatch):
    path, replace = tmp_path / "x", os.replace

    def inside(*args):
        monkeypatch.setattr(os, "replace", replace)
        save({"first": 1}, path)  # as another process does, before the rename of this one
        replace(*args)

    monkeypatch.setattr(os, "replace", inside)
    save(STATE, path)
    assert_equal(load(path), STATE)


def test_a_link_is_followed_and_permissions_are_kept(tmp_path):
    path, link = tmp_path / "x", tmp_path / "link"
    save(STATE, path)
    path.chmod(0o640)
    link.symlink_to(path)
    save({"x": flow.ones(1)}, link)
    assert link.is_symlink()
    assert list(load(path)) == ["x"]
    assert path.stat().st_mode & 0o777 == 0o640


def test_a_failed_load_leaves_the_module_alone(tmp_path):
    path = tmp_path / "x"
    net = nn.Linear(2, 2)
    before = net.weight.detach().numpy().copy()
    save(nn.Linear(2, 2).state_dict(), path)
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(SerializationError):
        net.load_state_dict(load(path))
    np.testing.assert_array_equal(net.weight.detach().numpy(), before)


def test_wrong_arguments(tmp_path):
    with pytest.raises(FileNotFoundError):
        load(tmp_path / "missing")
    for call in (lambda: load(3), lambda: save({}, 3)):
        with pytest.raises(TypeError, match="path"):
            call()
    with pytest.raises(SerializationError, match="binary"):
        load(io.StringIO("text"))
    for options in ({"weights_only": True}, {"weights_only": False, "mmap": True}):
        assert load(io.BytesIO(to_bytes({})), **options) == {}


def test_tensors_of_a_device(device):
    state = {"x": flow.arange(3).to(device), "z": flow.tensor([1 + 2j]).to(device)}
    data = to_bytes(state)
    loaded = load(io.BytesIO(data))
    assert {t.device.type for t in loaded.values()} == {"cpu"}
    there = load(io.BytesIO(data), map_location=device)
    assert {t.device.type for t in there.values()} == {device}
    for name, tensor in state.items():
        np.testing.assert_array_equal(there[name].cpu().numpy(), tensor.cpu().numpy())


def test_a_header_of_any_length_is_no_pickle():
    first_bytes = set()
    for length in range(256):
        data = to_bytes({"x": "a" * length})
        first_bytes.add(data[0])
        assert load(io.BytesIO(data)) == {"x": "a" * length}
        for cut in (1, 4, 8, 9, 60):
            with pytest.raises(SerializationError, match="damaged, cut short"):
                load(io.BytesIO(data[:cut]))
    assert 0x80 in first_bytes


def test_importing_the_package_does_not_import_safetensors():
    code = "import sys, oneflow_lite; print('safetensors' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


def test_the_file_says_what_it_is():
    data = to_bytes({"x": flow.ones(1)})
    (length,) = struct.unpack("<Q", data[:8])
    header = json.loads(data[8 : 8 + length])
    assert json.loads(header["__metadata__"]["oneflow_lite"])["version"] == 2


def test_a_checkpoint_keeps_kinds_too(tmp_path):
    weight = nn.Parameter(flow.ones(2))
    state = {"w": weight, "tied": [weight, weight.detach()], "rng": np.arange(3), "id": b"x"}
    flow.distributed.checkpoint.save(state, checkpoint_id=tmp_path)
    found = dict.fromkeys(state)
    flow.distributed.checkpoint.load(found, checkpoint_id=tmp_path)
    assert type(found["w"]) is nn.Parameter and found["w"].requires_grad
    assert found["tied"][0] is found["w"] and found["tied"][1].tolist() == [1.0, 1.0]
    assert type(found["tied"][1]) is flow.Tensor and not found["tied"][1].requires_grad
    assert type(found["rng"]) is np.ndarray and found["id"] == b"x"
    for saved, version in ((state, 2), ({"w": flow.ones(1)}, 1)):  # what older versions read
        number = flow.distributed.checkpoint.save(saved, checkpoint_id=tmp_path)
        manifest = tmp_path / f"checkpoint-{number:08d}" / "manifest.json"
        assert json.loads(manifest.read_bytes())["checkpoint"]["format"] == version


def test_a_checkpoint_that_does_not_fit_changes_nothing(tmp_path):
    def made(width):
        net = nn.Linear(2, width)
        optimizer = optim.Adam(net.parameters())
        net(flow.ones(1, 2)).sum().backward()
        optimizer.step()
        return {"net": net, "optimizer": optimizer}

    state = {"x": flow.ones(2), "n": 1, "deep": {"a": 1}, "rng": flow.Generator(), **made(3)}
    flow.distributed.checkpoint.save({**state, "last": made(3)["net"]}, checkpoint_id=tmp_path)
    given = {"x": flow.zeros(2), "n": 2, "deep": {"b": 1}, "rng": flow.Generator(), **made(3)}
    given["rng"].manual_seed(7)
    given["last"] = made(4)["net"]
    before = repr([v.state_dict() if hasattr(v, "state_dict") else v for v in given.values()])
    seed = repr(given["rng"].get_state())
    with pytest.raises(flow.errors.StateDictError):
        flow.distributed.checkpoint.load(given, checkpoint_id=tmp_path)
    after = repr([v.state_dict() if hasattr(v, "state_dict") else v for v in given.values()])
    assert after == before and repr(given["rng"].get_state()) == seed
    given["last"] = made(3)["net"]
    flow.distributed.checkpoint.load(given, checkpoint_id=tmp_path)
    assert given["x"].tolist() == [1, 1] and given["n"] == 1 and given["deep"]["a"] == 1
