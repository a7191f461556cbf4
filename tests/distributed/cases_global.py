"""The part of each rank in a world of any size: global tensors."""

from __future__ import annotations

import functools
import itertools
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

import oneflow_lite as flow
import oneflow_lite.distributed as dist
from oneflow_lite import nn
from oneflow_lite.distributed.placement import pieces
from oneflow_lite.errors import ArgumentError, ArgumentTypeError, CaptureError
from oneflow_lite.ops.op_expr import op_expr
from oneflow_lite.ops.registry import FUNCTORS, KERNELS
from oneflow_lite.ops.sbp_rules import Way, ways_of
from oneflow_lite.tensors.tensor import Tensor

F = nn.functional
S, B, P = flow.sbp.split, flow.sbp.broadcast, flow.sbp.partial_sum
ROWS = 7  # which neither 2 nor 4 divide


def all_ranks() -> flow.placement:
    return flow.placement("cpu", ranks=list(range(dist.get_world_size())))


def placements() -> list[flow.placement]:
    """Return all ranks in a row and, where they are four, in a grid, and some of the ranks."""
    size = dist.get_world_size()
    found = [all_ranks()]
    if size == 4:
        found.append(flow.placement("cpu", ranks=[[0, 1], [2, 3]]))
        found.append(flow.placement("cpu", ranks=[1, 3]))
    return found


def every_sbp(where: flow.placement, dims: int) -> list[Any]:
    each = [B, P, *map(S, range(dims))]
    return list(itertools.product(each, repeat=len(where.shape)))


def raises(kind: type[Exception], text: str, call: Callable[..., Any], *args: Any) -> None:
    try:
        call(*args)
    except kind as error:
        assert text in str(error), str(error)
    else:
        raise AssertionError(f"{call} raised nothing")


def case_every_boxing_keeps_the_tensor() -> None:
    whole = np.arange(ROWS * 5 * 3.0).reshape(ROWS, 5, 3)
    for where in placements():
        copies = flow.tensor(whole).to_global(where, (B,) * len(where.shape))
        for before in every_sbp(where, 3):
            x = copies.to_global(sbp=before)
            for after in every_sbp(where, 3):
                y = x.to_global(sbp=after)
                assert y.sbp == after and y.shape == whole.shape and y.is_global
                if P in after or where.place is None:
                    np.testing.assert_array_equal(y.numpy() if P in after else whole, whole)
                    continue
                begins, sizes = (
                    where.begins(whole.shape, after),
                    where.local_shape(whole.shape, after),
                )
                mine = tuple(slice(i, i + n) for i, n in zip(begins, sizes, strict=True))
                np.testing.assert_array_equal(y.to_local().numpy(), whole[mine])
        np.testing.assert_array_equal(y.numpy(), whole)


def case_parts_make_a_tensor() -> None:
    rank, size = dist.get_rank(), dist.get_world_size()
    where = all_ranks()
    own = flow.full((pieces(ROWS, size)[rank], 2), float(rank))
    x = own.to_global(where, S(0))
    assert x.shape == (ROWS, 2) and x.sbp == (S(0),) and x.placement == where
    np.testing.assert_array_equal(x.to_local().numpy(), own.numpy())
    summed = flow.full((2,), rank + 1.0).to_global(where, P)
    assert summed.numpy().tolist() == [size * (size + 1) / 2] * 2
    same = flow.full((2,), rank + 1.0).to_global(where, B)
    assert same.to_local().tolist() == [1.0, 1.0]  # what the first rank has
    if size > 1:
        raises(ArgumentError, "rank", flow.ones(1 + rank).to_global, where, S(0))
        raises(ArgumentError, "rank", flow.ones(1 + rank).to_global, where, B)


