"""no_grad, enable_grad, set_grad_enabled: context managers and decorators."""

import asyncio
import contextlib
import inspect

import pytest

import oneflow_lite as flow
from oneflow_lite.errors import ArgumentTypeError
from tests.autograd.leaves import leaf


class TestGradModes:
    def test_no_grad(self):
        x = leaf(1.0)
        assert flow.is_grad_enabled()
        with flow.no_grad():
            assert not flow.is_grad_enabled()
            y = x * 2
        assert flow.is_grad_enabled()
        assert not y.requires_grad and y.is_leaf

    def test_enable_grad_inside_no_grad(self):
        x = leaf(1.0)
        with flow.no_grad():
            with flow.enable_grad():
                assert (x * 2).requires_grad
            assert not (x * 2).requires_grad

    @pytest.mark.parametrize("mode", [True, False])
    def test_set_grad_enabled_as_context_manager(self, mode):
        x = leaf(1.0)
        with flow.set_grad_enabled(mode):
            assert flow.is_grad_enabled() is mode
            assert (x * 2).requires_grad is mode
        assert flow.is_grad_enabled()

    def test_set_grad_enabled_as_a_call(self):
        try:
            flow.set_grad_enabled(False)
            assert not flow.is_grad_enabled()
        finally:
            flow.set_grad_enabled(True)
        assert flow.is_grad_enabled()

    @pytest.mark.parametrize(
        "decorator", [flow.no_grad, lambda: flow.no_grad, lambda: flow.set_grad_enabled(False)]
    )
    def test_decorators(self, decorator):
        x = leaf(1.0)

        @decorator()
        def double(t, *, by=2):
            """Doc."""
            assert not flow.is_grad_enabled()
            return t * by

        assert flow.is_grad_enabled()
        for _ in range(2):
            assert not double(x).requires_grad
            assert double(x, by=3).item() == 3
            assert flow.is_grad_enabled()
        assert double.__name__ == "double" and double.__doc__ == "Doc."

    @pytest.mark.parametrize("decorate", [flow.enable_grad(), flow.enable_grad])
    def test_enable_grad_decorates(self, decorate):
        @decorate
        def double(t):
            return t * 2

        with flow.no_grad():
            assert double(leaf(1.0)).requires_grad
            assert not flow.is_grad_enabled()

    def test_set_grad_enabled_as_decorator_leaves_the_mode_alone(self):
        @flow.set_grad_enabled(False)
        def double(t):
            return t * 2

        assert flow.is_grad_enabled()
        assert not double(leaf(1.0)).requires_grad

    def test_a_decorated_generator_runs_in_its_mode_and_leaves_the_callers(self):
        x = leaf(1.0)

        @flow.no_grad()
        def generate():
            while True:
                received = yield x * 2
                if received is None:
                    return

        generator = generate()
        assert not next(generator).requires_grad
        assert flow.is_grad_enabled()
        assert not generator.send(1).requires_grad
        assert flow.is_grad_enabled()
        with pytest.raises(StopIteration):
            generator.send(None)

    @pytest.mark.parametrize("mode", [flow.no_grad, lambda: flow.set_grad_enabled(False)])
    def test_an_exception_restores_the_mode(self, mode):
        with pytest.raises(KeyError), mode():
            raise KeyError
        assert flow.is_grad_enabled()

        @flow.no_grad()
        def fails():
            raise KeyError

        with pytest.raises(KeyError):
            fails()
        assert flow.is_grad_enabled()

    def test_one_instance_may_be_used_again_and_nested(self):
        mode = flow.no_grad()
        for _ in range(2):
            with mode:
                with mode:
                    assert not flow.is_grad_enabled()
                assert not flow.is_grad_enabled()
            assert flow.is_grad_enabled()

    def test_a_recursive_decorated_function(self):
        @flow.no_grad()
        def down(n):
            assert not flow.is_grad_enabled()
            return down(n - 1) if n else 0

        down(3)
        assert flow.is_grad_enabled()

    def test_enter_gives_nothing(self):
        with flow.no_grad() as nothing:
            assert nothing is None

    def test_leaves_made_under_no_grad_may_require_gradients(self):
        with flow.no_grad():
            x = flow.ones(1, requires_grad=True)
        assert x.requires_grad
        assert (x * 2).requires_grad


def test_a_decorated_generator_is_closed_in_its_mode():
    torch = pytest.importorskip("torch")
    for library in (flow, torch):
        seen = []

        @library.no_grad()
        def generator():
            try:
                yield 1
            finally:
                seen.append(library.is_grad_enabled())

        steps = generator()
        next(steps)
        steps.close()
        assert seen == [False] and library.is_grad_enabled()


class TestTasksOfAsyncio:
    """They share the mode of their thread, here as in PyTorch."""

    @staticmethod
    def seen_meanwhile(begin):
        """Return the mode which another task sees while one awaits in `begin(pause)`."""

        async def run():
            seen = []

            async def look():
                seen.append(flow.is_grad_enabled())

            async def pause():
                await asyncio.create_task(look())

            await begin(pause)
            assert flow.is_grad_enabled()
            return seen[0]

        return asyncio.run(run())

    @pytest.mark.parametrize("library", ["oneflow_lite", "torch"])
    def test_a_block_that_awaits_is_seen_by_other_tasks(self, library):
        library = pytest.importorskip(library)

        async def run():
            async def wait():
                with library.no_grad():
                    await asyncio.sleep(0)

            async def look():
                return library.is_grad_enabled()

            return (await asyncio.gather(wait(), look()))[1]

        assert asyncio.run(run()) is False

    @pytest.mark.parametrize(
        "mode",
        [flow.no_grad, flow.no_grad(), lambda f: flow.set_grad_enabled(False)(f)],
    )
    def test_a_decorated_coroutine_has_the_mode_in_its_steps_alone(self, mode):
        inside = []

        @mode
        async def evaluate(pause):
            """Evaluate."""
            inside.append(flow.is_grad_enabled())
            try:
                await asyncio.sleep(-1)
                await pause()
                raise KeyError
            except KeyError:
                inside.append(flow.is_grad_enabled())

        assert inspect.iscoroutinefunction(evaluate) and evaluate.__doc__ == "Evaluate."
        assert self.seen_meanwhile(evaluate) is True
        assert inside == [False, False]

    def test_a_cancelled_coroutine_ends_in_its_mode(self):
        seen = []

        @flow.no_grad()
        async def evaluate():
            try:
                await asyncio.sleep(10)
            finally:
                seen.append(flow.is_grad_enabled())

        async def run():
            task = asyncio.create_task(evaluate())
            await asyncio.sleep(0)
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task

        asyncio.run(run())
        assert seen == [False] and flow.is_grad_enabled()

    def test_an_asynchronous_generator_is_refused(self):
        async def generate():
            yield 1

        with pytest.raises(ArgumentTypeError, match="asynchronous generator function .*generate"):
            flow.no_grad()(generate)
