"""Process groups: the ranks that take part in a collective, and their transports.

`mpiexec -n 4 python train.py` starts a world of four. A script that was started plainly is a world
of one, in which every collective is a copy, and mpi4py is not imported. Arrays of the CPU travel by
MPI, those of CUDA devices by NCCL.
"""

from __future__ import annotations

import functools
import itertools
import os
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import numpy as np

from oneflow_lite.arrays.device import DeviceLike
from oneflow_lite.distributed import debug, faults
from oneflow_lite.distributed.transport import Transport
from oneflow_lite.distributed.work import progress
from oneflow_lite.errors import (
    ArgumentError,
    ArgumentTypeError,
    DistributedError,
    arg_error,
)

# Variables that MPI launchers set for the processes that they start.
_LAUNCHED = ("PMI_SIZE", "PMI_RANK", "PMIX_RANK", "OMPI_COMM_WORLD_SIZE", "MPI_LOCALNRANKS")
_BACKENDS = ("mpi", "gloo", "nccl")
default_pg_timeout = timedelta(minutes=30)  # as in PyTorch
_names = itertools.count(1)


class ProcessGroup:
    """Ranks that work together. Made by `init_process_group` and `new_group`.

    Attributes
    ----------
    name : str
    ranks : tuple of int
        The members' ranks in the world, in order.
    backend : str
    timeout : float
        Seconds that a wait may take.
    """

    def __init__(
        self,
        name: str,
        ranks: tuple[int, ...],
        rank: int,
        comm: Any,
        backend: str,
        timeout: float,
        trusted: bool = False,
    ) -> None:
        self.name, self.ranks, self.backend, self.timeout = name, ranks, backend, timeout
        self._rank = rank
        self._comm, self._trusted = comm, trusted
        self._transports: dict[str, Transport] = {}
        self.closed = False
        self.transport(np)

    def rank(self) -> int:
        """Return this process's rank in the group; -1 where it is no member."""
        return self._rank

    def size(self) -> int:
        """Return the number of ranks."""
        return len(self.ranks)

    def transport(self, xp: Any) -> Transport:
        """Return the transport of arrays of NumPy or CuPy; for kernels."""
        kind = "cpu" if xp is np else "cuda"
        transport = self._transports.get(kind)
        if transport is None:
            transport = self._transports[kind] = self._make_transport(kind)
        return transport

    def _make_transport(self, kind: str) -> Transport:
        if self.closed:
            raise DistributedError(
                f"{self.name} was destroyed; call init_process_group() and make groups anew"
            )
        if self.size() == 1:
            return Transport()
        if kind == "cuda":
            from oneflow_lite.distributed.nccl import NcclTransport

            return NcclTransport(self._comm, self.name, self.ranks, self.timeout)
        from oneflow_lite.distributed.mpi import MpiTransport

        return MpiTransport(self._comm, self.name, self.ranks, self.timeout, self._trusted)

    def private(self) -> ProcessGroup:
        """Return a group of the same ranks whose calls have an order of their own.

        Such calls follow from calls that were compared, and are compared in debug mode only.
        """
        made = ProcessGroup(
            self.name, self.ranks, self._rank, self._comm, self.backend, self.timeout, True
        )
        _world.groups.append(made)
        return made

    def say_ended(self, why: str) -> None:
        """Tell the other ranks of the group that this rank makes no more calls."""
        for transport in self._transports.values():
            transport.say_ended(why)

    def close(self) -> None:
        """Give back the transports of the group; ranks that still wait for this one raise."""
        self.say_ended(f"has left {self.name} by destroy_process_group()")
        for transport in self._transports.values():
            transport.close()
        self._transports.clear()
        self.closed = True

    def global_rank(self, rank: int) -> int:
        """Return the rank in the world of a rank of the group."""
        return self.ranks[rank]

    def __deepcopy__(self, memo: Any) -> ProcessGroup:
        return self

    def __reduce__(self) -> Any:
        return group_of, (None if self is _world.group else self.ranks,)

    def __repr__(self) -> str:
        return f"ProcessGroup({self.name!r}, ranks={list(self.ranks)})"