def case_a_tensor_moves_between_placements() -> None:
    size = dist.get_world_size()
    if size == 1:
        return
    some, all_of_them = flow.placement("cpu", ranks=[size - 1]), all_ranks()
    whole = np.arange(10.0).reshape(5, 2)
    x = flow.tensor(whole).to_global(all_of_them, B).to_global(sbp=S(1)).requires_grad_()
    y = x.to_global(some, B)
    assert y.placement == some and y.shape == (5, 2)
    z = (y * 3).to_global(all_of_them, S(0))
    np.testing.assert_array_equal(z.numpy(), whole * 3)
    (z * z).sum().backward()
    assert x.grad is not None and x.grad.sbp == x.sbp and x.grad.placement == all_of_them
    np.testing.assert_array_equal(x.grad.numpy(), whole * 18)
    raises(ArgumentError, "placement", lambda: y + z)


def case_gradients_pass_between_ranks_and_global_tensors() -> None:
    rank, size = dist.get_rank(), dist.get_world_size()
    where = all_ranks()
    own = flow.full((2,), rank + 1.0).requires_grad_()
    x = own.to_global(where, S(0))
    (x * x).sum().backward()
    assert own.grad is not None and own.grad.tolist() == [2 * rank + 2.0] * 2
    term = flow.full((2,), rank + 1.0).requires_grad_()
    y = term.to_global(where, P)
    (y * y).sum().backward()
    assert term.grad is not None and term.grad.tolist() == [size * (size + 1.0)] * 2
    z = flow.ones(size, 2).to_global(where, B).to_global(sbp=S(0)).requires_grad_()
    part = z.to_local()
    (part * (rank + 1)).sum().backward()
    assert z.grad is not None and z.grad.sbp == (S(0),)
    assert z.grad.numpy()[:, 0].tolist() == [r + 1.0 for r in range(size)]
    second = flow.arange(4.0, placement=where, sbp=B, requires_grad=True)
    (first,) = flow.autograd.grad(
        (second.to_global(sbp=S(0)) ** 3).sum(), second, create_graph=True
    )
    (again,) = flow.autograd.grad(first.sum(), second)
    assert again.numpy().tolist() == [0.0, 6.0, 12.0, 18.0]


def case_created_tensors_do_not_depend_on_the_placement() -> None:
    calls: list[Callable[..., Tensor]] = [
        lambda **k: flow.zeros(ROWS, 3, **k),
        lambda **k: flow.ones((ROWS, 3), dtype=flow.float64, **k),
        lambda **k: flow.full((ROWS, 3), 2.5, **k),
        lambda **k: flow.arange(ROWS, **k),
        lambda **k: flow.linspace(0, 1, ROWS, **k),
        lambda **k: flow.eye(ROWS, **k),
        lambda **k: flow.rand(ROWS, 3, **k),
        lambda **k: flow.randn(ROWS, 3, **k),
        lambda **k: flow.randint(0, 9, (ROWS, 3), **k),
        lambda **k: flow.randperm(ROWS, **k),
        lambda **k: flow.tensor(np.arange(ROWS * 2.0).reshape(ROWS, 2), **k),
    ]
    for where in placements():
        for call in calls:
            flow.manual_seed(3)
            wanted = call()
            for sbp in (B, P, S(0)):
                flow.manual_seed(3)
                made = call(placement=where, sbp=(sbp,) * len(where.shape))
                assert made.is_global and made.dtype == wanted.dtype and made.shape == wanted.shape
                np.testing.assert_array_equal(made.numpy(), wanted.numpy())
        made = flow.empty(ROWS, 2, placement=where, sbp=S(0))
        assert made.shape == (ROWS, 2)
        like = flow.full_like(made, 3.0)
        assert like.sbp == made.sbp and like.sum().item() == ROWS * 6
        assert flow.zeros_like(made).sbp == made.sbp
        assert made.new_ones(2).numpy().tolist() == [1, 1]
        assert flow.randn_like(made).is_global


