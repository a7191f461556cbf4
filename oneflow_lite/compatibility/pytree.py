"""`utils._pytree`: nested containers as a list of leaves and a description of the nesting."""

from __future__ import annotations

from collections import OrderedDict, defaultdict, deque, namedtuple
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

from oneflow_lite.errors import ArgumentError, arg_error, nesting_error

PyTree = Context = KeyEntry = Any
KeyPath = tuple[Any, ...]


class NodeDef(NamedTuple):
    """The functions that take a kind of container apart and put it together."""

    flatten_fn: Callable[[Any], tuple[list[Any], Any]]
    unflatten_fn: Callable[[Iterable[Any], Any], Any]
    flatten_with_keys_fn: Callable[[Any], tuple[list[tuple[Any, Any]], Any]] | None = None


class SequenceKey(NamedTuple):
    """The place of a value in a sequence."""

    idx: int

    def __str__(self) -> str:
        return f"[{self.idx!r}]"


class MappingKey(NamedTuple):
    """The key of a value in a mapping."""

    key: Any

    def __str__(self) -> str:
        return f"[{self.key!r}]"


class GetAttrKey(NamedTuple):
    """The name of a value in an object."""

    name: str

    def __str__(self) -> str:
        return f".{self.name}"


class TreeSpec:
    """A nesting of values: the kind of container, its context, and the specs of its entries."""

    def __init__(self, type: Any, context: Any, children_specs: list[TreeSpec]) -> None:
        self.type, self.context, self.children_specs = type, context, children_specs
        self.num_children = len(children_specs)
        self.num_nodes: int = 1 + sum(spec.num_nodes for spec in children_specs)
        leaves = [spec.num_leaves for spec in children_specs]
        self.num_leaves: int = sum(leaves) if type else 1

    def is_leaf(self) -> bool:
        """Return whether it stands for one value."""
        return self.type is None

    def unflatten(self, leaves: Iterable[Any]) -> Any:
        """Return values nested as the spec says."""
        given = list(leaves)
        if len(given) != self.num_leaves:
            expected, hint = f"{self.num_leaves} leaves", "pass those that tree_flatten gave"
            raise arg_error("tree_unflatten", "leaves", expected, len(given), hint, ArgumentError)
        return self._nest(iter(given))

    def _nest(self, leaves: Iterator[Any]) -> Any:
        if self.type is None:
            return next(leaves)
        entries = [spec._nest(leaves) for spec in self.children_specs]
        return SUPPORTED_NODES[self.type].unflatten_fn(entries, self.context)

    def flatten_up_to(self, tree: Any) -> list[Any]:
        """Return the parts of a tree at the places of the leaves."""
        if self.type is None:
            return [tree]
        children, context = _parts(tree)
        if _get_node_type(tree) is not self.type or len(children) != self.num_children:
            expected, got = f"a {self.type.__name__} of {self.num_children}", repr(tree)
            hint = "nest the values alike"
            raise arg_error("tree_map", "tree", expected, got, hint, ArgumentError)
        if isinstance(tree, dict) and context != self.context:  # in another order
            children = [tree[key] for key in _keys(self.context)]
        pairs = zip(self.children_specs, children, strict=True)
        return [leaf for spec, child in pairs for leaf in spec.flatten_up_to(child)]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TreeSpec) and self._key() == other._key()

    def _key(self) -> Any:
        return self.type, self.context, self.children_specs

    def __hash__(self) -> int:
        return hash((self.type, self.num_leaves, self.num_children))

    def __repr__(self) -> str:
        if self.type is None:
            return "*"
        return f"TreeSpec({self.type.__name__}, {self.context}, {self.children_specs})"


def LeafSpec() -> TreeSpec:
    """Return the spec of one value."""
    return TreeSpec(None, None, [])


def _keys(context: Any) -> Any:
    return context[1] if isinstance(context, tuple) else context


def _list_flatten(d: Any) -> tuple[list[Any], Any]:
    return list(d), None


def _list_unflatten(values: Iterable[Any], context: Any) -> list[Any]:
    return list(values)