class _World:
    """The state of this process."""

    group: ProcessGroup | None = None
    groups: list[ProcessGroup] = []  # noqa: RUF012  (there is one world)


_world = _World()


class _Where:
    """`group.WORLD` and `GroupMember`, as PyTorch's scripts name groups."""

    NON_GROUP_MEMBER = object()

    @property
    def WORLD(self) -> ProcessGroup | None:
        """The group of all ranks."""
        return _world.group

    @WORLD.setter
    def WORLD(self, value: ProcessGroup | None) -> None:
        _world.group = value


group = GroupMember = _Where()


def is_available() -> bool:
    """Return True: a world of one needs nothing but this package.

    >>> import oneflow_lite as flow
    >>> flow.distributed.is_available(), flow.distributed.is_initialized()
    (True, False)
    """
    return True


def is_mpi_available() -> bool:
    """Return whether mpi4py is installed."""
    import importlib.util

    return importlib.util.find_spec("mpi4py") is not None


def is_nccl_available() -> bool:
    """Return whether CuPy is installed with NCCL."""
    import importlib

    try:
        return bool(importlib.import_module("cupy.cuda.nccl").available)
    except (ImportError, AttributeError):
        return False


def is_ucc_available() -> bool:
    """Return False: this package has no such backend."""
    return False


is_xccl_available = is_ucc_available


class Backend(str):
    """A backend's name, in lower case.

    >>> import oneflow_lite as flow
    >>> flow.distributed.Backend("NCCL") == flow.distributed.Backend.NCCL == "nccl"
    True
    """

    MPI, GLOO, NCCL, UNDEFINED = "mpi", "gloo", "nccl", "undefined"
    backend_list = ["undefined", "gloo", "nccl", "mpi"]  # noqa: RUF012

    def __new__(cls, name: str) -> Backend:
        return super().__new__(cls, _check_backend("Backend", name))


def is_backend_available(backend: str) -> bool:
    """Return whether `init_process_group` takes a backend of this name, and it is installed."""
    available = {"mpi": is_mpi_available, "nccl": is_nccl_available, "gloo": is_gloo_available}
    return available.get(backend.lower(), is_ucc_available)()


def get_default_backend_for_device(device: DeviceLike) -> str:
    """Return which backend moves the arrays of a device: "mpi", or "nccl" for CUDA."""
    return "nccl" if str(device).startswith("cuda") else "mpi"


def get_backend_config(group: ProcessGroup | None = None) -> str:
    """Return the backends by device, as "cpu:mpi,cuda:nccl"."""
    name = get_backend(group)
    return name if ":" in name else f"cpu:{name},cuda:{name}"


def get_pg_count() -> int:
    """Return the number of groups, with the world."""
    return len(_world.groups)


def is_gloo_available() -> bool:
    """Return True: "gloo" is taken for another name of the backend for CPU arrays."""
    return True


def is_initialized() -> bool:
    """Return whether `init_process_group` was called."""
    return _world.group is not None


def is_torchelastic_launched() -> bool:
    """Return False: processes are started by mpiexec."""
    return False


def is_launched() -> bool:
    """Return whether mpiexec, srun or the like started this process."""
    return any(name in os.environ for name in _LAUNCHED)


def launcher_environment() -> dict[str, str]:
    """Return the variables that `torchrun` would set for this process, as the launcher says.

    Empty where no launcher started it.
    """
    named = {
        "RANK": ("PMI_RANK", "OMPI_COMM_WORLD_RANK", "PMIX_RANK", "SLURM_PROCID"),
        "WORLD_SIZE": ("PMI_SIZE", "OMPI_COMM_WORLD_SIZE", "SLURM_NTASKS"),
        "LOCAL_RANK": ("MPI_LOCALRANKID", "OMPI_COMM_WORLD_LOCAL_RANK", "SLURM_LOCALID"),
        "LOCAL_WORLD_SIZE": ("MPI_LOCALNRANKS", "OMPI_COMM_WORLD_LOCAL_SIZE"),
    }
    if not is_launched():
        return {}
    return {
        name: next(os.environ[known] for known in names if known in os.environ)
        for name, names in named.items()
        if any(known in os.environ for known in names)
    }


