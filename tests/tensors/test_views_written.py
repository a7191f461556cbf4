"""Writes through views: what is recorded, and every twin on every kind of view, against PyTorch."""

import numpy as np
import pytest

import oneflow_lite as flow
from oneflow_lite.errors import InplaceError, StaleTensorError
from tests.tensors.test_inplace import ARGUMENTS as PLAIN_ARGUMENTS, CHECKED, INDEX, WRITES, B, on
from tests.tensors.test_views import A, leaf

RNG = np.random.default_rng(3)
ARGUMENTS = {  # PyTorch gives no gradient to a source that is larger than the index
    **PLAIN_ARGUMENTS,
    "scatter": lambda lib: [0, lib.tensor(INDEX[:1]), lib.tensor(B[:1])],
    "clamp": lambda lib: on(lib, B - 0.1, B + 0.1),
}


def real(*shape):
    return RNG.uniform(0.15, 0.85, shape)


def complex_(*shape):
    return real(*shape) + 1j * real(*shape)


# Kinds of views of shape (2, 3): a base, and how the view is taken of it.
KINDS = {
    "the tensor itself": (real(2, 3), lambda y: y),
    "index": (real(3, 2, 3), lambda y: y[1]),
    "view of a view": (real(4, 3, 5), lambda y: y[1:3][:, 0].narrow(1, 1, 3)),
    "transposed": (real(3, 2), lambda y: y.t()),
    "steps": (real(4, 6), lambda y: y[1::2, ::2]),
    "diagonal": (real(2, 3, 4), lambda y: y.diagonal(1, 1, 2)),
    "windows": (real(7), lambda y: y.unfold(0, 3, 4)),
    "reshaped": (real(3, 2, 2), lambda y: y.permute(1, 0, 2).select(2, 1).unsqueeze(0).squeeze(0)),
    "expanded": (real(3, 2), lambda y: y.view(2, 3).expand(1, 2, 3).view_as(y.view(2, 3))),
    "real": (complex_(2, 3), lambda y: y.real),
    "imag": (complex_(3, 2), lambda y: y.imag.movedim(0, 1)),
}


def loss(lib, *tensors):
    """Return a real number whose second derivatives do not vanish."""
    total = 0
    for i, t in enumerate(tensors):
        weight = np.linspace(0.5, 2 + i, t.numel()).reshape(tuple(t.shape))
        if t.is_complex():
            weight = weight * (1 - 0.5j)
            total = total + ((t * lib.tensor(weight)).real + t.real * t.imag + t.real**3).sum()
        else:
            total = total + (t * lib.tensor(weight) + t**3).sum()
    return total


def derivatives(lib, program, arrays, required):
    """Run a program on leaves; return values and all first and second derivatives as arrays."""
    leaves = [lib.tensor(a, requires_grad=r) for a, r in zip(arrays, required, strict=True)]
    outputs = program(lib, *leaves)
    wanted = [leaf for leaf, r in zip(leaves, required, strict=True) if r]
    first = lib.autograd.grad(loss(lib, *outputs), wanted, create_graph=True, allow_unused=True)
    directed = loss(lib, *[g for g in first if g is not None])
    second = (
        lib.autograd.grad(directed, wanted, allow_unused=True) if directed.requires_grad else ()
    )
    return [
        np.zeros(1) if t is None else np.array(t.detach().tolist())
        for t in (*outputs, *first, *second)
    ]


def compare(program, arrays, required):
    torch = pytest.importorskip("torch")
    ours, theirs = (derivatives(lib, program, arrays, required) for lib in (flow, torch))
    assert len(ours) == len(theirs)
    for a, b in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(*np.broadcast_arrays(a, b), rtol=1e-9, atol=1e-11)


def write(lib, name, v, args):
    """Ours is the twin; for PyTorch it is the op and a copy, as some of its twins are missing."""
    if lib is flow:
        assert flow.ops.registry.FUNCTORS.get(f"{name}_")(v, *args) is v
        return
    old = v.clone()
    missing = not hasattr(old, name)
    v.copy_(getattr(lib.nn.functional, name)(old, *args) if missing else getattr(old, name)(*args))


def program_of(name, view, offset, values):
    """Write to a view, then use the base, the view, and one that was taken before."""

    def program(lib, leaf, *given):
        y = leaf * 1 + offset
        before = y[:1]
        args = ARGUMENTS[name](lib) if name in ARGUMENTS else []
        floats = [isinstance(a, lib.Tensor) and a.dtype == lib.float64 for a in args]
        places = [i for i, is_float in enumerate(floats) if is_float]
        for place, value in zip(places, given, strict=False):
            args[place] = value
        v = view(y)
        write(lib, name, v, args)
        return y, v, before, view(y)

    return program


NO_SECOND = {"hardsigmoid"}  # PyTorch has no second derivative of it


def value_arrays(name):
    args = ARGUMENTS[name](flow) if name in ARGUMENTS else []
    return [a.numpy() for a in args if isinstance(a, flow.Tensor) and a.dtype == flow.float64]


