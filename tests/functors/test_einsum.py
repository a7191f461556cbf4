"""einsum and tensordot: equations of every kind, derivatives and errors."""

import numpy as np
import pytest

import oneflow_lite as flow
from oneflow_lite.testing import Sample, check_op

SIZES = {"a": 2, "b": 3, "c": 4, "d": 2, "e": 1, "i": 3, "j": 4, "k": 5, "A": 2, "B": 3}

EQUATIONS = [
    "i->",
    "i->i",
    "ij->ji",
    "ij->",
    "ij->j",
    "ii->",
    "ii->i",
    "ii",
    "bii->b",
    "bii->ib",
    "aijij->a",
    "iii->i",
    "iii",
    "ji",
    "ij,jk->ik",
    "ij,jk",
    "ij,jk->ki",
    "ij,kj->ik",
    "ij,ij->",
    "ij,ij->ij",
    "ij,ij->i",
    "ij,ji->ji",
    "i,j->ij",
    "i,j->ji",
    "i,j",
    "i,i->",
    "i,i->i",
    ",ij->ij",
    "i,->i",
    ",->",
    "bij,bjk->bik",
    "bij,bjk->kib",
    "bij,jk->bik",
    "bij,bij->b",
    "bijk,bjic->bkc",
    "abij,abkj->abik",
    "ijk,ib->kb",
    "ij,k->",
    "ij,k->k",
    "ii,ij->j",
    "ii,jj->ij",
    "ij,jk,kc->ic",
    "ij,jk,kc->ci",
    "i,j,k->kij",
    "i,i,i->i",
    "ij,ij,ij->j",
    "ab,bc,cd,da->",
    " i j , j k -> i k ",
    "Ab,Bb->BA",
    "Ab,Bb",
    "ij,jk->",
    "ij,jk->k",
    "ba,ca->bc",
]


def operands(equation):
    rng = np.random.default_rng(5)
    terms = equation.replace(" ", "").partition("->")[0].split(",")
    return [rng.uniform(0.5, 1.5, [SIZES[c] for c in term]) for term in terms]


@pytest.mark.parametrize("equation", EQUATIONS)
def test_agrees_with_pytorch(equation):
    torch = pytest.importorskip("torch")
    from tests.functors.agreement import compare

    compare(
        lambda *x: flow.einsum(equation, *x),
        lambda *x: torch.einsum(equation, *x),
        *operands(equation),
    )


BROADCASTS = [
    ("...i->...", (2, 3, 4)),
    ("...i->i...", (2, 3, 4)),
    ("...", (2, 3)),
    ("i...->...", (2, 3, 4)),
    ("...ij->...ji", (2, 3, 4)),
    ("...ij,...jk->...ik", (2, 3, 4), (2, 4, 5)),
    ("...ij,...jk", (2, 3, 4), (4, 5)),
    ("...ij,...jk->...ik", (6, 1, 3, 4), (2, 4, 5)),
    ("i...,i...->...", (3, 2, 4), (3, 4)),
    ("i...,...i->...", (3, 2), (2, 3)),
    ("...i,i->...", (2, 3), (3,)),
    ("...,...->", (2, 3), (3,)),
    ("...i,...->i", (2, 3), (2,)),
    ("ij,jk->ik", (2, 1), (3, 4)),
    ("ij,ij->ij", (2, 1), (2, 3)),
    ("ij,ij->", (1, 3), (2, 1)),
    ("...ii->...i", (2, 3, 3)),
    ("b...i,bi...->b...", (2, 5, 3), (2, 3, 5)),
]


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("equation,shapes", [(e, s) for e, *s in BROADCASTS])
def test_ellipsis_and_broadcasting_agree_with_pytorch(equation, shapes, dtype):
    torch = pytest.importorskip("torch")
    from tests.functors.agreement import compare

    rng = np.random.default_rng(6)
    compare(
        lambda *x: flow.einsum(equation, *x),
        lambda *x: torch.einsum(equation, *x),
        *[rng.uniform(0.5, 1.5, shape).astype(dtype) for shape in shapes],
    )


@pytest.mark.parametrize(
    "equation", ["ij,jk->ik", "ij,jk->ki", "bij,bkj->bki", "ij,kl->", "ii,ij->j", "ij,j,jk->k"]
)
def test_op(equation, device):
    sizes = dict.fromkeys("bijkl", 2)
    rng = np.random.default_rng(8)
    arrays = [
        rng.uniform(0.5, 1.5, [sizes[c] for c in term])
        for term in equation.partition("->")[0].split(",")
    ]
    check_op("einsum", [Sample(equation, *arrays)], device=device)


def test_tensordot_op(device):
    rng = np.random.default_rng(9)
    x, y = rng.uniform(0.5, 1.5, (2, 3, 2)), rng.uniform(0.5, 1.5, (3, 2, 2))
    check_op(
        "tensordot", [Sample(x, y), Sample(x, y, ([1], [0])), Sample(x, x[0, 0], 1)], device=device
    )


