"""Programs that fail, one for each name: `mpiexec -n 2 python -m tests.distributed.faults NAME`."""

from __future__ import annotations

import os
import signal
import sys
import time
from datetime import timedelta

import oneflow_lite as flow
import oneflow_lite.distributed as dist


def wait_for_the_others() -> None:
    dist.all_reduce(flow.ones(3))


def raises() -> None:
    if dist.get_rank() == 1:
        raise KeyError("a bad sample")
    wait_for_the_others()


def dies() -> None:
    if dist.get_rank() == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    wait_for_the_others()


def exits() -> None:
    if dist.get_rank() == 1:
        sys.exit(3)
    wait_for_the_others()


def ends() -> None:
    if dist.get_rank() == 0:
        wait_for_the_others()


def dawdles() -> None:
    if dist.get_rank() == 1:
        time.sleep(30)
    wait_for_the_others()


def dies_in_backward() -> None:
    net = flow.nn.parallel.DistributedDataParallel(flow.nn.Linear(2, 2))
    if dist.get_rank() == 1:
        net.module.weight.register_hook(lambda grad: os.kill(os.getpid(), signal.SIGKILL))
    net(flow.ones(1, 2)).sum().backward()


def leaves_training() -> None:
    net = flow.nn.parallel.DistributedDataParallel(flow.nn.Linear(2, 2))
    loss = net(flow.ones(1, 2)).sum()
    if dist.get_rank() == 0:
        loss.backward()


def exits_silently() -> None:
    if dist.get_rank() == 1:
        os._exit(0)
    wait_for_the_others()


def destroys() -> None:
    wait_for_the_others()
    if dist.get_rank() == 1:
        dist.destroy_process_group()
        time.sleep(60)
    wait_for_the_others()


def destroys_a_group() -> None:
    group = dist.new_group([0, 1])
    if dist.get_rank() == 1:
        dist.destroy_process_group(group)
        time.sleep(60)
    dist.barrier(group)


def destroys_and_sends_nothing() -> None:
    if dist.get_rank() == 1:
        dist.isend(flow.ones(3), 0).wait()
        dist.destroy_process_group()
        time.sleep(60)
    dist.recv(x := flow.zeros(3), 1)
    print("got", x.tolist(), flush=True)
    dist.recv(x, 1)


def begins_again() -> None:
    for _ in range(2):
        wait_for_the_others()
        dist.destroy_process_group()
        dist.init_process_group()
    raises()


def receives_nothing() -> None:
    if dist.get_rank() == 1:
        dist.recv(flow.ones(3), 0)


if __name__ == "__main__":
    seconds = 2 if sys.argv[1] in ("dawdles", "receives_nothing") else 60
    dist.init_process_group(timeout=timedelta(seconds=seconds))
    {**globals()}[sys.argv[1]]()
    if sys.argv[1] == "receives_nothing":
        time.sleep(10)
