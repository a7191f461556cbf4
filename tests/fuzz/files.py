"""Files that lie: a part of a file is replaced, the file is sealed again, and loaded.

A mutant raises `SerializationError`, which names the file, and changes nothing; or it is a legal
file: what it holds is saved again, and the new file holds the same.
"""

from __future__ import annotations

import atexit
import copy
import functools
import gc
import io
import json
import math
import pickle
import pickletools
import random
import resource
import shutil
import struct
import tempfile
import time
import traceback
import warnings
import zipfile
from collections import Counter, OrderedDict, defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

import oneflow_lite as flow
from oneflow_lite import nn, optim
from oneflow_lite.arrays.device import CPU
from oneflow_lite.distributed import checkpoint
from oneflow_lite.errors import FlowError, SerializationError
from oneflow_lite.files.description import CHECKSUM, STRUCTURE, Reader, checksum
from oneflow_lite.files.sharded_files import _seal_of, _state_of
from tests.fuzz.verdict import torch

SECONDS, KIB = 2.0, 300 << 10  # no mutant takes as much

# Trees of JSON


class Twice(dict[str, Any]):
    """A JSON object whose first name occurs twice."""

    def items(self) -> Any:
        listed = list(super().items())
        return listed + listed[:1]


BIG = "an int of 6000 digits"
DEEP = functools.reduce(lambda inner, _: {"list": [inner]}, range(90), 0)
HOSTILE: list[Any] = [
    None, True, False, 0, 1, -1, -5, 2**31, 2**63, 2**64, 10**400, BIG, 0.5, -0.0, math.nan,
    math.inf, 1e308, "", "x", "w", "float64", "int4", "ünï\n\0", "\ud800", "\x00" * 9, "../../x",
    "__class__", [], [[]], [1], [-1], [2**70], [None, None], {}, {"": 0}, {"dict": [["a", 1]]},
    {"tensor": "w", "dtype": "float32"}, {"list": {"list": []}}, {"tuple": "ab"}, {"block": 0},
    {"shares": "x"}, {"parts": "x", "shape": [2], "dtype": "float32"}, DEEP,
]  # fmt: skip
CHANGES: dict[str, Callable[[Any], Any]] = {
    "shorter": lambda x: dict([*x.items()][1:]) if isinstance(x, dict) else x[1:],
    "longer": lambda x: {**x, "more": 1} if isinstance(x, dict) else [*x, *x[:1]],
    "turned": lambda x: dict([*x.items()][::-1]) if isinstance(x, dict) else x[::-1],
    "renamed": lambda x: {name + "é": value for name, value in x.items()},
    "with a name twice": lambda x: Twice(x.items()),
    "nested": lambda x: [x],
    "as text": json.dumps,
}


def text_of(tree: Any) -> str:
    """Return the JSON of a tree."""
    return json.dumps(tree).replace(json.dumps(BIG), "1" + "0" * 6000)


