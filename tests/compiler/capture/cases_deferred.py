"""Cases for numbers that are handed on, containers that grow, options set inside, NumPy arrays."""

from __future__ import annotations

import math
from collections import deque

import numpy as np

import oneflow_lite as flow
from tests.compiler.capture.worlds import Box, attempt, leaf, tensor

TOTAL = 0.0


def numbers_of_tensors_appended(compiled):
    seen, recent, kinds = [], deque(maxlen=2), set()

    def f(x):
        nonlocal recent
        loss = (x * x).sum()
        seen.append(loss.item())
        recent.append(loss.item() / 2)
        seen.extend([x.numel(), -loss.item()])
        recent += [abs(loss.item())]
        kinds.add(x.dtype)
        return x * 2

    f = compiled(f)
    for i in range(5):
        yield f(tensor(1.0, float(i))), seen, list(recent), len(kinds)


def a_list_that_is_replaced(compiled):
    box = Box(seen=[])

    def f(x):
        box.seen.append(x.sum().item())
        return x * 2

    f = compiled(f)
    for i in range(7):
        if i in (3, 5):
            box.seen = [box.seen]
        yield f(tensor(1.0, float(i))), box.seen


def one_list_in_two_places(compiled):
    seen = []
    box = Box(a=seen, b=seen)

    def f(x):
        box.a.append(x.sum().item())
        box.b.append(2)
        return x * 2

    f = compiled(f)
    for i in range(8):
        if i == 4:
            box.b = []
        yield f(tensor(1.0, float(i))), box.a, box.b


def an_argument_that_grows(compiled):
    seen = []

    def f(x, given):
        seen.append(1)
        given.append(x.sum().item())
        return x * 2

    f = compiled(f)
    for i in range(8):
        given = seen if i in (3, 6) else []
        yield f(tensor(1.0, float(i)), given), given, seen


class Noting(list):
    def append(self, value):
        super().append(value)
        self.last = value


def a_list_with_an_append_of_its_own(compiled):
    seen = Noting()

    def f(x):
        seen.append(x.sum().item())
        return x * 2

    f = compiled(f)
    for i in range(5):
        yield f(tensor(1.0, float(i))), list(seen), seen.last


def a_list_that_is_read_after_it_grew(compiled):
    seen = []

    def f(x, how):
        seen.append(x.sum().item())
        if how == "length":
            return x * len(seen)
        if how == "last":
            return x * seen[-1]
        if how == "copy":
            return list(seen)
        if how == "truth":
            return x if seen else -x
        return seen

    f = compiled(f)
    for how in ("length", "last", "copy", "truth", "itself"):
        for i in range(3):
            yield f(tensor(1.0, float(i)), how), seen


def a_length_that_decides(compiled):
    seen = []

    def f(x):
        if len(seen) < 3:
            seen.append(x.sum().item())
        return x * 2

    f = compiled(f)
    for i in range(7):
        yield f(tensor(1.0, float(i))), seen


def containers_within_containers(compiled):
    history = {"loss": [], "all": [], "kept": []}

    def f(x):
        loss = (x * x).sum()
        values = {"loss": loss.item(), "pair": (loss.item(), "a"), "list": [loss.item()]}
        history["loss"].append(loss.item())
        history["all"].append(values)
        history["kept"].append(loss)
        history["kept"].append(history)
        values["late"] = x.sum().item()
        return values

    f = compiled(f)
    for i in range(4):
        found = f(tensor(1.0, float(i)))
        last = history["all"][-1]
        yield found, last is found, history["loss"], history["all"], history["kept"][::2]


def an_error_between_two_effects(compiled):
    seen, weights = [], flow.ones(3, 2, dtype=flow.float64)
    box = Box(count=0)

    def f(x, index):
        seen.append(x.sum().item())
        box.count += 1
        y = flow.embedding(index, weights)
        seen.append(y.sum().item())
        box.count += 1
        return y

    f = compiled(f)
    for i in range(8):
        index = flow.tensor([7 if i in (3, 6) else i % 3])
        yield attempt(f, tensor(1.0, float(i)), index), seen, box.count


def an_error_after_a_write(compiled):
    seen, w, table = [], tensor(1.0, 1.0), flow.ones(3, 2, dtype=flow.float64)

    def f(x, index):
        seen.append(x.sum().item())
        w.mul_(2)
        y = flow.embedding(index, table)
        seen.append(y.sum().item())
        return y

    f = compiled(f)
    for i in range(8):
        index = flow.tensor([7 if i in (3, 6) else i % 3])
        yield attempt(f, tensor(1.0, float(i)), index), seen, w


def running_numbers(compiled):
    state = {"mean": 0.0, "best": math.inf, "n": 0, "last": None}

    def f(x):
        loss = (x - 3).square().sum().item()
        state["mean"] = 0.9 * state["mean"] + 0.1 * loss
        state["best"] = min(state["best"], loss)
        state["n"] = state["n"] + x.numel()
        state["last"] = loss if state["last"] is None else max(state["last"], loss)
        return state["mean"] / state["n"]

    f = compiled(f)
    for i in range(12):
        if i == 5:
            state.update(mean=0, best=1.0)  # an int for a float
        if i == 8:
            state["n"] = -2  # the divisor becomes zero
        if i == 9:
            state["n"] = 1
        yield attempt(f, tensor(1.0, float(i))), state


