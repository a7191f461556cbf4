"""`torch.utils._pytree`, beside PyTorch's."""

from __future__ import annotations

from collections import OrderedDict, defaultdict, deque, namedtuple
from typing import Any

import pytest

from oneflow_lite.compatibility import pytree
from oneflow_lite.errors import ArgumentError

theirs = pytest.importorskip("torch.utils._pytree")
Point = namedtuple("Point", "x y")
TREES: list[Any] = [
    1,
    None,
    [],
    [1, (2, 3), {"b": 4, "a": [5]}],
    OrderedDict(z=1, a=(2,)),
    defaultdict(list, {"k": [1, 2]}),
    deque([1, [2]], maxlen=3),
    Point(1, [2, 3]),
    {"t": ((), {}, [None])},
]


@pytest.mark.parametrize("tree", TREES, ids=repr)
def test_trees_are_taken_apart_as_pytorch_takes_them(tree: Any) -> None:
    leaves, spec = pytree.tree_flatten(tree)
    expected, their_spec = theirs.tree_flatten(tree)
    assert leaves == expected
    assert (spec.num_leaves, spec.num_nodes) == (their_spec.num_leaves, their_spec.num_nodes)
    back = pytree.tree_unflatten(leaves, spec)
    assert back == tree and type(back) is type(tree)
    assert spec == pytree.tree_structure(tree) and hash(spec) == hash(pytree.tree_structure(tree))
    assert pytree.tree_map(str, tree) == theirs.tree_map(str, tree)
    mine = [pytree.keystr(path) for path, _ in pytree.tree_flatten_with_path(tree)[0]]
    assert mine == [theirs.keystr(path) for path, _ in theirs.tree_flatten_with_path(tree)[0]]


def test_maps_of_several_trees_and_of_some_leaves() -> None:
    a, b = {"x": 1, "y": [2.0]}, {"y": [3], "x": 4}
    assert pytree.tree_map(lambda u, v: (u, v), a, b) == {"x": (1, 4), "y": [(2.0, 3)]}
    assert pytree.tree_map_only(int, lambda u: -u, a) == {"x": -1, "y": [2.0]}
    assert pytree.tree_map_only((int, float), lambda u: -u, a) == {"x": -1, "y": [-2.0]}
    assert pytree.tree_map_with_path(lambda p, u: pytree.keystr(p), a)["y"] == ["['y'][0]"]
    assert pytree.tree_any(lambda u: u > 1, a) and not pytree.tree_all(lambda u: u > 1, a)
    assert pytree.tree_all_only(int, lambda u: u == 1, a)
    assert pytree.arg_tree_leaves([1], k=(2,)) == [1, 2]
    assert pytree.tree_leaves([(1, 2), 3], is_leaf=lambda t: isinstance(t, tuple)) == [(1, 2), 3]
    with pytest.raises(ArgumentError, match="nest the values alike"):
        pytree.tree_map(lambda u, v: u, [1, 2], [1])
    with pytest.raises(ArgumentError, match="3 leaves"):
        pytree.tree_unflatten([1], pytree.tree_structure([1, 2, 3]))


def test_classes_can_be_registered() -> None:
    class Pair:
        def __init__(self, a: Any, b: Any) -> None:
            self.a, self.b = a, b

    assert pytree.tree_leaves(pair := Pair(1, [2])) == [pair]
    pytree.register_pytree_node(Pair, lambda p: ([p.a, p.b], None), lambda parts, _: Pair(*parts))
    try:
        assert pytree.tree_leaves(pair) == [1, 2]
        assert pytree.tree_map(lambda n: n + 1, pair).b == [3]
    finally:
        del pytree.SUPPORTED_NODES[Pair]
