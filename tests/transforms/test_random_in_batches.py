"""Random numbers on tensors that are the same for all entries of a batch."""

import pytest

import oneflow_lite as flow
from oneflow_lite.errors import TransformError

FUNCTIONS = {
    "made of nothing": lambda x: x * 0 + flow.rand(4),
    "a permutation": lambda x: x * 0 + flow.randperm(4),
    "dropout of a constant": lambda x: x * 0 + flow.nn.functional.dropout(flow.ones(4)),
    "dropout of an entry": lambda x: flow.nn.functional.dropout(x * 0 + 1),
    "in place": lambda x: (x * 0).uniform_(),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_random_numbers(name):
    function, x = FUNCTIONS[name], flow.ones(12, 4)
    flow.manual_seed(0)
    same = flow.vmap(function, randomness="same")(x).tolist()
    assert all(row == same[0] for row in same)
    other = flow.vmap(function, randomness="different")(x).tolist()
    assert any(row != other[0] for row in other)
    with pytest.raises(TransformError, match="draws random numbers"):
        flow.vmap(function)(x)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_batch_of_batches(name):
    inner = flow.vmap(FUNCTIONS[name], randomness="same")
    flow.manual_seed(0)
    made = flow.vmap(inner, randomness="different")(flow.ones(6, 3, 4))
    assert made.shape == (6, 3, 4)
    for entry in made.tolist():
        assert all(row == entry[0] for row in entry)
    assert any(entry != made[0].tolist() for entry in made.tolist())


def test_the_numbers_are_those_of_a_call_outside():
    flow.manual_seed(3)
    expected = flow.rand(4)
    flow.manual_seed(3)
    made = flow.vmap(lambda x: x * 0 + flow.rand(4), randomness="same")(flow.ones(2, 4))
    assert made.tolist() == [expected.tolist()] * 2