def test_sublists_and_lists_of_operands():
    x, y = flow.ones(2, 3), flow.ones(3, 4)
    assert flow.einsum(x, [0, 1], y, [1, 2], [0, 2]).shape == (2, 4)
    assert flow.einsum(x, [0, 1], y, [1, 2], [2, 0]).shape == (4, 2)
    assert flow.einsum(x, [0, 1], y, [1, 2]).shape == (2, 4)
    assert flow.einsum(flow.ones(5, 2, 3), [..., 1], [...]).shape == (5, 2)
    assert flow.einsum("ij,jk->ik", [x, y]).shape == (2, 4)


def test_empty_operands():
    y = flow.einsum("ij,jk->ik", flow.ones(2, 0), flow.ones(0, 4))
    assert y.tolist() == [[0] * 4] * 2
    assert flow.einsum("ij,jk->ik", flow.ones(0, 3), flow.ones(3, 4)).shape == (0, 4)


def test_integers():
    assert flow.einsum("i,i->", flow.tensor([1, 2]), flow.tensor([3, 4])).item() == 11


def test_many_operands_take_a_cheap_order():
    x = flow.ones(1, 1000)
    operands = [x, flow.ones(1000, 1000), flow.ones(1000, 1000), flow.ones(1000, 1)]
    assert flow.einsum("ab,bc,cd,de->ae", operands).item() == 1e9


TENSORDOT = [
    ((2, 3, 4), (3, 4, 5), 2),
    ((2, 3), (3, 4), 1),
    ((2, 3), (4, 5), 0),
    ((2, 3, 4), (4, 3, 5), ([1, 2], [1, 0])),
    ((2, 3), (4, 3), ([-1], [-1])),
    ((2, 3), (2, 3), ([0, 1], [0, 1])),
    ((2, 3), (4, 5), ([], [])),
    ((3, 0), (0, 2), 1),
]


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("x,y,dims", TENSORDOT)
def test_tensordot_agrees_with_pytorch(x, y, dims, dtype):
    torch = pytest.importorskip("torch")
    from tests.functors.agreement import compare

    rng = np.random.default_rng(7)
    compare(
        lambda x, y: flow.tensordot(x, y, dims),
        lambda x, y: torch.tensordot(x, y, dims),
        rng.uniform(0.5, 1.5, x).astype(dtype),
        rng.uniform(0.5, 1.5, y).astype(dtype),
    )


ERRORS = [
    (lambda x: flow.einsum("ij,jk->ik", x), RuntimeError, "einsum", "equation"),
    (lambda x: flow.einsum("i->i", x), RuntimeError, "einsum", "equation"),
    (lambda x: flow.einsum("ijk->i", x), RuntimeError, "einsum", "equation"),
    (lambda x: flow.einsum("i1->i", x), RuntimeError, "einsum", "equation"),
    (lambda x: flow.einsum("ij->k", x), RuntimeError, "einsum", "equation"),
    (lambda x: flow.einsum("ij->ii", x), RuntimeError, "einsum", "equation"),
    (lambda x: flow.einsum("ij->i->j", x), RuntimeError, "einsum", "equation"),
    (lambda x: flow.einsum("......->", x), RuntimeError, "einsum", "equation"),
    (lambda x: flow.einsum("ii->i", x), RuntimeError, "einsum", "operands"),
    (lambda x: flow.einsum("ij,jk->ik", x, x), RuntimeError, "einsum", "operands"),
    (lambda x: flow.einsum("...,...->...", x, x.t()), RuntimeError, "einsum", "operands"),
    (lambda x: flow.einsum("ij,ij->i", x, x.double()), RuntimeError, "einsum", r"operands\[1\]"),
    (lambda x: flow.einsum("ij->i", 3.0), TypeError, "einsum", r"operands\[0\]"),
    (lambda x: flow.einsum(x, "ij"), TypeError, "einsum", "equation"),
    (lambda x: flow.einsum(x, [0, 99]), RuntimeError, "einsum", "equation"),
    (lambda x: flow.einsum("->"), RuntimeError, "einsum", "equation"),
    (lambda x: flow.tensordot(x, x, 1), RuntimeError, "tensordot", "dims"),
    (lambda x: flow.tensordot(x, x, 3), RuntimeError, "tensordot", "dims"),
    (lambda x: flow.tensordot(x, x, ([0],)), RuntimeError, "tensordot", "dims"),
    (lambda x: flow.tensordot(x, x, ([0], [1])), RuntimeError, "tensordot", "dims"),
    (lambda x: flow.tensordot(x, x, ([2], [0])), IndexError, "tensordot", "dims"),
    (lambda x: flow.tensordot(x, x.double(), 1), RuntimeError, "tensordot", "b"),
]


@pytest.mark.parametrize("number", range(len(ERRORS)))
def test_bad_arguments(number):
    call, kind, op, argument = ERRORS[number]
    x = flow.ones(2, 3)
    with pytest.raises(kind, match=rf"{op}\(\).*'{argument}'.*;") as caught:
        call(x)
    assert isinstance(caught.value, flow.errors.FlowError)
    assert x.tolist() == [[1.0] * 3] * 2