def places(tree: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the paths of the nodes of a tree, but for its root and the nodes below it."""
    if len(path) > 1:
        yield path
    if isinstance(tree, (dict, list)):
        for key, value in tree.items() if isinstance(tree, dict) else enumerate(tree):
            yield from places(value, (*path, key))


def changed(tree: Any, path: tuple[Any, ...], change: Callable[[Any], Any]) -> Any:
    """Return a tree with a changed node; the rest is shared."""
    if not path:
        return change(tree)
    copied = copy.copy(tree)
    copied[path[0]] = changed(tree[path[0]], path[1:], change)
    return copied


def mutant(tree: Any, paths: list[tuple[Any, ...]], rng: random.Random) -> tuple[str, Any]:
    """Return a tree with one node changed, and a text that says which."""
    path = rng.choice(paths)
    name = rng.choice([*CHANGES, *[""] * len(HOSTILE)])
    value = rng.choice(HOSTILE)
    try:
        return f"{path} {name or repr(value)[:60]}", changed(
            tree, path, CHANGES.get(name, lambda _: value)
        )
    except (TypeError, AttributeError):  # the node is no list or dict
        return f"{path} {value!r}"[:200], changed(tree, path, lambda _: value)


def damaged(data: bytes, rng: random.Random) -> bytes:
    """Return bytes with flips, or a part cut, doubled, moved or inserted."""
    result = bytearray(data)
    for _ in range(rng.choice([1, 1, 1, 2, 5])):
        at, until = sorted(rng.randrange(len(result) + 1) for _ in range(2))
        way = rng.randrange(6)
        if way < 2 and result:
            result[rng.randrange(len(result))] ^= 1 << rng.randrange(8)
        elif way == 2:
            del result[at : rng.choice([at + 1, until, len(result)])]
        elif way == 3:
            result[at:at] = rng.randbytes(rng.choice([1, 8, 100]))
        elif way == 4:
            result[at:at] = result[at:until][:1000]
        else:
            to = rng.randrange(len(result) + 1)
            result[to : to + until - at] = result[at:until]
    return bytes(result)


# The kinds of files


class State:
    """A file of `flow.save` with an object of each kind."""

    name = "state"

    def __init__(self, folder: Path) -> None:
        self.path = folder / f"{self.name}.file"
        self.again = folder / f"{self.name}.again"
        self.write()
        self.data = self.path.read_bytes()
        self.tree, self.tensors = split(self.data)
        self.paths = list(places(self.tree))
        self.before = self.held(self.path)

    def write(self) -> None:
        """Write the file."""
        w = flow.arange(12.0).reshape(3, 4)
        tagged, state = nn.Parameter(flow.ones(2)), nn.Linear(1, 1).state_dict()
        tagged.tag = "x"
        shared = flow.arange(3.0)
        sparse = flow.sparse_coo_tensor([[0, 1], [2, 0]], [3.0, 4.0], (2, 3)).coalesce()
        flow.save(
            {
                "w": w, "row": nn.Parameter(w[1]), "n": flow.tensor(5), "lr": 0.1, "id": b"x",
                "z": 2j, "c": flow.tensor([1 + 2j]), "tag": tagged, "state": state,
                "list": [1, True, None, "t", (2, shared, shared)], "set": {1, (2, "a")},
                "frozen": frozenset([3]), "bytes": bytearray(b"ab"), "order": OrderedDict(k=1),
                "count": Counter("aab"), "default": defaultdict(list, a=[1]),
                "size": flow.Size([2, 3]), "device": flow.device("cpu"), "dtype": flow.float32,
                "scalars": [np.float32(1.5), np.int8(3), np.complex64(1j)], "array": np.ones(2),
                "sparse": sparse, 7: {0: "zero", -1: 2, None: 3, 0.5: 1},
                "bf": flow.ones(2).bfloat16(), "b": flow.tensor([True, False]),
                "buffer": nn.Buffer(flow.ones(1)),
            },
            self.path,
        )  # fmt: skip

    def mutate(self, rng: random.Random) -> str:
        """Write a mutant, and say what is changed."""
        if rng.random() < 0.3:
            self.path.write_bytes(damaged(self.data, rng))
            return "bytes"
        what, tree = mutant(self.tree, self.paths, rng)
        self.path.write_bytes(sealed(tree, self.tensors))
        return what

    def load(self) -> Callable[[], Any]:
        """Load the file; return what saves it again."""
        found = flow.load(self.path)
        return lambda: flow.save(found, self.again)

    def held(self, path: Path) -> Any:
        """Return what a file holds, in a form that equal files have in common."""
        return held(*split(path.read_bytes()))

    def check(self, what: str, save: Callable[[], Any]) -> None:
        """Check that a file that was loaded is a legal one."""
        save()
        now = self.before if what == "bytes" else self.held(self.path)
        assert repr(self.held(self.again)) == repr(now)


def split(data: bytes) -> tuple[Any, bytes]:
    """Return the JSON of a file of ours and the bytes of its tensors."""
    (length,) = struct.unpack("<Q", data[:8])
    header = json.loads(data[8 : 8 + length])
    structure = json.loads(header.pop("__metadata__")[STRUCTURE])
    return {"header": header, "structure": structure}, data[8 + length :]


def sealed(tree: Any, tensors: bytes) -> bytes:
    """Return the bytes of a file, with the right checksum if its tensors can be read at all."""
    structure = text_of(tree["structure"])

    def joined(seal: str) -> bytes:
        metadata = {STRUCTURE: structure, CHECKSUM: seal}
        text = text_of({**tree["header"], "__metadata__": metadata}).encode()
        return struct.pack("<Q", len(text)) + text + tensors

    reader = Reader(joined(""), CPU)
    try:
        reader.parse()
    except Exception:
        return joined("0")
    return joined(str(checksum(structure, reader.arrays)))


def held(tree: Any, tensors: bytes) -> Any:
    """Return a description with the elements of tensors instead of their names."""
    header, named = tree["header"], set()

    def elements(node: Any) -> Any:
        named.add(node["tensor"])
        entry = header[node["tensor"]]
        start, end = entry["data_offsets"]
        array = np.frombuffer(tensors[start:end], f"V{np.dtype(node['dtype']).itemsize}")
        if "view" not in node:
            sizes = entry["shape"][: -1 if node["dtype"].startswith("complex") else None]
            return array.reshape(sizes).tolist()
        offset, shape, strides = node["view"]
        steps = [n * array.itemsize for n in strides]
        return np.lib.stride_tricks.as_strided(array[offset:], shape, steps).tolist()

    def part(node: Any) -> Any:
        if not isinstance(node, dict):
            return [part(x) for x in node] if isinstance(node, list) else node
        apart = ("object", "view", "attributes")
        found = {k: part(v) for k, v in sorted(node.items()) if k not in apart}
        if "tensor" in node:
            found["tensor"] = elements(node)
            pairs = node.get("attributes", {"dict": []})["dict"]
            found["attributes"] = [part(x) for x in pairs if not x[0].startswith("__")]
        for kind in {"set", "frozenset"} & node.keys():
            found[kind].sort(key=repr)
        return found

    found = part(tree["structure"]["root"])
    assert named == header.keys()
    return found


class Program(State):
    """A file of `flow.static.save` with control flow, constants, several outputs, an optimizer."""

    name = "program"

    def write(self) -> None:
        flow.manual_seed(0)
        main, startup, scope = flow.static.Program(), flow.static.Program(), flow.static.Scope()
        with flow.static.program_guard(main, startup):
            x = flow.static.data("x", [3])
            y = flow.static.nn.cond(x.sum() > 0, lambda: x * 2, lambda: x - 1)
            i, y = flow.static.nn.while_loop(
                lambda i, y: i < 3, lambda i, y: [i + 1, y * 2], [flow.zeros(1), y]
            )
            top, _ = flow.topk(nn.Linear(3, 3)(y[[2, 0, 1]][..., None, :].squeeze(0)), 2)
            optim.SGD(lr=0.1, momentum=0.9).minimize(flow.dropout(top, 0.5).sum())
        flow.static.Executor().run(startup, scope=scope)
        flow.static.save(main, self.path, scope)

    def load(self) -> Callable[[], Any]:
        program, scope = flow.static.load(self.path)
        return lambda: flow.static.save(program, self.again, scope)

    def held(self, path: Path) -> Any:
        return ordered(flow.load(path))


def ordered(node: Any) -> Any:
    """Return what a Program's file holds, whatever the order of the entries of its records."""
    if isinstance(node, dict):
        return {str(key): ordered(node[key]) for key in sorted(node, key=str)}
    if isinstance(node, (list, tuple)):
        return type(node)(ordered(x) for x in node)
    return node.tolist() if isinstance(node, flow.Tensor) else node


class Checkpoint:
    """A directory of `flow.distributed.checkpoint.save`, with a module and an optimizer."""

    name = "checkpoint"

    def __init__(self, folder: Path) -> None:
        self.path, self.again = folder / "checkpoint", folder / "checkpoint.again"
        self.given, self.before = self.made(), ""
        checkpoint.save(self.given, checkpoint_id=self.path)
        self.files = [self.path / "checkpoint-00000001" / x for x in (MANIFEST, RANK)]
        self.data = [file.read_bytes() for file in self.files]
        self.written = self.data
        (length,) = struct.unpack("<Q", self.data[1][:8])
        header, self.tensors = self.data[1][8 : 8 + length], self.data[1][8 + length :]
        self.tree = {"body": json.loads(self.data[0])["checkpoint"], "header": json.loads(header)}
        self.paths = list(places(self.tree))
        self.before = self.shown()

    def made(self) -> dict[str, Any]:
        """Return a state."""
        flow.manual_seed(0)
        net = nn.Sequential(nn.Linear(2, 1), nn.BatchNorm1d(1))
        optimizer = optim.Adam(net.parameters())
        net(flow.ones(2, 2)).sum().backward()
        optimizer.step()
        w = flow.arange(6.0).reshape(2, 3)
        return {
            "x": w, "row": w[0], "n": 1, "deep": {"a": [1, (2.0, "t")]}, "id": b"x", "net": net,
            "rng": flow.Generator().manual_seed(3), "optimizer": optimizer, "c": flow.tensor([1j]),
            "scheduler": optim.lr_scheduler.StepLR(optimizer, 2),
            "sparse": flow.sparse_coo_tensor([[0]], [1.0], (2,)).coalesce(),
        }  # fmt: skip

    def shown(self) -> str:
        """Return the values of the present state, as text."""
        return repr([_state_of(value) for value in self.given.values()])

    def mutate(self, rng: random.Random) -> str:
        if self.shown() != self.before:  # the mutant before was a legal file
            self.given = self.made()
        what, self.written = "bytes", [*self.data]
        if rng.random() < 0.3:
            k = rng.randrange(2)
            self.written[k] = damaged(self.data[k], rng)
        else:
            what, tree = mutant(self.tree, self.paths, rng)
            body, header = text_of(tree["body"]), text_of(tree["header"]).encode()
            try:
                seal = _seal_of(json.loads(body))
            except ValueError:
                seal = ""
            self.written[0] = f'{{"checkpoint": {body}, "seal": "{seal}"}}'.encode()
            self.written[1] = struct.pack("<Q", len(header)) + header + self.tensors
        for file, data in zip(self.files, self.written, strict=True):
            file.write_bytes(data)
        return what

    def load(self) -> Callable[[], Any]:
        try:
            checkpoint.load(self.given, checkpoint_id=self.path)
        except FlowError as error:
            assert self.shown() == self.before
            if not isinstance(error, SerializationError):  # a state that does not fit its object
                raise SerializationError("\n".join([str(error), *error.__notes__])) from error
            raise
        return lambda: checkpoint.save(self.given, checkpoint_id=self.again, keep=1)

    def check(self, what: str, save: Callable[[], Any]) -> None:
        save()
        assert what != "bytes" or self.shown() == self.before


class Torch:
    """A file of `torch.save`: its pickle is changed, and its zip archive is written again."""

    name = "torch"

    def __init__(self, folder: Path) -> None:
        self.path = folder / "file.pt"
        self.forms: list[tuple[bytes, list[list[bytes]], Callable[[list[bytes]], bytes]]] = []
        state = self.made()
        for zipped in (True, False):
            file = io.BytesIO()
            torch.save(state, file, _use_new_zipfile_serialization=zipped)
            data = file.getvalue()
            if zipped:
                archive = zipfile.ZipFile(file)
                code = io.BytesIO(archive.read("archive/data.pkl"))
                self.forms.append((data, [steps(code)], functools.partial(zip_of, archive)))
                continue
            file.seek(0)
            pickles = [steps(file) for _ in range(5)]
            rest = data[file.tell() :]
            self.forms.append((data, pickles, lambda codes, rest=rest: b"".join([*codes, rest])))

    def made(self) -> Any:
        """Return a state."""
        w, parameter = torch.arange(12.0).reshape(3, 4), torch.nn.Parameter(torch.ones(2))
        parameter.tag = "x"
        return {
            "w": w, "row": w[1], "net": torch.nn.Linear(2, 1).state_dict(), "p": parameter,
            "b": torch.nn.Buffer(torch.ones(1)), "conj": torch.tensor([1 + 2j]).conj(),
            "n": [1, -2, 0.5, 10**30, None, True, "t", b"b", bytearray(b"a")], "t": (1, (2, "a")),
            "set": {1, (2, "a")}, "frozen": frozenset([3]), "order": OrderedDict(k=1),
            "count": Counter("aab"), "default": defaultdict(list, a=[1]), "dtype": torch.float32,
            "size": torch.Size([2, 3]), "device": torch.device("cpu"), "scalar": np.float32(1.5),
            "array": np.ones((2, 2)), "turned": np.asfortranarray(np.ones((2, 3), "int16")),
            7: {0: "z", None: 1, 2j: 1}, "u16": torch.tensor([1, 2]).to(torch.uint16),
            "bf": torch.ones(2).bfloat16(), "bool": torch.tensor([True]),
        }  # fmt: skip

    def mutate(self, rng: random.Random) -> str:
        data, pickles, join = rng.choice(self.forms)
        if rng.random() < 0.3:
            self.path.write_bytes(damaged(data, rng))
            return "bytes"
        chosen = rng.randrange(len(pickles))
        codes = [b"".join(parts) for parts in pickles]
        parts = [*pickles[chosen]]
        for _ in range(rng.choice([1, 1, 1, 2, 4])):
            at, other, way = rng.randrange(len(parts)), rng.randrange(len(parts)), rng.randrange(5)
            if way == 0:
                parts[at] = rng.choice(STEPS)
            elif way == 1:
                parts.insert(at, rng.choice(STEPS))
            elif way == 2 and len(parts) > 1:
                del parts[at]
            elif way == 3:
                parts[at], parts[other] = parts[other], parts[at]
            else:
                parts[at] = parts[other]
        codes[chosen] = b"".join(parts)
        self.path.write_bytes(join(codes))
        return f"pickle {chosen}: {codes[chosen]!r}"

    def load(self) -> Callable[[], Any]:
        found = flow.load(self.path)
        return lambda: None if is_large(found, {}) else flow.save(found, io.BytesIO())

    def check(self, what: str, save: Callable[[], Any]) -> None:
        try:
            save()
        except SerializationError as error:
            assert "contains itself" in str(error)


def steps(file: io.BytesIO) -> list[bytes]:
    """Return the bytes of each instruction of a pickle, and leave the file at its end."""
    starts = [position for *_, position in pickletools.genops(file)]
    ends, data = [*starts[1:], file.tell()], file.getvalue()
    return [data[start:end] for start, end in zip(starts, ends, strict=True)]


def zip_of(archive: zipfile.ZipFile, codes: list[bytes]) -> bytes:
    """Return an archive with another pickle."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as changed_archive:
        for name in archive.namelist():
            data = codes[0] if name.endswith(".pkl") else archive.read(name)
            changed_archive.writestr(name, data)
    return file.getvalue()


def is_large(x: Any, seen: dict[int, Any]) -> bool:
    """Return whether there is a tensor or an array in it that would be a large file."""
    if id(x) in seen:
        return False
    seen[id(x)] = x
    if isinstance(x, (flow.Tensor, np.ndarray)):
        return math.prod(x.shape) > 1 << 20
    parts = x.values() if isinstance(x, dict) else x if isinstance(x, (list, tuple)) else ()
    return any(is_large(part, seen) for part in parts)


MANIFEST, RANK = "manifest.json", "rank0.safetensors"
_VALUES: list[Any] = [
    None, True, 0, 1, -1, -5, 2**31, 2**63, 2**20000, 0.5, math.nan, "", "x", "storage", "cpu",
    "\ud800", b"", b"xyz", [], [-1], [[]], {}, {"a": 1}, (), (1,), (-1,), (2**70,), (None, None),
    ((((),),),), set(), 2j,
]  # fmt: skip
_NAMES = """
    torch.Size torch.device torch.float32 torch.FloatStorage torch.storage.UntypedStorage
    torch._utils._rebuild_tensor_v2 torch._utils._rebuild_parameter collections.OrderedDict
    collections.Counter collections.defaultdict numpy.dtype numpy.ndarray builtins.set builtins.int
    builtins.bytearray numpy._core.multiarray.scalar os.system torch.sparse_coo_tensor
    """
STEPS = [pickle.dumps(value, 2)[2:-1] for value in _VALUES]
STEPS += [bytes([code]) for code in b"(012]})Rbt\x85\x86\x87aesuQld.\x8f\x90\x91\x81"]
STEPS += [b"h\x00", b"h\x05", b"h\x20"]
STEPS += ["c{}\n{}\n".format(*name.rsplit(".", 1)).encode() for name in _NAMES.split()]


# Running


@functools.cache
def kinds() -> list[Any]:
    """Return a file of each kind, in a folder that stays for as long as the process."""
    folder = tempfile.mkdtemp()
    atexit.register(shutil.rmtree, folder)
    there = (State, Program, Checkpoint, *([] if torch is None else [Torch]))
    return [kind(Path(folder)) for kind in there]


def attempt(job: tuple[int, int]) -> tuple[int, Counter[str], list[str]]:
    """Load so many mutants from a seed; return the seed, the counts, and the failures as text."""
    count, seed = job
    counts: Counter[str] = Counter()
    failures = []
    files = kinds()
    gc.collect()
    for number in range(seed, seed + count):
        rng = random.Random(number)
        file = files[number % len(files)]
        what = file.mutate(rng)
        before, start = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.perf_counter()
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                save = file.load()
                end = "is a legal file"
                file.check(what, save)
        except SerializationError as error:
            end = "is refused"
            if str(file.path) not in str(error):
                failures.append(f"{number}: {file.name} {what}: no name in {error}")
        except Exception:
            end = "fails"
            failures.append(f"{number}: {file.name} {what}:\n{traceback.format_exc(limit=-4)}")
        counts[f"{file.name}, {'bytes' if what == 'bytes' else 'parts'}: {end}"] += 1
        took = time.perf_counter() - start
        grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
        if took > SECONDS or grown > KIB:
            failures.append(f"{number}: {file.name} {what}: took {took:.1f} s, {grown} KiB")
    return seed, counts, failures
