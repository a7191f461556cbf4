"""The record of the stand-in, the devices of its arrays, and the memory that they share."""

import copy
import operator
import pickle
import threading
from typing import Any

import numpy as np
import pytest

from tests import strict_cupy
from tests.strict_cupy.modules import cupy


def kinds() -> list[str]:
    return [transfer.kind for transfer in strict_cupy.transfers()]


class TestTransfers:
    def test_computing_makes_none(self, x: Any) -> None:
        y = cupy.maximum(x @ x.T, 0).sum(axis=0, keepdims=True)
        y -= y.mean()
        y[0, 0] = 3.0
        cupy.zeros((2, 3))[...] = x
        assert strict_cupy.transfers() == []

    @pytest.mark.parametrize(
        ("via", "look"),
        [
            ("get", lambda a: a.get()),
            ("get", cupy.asnumpy),
            ("item", lambda a: a.item()),
            ("tolist", lambda a: a.tolist()),
            ("tobytes", lambda a: a.tobytes()),
            ("__bool__", bool),
            ("__int__", int),
            ("__float__", float),
            ("__complex__", complex),
            ("__repr__", repr),
            ("__str__", str),
            ("__reduce__", pickle.dumps),
        ],
    )
    def test_every_look_from_the_host_is_written_down(self, via: str, look: Any) -> None:
        scalar = cupy.full((), 2.0)
        look(scalar)
        assert strict_cupy.transfers("d2h") == [
            strict_cupy.Transfer("d2h", via, (), np.dtype(float), 0)
        ]

    def test_a_hidden_look_is_written_down_too(self, x: Any) -> None:
        if (x > 0).all():
            x[cupy.asarray(1) :]
        assert [t.via for t in strict_cupy.transfers("d2h")] == ["__bool__", "__index__"]

    def test_every_copy_from_the_host_is_written_down(self, x: Any) -> None:
        host = np.ones((2, 3))
        copies = [cupy.array(host), cupy.asarray(host), cupy.ascontiguousarray(host)]
        x.set(host)
        assert x[[1, 0]].shape == (2, 3)
        assert [t.via for t in strict_cupy.transfers("h2d")] == [
            "array",
            "asarray",
            "ascontiguousarray",
            "set",
            "index",
        ]
        host[...] = 5.0  # the device's memory is another one
        assert all(float(copied.max()) == 1.0 for copied in (*copies, x))

    def test_copies_on_the_device_are_none(self, x: Any) -> None:
        assert cupy.asarray(x) is x
        assert cupy.array(x) is not x
        assert cupy.array([x, x]).shape == (2, 2, 3)
        assert x.copy().base is None
        assert kinds() == []

    def test_get_fills_out_and_set_checks_its_argument(self, x: Any) -> None:
        out = np.empty((2, 3))
        assert x.get(out=out) is out
        assert np.array_equal(out, [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
        with pytest.raises(ValueError, match="expected"):
            x.set(np.ones(3))
        with pytest.raises(TypeError):
            x.set([1.0])

    def test_pickling_and_deep_copies_keep_values(self, x: Any) -> None:
        assert np.array_equal(pickle.loads(pickle.dumps(x)).get(), x.get())
        strict_cupy.clear_log()
        assert copy.deepcopy(x) is not x
        assert kinds() == []


class TestDevices:
    def test_arrays_of_two_devices_do_not_mix(self, x: Any) -> None:
        with cupy.cuda.Device(1):
            other = cupy.ones((2, 3))
        assert (x.device.id, other.device.id) == (0, 1)
        for refused in (
            lambda: x + other,
            lambda: cupy.add(x, other),
            lambda: cupy.concatenate([x, other]),
            lambda: x.__setitem__(0, other[0]),
            lambda: cupy.add.at(x, 0, other[0]),
            lambda: operator.iadd(x, other),
        ):
            with pytest.raises(ValueError, match="different from the current device"):
                refused()
        assert np.array_equal(x.get(), [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])

    def test_a_kernel_runs_where_its_arrays_are(self, x: Any) -> None:
        with cupy.cuda.Device(1):
            for refused in (lambda: x + 1, lambda: x.sum(), lambda: x.fill(0), lambda: x[x > 0]):
                with pytest.raises(ValueError, match="different from the current device"):
                    refused()
            # Views launch nothing, and stay where their base is.
            for view in (x.T, x[0], x.reshape(3, 2), cupy.expand_dims(x, 0), cupy.split(x, 2)[0]):
                assert view.device.id == 0

    def test_copies_go_to_the_current_device(self, x: Any) -> None:
        with cupy.cuda.Device(1):
            copies = [x.copy(), cupy.asarray(x), cupy.array(x)]
            assert copy.deepcopy(x).device.id == 0
        assert [c.device.id for c in copies] == [1, 1, 1]
        assert kinds() == ["d2d"] * 3

    def test_a_device_that_is_not_there(self) -> None:
        with pytest.raises(cupy.cuda.runtime.CUDARuntimeError), cupy.cuda.Device(2):
            pass
        with pytest.raises(cupy.cuda.runtime.CUDARuntimeError):
            cupy.cuda.Device(-1).use()
        assert cupy.cuda.runtime.getDevice() == 0

    def test_the_current_device_belongs_to_the_thread(self) -> None:
        seen = []
        cupy.cuda.Device(1).use()
        thread = threading.Thread(target=lambda: seen.append(cupy.cuda.Device().id))
        thread.start()
        thread.join()
        assert seen == [0]
        assert cupy.cuda.Device() == cupy.cuda.Device(1)

    def test_streams_and_events_record_what_was_asked(self) -> None:
        stream, event = cupy.cuda.Stream(non_blocking=True), cupy.cuda.Event()
        with cupy.cuda.Device(0), stream:
            assert cupy.cuda.get_current_stream() is stream
            event.record()
        cupy.cuda.Stream.null.wait_event(event)
        event.synchronize()
        stream.synchronize()
        assert cupy.cuda.get_current_stream() == cupy.cuda.Stream.null
        assert strict_cupy.log == [
            strict_cupy.Call("Device.enter", (0,)),
            strict_cupy.Call("Stream.enter", (stream,)),
            strict_cupy.Call("Event.record", (event, stream)),
            strict_cupy.Call("Stream.exit", (stream,)),
            strict_cupy.Call("Device.exit", (0,)),
            strict_cupy.Call("Stream.wait_event", (cupy.cuda.Stream.null, event)),
            strict_cupy.Call("Event.synchronize", (event,)),
            strict_cupy.Call("Stream.synchronize", (stream,)),
        ]
        assert stream.record().recorded_on is stream

    def test_a_stream_of_another_device_raises(self) -> None:
        stream = cupy.cuda.Stream()
        with cupy.cuda.Device(1):
            with pytest.raises(RuntimeError, match="not created on the current device"):
                stream.use()
            with pytest.raises(RuntimeError, match="not created on the current device"), stream:
                pass


class TestViews:
    def test_base_is_the_owner(self, x: Any) -> None:
        assert x.base is None
        for view in (x.T, x[0], x[:, ::2], x[0][1:], x.reshape(3, 2).T, x.view(), x.ravel()):
            assert view.base is x
            assert not view.flags.owndata
        assert (x + 0).base is None
        assert x[cupy.asarray([0])].base is None

    def test_what_is_written_to_a_view_is_in_its_base(self, x: Any) -> None:
        x.T[0] += 10
        cupy.exp(x[1], out=x[1])
        assert np.array_equal(x.get()[0], [11.0, 2.0, 3.0])
        assert np.allclose(x.get()[1], np.exp([14.0, 5.0, 6.0]))
        assert x.data.ptr == x[0].data.ptr != x[1].data.ptr

    def test_out_is_the_answer(self, x: Any) -> None:
        out = cupy.empty_like(x)
        assert cupy.add(x, 1, out=out) is out
        assert operator.iadd(out, 1) is out

    def test_flags_have_no_writeable(self, x: Any) -> None:
        assert x.flags.c_contiguous
        assert x.T.flags["F_CONTIGUOUS"]
        assert not hasattr(x.flags, "writeable")

    def test_dlpack_shares_memory_and_leaves_the_host_out(self, x: Any) -> None:
        again = cupy.from_dlpack(x)
        again[0, 0] = 9.0
        assert float(x[0, 0]) == 9.0
        assert x.__dlpack_device__() == (2, 0)
        with pytest.raises(BufferError):
            cupy.from_dlpack(np.ones(3))