def a_best_value_that_the_first_call_keeps(compiled):
    box = Box(best=0.5)

    def f(x):
        box.best = min(box.best, x.sum().item())
        return x * 2

    f = compiled(f)
    for i in range(6):
        yield f(tensor(1.0, -float(i))), box.best


class Meter:
    def __init__(self):
        self.val = self.sum = self.count = self.avg = 0

    def update(self, val, n=1):
        self.val = val
        self.sum += val * n
        self.count += n
        self.avg = self.sum / self.count


def meters_and_counts(compiled):
    losses, state = Meter(), {"correct": 0, "seen": 0}

    def f(x):
        losses.update((x * x).sum().item(), x.shape[0])
        state["correct"] += (x > 1).sum().item()
        state["seen"] += x.size(0)
        return (x > 1).sum().item()

    f = compiled(f)
    for i in range(9):
        if i == 4:
            losses.__init__()
        yield f(tensor(1.0, float(i), 2.0)), vars(losses), state


def variables_of_the_module_and_of_a_function(compiled):
    global TOTAL
    TOTAL, total, count = 0.0, 0.0, 0

    def f(x):
        global TOTAL
        nonlocal total, count
        TOTAL += x.sum().item()
        total = total + x.sum().item() * 2
        count += 1
        return count

    f = compiled(f)
    for i in range(6):
        yield f(tensor(1.0, float(i))), TOTAL, total, count


def attributes_and_their_dict(compiled):
    box, other = Box(n=0, m=0), Box(n=0)

    def f(x, how):
        fields = vars(box) if how else {}
        box.n += 1
        if how:
            x = x * fields["n"]
        other.n += 1
        return x * vars(other)["n"]

    f = compiled(f)
    for how in (False, True):
        for i in range(4):
            yield f(tensor(1.0, float(i)), how), box.n, other.n


def values_where_they_are_seen(compiled):
    def f(x, how):
        loss = x.sum().item()
        if how == "tuple":
            return flow.tensor((loss, 2.0))
        if how == "key":
            return {loss: 1, "a": [loss]}
        if how == "keys":
            table = {}
            table[loss] = 1
            return table
        if how == "tuples":
            return x if (loss, 1) == (3.0, 1) else -x
        if how == "exp":
            return math.exp(loss), round(loss, 2), round(loss)
        if how == "text":
            return f"{loss:.2f}"
        if how == "sum":
            return sum([loss, loss]) / max(1, 2)
        if how == "int":
            return int(loss), (x > 0).sum().item() * 2, x[: int(loss)]
        return isinstance(loss, float), loss is None, type(loss) is int

    f = compiled(f)
    for how in ("tuple", "key", "keys", "tuples", "exp", "text", "sum", "int", "kind"):
        for i in range(4):
            yield f(tensor(1.0, float(i)), how)


def numbers_among_the_arguments(compiled):
    seen = []

    def f(x, step, lr):
        seen.append(lr * step)
        seen.append(step)
        warm = min(1.0, (step + 1) / 4)
        return {"lr": lr * warm, "x": x * 2, "cos": math.cos(math.pi * step / 8)}

    f = compiled(f)
    for i in range(6):
        yield f(tensor(1.0), i, 0.1 * i), seen
    yield f(tensor(1.0), 2.5, 1), seen


def _model():
    w = leaf(1.0, 2.0)
    return w, flow.optim.SGD([w], lr=0.1, momentum=0.5)


def a_rate_set_before_the_step(compiled):
    w, optimizer = _model()
    box = Box(step=0)

    def f(x):
        for group in optimizer.param_groups:
            group["lr"] = 0.1 * min(1.0, (box.step + 1) / 4)
        optimizer.zero_grad()
        (w * x).square().sum().backward()
        optimizer.step()
        box.step += 1
        return w.sum().item()

    f = compiled(f)
    for i in range(7):
        if i == 5:
            box.step = -1  # a rate of zero
        yield f(tensor(1.0, float(i))), w, optimizer, box.step


def a_rate_that_shrinks_by_itself(compiled):
    w, optimizer = _model()

    def f(x):
        group = optimizer.param_groups[0]
        group["lr"] = group["lr"] * 0.9
        optimizer.zero_grad()
        (w * x).square().sum().backward()
        optimizer.step()
        group["lr"] *= 0.5
        return w * 1

    f = compiled(f)
    for i in range(7):
        if i == 4:
            optimizer.param_groups[0]["lr"] = 0.3
        yield f(tensor(1.0, float(i))), w, optimizer