def case_seeds_that_differ_draw_the_same_numbers() -> None:
    where = all_ranks()
    flow.manual_seed(dist.get_rank())
    x = flow.randn(ROWS, 4, placement=where, sbp=B)
    objects: list[Any] = [None] * dist.get_world_size()
    dist.all_gather_object(objects, x.to_local().tolist())
    assert all(each == objects[0] for each in objects)
    flow.manual_seed(7)
    wanted = F.dropout(flow.ones(ROWS, 4), 0.5)
    for sbp in (B, S(0), S(1)):
        flow.manual_seed(7)
        y = F.dropout(flow.ones(ROWS, 4, placement=where, sbp=sbp), 0.5)
        np.testing.assert_array_equal(y.numpy(), wanted.numpy())
    flow.manual_seed(8)
    filled = nn.init.normal_(flow.empty(ROWS, 4))
    flow.manual_seed(8)
    parts = nn.init.normal_(flow.empty(ROWS, 4, placement=where, sbp=S(0)))
    np.testing.assert_array_equal(parts.numpy(), filled.numpy())


def case_writes_in_place() -> None:
    where = all_ranks()
    for sbp in (B, P, S(0), S(1)):
        x = flow.arange(12.0).reshape(4, 3).to_global(where, B).to_global(sbp=sbp)
        plain = flow.arange(12.0).reshape(4, 3)
        for y in (x, plain):
            y.add_(1.0)
            y.mul_(2)
            y[1] = 5.0
            y.clamp_(max=20)
        assert x.sbp == (sbp,)
        np.testing.assert_array_equal(x.numpy(), plain.numpy())
    x = flow.zeros(4, 3, placement=where, sbp=S(0))
    x[:, 1].fill_(2.0)  # a view of what this rank has
    assert x.sum().item() == 8
    leaf = flow.ones(4, 3, placement=where, sbp=S(0), requires_grad=True)
    y = leaf * 2
    y[:, 0] *= 3
    y.sum().backward()
    assert leaf.grad is not None and leaf.grad.numpy()[0].tolist() == [6, 2, 2]


def case_the_cheapest_boxing_is_chosen_and_told() -> None:
    size = dist.get_world_size()
    where = all_ranks()
    if size == 1:
        return
    x = flow.ones(8, 16, placement=where, sbp=S(0))
    w = flow.ones(16, 32, placement=where, sbp=S(1))
    dist.explain(reset=True)
    y = x @ w  # x has 512 bytes, w has 2048
    assert y.sbp == (S(1),)
    assert dist.explain().rows == [("matmul", "S(0)", "B", 1, (size - 1) * 512)]
    z = y @ flow.ones(32, 4, placement=where, sbp=S(0))
    assert z.sbp == (P,) and len(dist.explain().rows) == 1
    z.relu()
    rows = dist.explain(reset=True).rows
    assert rows[1] == ("relu", "P", "S(0)", 1, (size - 1) * 128)
    assert "relu" not in str(dist.explain()) and "op" in str(dist.explain())
    assert (flow.ones(4, placement=where, sbp=P) + flow.ones(4)).sbp == (P,)
    logits = flow.ones(4, 256, placement=where, sbp=S(1))
    dist.explain(reset=True)
    assert logits.log_softmax(1).sbp == (S(1),)  # of each line its maximum and its sum
    assert dist.explain().rows == [("log_softmax", "P", "B", 2, (size - 1) * 2 * 32)]
    table = flow.ones(8, 2, placement=where, sbp=S(0))
    assert F.embedding(flow.tensor([1, 7]), table).sbp == (P,)
    raises(IndexError, "0 to 7", F.embedding, flow.tensor([8]), table)