def init_process_group(
    backend: str | None = None,
    init_method: str | None = None,
    timeout: timedelta | None = None,
    world_size: int = -1,
    rank: int = -1,
    store: Any = None,
    group_name: str = "",
    pg_options: Any = None,
    device_id: Any = None,
) -> None:
    """Join the world: all processes that `mpiexec` started, or this process alone.

    Parameters
    ----------
    backend : {None, "mpi", "gloo", "nccl"}
        None and "cpu:mpi,cuda:nccl" are the same: arrays on the CPU travel by MPI, those of CUDA
        devices by NCCL. Any other name is kept for `get_backend` and changes nothing.
    timeout : timedelta
        How long a wait may take, 30 minutes by default.
    world_size, rank : int
        When given, equal to MPI's.
    init_method, store, group_name, pg_options, device_id
        Without effect: MPI knows the processes.

    Raises
    ------
    DistributedError
        When the world exists already, or mpi4py cannot be imported where several processes run.
    ArgumentError
        When the backend is unknown, or rank and size are not those of MPI.

    Examples
    --------
    >>> import oneflow_lite as flow
    >>> flow.distributed.init_process_group()
    >>> flow.distributed.get_rank(), flow.distributed.get_world_size()
    (0, 1)
    >>> flow.distributed.destroy_process_group()
    """
    op = "init_process_group"
    if is_initialized():
        raise DistributedError(
            f"{op}(): the world exists already; call destroy_process_group() before another one"
        )
    named = _check_backend(op, backend)
    seconds = _seconds(op, timeout)
    debug.set_debug_level_from_env()
    comm, size, here = None, 1, 0
    if is_launched():
        from oneflow_lite.distributed.mpi import mpi

        # Not at the top: importing mpi4py starts MPI, and a world of one does without.
        comm = mpi().COMM_WORLD
        size, here = comm.Get_size(), comm.Get_rank()
    elif int(os.environ.get("WORLD_SIZE") or 1) > 1:
        raise DistributedError(
            f"{op}(): WORLD_SIZE={os.environ['WORLD_SIZE']} is set, but no MPI launcher started "
            "this process; start the script with mpiexec -n N python script.py"
        )
    for name, given, actual in (("world_size", world_size, size), ("rank", rank, here)):
        if given not in (-1, actual):
            hint = "start the script with mpiexec -n N, and leave it out"
            raise arg_error(op, name, f"{actual}, as MPI says", given, hint, ArgumentError)
    if size == 1:  # every collective is a copy, which needs no MPI
        comm = None
    _world.group = ProcessGroup("the world", tuple(range(size)), here, comm, named, seconds)
    _world.groups = [_world.group]
    if comm is not None:
        faults.watch(_world.group, _world.groups)


def _check_backend(op: str, backend: Any) -> str:
    if backend is None:
        return "cpu:mpi,cuda:nccl"
    if not isinstance(backend, str):
        got, hint = type(backend).__name__, "leave it out"
        raise arg_error(op, "backend", "a name or None", got, hint, ArgumentTypeError)
    for part in backend.lower().split(","):
        device, _, name = part.rpartition(":")
        if name not in _BACKENDS or device not in ("", "cpu", "cuda"):
            expected, hint = "'mpi', 'gloo', 'nccl' or None", "leave it out"
            raise arg_error(op, "backend", expected, repr(backend), hint, ArgumentError)
    return backend.lower()


def _seconds(op: str, timeout: Any) -> float:
    if timeout is None:
        timeout = default_pg_timeout
    if not isinstance(timeout, timedelta):
        got, hint = type(timeout).__name__, "pass datetime.timedelta(minutes=5)"
        raise arg_error(op, "timeout", "a timedelta", got, hint, ArgumentTypeError)
    if timeout.total_seconds() <= 0:
        hint = "leave it out for 30 minutes"
        raise arg_error(op, "timeout", "a time above 0", timeout, hint, ArgumentError)
    return timeout.total_seconds()


