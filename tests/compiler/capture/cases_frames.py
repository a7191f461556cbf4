"""Cases for code that looks at the frames above it, or warns and logs at a line of users' code."""

from __future__ import annotations

import collections
import inspect
import logging
import sys
import traceback
import warnings

import oneflow_lite as flow
import oneflow_lite.nn.functional as F
from tests.compiler.capture.worlds import attempt, tensor


def caught(f, *args, action="always"):
    """The result, and where each warning about it was given."""
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter(action)
        warnings.filterwarnings("ignore", "flow.compile")
        result = attempt(f, *args)
    lines = [(w.category, str(w.message), w.filename, w.lineno) for w in found]
    return result, lines


def names_of_callers(compiled):
    def seen(x):
        stack = [frame.function for frame in inspect.stack()[:2]]
        names = [frame.name for frame in traceback.extract_stack()[-2:]]
        return x * 2, stack, names, sys._getframe(1).f_code.co_name, sys._getframe(0).f_lineno

    def f(x, *args):
        return seen(x, *args)

    f = compiled(f)
    for x in (1.0, 2.0, 3.0):
        yield f(tensor(x)), f(*[tensor(x)])


def lines_of_log_records(compiled):
    logger, records = logging.getLogger("cases_frames"), []
    handler = logging.Handler()
    handler.emit = lambda record: records.append(
        (record.pathname, record.lineno, record.funcName, record.getMessage())
    )
    logger.addHandler(handler)
    logger.propagate = False

    def told(x):
        logger.warning("a step of %d", 2)
        return x * 2

    f = compiled(lambda x: told(x) + 1)
    for x in (1.0, 2.0, 3.0):
        yield f(tensor(x)), list(records)
    logger.removeHandler(handler)


def modules_of_classes_made(compiled):
    def f(x):
        pair = collections.namedtuple("pair", "a b")
        return x * 2, pair.__module__, type("made", (), {}).__module__

    f = compiled(f)
    for x in (1.0, 2.0, 3.0):
        yield f(tensor(x))


def warnings_of_users(compiled):
    def old(x):
        warnings.warn("old() is going away", DeprecationWarning, stacklevel=2)
        return x * 2

    def f(x):
        warnings.warn(f"of shape {tuple(x.shape)}", stacklevel=1)
        return old(x) + 1

    f = compiled(f)
    for x in (1.0, 2.0, [1.0, 2.0], 3.0, [3.0, 4.0]):
        yield caught(f, tensor(x))


def warnings_of_ops(compiled):
    def f(x):
        y = F.softmax(x)
        return y, F.mse_loss(y, x[:, :1]), F.kl_div(y, x)

    f = compiled(f)
    for n in (2, 3, 2, 3, 2):
        yield caught(f, flow.ones(2, n))


def warnings_at_lines_of_callers(compiled):
    softmax = compiled(flow.nn.Softmax())
    for n in (2, 3, 2):
        x = flow.ones(2, n)
        yield caught(lambda x: softmax(x), x), caught(softmax, x)
        yield caught(lambda x: (x, softmax(x)), x)


def warnings_given_once(compiled):
    f = compiled(lambda x: F.softmax(x))
    for _ in range(4):
        yield caught(f, flow.ones(2, 3), action="default")


def warnings_that_become_errors(compiled):
    weight = tensor([1.0, 2.0])

    def f(x):
        weight.mul_(2)
        try:
            y = F.softmax(x)
        except UserWarning as error:
            return x, str(error)
        weight.add_(1)
        return y, weight.sum()

    f = compiled(f)
    for action in ("always", "always", "error", "always", "error", "ignore", "always"):
        yield caught(f, flow.ones(2, 3), action=action), weight


def warnings_with_filters_inside(compiled):
    def f(x):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            y = F.softmax(x)
        return y * 2

    f = compiled(f)
    for n in (2, 3, 2, 3):
        yield caught(f, flow.ones(2, n))


def warnings_under_filters_set_inside(compiled):
    def f(x):
        before, warnings.filters = warnings.filters, [("ignore", None, Warning, None, 0)]
        y = F.softmax(x)
        warnings.filters = before
        return y * 2

    f = compiled(f)
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        for n in (2, 3, 2, 3):
            yield f(flow.ones(2, n)), len([w for w in found if "softmax" in str(w.message)])


def warnings_in_a_backward_pass(compiled):
    module = flow.nn.Linear(2, 2)
    module.register_full_backward_hook(lambda module, given, made: None)

    def f(x):
        loss = module(x).sum()
        loss.backward()
        return loss

    f = compiled(f)
    for _ in range(4):
        yield caught(f, flow.ones(2, 2)), module.weight.grad


class Doubled(flow.autograd.Function):
    """Its backward pass warns."""

    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, dy):
        warnings.warn("a gradient of Doubled", stacklevel=1)
        return dy * 2


def warnings_of_gradient_rules(compiled):
    f = compiled(lambda x: Doubled.apply(x).sum())

    def inside(x):
        y = Doubled.apply(x).sum()
        (dx,) = flow.autograd.grad(y, x)
        return dx

    inside = compiled(inside)
    for n in (2, 3, 2, 3, 2):
        x = flow.ones(n, requires_grad=True)
        yield caught(lambda x: f(x).backward(), x), x.grad, caught(inside, x)
