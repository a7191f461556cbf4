"""Checkpoints that several ranks write together: `flow.distributed.checkpoint.save` and `load`.

A checkpoint is a directory with a safetensors file of each rank and a manifest, the list of the
contents of all files. Rank 0 puts the manifest into its place last, when all files are on the disk:
a directory without a manifest is no checkpoint, and a killed rank leaves the last checkpoint as it
was. Of several ranks with the same tensor, one rank writes it. Of a global tensor each rank writes
its part; when it loads, it reads the elements of its new part from all parts.
"""

from __future__ import annotations

import contextlib
import copy
import hashlib
import json
import math
import os
import re
import shutil
import struct
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from oneflow_lite.arrays.device import CPU
from oneflow_lite.arrays.dtype import as_dtype
from oneflow_lite.distributed.boxing import on_placement
from oneflow_lite.distributed.objects import all_gather_object
from oneflow_lite.distributed.process_group import (
    ProcessGroup,
    check_group,
    is_initialized,
)
from oneflow_lite.errors import (
    ArgumentTypeError,
    DistributedError,
    FlowError,
    SerializationError,
    arg_error,
)
from oneflow_lite.files.description import Reader, Writer, listed, natural, parsed, require
from oneflow_lite.files.serialization import replace_file
from oneflow_lite.files.torch_files import room_of, shown
from oneflow_lite.functors.declaring.checks import check_int
from oneflow_lite.functors.random import Generator
from oneflow_lite.nn.state_loading import restorer
from oneflow_lite.tensors.mode import no_grad
from oneflow_lite.tensors.tensor import Tensor, make_tensor

__all__ = ["FileSystemReader", "FileSystemWriter", "load", "remove_old", "save", "saved"]
_MANIFEST = "manifest.json"
_NAME = re.compile(r"checkpoint-(\d{8,})")
_FORMAT = 2  # since 2, the descriptions of version 3
Manifest = dict[str, Any]
Undo = Callable[[], Any]
Change = tuple[Callable[[], Any], Callable[[], Undo]]  # a change, and what makes its undo


class Shares(dict[Any, Any]):
    """Entries that are spread over the ranks; a rank that loads the dict sees all entries."""


class FileSystemWriter:
    """A directory, as PyTorch's scripts name it: `save(state, storage_writer=...)`."""

    def __init__(self, path: str | os.PathLike[str], *args: Any, **options: Any) -> None:
        self.path = Path(path)


class FileSystemReader(FileSystemWriter):
    """A directory, as PyTorch's scripts name it: `load(state, storage_reader=...)`."""