def destroy_process_group(group: ProcessGroup | None = None) -> None:
    """Leave a group; without an argument, all groups and the world. All ranks call it.

    Raises
    ------
    ArgumentError
        When there is no world.
    """
    if group is GroupMember.NON_GROUP_MEMBER:
        return
    world = check_group("destroy_process_group", None)
    if group is not None and group is not world:
        check_group("destroy_process_group", group).close()
        _world.groups.remove(group)
        return
    progress()
    faults.forget()
    for each in reversed(_world.groups):
        each.close()
    _world.group, _world.groups = None, []


def abort_process_group(group: ProcessGroup | None = None) -> None:
    """End all processes of the world at once."""
    faults.abort(f"rank {get_rank()} called abort_process_group()")


def check_group(op: str, group: Any) -> ProcessGroup:
    """Return a group; the world for None."""
    if _world.group is None:
        raise ArgumentError(
            f"{op}(): Default process group has not been initialized; call "
            "flow.distributed.init_process_group() first"
        )
    if group is None:
        return _world.group
    if not isinstance(group, ProcessGroup):
        got, hint = type(group).__name__, "make one with flow.distributed.new_group()"
        raise arg_error(op, "group", "a ProcessGroup or None", got, hint, ArgumentTypeError)
    if group.closed:
        hint = "make groups again after destroy_process_group()"
        raise arg_error(op, "group", "a living group", group, hint, ArgumentError)
    return group


def get_rank(group: ProcessGroup | None = None) -> int:
    """Return this process's rank in the world, or in a group; -1 where it is no member."""
    if group is GroupMember.NON_GROUP_MEMBER:
        return -1
    return check_group("get_rank", group).rank()


def get_world_size(group: ProcessGroup | None = None) -> int:
    """Return how many ranks the world or a group has; -1 where this process is no member."""
    if group is GroupMember.NON_GROUP_MEMBER:
        return -1
    group = check_group("get_world_size", group)
    return group.size() if group.rank() >= 0 else -1


def get_backend(group: ProcessGroup | None = None) -> str:
    """Return the backend's name, as it was given."""
    return check_group("get_backend", group).backend


def get_process_group_ranks(group: ProcessGroup | None) -> list[int]:
    """Return the ranks in the world of a group's members."""
    return list(check_group("get_process_group_ranks", group).ranks)


def get_group_rank(group: ProcessGroup, global_rank: int) -> int:
    """Return the rank in a group of a rank in the world."""
    ranks = check_group("get_group_rank", group).ranks
    if global_rank in ranks:
        return ranks.index(global_rank)
    expected, hint = f"one of {list(ranks)}", "ask for a member of the group"
    raise arg_error("get_group_rank", "global_rank", expected, global_rank, hint, ArgumentError)


def get_global_rank(group: ProcessGroup, group_rank: int) -> int:
    """Return the rank in the world of a rank in a group."""
    ranks = check_group("get_global_rank", group).ranks
    if group_rank in range(len(ranks)):
        return ranks[group_rank]
    expected, hint = f"0 to {len(ranks) - 1}", "ask for a member of the group"
    raise arg_error("get_global_rank", "group_rank", expected, group_rank, hint, ArgumentError)


def get_node_local_rank(fallback_rank: int | None = None) -> int:
    """Return this process's number among the processes of its machine, as the launcher told it.

    fallback_rank: where the launcher told nothing; without it that is an error.
    """
    for name in ("MPI_LOCALRANKID", "OMPI_COMM_WORLD_LOCAL_RANK", "SLURM_LOCALID", "LOCAL_RANK"):
        if name in os.environ:
            return int(os.environ[name])
    if fallback_rank is not None:
        return int(fallback_rank)
    if not is_launched():
        return 0
    raise DistributedError(
        "get_node_local_rank(): the launcher told nothing; set LOCAL_RANK or pass fallback_rank"
    )