def _list_flatten_with_keys(d: Any) -> tuple[list[tuple[Any, Any]], Any]:
    values, context = SUPPORTED_NODES[_get_node_type(d)].flatten_fn(d)
    return [(SequenceKey(n), value) for n, value in enumerate(values)], context


def _dict_flatten(d: Any) -> tuple[list[Any], Any]:
    return list(d.values()), list(d)


def _dict_unflatten(values: Iterable[Any], context: Any) -> dict[Any, Any]:
    return dict(zip(context, values, strict=True))


def _dict_flatten_with_keys(d: Any) -> tuple[list[tuple[Any, Any]], Any]:
    values, context = SUPPORTED_NODES[_get_node_type(d)].flatten_fn(d)
    return list(zip(map(MappingKey, _keys(context)), values, strict=True)), context


SUPPORTED_NODES: dict[Any, NodeDef] = {
    list: NodeDef(_list_flatten, _list_unflatten, _list_flatten_with_keys),
    tuple: NodeDef(_list_flatten, lambda v, _: tuple(v), _list_flatten_with_keys),
    deque: NodeDef(
        lambda d: (list(d), d.maxlen), lambda v, n: deque(v, maxlen=n), _list_flatten_with_keys
    ),
    namedtuple: NodeDef(
        lambda d: (list(d), type(d)),
        lambda v, kind: kind(*v),
        lambda d: ([(GetAttrKey(k), getattr(d, k)) for k in d._fields], type(d)),
    ),
    dict: NodeDef(_dict_flatten, _dict_unflatten, _dict_flatten_with_keys),
    OrderedDict: NodeDef(
        _dict_flatten,
        lambda v, keys: OrderedDict(zip(keys, v, strict=True)),
        _dict_flatten_with_keys,
    ),
    defaultdict: NodeDef(
        lambda d: (list(d.values()), (d.default_factory, list(d))),
        lambda v, c: defaultdict(c[0], zip(c[1], v, strict=True)),
        _dict_flatten_with_keys,
    ),
}


def register_pytree_node(
    cls: type,
    flatten_fn: Callable[[Any], tuple[list[Any], Any]],
    unflatten_fn: Callable[[Iterable[Any], Any], Any],
    *,
    flatten_with_keys_fn: Any = None,
    **options: Any,
) -> None:
    """Say how a class of containers is taken apart and put together."""
    SUPPORTED_NODES[cls] = NodeDef(flatten_fn, unflatten_fn, flatten_with_keys_fn)


_register_pytree_node = register_pytree_node


def is_namedtuple_instance(tree: Any) -> bool:
    """Return whether a value is a named tuple."""
    return isinstance(tree, tuple) and hasattr(type(tree), "_fields")


def is_structseq_instance(tree: Any) -> bool:
    """Return whether a value is of the tuples with names that Python's own modules return."""
    return isinstance(tree, tuple) and hasattr(type(tree), "n_sequence_fields")


def _get_node_type(tree: Any) -> Any:
    kind = type(tree)
    return namedtuple if kind not in SUPPORTED_NODES and is_namedtuple_instance(tree) else kind


def _parts(tree: Any) -> tuple[list[Any], Any]:
    return SUPPORTED_NODES[_get_node_type(tree)].flatten_fn(tree)


def tree_is_leaf(tree: Any, is_leaf: Callable[[Any], bool] | None = None) -> bool:
    """Return whether a value is no container."""
    return (is_leaf is not None and is_leaf(tree)) or _get_node_type(tree) not in SUPPORTED_NODES


def _flatten(tree: Any, path: KeyPath, found: list[tuple[KeyPath, Any]], is_leaf: Any) -> TreeSpec:
    if tree_is_leaf(tree, is_leaf):
        found.append((path, tree))
        return LeafSpec()
    kind = _get_node_type(tree)
    node = SUPPORTED_NODES[kind]
    if node.flatten_with_keys_fn is not None:
        pairs, context = node.flatten_with_keys_fn(tree)
    else:
        values, context = node.flatten_fn(tree)
        pairs = [(SequenceKey(n), value) for n, value in enumerate(values)]
    specs = [_flatten(value, (*path, key), found, is_leaf) for key, value in pairs]
    return TreeSpec(kind, context, specs)