def save(
    state_dict: Mapping[str, Any],
    *,
    checkpoint_id: str | os.PathLike[str] | None = None,
    storage_writer: FileSystemWriter | None = None,
    planner: Any = None,
    process_group: ProcessGroup | None = None,
    no_dist: bool = False,
    use_collectives: bool = True,
    keep: int = 2,
) -> int:
    """Write a checkpoint; all ranks call it.

    Parameters
    ----------
    state_dict : dict
        Objects that have `state_dict` (modules, optimizers, schedulers), generators, and all
        types that `flow.save` writes. Values that the ranks have in common are written once, all
        other values for each rank.
    checkpoint_id : path
        A directory for the checkpoints of one run. Each call adds one, under a number of its own.
    storage_writer : FileSystemWriter
        Names the directory instead.
    process_group : ProcessGroup, optional
        The world by default, or this process without a world.
    no_dist : bool
        Whether this process writes alone.
    keep : int
        The number of complete checkpoints to leave; older checkpoints are removed, and so are
        directories whose writers were ended before the manifest.
    planner, use_collectives
        For PyTorch's scripts; without effect.

    Returns
    -------
    int
        The number of the checkpoint.

    Raises
    ------
    SerializationError
        When the state holds a type that is not written.
    DistributedError
        On all ranks, when a rank cannot write; earlier checkpoints stay as they were.

    Examples
    --------
    >>> import tempfile
    >>> import oneflow_lite as flow
    >>> state = {"net": flow.nn.Linear(1, 1), "rng": flow.default_generator, "step": 7}
    >>> with tempfile.TemporaryDirectory() as directory:
    ...     number = flow.distributed.checkpoint.save(state, checkpoint_id=directory)
    ...     state["step"] = 0
    ...     _ = flow.distributed.checkpoint.load(state, checkpoint_id=directory)
    >>> number, state["step"]
    (1, 7)
    """
    op = "save"
    _check_state(op, state_dict)
    root = _directory(op, checkpoint_id, storage_writer)
    kept = check_int(op, "keep", keep, 1)
    group = _group(op, process_group, no_dist)
    rank = group.rank()

    def describe() -> tuple[_Writer, Any]:
        writer = _Writer(group)
        root = {key: _state_of(value) for key, value in state_dict.items()}
        described = writer.describe(root, ())
        seals = {name: _seal(x) for name, x in writer.arrays.items()}
        return writer, (described, writer.version, writer.shares, writer.in_shares, seals)

    writer, mine = _together(group, op, describe)
    number: int = _agreed(group, op, lambda: 1 + max((n for n, _ in _numbered(root)), default=0))
    place = _place(root, number)
    everyone = _of_all(group, mine)
    owners = _shared_out([seals for *_, seals in everyone])
    names = [name for name in writer.arrays if owners[rank][name] == rank]

    def write() -> int:
        place.mkdir(parents=True, exist_ok=True)
        metadata = {"oneflow_lite_rank": str(rank)}
        data = Writer.to_bytes({name: writer.arrays[name] for name in names}, metadata)
        with open(place / _file(rank), "xb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        return len(data)

    try:
        _together(group, op, write)
    except BaseException:
        if rank == 0:  # else the next checkpoint would remove it
            shutil.rmtree(place, ignore_errors=True)
        raise

    def finish() -> None:
        # Every file and name is on the disk before the manifest makes this a checkpoint.
        if rank == 0:
            _fsync(place)
            _fsync(root)
            manifest = _manifest(number, everyone, owners)
            replace_file(os.fspath(place / _MANIFEST), json.dumps(manifest).encode())
            _fsync(place)
            remove_old(root, kept)

    _together(group, op, finish)
    return number


def load(
    state_dict: dict[str, Any],
    *,
    checkpoint_id: str | os.PathLike[str] | None = None,
    storage_reader: FileSystemWriter | None = None,
    planner: Any = None,
    process_group: ProcessGroup | None = None,
    no_dist: bool = False,
    number: int | None = None,
) -> int:
    """Fill a state from the last complete checkpoint; all ranks call it, in any number.

    Parameters
    ----------
    state_dict : dict
        The state given to `save`, or some of its keys. Tensors are written in place; objects that
        have `load_state_dict` and generators take their state over; any other value is replaced.
    checkpoint_id : path
        The directory that `save` was given.
    storage_reader : FileSystemReader
        Names the directory instead.
    process_group, no_dist
        As in `save`.
    number : int, optional
        A number that `saved` returns; the last checkpoint by default.
    planner
        For PyTorch's scripts; without effect.

    Returns
    -------
    int
        The number of the checkpoint.

    Raises
    ------
    FileNotFoundError
        When the directory has no complete checkpoint.
    SerializationError
        When a file is damaged or missing: the error names it, and older checkpoints.
    DistributedError
        On all ranks, when a rank cannot read, or an object does not fit. Nothing has changed then:
        what was loaded before is put back.

    Notes
    -----
    Where values differed from rank to rank, each rank takes its own. On more ranks than before, a
    new rank takes the values of rank 0, and its generators stay as they are. Optimizer state that
    `ZeroRedundancyOptimizer` has in shares is dealt out anew.
    """
    op = "load"
    _check_state(op, state_dict)
    root = _directory(op, checkpoint_id, storage_reader)
    group = _group(op, process_group, no_dist)
    chosen: int = _agreed(group, op, lambda: _choose(root, number))

    def read() -> list[tuple[str, Change]]:
        reading = _Reading(root, chosen, group.rank())
        return [(key, x) for key in state_dict for x in reading.changes(state_dict, key, (key,))]

    changes: list[tuple[str, Change]] = _together(group, op, read)
    undo: list[Undo] = []

    def apply() -> None:
        for key, (change, undoing) in changes:
            undo.append(undoing())
            try:
                change()
            except FlowError as error:
                error.add_note(f"in {_place(root, chosen)}: {key!r}")
                raise
            except Exception as error:
                text = f"load(): {_place(root, chosen)}: {key!r} does not fit: {shown(error)}"
                raise SerializationError(text) from error

    try:
        _together(group, op, apply)
    except BaseException:
        with no_grad():
            for step in reversed(undo):
                step()
        raise
    return chosen


def saved(directory: str | os.PathLike[str]) -> list[int]:
    """Return the numbers of the complete checkpoints in a directory, oldest first.

    >>> import tempfile
    >>> import oneflow_lite as flow
    >>> with tempfile.TemporaryDirectory() as directory:
    ...     for step in range(3):
    ...         _ = flow.distributed.checkpoint.save({"step": step}, checkpoint_id=directory)
    ...     flow.distributed.checkpoint.saved(directory)
    [2, 3]
    """
    return [number for number, place in _numbered(Path(directory)) if (place / _MANIFEST).exists()]


def remove_old(directory: str | os.PathLike[str], keep: int) -> None:
    """Remove all checkpoints but the last `keep`, and incomplete checkpoints before these."""
    left = saved(directory)[-keep:]
    for number, place in _numbered(Path(directory)):
        if left and number < left[-1] and number not in left:
            with contextlib.suppress(FileNotFoundError):
                (place / _MANIFEST).unlink()  # first: then it is no checkpoint any more
            shutil.rmtree(place, ignore_errors=True)


# Shared by save and load


def _check_state(op: str, state_dict: Any) -> None:
    if not isinstance(state_dict, Mapping) or not all(isinstance(key, str) for key in state_dict):
        got, hint = type(state_dict).__name__, "pass {'net': net, 'optimizer': optimizer}"
        raise arg_error(op, "state_dict", "a dict by names", got, hint, ArgumentTypeError)


def _directory(op: str, given: Any, storage: Any) -> Path:
    path = getattr(storage, "path", None) if given is None else given
    if not isinstance(path, (str, os.PathLike)):
        hint = "pass checkpoint_id='checkpoints'"
        got = type(path).__name__
        raise arg_error(op, "checkpoint_id", "a directory's path", got, hint, ArgumentTypeError)
    return Path(path)


def _group(op: str, given: Any, alone: bool) -> ProcessGroup:
    if alone or (given is None and not is_initialized()):
        return ProcessGroup("this process", (0,), 0, None, "mpi", 60.0)
    return check_group(op, given)


def _numbered(root: Path) -> list[tuple[int, Path]]:
    """Return the directories with names of checkpoints, by number."""
    if not root.is_dir():
        return []
    named = [(_NAME.fullmatch(each.name), each) for each in root.iterdir()]
    return sorted((int(match[1]), each) for match, each in named if match)


def _place(root: Path, number: int) -> Path:
    return root / f"checkpoint-{number:08d}"


def _file(rank: int) -> str:
    return f"rank{rank}.safetensors"


def _seal(x: Any) -> list[Any]:
    """Return the marks of an array: dtype, shape, hash and size of an item."""
    digest = hashlib.blake2b(x.reshape(-1).view(np.uint8).data, digest_size=16).hexdigest()
    return [x.dtype.name, list(x.shape), digest, x.dtype.itemsize]


def _fsync(directory: Path) -> None:
    """Put the names of a directory on the disk, where the system can do that."""
    with contextlib.suppress(OSError):
        file = os.open(directory, os.O_RDONLY)
        try:
            os.fsync(file)
        finally:
            os.close(file)


def _together(group: ProcessGroup, op: str, do: Callable[[], Any]) -> Any:
    """Run `do` on all ranks; when a rank fails, all ranks raise, and name the rank that failed."""
    error: Exception | None = None
    result = None
    try:
        result = do()
    except Exception as raised:
        error = raised
    said = _of_all(group, error and (type(error).__name__, str(error)))
    if error is not None:
        raise error
    alike = {kind.__name__: kind for kind in (SerializationError, FileNotFoundError)}
    for rank, failed in enumerate(said):
        if failed is not None:
            text = f"checkpoint.{op}(): rank {rank} raised {failed[0]}: {failed[1]}"
            raise alike.get(failed[0], DistributedError)(text)
    return result


def _of_all(group: ProcessGroup, value: Any) -> list[Any]:
    """Return the values of all ranks."""
    values = [value] * group.size()
    if group.size() > 1:
        all_gather_object(values, value, group)
    return values


def _agreed(group: ProcessGroup, op: str, find: Callable[[], Any]) -> Any:
    """Return the result of rank 0, on all ranks."""
    result = _together(group, op, lambda: find() if group.rank() == 0 else None)
    return _of_all(group, result)[0]


# Writing


def _state_of(value: Any) -> Any:
    """Return the value that is written for an entry of a state."""
    if isinstance(value, Generator):
        return value.get_state()
    find = getattr(value, "shard_state_dict", None) or getattr(value, "state_dict", None)
    return value if find is None else find()


def _shared_out(seals: list[dict[str, list[Any]]]) -> list[dict[str, int]]:
    """Return for each rank the writers of its arrays: of the ranks that have it, the least loaded.

    Every rank comes to the same result.
    """
    holders: dict[tuple[str, str], list[int]] = {}
    sizes: dict[tuple[str, str], int] = {}
    for rank, own in enumerate(seals):
        for name, seal in own.items():
            key = (name, json.dumps(seal))
            holders.setdefault(key, []).append(rank)
            sizes[key] = math.prod(seal[1]) * int(seal[3])
    # The largest arrays first, so that the files become about as large as each other.
    loads = [0] * len(seals)
    owners: list[dict[str, int]] = [{} for _ in seals]
    for key in sorted(holders, key=lambda key: (-sizes[key], key)):
        owner = min(holders[key], key=lambda rank: loads[rank])
        loads[owner] += sizes[key]
        for rank in holders[key]:
            owners[rank][key[0]] = owner
    return owners


class _Writer(Writer):
    """Takes a state apart: entries in shares, and entries that the ranks have in common."""

    def __init__(self, group: ProcessGroup) -> None:
        super().__init__()
        self.group = group
        self.shares: dict[str, Any] = {}
        self.in_shares: set[str] = set()

    def describe(self, obj: Any, path: tuple[str, ...]) -> Any:
        if isinstance(obj, Tensor) and obj.is_global:
            return self._in_parts(obj, ".".join(path))
        if not isinstance(obj, Shares):
            return super().describe(obj, path)
        label, before = ".".join(path), set(self.arrays)
        self.shares[label] = [self.entry(key, value, path) for key, value in obj.items()]
        self.in_shares |= set(self.arrays) - before
        return {"shares": label}

    def _in_parts(self, x: Any, label: str) -> Any:
        """Store this rank's part of a global tensor, under a name with the part's place."""
        where = x.placement
        if not set(where.members) <= set(self.group.ranks):
            raise SerializationError(
                f"save(): {label!r} lies on ranks {list(where.members)}, of which not all call "
                f"this; save it by the group of all of them, not by {self.group}"
            )
        if id(x._data) not in self.names:  # else it is tied to a tensor stored before
            self.alive.append(x._data)
            while label in self.shares:
                label += "_"
            self.names[id(x._data)] = label
            with no_grad():
                whole = x.to_global(sbp=where.of_gradient(x.sbp))  # a partial sum is summed
            begins, part = where.begins(x.shape, whole.sbp), whole.to_local()
            self.shares[label] = []
            if begins is not None and part.numel():
                before = set(self.arrays)
                described = self.add(part, f"{label} from {begins}")
                self.shares[label] = [[begins, list(part.shape), described]]
                self.in_shares |= set(self.arrays) - before
        return {
            "parts": self.names[id(x._data)],
            "shape": list(x.shape),
            "dtype": x._data.dtype.name,
        }


def _manifest(number: int, everyone: Iterable[Any], owners: list[dict[str, int]]) -> Manifest:
    """Return the manifest: the contents of each file. Ranks with equal descriptions share one."""
    roots: list[str] = []
    of_rank, shares = [], []
    files: list[dict[str, Any]] = [{} for _ in owners]
    for rank, (described, _, shared, in_shares, seals) in enumerate(everyone):
        apart: list[dict[str, int]] = [{}, {}]
        for name, owner in owners[rank].items():
            apart[name in in_shares][name] = owner
            files[owner][name] = seals[name]
        text = json.dumps([described, apart[0]])
        if text not in roots:
            roots.append(text)
        of_rank.append(roots.index(text))
        shares.append([shared, apart[1]])
    body = {
        "format": max(version for _, version, *_ in everyone) - 1,
        "number": number,
        "roots": [json.loads(text) for text in roots],
        "ranks": of_rank,
        "shares": shares,
        "files": files,
    }
    return {"checkpoint": body, "seal": _seal_of(body)}


def _seal_of(body: Any) -> str:
    return hashlib.blake2b(json.dumps(body).encode(), digest_size=16).hexdigest()


# Reading


def _check_body(body: Any) -> None:
    """Raise unless a manifest is of the form of those that `_manifest` makes."""
    known = {"format", "number", "roots", "ranks", "shares", "files"}
    require(body.keys() == known, "its parts are others")
    files, ranks = listed(body["files"]), listed(body["ranks"])
    roots, shares = ([*map(listed, listed(body[name]))] for name in ("roots", "shares"))
    require(len(ranks) == len(files) == len(shares) > 0, "it is of no number of ranks")
    require(natural([*ranks, body["number"]]), "its numbers are none")
    require({*ranks} == {*range(len(roots))}, "its ranks are not those of its roots")
    named: set[Any] = set()
    for described, where in [*roots, *shares]:
        require(type(described) is dict and type(where) is dict, "a root or a share is none")
        require(natural([*where.values()]), "a tensor is in no file")
        named |= {(rank, name) for name, rank in where.items()}
    for root, _ in roots:
        keys = [key for key, _ in map(listed, listed(root["dict"]))]
        require({*map(type, keys)} <= {str} and len({*keys}) == len(keys), "its keys are odd")
        require(len(root) == 1, "a root is no dict")
    require(all(type(file) is dict for file in files), "a file is none")
    there = {(rank, name) for rank, file in enumerate(files) for name in file}
    require(named == there, "the tensors are not those of the files")


def _choose(root: Path, number: int | None) -> int:
    numbers = saved(root)
    if not numbers or number not in (None, *numbers):
        what = "no complete checkpoint" if number is None else f"no complete checkpoint {number}"
        there = f"; there are {numbers}" if numbers else ""
        raise FileNotFoundError(
            f"load(): there is {what} in {os.fspath(root)!r}{there}; save one, or name another "
            "directory"
        )
    return numbers[-1] if number is None else number


class _Reading:
    """A checkpoint that is read by a rank."""

    def __init__(self, root: Path, number: int, rank: int) -> None:
        self.root, self.number, self.place = root, number, _place(root, number)
        self.named = False  # whether an error has named a file
        path = self.place / _MANIFEST
        try:
            stored = parsed(path.read_bytes())
            body = stored["checkpoint"]
            require(stored["seal"] == _seal_of(body), "its checksum does not match its contents")
            version = body["format"]
            require(type(version) is int and version > 0, "it is of no format")
            require(version <= _FORMAT, f"it is of format {version}, use a newer oneflow_lite")
            _check_body(body)
        except Exception as error:
            self.damaged(path, shown(error))
        self.files: list[dict[str, list[Any]]] = body["files"]
        self.version = version + 1  # of the descriptions
        self.own = rank < len(body["ranks"])  # whether this rank took part in the save
        here = body["ranks"][rank if self.own else 0]
        self.described, self.where = body["roots"][here]
        self.shares = body["shares"]
        self.room = room_of(sum(each.stat().st_size for each in self.place.iterdir()))
        self.entries = {entry[0]: entry[1] for entry in self.described["dict"]}
        self.readers: dict[int, Reader] = {}
        self.headers: dict[int, Any] = {}
        self.objects: dict[Any, Any] = {}

    def damaged(self, path: Path, why: str) -> NoReturn:
        """Raise the error that names a file."""
        self.named = True
        older = [number for number in saved(self.root) if number != self.number]
        hint = f"load(number={older[-1]}) reads another one" if older else "there is no other one"
        raise SerializationError(
            f"load(): checkpoint {self.number} is damaged: {path}: {why}; {hint}"
        ) from None

    def changes(self, state: dict[str, Any], key: str, path: tuple[str, ...]) -> Any:
        """Yield changes that put an entry into a state; an object may find that it does not fit."""
        if key not in self.entries:
            known = ", ".join(map(repr, self.entries))
            raise SerializationError(
                f"load(): checkpoint {self.number} in {os.fspath(self.root)!r} has no {key!r}, but "
                f"{known}; leave it out of the state"
            )
        given = state[key]
        if isinstance(given, Generator):
            if self.own:
                state_of = self.build(key)
                before = given.get_state()
                yield lambda: given.set_state(state_of), lambda: lambda: given.set_state(before)
        elif hasattr(given, "load_state_dict"):
            owns = getattr(given, "owns", None)
            value = self.build(key, _like(given), owns)

            def undoing() -> Undo:
                before = copy.deepcopy(_state_of(given))
                return lambda: given.load_state_dict(before)

            yield lambda: given.load_state_dict(value), undoing
        else:
            value = self.build(key, given)
            yield from self._filled(state, key, value, path)

    def _filled(self, into: Any, key: Any, new: Any, path: tuple[str, ...]) -> Any:
        """Yield changes that replace a value; tensors are overwritten in place."""
        given = into[key]
        name = ".".join(path)
        if isinstance(given, Tensor) and isinstance(new, Tensor):
            if given.shape != new.shape or given.dtype != new.dtype:
                raise SerializationError(
                    f"load(): {name!r} is {new.dtype} of shape {tuple(new.shape)} in the "
                    f"checkpoint, but {given.dtype} of shape {tuple(given.shape)} here; make them "
                    "alike"
                )
            yield lambda: _copy(given, new), lambda: restorer(given)
        elif isinstance(given, dict) and isinstance(new, dict):
            for each, value in new.items():
                if each in given:
                    yield from self._filled(given, each, value, (*path, str(each)))
                else:
                    yield _added(given, each, value)
        else:
            yield lambda: into.__setitem__(key, new), lambda: lambda: into.__setitem__(key, given)

    def build(self, key: str, like: Any = None, owns: Any = None) -> Any:
        """Return an entry, with the shares that the rank owns, and its parts of global tensors.

        like: the current object, whose global tensors have the new layout.
        """
        builder = _Builder(self, key, like, owns)
        try:
            return builder.build(self.entries[key])
        except Exception as error:
            if self.named:
                raise
            self.damaged(self.place / _MANIFEST, builder.failing(error))

    def stored(self, name: str, dtype: str, where: dict[str, int]) -> Tensor:
        """Return a stored tensor, after comparing its bytes with its seal."""
        rank = where[name]
        path = self.place / _file(rank)
        if rank not in self.readers:
            self.readers[rank] = Reader(b"", CPU)
        reader = self.readers[rank]
        if name not in reader.arrays:
            try:
                with open(path, "rb") as file:  # reads this tensor alone, not the whole file
                    left = os.fstat(file.fileno()).st_size - 8
                    length = struct.unpack("<Q", file.read(8))[0]
                    require(length <= left, "its header is cut short")
                    if rank not in self.headers:
                        self.headers[rank] = parsed(file.read(length))
                    entry = self.headers[rank][name]
                    start, end = listed(entry["data_offsets"])
                    require(natural([start, end]) and end <= left - length, "it is cut short")
                    file.seek(8 + length + start)
                    data = file.read(end - start)
                array = Reader.decoded(name, entry["dtype"], data, entry["shape"])
            except Exception as error:
                self.damaged(path, f"tensor {name!r}: {shown(error)}")
            if _seal(array) != self.files[rank][name]:
                self.damaged(path, f"the bytes of {name!r} are not those that were written")
            reader.arrays[name] = array
        return reader.stored(name, dtype)


class _Builder(Reader):
    """Puts an object together, with tensors from the files of several ranks."""

    def __init__(self, reading: _Reading, key: str, like: Any, owns: Any) -> None:
        super().__init__(b"", CPU)
        self.reading, self.like, self.owns = reading, like, owns
        self.path, self.version, self.room = [key], reading.version, reading.room
        self.objects = reading.objects
        self.where = reading.where

    def build(self, described: Any) -> Any:
        if isinstance(described, dict) and "shares" in described:
            return self._collected(**described)
        if isinstance(described, dict) and "parts" in described:
            return self._joined(**described)
        return super().build(described)

    def item(self, key: Any, described: Any) -> Any:
        like = self.like
        if isinstance(like, Mapping):
            self.like = like.get(key)
        elif isinstance(like, (list, tuple)):
            self.like = like[key] if key < len(like) else None
        value = self.build(described)
        self.like = like
        return value

    def stored(self, name: str, dtype: str) -> Tensor:
        return self.reading.stored(name, dtype, self.where)

    def _shared(self, label: str) -> Iterator[Any]:
        """Yield the shares of all ranks under a label; meanwhile a rank's tensors are found."""
        common = self.where
        require(any(label in shares for shares, _ in self.reading.shares), f"no shares {label!r}")
        for shares, where in self.reading.shares:
            self.where = {**common, **where}
            yield from map(listed, listed(shares.get(label, [])))
        self.where = common

    def _collected(self, shares: str) -> dict[Any, Any]:
        """Return the shares of all ranks."""
        entries = {}
        for each, value in self._shared(shares):
            key = self.key(each)
            if self.owns is None or self.owns(key):
                entries[key] = self.build(value)
        return entries

    def _joined(self, parts: str, shape: Any, dtype: str) -> Tensor:
        """Return a tensor that was written in parts: the whole, or this rank's part."""
        require(natural(listed(shape)), "a shape that is none")
        shape, like = tuple(shape), self.like
        begins, sizes, where = [0] * len(shape), shape, None
        if isinstance(like, Tensor) and like.is_global and tuple(like.shape) == shape:
            where, nd_sbp = like.placement, like.placement.of_gradient(like.sbp)
            sizes = where.local_shape(shape, nd_sbp) if where.place is not None else (0,)
            begins = where.begins(shape, nd_sbp) or [0]
        ends, missing = np.add(begins, sizes), math.prod(sizes)
        pieces: dict[tuple[int, ...], Any] = {}
        for start, size, part in self._shared(parts):
            require(len(listed(start)) == len(listed(size)) == len(shape), "a part of another rank")
            require(natural([*start, *size]), "a part whose place is none")
            low, high = np.maximum(start, begins), np.minimum(np.add(start, size), ends)
            if not missing or tuple(start) in pieces or (low >= high).any():
                continue
            for other, until, *_ in pieces.values():
                apart = (np.maximum(low, other) >= np.minimum(high, until)).any()
                require(bool(apart), "parts that lie in each other")
            piece = self.build(part).numpy()
            require(piece.shape == tuple(size) and piece.dtype.name == dtype, "an odd part")
            pieces[tuple(start)] = low, high, piece
            missing -= math.prod((high - low).tolist())
        require(not missing, f"parts of {parts!r} are missing")
        made = np.empty(sizes, as_dtype("load", dtype))
        for start, (low, high, piece) in pieces.items():
            ours, theirs = (
                tuple(map(slice, low - first, high - first)) for first in (begins, start)
            )
            made[ours] = piece[theirs]
        if where is not None:
            made = where.hold(on_placement(made, where), nd_sbp, shape, made.dtype)
        return make_tensor(made)


def _like(given: Any) -> Any:
    """Return an object's global tensors, nested as in its state."""
    if hasattr(given, "named_parameters"):
        return given.state_dict()
    params = [param for group in getattr(given, "param_groups", ()) for param in group["params"]]
    return {"state": dict(enumerate(params))}


def _added(into: dict[Any, Any], key: Any, value: Any) -> Change:
    return lambda: into.__setitem__(key, value), lambda: lambda: into.pop(key, None)


@no_grad()
def _copy(target: Tensor, value: Tensor) -> None:
    target.copy_(value)