def new_group(
    ranks: Sequence[int] | None = None,
    timeout: timedelta | None = None,
    backend: str | None = None,
    pg_options: Any = None,
    use_local_synchronization: bool = False,
    group_desc: str | None = None,
    device_id: Any = None,
    sort_ranks: bool = True,
) -> Any:
    """Make a group of some ranks. All ranks of the world call it, members or not, in one order.

    Parameters
    ----------
    ranks : sequence of int, optional
        The members' ranks in the world; all of them by default. Their order has no meaning.
    timeout, backend
        As in `init_process_group`; by default the world's.
    pg_options, use_local_synchronization, group_desc, device_id, sort_ranks
        For PyTorch's scripts; without effect.

    Returns
    -------
    ProcessGroup or GroupMember.NON_GROUP_MEMBER
    """
    op = "new_group"
    world = check_group(op, None)
    chosen = world.ranks if ranks is None else tuple(sorted(set(ranks)))
    if not chosen or not set(chosen) <= set(world.ranks):
        expected, hint = f"some of 0 to {world.size() - 1}", "name ranks of the world"
        raise arg_error(op, "ranks", expected, ranks, hint, ArgumentError)
    seconds = world.timeout if timeout is None else _seconds(op, timeout)
    named = world.backend if backend is None else _check_backend(op, backend)
    comm = None
    if world._comm is not None:
        transport: Any = world.transport(np)
        transport.agree(f"new_group({list(chosen)})")
        # A split is a call of all ranks: the rest get a communicator, too, and free it.
        comm = world._comm.Split(0 if world.rank() in chosen else 1, world.rank())
        if world.rank() not in chosen:
            comm.Free()
            return GroupMember.NON_GROUP_MEMBER
    name = f"group {next(_names)} {list(chosen)}"
    rank = chosen.index(world.rank())
    made = ProcessGroup(name, chosen, rank, comm, named, seconds)
    _world.groups.append(made)
    return made


def new_subgroups(
    group_size: int | None = None,
    group: ProcessGroup | None = None,
    timeout: timedelta | None = None,
    backend: str | None = None,
    pg_options: Any = None,
    group_desc: str | None = None,
) -> tuple[Any, list[Any]]:
    """Make groups of `group_size` ranks in a row; return this rank's group, and all groups.

    group_size: divides the number of ranks; by default the ranks of one machine.
    """
    ranks = check_group("new_subgroups", group).ranks
    size = int(os.environ.get("MPI_LOCALNRANKS", len(ranks))) if group_size is None else group_size
    if size < 1 or len(ranks) % size:
        expected, hint = f"a divisor of the {len(ranks)} ranks", "choose another size"
        raise arg_error("new_subgroups", "group_size", expected, size, hint, ArgumentError)
    rows = [list(ranks[i : i + size]) for i in range(0, len(ranks), size)]
    return new_subgroups_by_enumeration(rows, timeout, backend)


def new_subgroups_by_enumeration(
    ranks_per_subgroup_list: Sequence[Sequence[int]],
    timeout: timedelta | None = None,
    backend: str | None = None,
    pg_options: Any = None,
    group_desc: str | None = None,
) -> tuple[Any, list[Any]]:
    """Make a group of each list of ranks; return this rank's group, or None, and all groups."""
    listed = [rank for ranks in ranks_per_subgroup_list for rank in ranks]
    if len(set(listed)) != len(listed):
        op, name = "new_subgroups_by_enumeration", "ranks_per_subgroup_list"
        raise arg_error(op, name, "each rank once", listed, "make them disjoint", ArgumentError)
    made = [new_group(ranks, timeout, backend) for ranks in ranks_per_subgroup_list]
    own = [group for group in made if group is not GroupMember.NON_GROUP_MEMBER]
    return own[0] if own else None, made


@functools.cache
def _alone() -> ProcessGroup:
    return ProcessGroup("this process", (0,), 0, None, "mpi", default_pg_timeout.total_seconds())


def group_of(ranks: Sequence[int] | None) -> ProcessGroup:
    """Return the group of these ranks: the world for None, else the group made first.

    A process that is alone and has not called `init_process_group` is a group of itself.
    """
    if _world.group is None and not is_launched() and (ranks is None or tuple(ranks) == (0,)):
        return _alone()
    world = check_group("group_of", None)
    for each in _world.groups:
        if ranks is None or each.ranks == tuple(ranks):
            return each
    raise arg_error(
        "group_of",
        "ranks",
        "those of a group that was made",
        list(ranks or ()),
        f"call new_group() first; the world has {world.size()} ranks",
        ArgumentError,
    )
