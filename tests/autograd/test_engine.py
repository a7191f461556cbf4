"""The engine: `backward` and `grad` with every argument, and the graph that they walk."""

import math
import warnings

import numpy as np
import pytest

import oneflow_lite as flow
from oneflow_lite.errors import (
    ArgumentError,
    FlowError,
    GradientError,
)
from tests.autograd.leaves import leaf


class TestSeedExample:
    """The states of two elements through relu, one by one."""

    @pytest.fixture
    def x(self):
        return flow.tensor([-1.0, 2.0], requires_grad=True)

    def test_the_leaf(self, x):
        y = flow.relu(x)
        node = x.grad_fn_node
        assert x.grad_fn is None
        assert node.name() == "accumulate_grad"
        assert node.next_functions == ()
        assert list(node.input_meta_data) == []
        assert len(node.output_meta_data) == 1
        assert node.output_meta_data[0] is x.autograd_meta
        assert x.autograd_meta.requires_grad and x.autograd_meta.is_leaf
        assert x.autograd_meta.acc_grad is None and x.autograd_meta.current_grad is None
        assert not x.autograd_meta.retain_grad
        assert node.backward_fn is not None
        assert not node.backward_fn(flow.ones(2))
        assert x.grad is None
        assert y.grad_fn is not None

    def test_the_result(self, x):
        y = flow.relu(x)
        node = y.grad_fn
        assert node is y.grad_fn_node
        assert node.name() == "relu_backward"
        assert node.next_functions == ((x.grad_fn_node, 0),)
        assert len(node.input_meta_data) == 1
        assert node.input_meta_data[0] is x.autograd_meta
        assert len(node.output_meta_data) == 1
        assert node.output_meta_data[0] is y.autograd_meta
        assert y.autograd_meta.requires_grad and not y.autograd_meta.is_leaf
        (info,) = node.output_tensor_infos
        assert (info.shape, info.dtype, info.device) == ((2,), flow.float32, flow.device("cpu"))
        (saved,) = node.saved_tensors
        assert saved.tolist() == y.tolist() == [0.0, 2.0]
        assert not saved.requires_grad and saved.grad_fn is None
        assert np.shares_memory(saved.numpy(), y.numpy())
        assert node.backward_fn is not None

    def test_backward(self, x):
        y = flow.relu(x)
        y.backward(flow.Tensor([1, 1]))
        assert repr(x.grad) == "tensor([0., 1.])"
        assert x.autograd_meta.acc_grad is x.grad
        assert x.autograd_meta.current_grad is None
        assert y.autograd_meta.current_grad is None
        assert y.grad_fn.saved_tensors == ()
        assert y.grad_fn.backward_fn is None
        assert y.grad is None

    def test_the_gradient_given_is_of_the_default_dtype(self):
        assert flow.Tensor([1, 2, 3]).dtype == flow.float32
        assert flow.tensor([1, 2, 3]).dtype == flow.int64


class TestNodes:
    def test_an_input_without_a_gradient_has_an_edge_to_nowhere(self):
        x = leaf([1.0])
        assert (x * flow.ones(1)).grad_fn.next_functions == ((x.grad_fn_node, 0), (None, 0))
        assert (flow.ones(1) * x).grad_fn.next_functions == ((None, 0), (x.grad_fn_node, 0))

    def test_a_non_differentiable_input_has_no_edge(self):
        x = leaf([[1.0, 2.0]])
        y = flow.gather(x, 1, flow.tensor([[0]]))
        assert y.grad_fn.next_functions == ((x.grad_fn_node, 0),)

    def test_several_outputs(self):
        x = leaf([3.0, 1.0, 2.0])
        values, indices = x.sort()
        assert values.grad_fn.name() == "sort_backward"
        assert values.output_nr == 0
        assert not indices.requires_grad
        infos = values.grad_fn.output_tensor_infos
        assert infos[0].dtype == flow.float32 and infos[1] is None

    def test_sequence_and_topological_numbers_grow(self):
        x = leaf([1.0])
        y = x * 2
        z = y * x
        assert x.grad_fn_node.topological_nr == 0
        assert y.grad_fn.topological_nr == 1
        assert z.grad_fn.topological_nr == 2
        assert x.grad_fn_node.sequence_nr < y.grad_fn.sequence_nr < z.grad_fn.sequence_nr

    def test_one_accumulate_node_per_leaf(self):
        x = leaf([1.0])
        y, z = x * 2, x + 1
        assert y.grad_fn.next_functions[0][0] is z.grad_fn.next_functions[0][0] is x.grad_fn_node

    def test_metadata_is_the_users(self):
        node = (leaf([1.0]) * 2).grad_fn
        node.metadata["note"] = 1
        assert node.metadata == {"note": 1}

    def test_repr(self):
        y = leaf([1.0]).exp()
        assert repr(y.grad_fn) == "<exp_backward>"

    def test_saves_what_the_gradient_needs_and_no_more(self):
        x, c = leaf([2.0]), flow.tensor([3.0])
        (saved,) = (x * c).grad_fn.saved_tensors
        assert saved.tolist() == [3.0]  # c only: x is needed for the gradient of c alone
        assert (x + c).grad_fn.saved_tensors == ()
        (saved,) = x.exp().grad_fn.saved_tensors
        assert saved.tolist() == pytest.approx([math.exp(2)])