def fewest_bytes(op: str, inputs: list[Tensor], attrs: Any) -> int:
    """Return what the cheapest of all ways moves, by moving to each of them."""
    where, moved = inputs[0].placement, []
    whole = Way(("B",) * len(inputs), ())

    def search(shapes: Any, taken: tuple[Way, ...]) -> None:
        if len(taken) < len(where.shape):
            parts = where.shape[len(taken)]
            for way in (whole, *(ways_of(op_expr(op), shapes, attrs) or ())):
                pairs = list(zip(shapes, way.ins, strict=True))
                now = [x.sbp[len(taken)].dim for x in inputs]
                if way.run is None and all(
                    isinstance(i, str) or s[i] >= parts or i == dim
                    for (s, i), dim in zip(pairs, now, strict=True)
                ):
                    inner = [
                        tuple(pieces(n, parts)[0] if d == i else n for d, n in enumerate(s))
                        for s, i in pairs
                    ]
                    search(inner, (*taken, way))
            return
        dist.explain(reset=True)
        for k, x in enumerate(inputs):
            ins = [way.ins[k] for way in taken]
            x.to_global(sbp=[B if i == "B" else P if i == "P" else S(int(i)) for i in ins])
        moved.append(dist.explain().bytes)

    search([x.shape for x in inputs], ())
    return min(moved)


def case_no_way_moves_fewer_bytes() -> None:
    rng = np.random.default_rng(0)
    calls: list[tuple[str, Callable[..., Tensor], Any, str]] = [
        ("matmul", lambda x, y: x @ y, {}, "ab bc"),
        ("matmul", lambda x, y: x @ y, {}, "dab bc"),
        ("add", lambda x, y: x + y, {}, "ab b"),
        ("mul", lambda x, y: x * y, {}, "ab ab"),
        ("where", lambda x, y, z: flow.where(x, y, z), {}, "ab ab b"),
        ("cat", lambda x, y: flow.cat([x, y], 0), {"dim": 0}, "ab cb"),
        ("sum", lambda x: x.sum(0), {"dim": (0,), "keepdim": False}, "ab"),
    ]
    for where in placements()[:2]:
        for op, call, attrs, letters in calls * (2 if len(where.shape) > 1 else 4):
            sizes = {letter: int(rng.integers(2, 20)) for letter in "abcd"}
            inputs = []
            for k, word in enumerate(letters.split()):
                shape = [sizes[letter] for letter in word]
                choices = [
                    c for c in every_sbp(where, len(shape)) if op != "where" or k or P not in c
                ]
                sbp = choices[rng.integers(len(choices))]
                x = flow.ones(*shape, placement=where, sbp=(B,) * len(where.shape))
                x = x > 0 if op == "where" and not k else x
                inputs.append(x.to_global(sbp=sbp))
            fewest = fewest_bytes(op, inputs, attrs)
            dist.explain(reset=True)
            call(*inputs)
            assert dist.explain(reset=True).bytes == fewest, (op, [str(x.sbp) for x in inputs])


def case_parts_of_a_batch_stay_where_they_are() -> None:
    where = all_ranks()
    size = dist.get_world_size()

    def parts(*shape: int) -> Tensor:
        flow.manual_seed(1)
        return flow.randn(2 * size, *shape, placement=where, sbp=S(0))

    flow.manual_seed(0)
    norm, lstm = nn.BatchNorm1d(3), nn.LSTM(3, 4, num_layers=2, batch_first=True)
    plain_norm, plain_lstm = nn.BatchNorm1d(3), nn.LSTM(3, 4, num_layers=2, batch_first=True)
    plain_lstm.load_state_dict(lstm.state_dict())
    norm.to_global(where, B)
    lstm.to_global(where, B)
    dist.explain(reset=True)
    y = norm(parts(3))
    z = lstm(parts(5, 3))[0]
    a = parts(3, 3)
    q = flow.linalg.cholesky(a @ a.mT + flow.eye(3))
    moved = {row[:3] for row in dist.explain(reset=True).rows if row[-1]}
    if size > 1:
        assert y.sbp == z.sbp == q.sbp == (S(0),)
        assert moved == {("batch_norm", "P", "B")}, moved  # sums of each channel
    (y.square().sum() + z.sum()).backward()
    plain_x, flat = parts(3).numpy(), parts(5, 3).numpy()
    wanted, wanted_z = plain_norm(flow.tensor(plain_x)), plain_lstm(flow.tensor(flat))[0]
    (wanted.square().sum() + wanted_z.sum()).backward()
    for got, known in (
        (y, wanted),
        (z, wanted_z),
        (norm.running_var, plain_norm.running_var),
        *zip(
            [p.grad for p in (*norm.parameters(), *lstm.parameters())],
            [p.grad for p in (*plain_norm.parameters(), *plain_lstm.parameters())],
            strict=True,
        ),
    ):
        np.testing.assert_allclose(got.detach().numpy(), known.detach().numpy(), atol=1e-5)


