"""Size: PyTorch's operations on it, and that shapes are Sizes wherever users see them."""

import copy
import pickle

import pytest

import oneflow_lite as flow

EXPRESSIONS = """
S() | S([]) | S((2, 3)) | S([2, 3])[1:] | S([2, 3])[::-1] | S([2, 3])[0] | S([2, 3])[-1] | S([2])[5]
S([2, 3]) + S([4]) | S([2, 3]) + (4,) | (4,) + S([2, 3]) | S([2]) + [4] | [4] + S([2])
S([2]) + None | S([1]) + ("a",) | ("a",) + S([1]) | S([1]) + (1.5,)
S([2]) * 2 | 2 * S([2]) | S([2]) * 1.5
S([2, 3]).numel() | S([]).numel() | S([2, 0]).numel() | S([2, 3]) == (2, 3) | S([2, 3]) == [2, 3]
hash(S([2, 3])) == hash((2, 3)) | isinstance(S([2]), tuple) | S(2) | S("ab") | S([1.5]) | S([True])
S([-1]) | S(range(3)) | S(S([1])) | S(x for x in (1, 2)) | S([None]) | S([2], [3])
S(L.tensor([2, 3])) | S([L.tensor(2), 3]) | S([2, 3]).count(2) | S([2, 3]).index(3)
2 in S([2, 3]) | S([2]) < S([3])
copy.copy(S([2])) | copy.deepcopy(S([2])) | pickle.loads(pickle.dumps(S([2]))) | sum(S([2, 3]))
"""


def value_of(expression, lib):
    """Return what an expression gives, with its type, or the kind of its error."""
    try:
        value = eval(expression, {"S": lib.Size, "L": lib, "copy": copy, "pickle": pickle})
    except (TypeError, IndexError) as error:
        return next(kind for kind in (TypeError, IndexError) if isinstance(error, kind))
    return type(value).__name__, value


@pytest.mark.parametrize("expression", EXPRESSIONS.replace("\n", "|").strip("|").split("|"))
def test_operations_are_those_of_pytorch(expression):
    torch = pytest.importorskip("torch")
    assert value_of(expression.strip(), flow) == value_of(expression.strip(), torch)


def test_shapes_are_sizes():
    x = flow.ones(2, 3, requires_grad=True)
    d = flow.distributions
    normal = d.Normal(x, x)
    affine = d.AffineTransform(flow.zeros(3), 1.0)
    shapes = [
        x.shape, x.size(), x.T.shape, x.grad_fn_node.output_tensor_infos[0].shape,
        (x * 2).grad_fn.output_tensor_infos[0].shape, x.to_sparse().shape, x.to_sparse().size(),
        flow.nn.Parameter(x).shape, flow.broadcast_shapes((2, 1), (3,)), flow.broadcast_shapes(),
        normal.batch_shape, normal.event_shape, normal.expand((4, 2, 3)).batch_shape,
        d.Independent(normal, 1).event_shape, d.Dirichlet(x).event_shape,
        affine.forward_shape((2, 1)), d.ReshapeTransform((6,), (2, 3)).forward_shape((4, 6)),
        d.SoftmaxTransform().forward_shape(x.shape), flow.empty(2, device="meta").shape,
        x.shape[1:], (1, *x.shape[:0]) + x.shape, x.detach().shape, x[None].shape,
    ]  # fmt: skip
    assert [type(shape) for shape in shapes] == [flow.Size] * len(shapes)
    assert type(x.stride()) is tuple