def tree_flatten_with_path(
    tree: Any, is_leaf: Callable[[Any], bool] | None = None
) -> tuple[list[tuple[KeyPath, Any]], TreeSpec]:
    """Return the leaves with the ways to them, and the spec of their nesting."""
    found: list[tuple[KeyPath, Any]] = []
    try:
        return found, _flatten(tree, (), found, is_leaf)
    except RecursionError:
        raise nesting_error("tree_flatten", "tree", tree) from None


def tree_flatten(
    tree: Any, is_leaf: Callable[[Any], bool] | None = None
) -> tuple[list[Any], TreeSpec]:
    """Return the leaves of nested lists, tuples, dicts and registered classes, and their nesting.

    >>> from oneflow_lite.compatibility.pytree import tree_flatten, tree_unflatten
    >>> leaves, spec = tree_flatten({"a": 1, "b": [2, (3,)]})
    >>> leaves, tree_unflatten([x * 2 for x in leaves], spec)
    ([1, 2, 3], {'a': 2, 'b': [4, (6,)]})
    """
    found, spec = tree_flatten_with_path(tree, is_leaf)
    return [leaf for _, leaf in found], spec


def tree_unflatten(leaves: Iterable[Any], treespec: TreeSpec) -> Any:
    """Return leaves nested as a spec says."""
    return treespec.unflatten(leaves)


def tree_leaves(tree: Any, is_leaf: Callable[[Any], bool] | None = None) -> list[Any]:
    """Return the leaves."""
    return tree_flatten(tree, is_leaf)[0]


def arg_tree_leaves(*args: Any, **kwargs: Any) -> list[Any]:
    """Return the leaves of all arguments."""
    return tree_leaves((args, kwargs))


def tree_structure(tree: Any, is_leaf: Callable[[Any], bool] | None = None) -> TreeSpec:
    """Return the spec of the nesting."""
    return tree_flatten(tree, is_leaf)[1]


def tree_map(func: Callable[..., Any], tree: Any, *rests: Any, is_leaf: Any = None) -> Any:
    """Return the tree of a function's results, for the leaves of trees that are nested alike."""
    leaves, spec = tree_flatten(tree, is_leaf)
    return spec.unflatten(map(func, leaves, *[spec.flatten_up_to(rest) for rest in rests]))


def tree_map_with_path(
    func: Callable[..., Any], tree: Any, *rests: Any, is_leaf: Any = None
) -> Any:
    """Return `tree_map` of a function that gets the way to each leaf first."""
    found, spec = tree_flatten_with_path(tree, is_leaf)
    paths, leaves = [path for path, _ in found], [leaf for _, leaf in found]
    others = [spec.flatten_up_to(rest) for rest in rests]
    return spec.unflatten(map(func, paths, leaves, *others))


def tree_map_only(kind: Any, func: Any, tree: Any, is_leaf: Any = None) -> Any:
    """Return `tree_map` of a function of the leaves of a type, or that a function says yes to."""
    is_one = kind if not isinstance(kind, (type, tuple)) else lambda x: isinstance(x, kind)
    return tree_map(lambda x: func(x) if is_one(x) else x, tree, is_leaf=is_leaf)


def _asks(whole: Callable[..., bool], only: bool) -> Callable[..., bool]:
    def asked(*args: Any, is_leaf: Any = None) -> bool:
        kind, pred, tree = args if only else (object, *args)
        return whole(pred(leaf) for leaf in tree_leaves(tree, is_leaf) if isinstance(leaf, kind))

    asked.__doc__ = f"Return whether something holds of {whole.__name__} leaves (of a type)."
    return asked


tree_all, tree_any = _asks(all, False), _asks(any, False)
tree_all_only, tree_any_only = _asks(all, True), _asks(any, True)


def keystr(kp: KeyPath) -> str:
    """Return the way to a leaf as text."""
    return "".join(map(str, kp))