def case_an_op_without_a_rule_warns_once() -> None:
    where = all_ranks()
    x = flow.arange(4.0, placement=where, sbp=S(0))
    name = f"with_no_rule_{dist.get_rank()}"
    op = flow.register_op(name)(lambda xp, x: x * x.sum())
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        y, _ = op(x), op(x)
    assert len([w for w in seen if "no SBP rule" in str(w.message)]) == 1
    assert y.sbp == (B,) and y.numpy().tolist() == [0, 6, 12, 18]
    KERNELS.remove(name)
    FUNCTORS.remove(name)


def case_bad_input() -> None:
    where = all_ranks()
    x = flow.ones(4, 2, placement=where, sbp=B)
    size = dist.get_world_size()
    raises(ArgumentError, "from 0 to", flow.placement, "cpu", [size])
    raises(ArgumentError, "'cpu' or 'cuda'", flow.placement, "tpu", [0])
    raises(ArgumentError, "2 dimensions", x.to_global, where, S(2))
    raises(ArgumentTypeError, "sbp", x.to_global, where, "split")
    raises(ArgumentTypeError, "placement", flow.ones(2).to_global, [0], B)
    raises(ArgumentTypeError, "sbp", lambda: flow.ones(2, placement=where))
    raises(ArgumentError, "a global tensor", flow.ones(2).to_local)
    raises(ArgumentTypeError, "to_local", x.__dlpack__)
    assert np.asarray(x).tolist() == [[1, 1]] * 4
    local = flow.ones(2, requires_grad=True)
    raises(ArgumentError, "to_global(placement, sbp)", lambda: x * local)
    assert "placement" in repr(x) and "tensor(shape=(4, 2)" in repr(x)


def case_compiled_functions_refuse_global_tensors() -> None:
    where = all_ranks()
    x = flow.ones(4, 2, placement=where, sbp=S(0))
    raises(CaptureError, "flow.compile", flow.compile(lambda y: (y * 2).sum()), x)
    program = flow.static.Program()
    with flow.static.program_guard(program):
        raises(CaptureError, "global", lambda: x * 2)