class TestRequiresGrad:
    def test_any_input_makes_the_output_require_one(self):
        x, c = leaf([1.0]), flow.ones(1)
        assert (x + c).requires_grad and (c + x).requires_grad
        assert not (c + c).requires_grad
        assert (c + c).grad_fn is None and (c + c).is_leaf

    def test_an_integer_or_bool_output_does_not(self):
        x = leaf([1.0, 2.0])
        for y in (x > 0, x.argmax(), x.long(), x == x):
            assert not y.requires_grad

    def test_assignment(self):
        x = flow.ones(2)
        x.requires_grad = True
        assert x.requires_grad and x.is_leaf
        x.requires_grad = False
        assert not x.requires_grad
        assert x.requires_grad_() is x
        assert x.requires_grad
        assert not x.requires_grad_(False).requires_grad

    def test_the_gradient_survives_switching_off_and_on(self):
        x = leaf([1.0])
        (x * 2).sum().backward()
        x.requires_grad_(False)
        assert x.grad.tolist() == [2.0]
        x.requires_grad_()
        assert x.grad.tolist() == [2.0]

    @pytest.mark.parametrize("dtype", ["int8", "int16", "int32", "int64", "uint8", "bool"])
    def test_of_integers_raises(self, dtype):
        x = flow.ones(2, dtype=dtype)
        with pytest.raises(FlowError, match="floating point") as caught:
            x.requires_grad_()
        assert isinstance(caught.value, RuntimeError)
        assert not x.requires_grad
        with pytest.raises(RuntimeError, match="floating point"):
            flow.tensor(x.numpy(), requires_grad=True)

    @pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "complex64", "complex128"])
    def test_of_floating_dtypes(self, dtype):
        assert flow.ones(2, dtype=dtype).requires_grad_().requires_grad

    def test_of_a_non_leaf_cannot_stop(self):
        y = leaf([1.0]) * 2
        with pytest.raises(GradientError, match="leaf"):
            y.requires_grad = False
        assert y.requires_grad
        assert y.requires_grad_() is y  # it does already


