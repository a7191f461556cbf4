"""Races between streams as the stand-in sees them, and what orders them."""

from typing import Any

import pytest

from tests import strict_cupy
from tests.strict_cupy.modules import cupy


@pytest.fixture
def side() -> Any:
    return cupy.cuda.Stream(non_blocking=True)


def null() -> Any:
    return cupy.cuda.get_current_stream()


class TestReads:
    def test_before_the_write_has_ended(self, side: Any) -> None:
        with strict_cupy.watched() as watch:
            x = cupy.ones(2)
            with side:
                y = x + 1
            assert len(watch.found) == 1 and "reads" in watch.found[0]
            side.wait_event(null().record())
            null().wait_event(side.record())
            del x, y
            assert len(watch.found) == 1

    def test_after_an_event(self, side: Any) -> None:
        with strict_cupy.watched() as watch:
            x = cupy.ones(2)
            side.wait_event(null().record())
            with side:
                y = x + 1
            null().wait_event(side.record())
            assert float((y + x).sum()) == 6.0
            side.wait_event(null().record())
            del x, y
            assert watch.found == []

    def test_an_event_says_nothing_of_what_comes_after_it(self, side: Any) -> None:
        with strict_cupy.watched() as watch:
            x = cupy.ones(2)
            event = null().record()
            x += 1
            side.wait_event(event)
            with side:
                x + 1
            assert watch.found

    def test_after_the_host_has_waited(self, side: Any) -> None:
        with strict_cupy.watched() as watch:
            x = cupy.ones(2)
            null().synchronize()
            with side:
                y = x + 1
            side.synchronize()
            del x, y
            assert watch.found == []

    def test_on_another_device(self) -> None:
        with strict_cupy.watched() as watch:
            x = cupy.ones(2)
            with cupy.cuda.Device(1):
                y = cupy.array(x)
            assert len(watch.found) == 1
            assert y.device.id == 1


def test_writes_come_after_reads(side: Any) -> None:
    with strict_cupy.watched() as watch:
        x = cupy.ones(2)
        side.wait_event(null().record())
        with side:
            y = x + 1
        x += 1
        assert len(watch.found) == 1 and "writes" in watch.found[0]
        assert y is not None


@pytest.mark.parametrize("waits", [False, True])
def test_memory_that_is_freed_while_it_is_read(side: Any, waits: bool) -> None:
    with strict_cupy.watched() as watch:
        x = cupy.ones(2)
        side.wait_event(null().record())
        with side:
            y = x + 1
        if waits:
            null().wait_event(side.record())
        del x
        assert ("freed" in "".join(watch.found)) is not waits
        assert y is not None