class Block(nn.Module):
    def __init__(self, dim: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.q, self.k, self.v = (nn.Linear(dim, dim) for _ in range(3))
        self.out = nn.Linear(dim, dim)
        self.up, self.down = nn.Linear(dim, 4 * dim), nn.Linear(4 * dim, dim)

    def forward(self, x: Tensor) -> Tensor:
        b, t, c = x.shape
        h = self.norm1(x)
        heads = [m(h).view(b, t, self.heads, -1).transpose(1, 2) for m in (self.q, self.k, self.v)]
        y = F.scaled_dot_product_attention(*heads, is_causal=True)
        x = x + self.out(y.transpose(1, 2).reshape(b, t, c))
        return x + self.down(F.gelu(self.up(self.norm2(x))))


class Transformer(nn.Module):
    def __init__(
        self, vocabulary: int = 18, dim: int = 16, heads: int = 4, length: int = 6
    ) -> None:
        super().__init__()
        self.tokens = nn.Embedding(vocabulary, dim)
        self.places = nn.Embedding(length, dim)
        self.blocks = nn.ModuleList([Block(dim, heads)])
        self.norm = nn.LayerNorm(dim)
        self.head = nn.Linear(dim, vocabulary, bias=False)

    def forward(self, ids: Tensor, targets: Tensor) -> Tensor:
        x = self.tokens(ids) + self.places(flow.arange(ids.shape[1]))
        for block in self.blocks:
            x = block(x)
        logits = self.head(self.norm(x))
        return F.cross_entropy(logits.flatten(0, 1), targets.flatten())


def megatron(name: str, tensor: Tensor) -> Any:
    """Split columns, then rows, and the vocabulary, as Megatron-LM does."""
    if name.endswith(("out.weight", "down.weight")):
        return S(1)
    columns = any(part in name for part in (".q.", ".k.", ".v.", ".up."))
    return S(0) if columns or name.startswith(("tokens", "head")) else B


def train(net: nn.Module, place: Callable[[Tensor], Tensor], optimizer: Any) -> Any:
    updates = optimizer(net.parameters(), lr=0.01)
    rng = np.random.default_rng(1)
    losses = []
    for _ in range(3):
        ids, targets = (place(flow.tensor(rng.integers(0, 18, (4, 6)))) for _ in range(2))
        loss = net(ids, targets)
        updates.zero_grad()
        loss.backward()
        updates.step()
        losses.append(loss.item())
    return losses, [p.numpy().copy() for p in net.parameters()]


def build() -> nn.Module:
    flow.manual_seed(0)
    return Transformer().double()


@functools.cache
def serial(optimizer: Any) -> Any:
    return train(build(), lambda x: x, optimizer)


def compare(where: flow.placement, weights: Any, data: Any, optimizer: Any) -> None:
    """Compare three steps of the same model code, on one rank and on global tensors."""

    def place(x: Tensor) -> Tensor:
        return x.to_global(where, (B,) * len(where.shape)).to_global(where, data)

    losses, parameters = serial(optimizer)
    net = build().to_global(where, weights)
    for parameter, (name, _) in zip(net.parameters(), net.named_parameters(), strict=True):
        assert parameter.is_global and parameter.is_leaf, name
    got, found = train(net, place, optimizer)
    np.testing.assert_allclose(got, losses, rtol=1e-8)
    for a, b in zip(found, parameters, strict=True):
        np.testing.assert_allclose(a, b, atol=1e-6)


def case_a_transformer_trains_by_data_and_by_tensors() -> None:
    where = all_ranks()
    compare(where, B, S(0), flow.optim.AdamW)
    compare(where, megatron, B, flow.optim.AdamW)
    compare(where, S(0), S(0), flow.optim.SGD)  # parameters split, as ZeRO's third stage has them


def case_a_transformer_trains_on_a_grid() -> None:
    if dist.get_world_size() != 4:
        return
    grid = flow.placement("cpu", ranks=[[0, 1], [2, 3]])
    compare(grid, lambda name, x: (B, megatron(name, x)), (S(0), B), flow.optim.Adam)
    compare(grid, lambda name, x: (S(0), megatron(name, x)), (S(0), B), flow.optim.Adam)


def case_convolutions_train_by_batch() -> None:
    def build() -> nn.Module:
        flow.manual_seed(0)
        net = nn.Sequential(
            nn.Conv2d(2, 4, 3, padding=1),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.BatchNorm2d(4),
            nn.Flatten(),
            nn.Linear(16, 3),
        )
        return net.double()

    where = all_ranks()
    x, t = np.random.default_rng(0).standard_normal((8, 2, 4, 4)), np.arange(8) % 3
    plain, net = build(), build().to_global(where, B)
    for module, place in ((plain, None), (net, where)):
        optimizer = flow.optim.SGD(module.parameters(), lr=0.1, momentum=0.9)
        for _ in range(3):
            inputs = [flow.tensor(x), flow.tensor(t)]
            if place is not None:
                inputs = [y.to_global(place, B).to_global(sbp=S(0)) for y in inputs]
            optimizer.zero_grad()
            F.cross_entropy(module(inputs[0]), inputs[1], label_smoothing=0.1).backward()
            nn.utils.clip_grad_norm_(module.parameters(), 0.5)
            optimizer.step()
    for a, b in zip(net.state_dict().values(), plain.state_dict().values(), strict=True):
        np.testing.assert_allclose(a.numpy(), b.numpy(), atol=1e-9)