class TestBackward:
    def test_accumulates(self):
        x = leaf([1.0, 2.0])
        for n in range(1, 4):
            (x * x).sum().backward()
            assert x.grad.tolist() == [2.0 * n, 4.0 * n]

    def test_a_diamond_is_summed_once_complete(self):
        x = leaf(3.0)
        a = x * 2
        b, c = a * a, a + 1
        (b * c + a).backward()
        # d/dx of 4x²(2x+1) + 2x
        assert x.grad.item() == 24 * 9 + 8 * 3 + 2

    def test_the_same_tensor_twice(self):
        x = leaf(3.0)
        (x * x * x).backward()
        assert x.grad.item() == 27

    def test_several_roots_and_their_gradients(self):
        x = leaf([1.0, 2.0])
        y, z = x * 2, (x * x).sum()
        flow.autograd.backward([y, z], [flow.tensor([1.0, 10.0]), None])
        assert x.grad.tolist() == [4.0, 24.0]

    def test_a_root_that_leads_to_another_root(self):
        x = leaf(2.0)
        y = x * x
        z = y * 3
        flow.autograd.backward((z, y))
        assert x.grad.item() == 16
        x.grad = None
        y = x * x
        z = y * 3
        flow.autograd.backward((y, z))
        assert x.grad.item() == 16

    def test_the_same_root_twice(self):
        x = leaf(2.0)
        y = x * x
        flow.autograd.backward([y, y], [flow.tensor(1.0), flow.tensor(10.0)])
        assert x.grad.item() == 44

    def test_a_leaf_as_root(self):
        x = leaf([1.0, 2.0])
        x.backward(flow.tensor([3.0, 4.0]))
        assert x.grad.tolist() == [3.0, 4.0]
        x.sum().backward()
        assert x.grad.tolist() == [4.0, 5.0]

    def test_several_outputs_of_one_node(self):
        x = leaf([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
        a, b = x.split([1, 2], dim=1)
        (a * 10).sum().backward(retain_graph=True)
        assert x.grad.tolist() == [[10, 0, 0], [10, 0, 0]]
        (b.sum() + a.sum()).backward()
        assert x.grad.tolist() == [[11, 1, 1], [11, 1, 1]]

    def test_a_scalar_of_one_element_needs_no_gradient(self):
        x = leaf([[2.0]])
        (x * x).backward()
        assert x.grad.tolist() == [[4.0]]

    @pytest.mark.parametrize("grad_tensors", [None, [None], (None,)])
    def test_more_than_one_element_needs_one(self, grad_tensors):
        x = leaf([1.0, 2.0])
        with pytest.raises(GradientError, match=r"\(2,\)"):
            flow.autograd.backward(x * 2, grad_tensors)
        assert x.grad is None

    def test_zero_elements(self):
        x = flow.zeros(0, requires_grad=True)
        x.sum().backward()
        assert x.grad.shape == (0,)
        (x * 2).backward(flow.zeros(0))
        assert x.grad.shape == (0,)

    def test_a_tensor_without_history(self):
        with pytest.raises(GradientError, match="does not require a gradient"):
            flow.ones(1).sum().backward()

    def test_keywords_of_the_method(self):
        x = leaf([1.0, 2.0])
        y = x * x
        y.backward(gradient=flow.ones(2), retain_graph=True, create_graph=False, inputs=[x])
        y.backward(flow.ones(2))
        assert x.grad.tolist() == [4.0, 8.0]

    def test_create_graph_warns_and_records(self):
        x = leaf(3.0)
        with pytest.warns(UserWarning, match="create_graph=True") as caught:
            (x**3).backward(create_graph=True)
        assert caught[0].filename == __file__
        assert x.grad.item() == 27
        assert x.grad.requires_grad
        (second,) = flow.autograd.grad(x.grad, x)
        assert second.item() == 18
        x.grad = None

    def test_create_graph_accumulates_with_history(self):
        x = leaf(3.0)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            (x**3).backward(create_graph=True)
            (x**2).backward(create_graph=True)
        assert x.grad.item() == 33
        (second,) = flow.autograd.grad(x.grad, x)
        assert second.item() == 20
        x.grad = None

    def test_under_no_grad_a_graph_that_is_there_is_walked(self):
        x = leaf(3.0)
        y = x * x
        with flow.no_grad():
            y.backward()
        assert x.grad.item() == 6

    def test_create_graph_under_no_grad(self):
        x = leaf(3.0)
        y = x**3
        with flow.no_grad():
            (g,) = flow.autograd.grad(y, x, create_graph=True)
            assert not flow.is_grad_enabled()
        assert flow.autograd.grad(g, x)[0].item() == 18


class TestInputs:
    def test_only_these_get_a_gradient(self):
        x, y = leaf(2.0), leaf(3.0)
        (x * y).backward(inputs=[x])
        assert x.grad.item() == 3
        assert y.grad is None

    @pytest.mark.parametrize("wrap", [lambda t: t, lambda t: [t], lambda t: (t,)])
    def test_one_tensor_or_a_sequence(self, wrap):
        x, y = leaf(2.0), leaf(3.0)
        (x * y).backward(inputs=wrap(y))
        assert x.grad is None and y.grad.item() == 2

    def test_a_non_leaf(self):
        x = leaf(2.0)
        y = x * 3
        (y * y).backward(inputs=[y])
        assert y.grad.item() == 12
        assert x.grad is None

    def test_leaf_and_non_leaf_together(self):
        x = leaf(2.0)
        y = x * 3
        (y * y).backward(inputs=[x, y])
        assert (x.grad.item(), y.grad.item()) == (36, 12)

    def test_the_same_input_twice(self):
        x = leaf(2.0)
        (x * x).backward(inputs=[x, x])
        assert x.grad.item() == 4

    @pytest.mark.parametrize("inputs", [[], ()])
    def test_empty(self, inputs):
        x = leaf(2.0)
        with pytest.raises(ArgumentError, match="inputs"):
            (x * x).backward(inputs=inputs)
        assert x.grad is None
        with pytest.raises(FlowError, match="inputs"):
            flow.autograd.grad(x * x, inputs)

    def test_an_input_that_needs_no_gradient(self):
        x, c = leaf(2.0), flow.tensor(1.0)
        with pytest.raises(GradientError, match=r"inputs\[1\].*does not require"):
            (x * c).backward(inputs=[x, c])
        assert x.grad is None

    def test_an_unused_input_is_left_alone(self):
        x, unused = leaf(2.0), leaf(1.0)
        (x * x).backward(inputs=[x, unused])
        assert x.grad.item() == 4
        assert unused.grad is None

    def test_retained_gradients_on_the_way_are_kept(self):
        x = leaf(2.0)
        y = x * 3
        y.retain_grad()
        (y * y).backward(inputs=[x])
        assert (x.grad.item(), y.grad.item()) == (36, 12)

    def test_a_second_backward_through_inputs_updates_the_same_object(self):
        x = leaf(2.0)
        (x * x).backward(inputs=[x])
        first = x.grad
        (x * x).backward(inputs=[x])
        assert x.grad is first and first.item() == 8
