"""flow.save and flow.load: what goes through a file, what is refused, and what stays unharmed."""

import io
import json
import math
import os
import pickle
import struct
import subprocess
import sys
from collections import OrderedDict

import numpy as np
import pytest

import oneflow_lite as flow
from oneflow_lite import nn, optim
from oneflow_lite.errors import SerializationError
from oneflow_lite.files.serialization import _CHECKSUM, _STRUCTURE, _checksum, load, save

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
        assert isinstance(a, flow.Tensor)
        assert a.dtype is b.dtype
        assert a.shape == b.shape
        np.testing.assert_array_equal(a.numpy(), b.detach().numpy())
    elif isinstance(b, dict):
        assert list(a) == list(b)
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
    for tensor in loaded.values():
        assert not tensor.requires_grad
        tensor.fill_(1)  # own, writable memory


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
    assert_equal(loaded, {**obj, "model": dict(obj["model"])})
    assert type(loaded["model"]) is dict
    assert math.isnan(through_a_file([math.nan])[0])
    assert through_a_file([math.inf]) == [math.inf]
    assert_equal(through_a_file(flow.ones(3)), flow.ones(3))
    assert_equal(through_a_file(OrderedDict()), {})


def test_names_that_share_a_tensor_share_it_again():
    net = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2))
    net[1].weight = net[0].weight
    data = to_bytes(net.state_dict())
    state = load(io.BytesIO(data))
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


def test_arrays_are_saved_and_loaded_as_tensors():
    array = np.arange(6.0).reshape(2, 3)
    state = {"a": array, "b": [array, np.array(True)], "c": np.float32(0.5), "d": np.int8(3)}
    loaded = through_a_file(state)
    assert_equal(loaded["a"], flow.tensor(array))
    assert loaded["b"][0] is loaded["a"]
    assert loaded["b"][1].dtype == flow.bool
    assert (loaded["c"], loaded["d"]) == (0.5, 3)
    for wrong in (np.array(["a"]), np.array([None])):
        with pytest.raises(SerializationError, match="array of"):
            to_bytes({"x": wrong})


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


def test_files_of_version_1_are_read():
    safetensors = pytest.importorskip("safetensors.numpy")
    structure = '{"version": 1, "root": {"dict": [["x", {"tensor": "x", "dtype": "float32"}]]}}'
    arrays = {"x": np.ones(3, np.float32)}
    metadata = {_STRUCTURE: structure, _CHECKSUM: str(_checksum(structure, arrays))}
    assert_equal(load(io.BytesIO(safetensors.save(arrays, metadata))), {"x": flow.ones(3)})


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
        for flip in (1, 0x20, 0x80):
            damaged = bytearray(data)
            damaged[position] ^= flip
            try:
                loaded = load(io.BytesIO(bytes(damaged)))
            except SerializationError:
                continue
            # What stands in the header's padding, or under a key of ours that lost its name, is
            # not covered: the tensors are all there and right.
            assert_equal(loaded["w"], STATE["w"])
            assert_equal(loaded["n"], STATE["n"])


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
        '{"version": 1, "root": {"set": [1]}}', '{"version": 1, "root": {"dict": [[1]]}}',
        '{"version": 1, "root": {"tensor": "missing", "dtype": "float32"}}',
        '{"version": 1, "root": {"tensor": "x", "dtype": "complex64"}}',
        '{"version": 1, "root": {"tensor": ["x"], "dtype": "float32"}}',
        '{"version": 1, "root": {"dict": [[[1], 2]]}}',
        '{"version": 1, "root": {"list": 3}}', '{"version": 1, "root": [1]}',
        '{"version": 1, "root": {}}', '{"version": 99, "root": 1}',
        '{"version": 1, "root": ' + '{"list": [' * 5000 + "]}" * 5000 + "}",
    ],
    ids=range(17),
)  # fmt: skip
def test_descriptions_that_make_no_sense_are_refused(structure):
    safetensors = pytest.importorskip("safetensors.numpy")
    arrays = {"x": np.ones(3, np.float32)}
    metadata = {_STRUCTURE: structure, _CHECKSUM: str(_checksum(structure, arrays))}
    with pytest.raises(SerializationError):
        load(io.BytesIO(safetensors.save(arrays, metadata)))


@pytest.mark.parametrize(
    ("obj", "text"),
    [
        (nn.Linear(1, 1), "state_dict"),
        ({"a": {"b": [1, object()]}}, "a.b.1"),
        ({"f": len}, "'f'"),
        ({"array": np.array(["a"])}, "array"),
        (nn.Linear(1, 1), "never carries code"),
        ({("a", 1): 2}, "key"),
        ({True: 2}, "key"),
        ({"set": {1}}, "set"),
        ({"bytes": b"x"}, "bytes"),
        ({"complex": 1j}, "complex"),
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