INDICES = {
    "int": 0,
    "slice": slice(1, None),
    "ellipsis": (..., 1),
    "None": (None, 0),
    "list": [2, 0],
    "list and steps": ([0, 2], slice(None, None, 2)),
    "mask": np.array([True, False, True]),
    "two lists": ([0, 1], [1, 3]),
    "slice and list": (slice(None), [3, 0]),
    "mask of all": A[0] > 4,
}


def on_lib(lib, index):
    return lib.tensor(index) if isinstance(index, np.ndarray) else index


class TestWritten:
    """A write through a view is recorded at the base."""

    @pytest.mark.parametrize("write", WRITES)
    @pytest.mark.parametrize("view", [lambda x: x[0], lambda x: x.t(), lambda x: x.view(-1)])
    def test_the_node_of_the_base(self, write, view):
        x = leaf(A[0])
        y = x * 2
        before = y.grad_fn
        v = view(y)
        assert WRITES[write](v) is None or v._base is y
        assert y._version == v._version == 1
        assert y.grad_fn.name() == "copy_slices_backward"
        assert y.grad_fn.next_functions[0][0] is before
        assert v.grad_fn.next_functions == ((y.grad_fn, 0),)
        assert before.sequence_nr < y.grad_fn.sequence_nr < v.grad_fn.sequence_nr
        assert y.grad_fn.output_meta_data[0] is y.autograd_meta

    @pytest.mark.parametrize("write", WRITES)
    def test_a_base_that_needs_no_gradient_gets_no_node(self, write):
        c = flow.ones(2, 3, dtype=flow.float64)
        WRITES[write](c[0])
        assert c.is_leaf and not c.requires_grad and c._version == 1

    @pytest.mark.parametrize("write", WRITES)
    def test_a_leaf_and_its_views_are_refused(self, write):
        x = leaf(A[0])
        for v in (x, x[0], x.t(), x.view(-1)[2:]):
            with pytest.raises(InplaceError, match="leaf") as caught:
                WRITES[write](v)
            assert isinstance(caught.value, RuntimeError)
        assert x.tolist() == A[0].tolist() and x._version == 0 and x.is_leaf
        with flow.no_grad():
            WRITES[write](x.t())
        assert x._version == 1 and x.is_leaf

    def test_a_constant_base(self):
        x = leaf([1.0, 2.0])
        c = flow.zeros(4, dtype=flow.float64)
        v, w = c[:2], c[1:3]
        v.copy_(x)
        assert c.requires_grad and not c.is_leaf and w.requires_grad
        (w * w).sum().backward()
        assert x.grad.tolist() == [0.0, 4.0]

    def test_several_views_of_one_base(self):
        x = leaf([1.0, 2.0, 3.0, 4.0])
        y = x * 1
        a, b = y[:3], y[1:]
        a.mul_(2)  # 2 4 6 4
        b.mul_(a.detach().clone()[0])  # 2 8 12 8
        a.add_(b[:1] * 0)
        b[1] = a.clone()[1] * x[3]  # 2 8 32 8: y[2] = 4 x1 x3
        assert y.tolist() == [2.0, 8.0, 32.0, 8.0]
        y.sum().backward()
        assert x.grad.tolist() == [2.0, 4.0 + 16.0, 0.0, 2.0 + 8.0]

    @pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0), (1, 2, 0), (2, 0, 1)])
    def test_bases_in_any_memory_order(self, order, device):
        """A reshape that is a view of the base is one of the copy that the gradient writes."""
        inverse = sorted(range(3), key=order.__getitem__)
        base = np.ascontiguousarray(A.transpose(order)).transpose(inverse)
        x = leaf(A, device=device)
        y = flow.tensor(base, device=device)
        y = flow.from_numpy(base.copy(order="K")) if device == "cpu" else y
        y.mul_(x)
        v = y.permute(order).reshape(-1)
        assert v.is_view() or device != "cpu"
        v[3:7].mul_(5)
        y.sum().backward()
        expected = np.ones(24)
        if v.is_view():
            expected[3:7] = 5
        expected = expected.reshape([A.shape[d] for d in order]).transpose(inverse)
        np.testing.assert_allclose(x.grad.cpu().numpy(), expected * A)

    def test_interleaved_memory_is_refused_rather_than_lost(self):
        memory = np.zeros(40)
        odd = np.lib.stride_tricks.as_strided(memory, (2, 2, 4), (64, 24, 16))
        x = leaf(1.0)
        y = flow.from_numpy(odd)
        y.add_(x)
        w = y.permute(0, 2, 1).reshape(8, 2)
        assert w.is_view()
        w.mul_(x)
        with pytest.raises(InplaceError, match="clone"):
            y.sum().backward()
        assert x.grad is None

    def test_complex_bases(self):
        z = leaf([1 + 2j, 3 - 1j], dtype=flow.complex128)
        y = z * 1
        y.real.mul_(2)
        y.imag.add_(y.real)
        weight = flow.tensor([1 + 2j, 3 + 4j])
        (y * weight).real.sum().backward()
        # y = 2a + i (b + 2a); Re(y (p + iq)) = 2ap - (b + 2a) q; the gradient is d/da + i d/db
        assert z.grad.tolist() == [2 - 4 - 2j, 6 - 8 - 4j]

    @pytest.mark.parametrize("part", ["real", "imag", "row"])
    def test_third_derivatives(self, part):
        """Those of the program that writes nothing in place."""

        def region(y):
            return y[0] if part == "row" else getattr(y, part)

        def inplace(z):
            y = z * z
            region(y).mul_(region(z))
            return y

        def out_of_place(z):
            y = z * z
            if part == "row":
                return flow.stack([y[0] * z[0], y[1]])
            a, b = y.real, y.imag
            return a * z.real + 1j * b if part == "real" else a + 1j * (b * z.imag)

        results = []
        for function in (inplace, out_of_place):
            z = leaf([[1 + 2j, 3 - 1j], [0.5 + 1j, -1 + 1j]], dtype=flow.complex128)
            total = loss(flow, function(z))
            grads = []
            for _ in range(3):
                (g,) = flow.autograd.grad(total, z, create_graph=True)
                grads.append(g.detach().numpy())
                total = loss(flow, g)
            results.append(grads)
        np.testing.assert_allclose(*results, rtol=1e-12)

    def test_a_value_from_the_same_memory(self):
        """The content of the memory that was saved is out of date, as in PyTorch."""
        x = leaf(A[0])
        y = x * 2
        y[0].mul_(y[1])
        with pytest.raises(StaleTensorError, match="mul_backward"):
            y.sum().backward()
        y = x * 2
        y[0].add_(y[1])  # saves nothing
        y.sum().backward()
        assert x.grad.tolist() == [[2.0] * 4, [4.0] * 4, [2.0] * 4]

    def test_saved_by_an_op_before(self):
        x = leaf(A[0])
        y = x * 2
        z = y.exp()
        z[0].zero_()
        with pytest.raises(StaleTensorError, match="exp_backward"):
            z.sum().backward()
        y = x * 2
        square = y * y
        y[1:].add_(1)
        with pytest.raises(StaleTensorError, match=r"mul_backward.*\(3, 4\).*version 1.*version 0"):
            square.sum().backward()

    def test_augmented_assignment(self):
        x = leaf(A[0])
        y = x * 1
        y[0] += x[1]
        y[1:, 2] *= 3
        y += 1
        y.sum().backward()
        expected = np.ones((3, 4))
        expected[1] += 1
        expected[1:, 2] += 2
        assert x.grad.tolist() == expected.tolist()

    @pytest.mark.parametrize("name", INDICES)
    @pytest.mark.parametrize("required", [(True, False), (False, True), (True, True)])
    def test_setitem_through_views(self, name, required):
        def program(lib, leaf, value):
            place = on_lib(lib, INDICES[name])
            y = leaf * 1
            other = y[:, 1:]
            rows = y[1].view(3, 4)
            rows[place] = value * 3
            y.transpose(1, 2)[0].t()[place] = value
            return y, other, rows

        compare(program, [A, np.array(2.0)], required)

    def test_nothing_happens_when_it_raises(self):
        x = leaf(A[0])
        y = x * 2
        v = y[0]
        node, place = y.grad_fn, v.grad_fn
        for write in (
            lambda: v.add_(flow.ones(3, 4, dtype=flow.float64)),
            lambda: v.mul_(1j),
            lambda: v.copy_(flow.ones(5)),
            lambda: v.__setitem__(7, 1.0),
            lambda: v.__setitem__(slice(None), flow.ones(3)),
            lambda: v.fill_(flow.ones(2)),
        ):
            with pytest.raises((RuntimeError, IndexError)):
                write()
        assert y._version == 0 and y.grad_fn is node and v.grad_fn is place
        assert y.tolist() == (A[0] * 2).tolist()

    def test_saved_tensor_hooks_see_what_was_there(self):
        x, w = leaf(A[0]), leaf(A[0] + 1)
        kept = []
        with flow.autograd.graph.saved_tensors_hooks(lambda t: kept.append(t) or t, lambda t: t):
            y = x * 1
            y[0].mul_(w[0])
            y.sigmoid_()
        assert kept
        y.sum().backward()
        expected = leaf(A[0]), leaf(A[0] + 1)
        rows = flow.cat([(expected[0] * expected[1])[:1], expected[0][1:]])
        rows.sigmoid().sum().backward()
        np.testing.assert_allclose(x.grad.numpy(), expected[0].grad.numpy())
        np.testing.assert_allclose(w.grad.numpy(), expected[1].grad.numpy())


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", [n for n in CHECKED if n not in NO_SECOND])
def test_every_twin(name, kind):
    base, view = KINDS[kind]
    if kind in ("real", "imag") and name in ("acosh",):
        pytest.skip("needs values above 1")
    offset = 1.2 if name == "acosh" else 0.0
    values = value_arrays(name)
    program = program_of(name, view, offset, values)
    choices = [(True, False), (False, True), (True, True)] if values else [(True, False)]
    for base_required, value_required in choices:
        compare(program, [base, *values], [base_required] + [value_required] * len(values))