def two_steps_of_two_rates(compiled):
    w, optimizer = _model()

    def f(x, rate):
        for factor in (1, 2):
            optimizer.param_groups[0]["lr"] = rate * factor
            optimizer.zero_grad()
            (w * x).square().sum().backward()
            optimizer.step()
        return w * 1

    f = compiled(f)
    for i in range(5):
        yield f(tensor(1.0, float(i)), 0.01 * i), w, optimizer


def a_scheduler_inside(compiled):
    w, optimizer = _model()
    schedules = flow.optim.lr_scheduler
    scheduler = schedules.SequentialLR(
        optimizer,
        [
            schedules.LinearLR(optimizer, 0.1, total_iters=3),
            schedules.CosineAnnealingLR(optimizer, 5),
        ],
        [3],
    )

    def f(x):
        optimizer.zero_grad()
        (w * x).square().sum().backward()
        optimizer.step()
        scheduler.step()
        return scheduler.get_last_lr()

    f = compiled(f)
    for i in range(9):
        yield f(tensor(1.0, float(i) / 10)), w, optimizer, scheduler.state_dict()["last_epoch"]


def arrays_among_the_arguments(compiled):
    def f(batch, label):
        x = flow.from_numpy(batch["x"].astype(np.float64) / 2)
        y = flow.tensor(label, dtype=flow.float64)
        z = flow.as_tensor(batch["x"][1:]).double()
        return x.sum(0) * y, z, batch["x"].shape[0], len(label)

    f = compiled(f)
    for i in range(8):
        x = np.arange(4 + 2 * (i % 2), dtype=np.float32).reshape(2, -1) + i
        x = x.astype(np.int64) if i > 5 else x
        yield f({"x": x}, np.arange(x.shape[1]) * i)


def arrays_that_are_looked_at(compiled):
    def f(x, array, how):
        if how == "item":
            return x * array[0]
        if how == "truth":
            return x if array[0] > 1 else -x
        if how == "sum":
            return x * float(array.sum())
        if how == "shared":
            y = flow.from_numpy(array)
            y.mul_(2)
            return y + x
        if how == "copied":
            y = flow.tensor(array)
            y.mul_(2)
            return y + x
        if how == "twice":
            a, b = flow.tensor(array), flow.tensor(array)
            a += 1
            return a + b, flow.from_numpy(array)
        array[0] = 5
        return x * 2

    f = compiled(f)
    for how in ("item", "truth", "sum", "shared", "copied", "twice", "write"):
        for i in range(4):
            array = np.array([float(i // 2), 1.0])
            yield f(tensor(1.0, 2.0), array, how), array


def an_array_that_a_tensor_shares(compiled):
    def f(x, array):
        x.mul_(2)
        return flow.from_numpy(array.astype(np.float32)) + 1

    f = compiled(f)
    for i in range(6):
        array = np.array([float(i), 1.0])
        x = flow.from_numpy(array) if i in (2, 4) else flow.ones(2)
        yield f(x, array), array, x


def an_array_from_outside(compiled):
    data = np.arange(8.0).reshape(4, 2)
    f = compiled(lambda x, i: x + flow.from_numpy(data[i]))
    for i in range(8):
        data[0] += 1
        yield f(tensor(1.0, 2.0), i % 2)


def _scaled_steps(compiled, overflows):
    w = flow.tensor([1.0, 2.0], requires_grad=True)
    optimizer = flow.optim.Adam([w], lr=0.1)
    scaler = flow.amp.GradScaler("cpu", init_scale=8.0, growth_interval=4)

    def f(x):
        optimizer.zero_grad()
        scaler.scale((w * x).square().sum()).backward()
        scaler.step(optimizer)
        scaler.update()
        return w * 1

    f = compiled(f)
    for i in range(14):
        if i == 11:
            scaler.set_backoff_factor(0.25)
        factor = math.inf if i in overflows else 1.0
        state = [[t.tolist() for t in each.values()] for each in optimizer.state.values()]
        yield f(tensor(1.0, float(i)).float() * factor), scaler.state_dict(), state


def a_scaler_inside(compiled):
    yield from _scaled_steps(compiled, (0,))


def a_scaler_that_is_left_in_between(compiled):
    w = flow.tensor([1.0, 2.0], requires_grad=True)
    optimizer = flow.optim.SGD([w], lr=0.1)
    scaler = flow.amp.GradScaler("cpu", init_scale=8.0)

    def f(x):
        optimizer.zero_grad()
        scaler.scale((w * x).square().sum()).backward()
        scaler.step(optimizer)
        return w * 1

    f = compiled(f)
    for i in range(5):
        y = f(tensor(1.0, float(i)).float())
        scaler.update()
        yield y, scaler.state_dict()


def a_closure_of_lbfgs(compiled):
    w = leaf(1.0, 2.0)
    optimizer = flow.optim.LBFGS([w], max_iter=3)

    @compiled
    def closure():
        optimizer.zero_grad()
        loss = ((w - 3) ** 4).sum()
        loss.backward()
        return loss

    for _ in range(4):
        yield optimizer.step(closure).detach(), w
