"""Subclasses of Tensor as packages write them for PyTorch."""

from __future__ import annotations

import copy
from typing import Any

import pytest

import oneflow_lite as flow


class Image(flow.Tensor):
    size_there: tuple[int, ...]

    def __new__(cls, data: Any, *, kind: str = "plain") -> Image:  # type: ignore[misc]
        made = flow.as_tensor(data).as_subclass(cls)
        made.kind = kind
        return made  # type: ignore[return-value]


def test_a_tensor_becomes_an_instance_in_its_place_in_the_graph() -> None:
    x = flow.ones(2, requires_grad=True)
    y = (x * 2).as_subclass(Image)
    assert type(y) is Image and isinstance(y, flow.Tensor)
    (y * 3).sum().backward()
    assert x.grad is not None and x.grad.tolist() == [6, 6]
    assert type(y + 1) is Image
    data = flow.zeros(3)
    shared = data.as_subclass(Image)
    shared += 1
    assert data.tolist() == [1, 1, 1]


def test_a_class_makes_its_tensors_itself() -> None:
    image = Image([[1.0, 2.0]], kind="photo")
    assert image.tolist() == [[1, 2]] and image.kind == "photo" and image.shape == (1, 2)


@pytest.mark.parametrize("kind", [Image, flow.nn.Parameter])
def test_make_subclass_gives_a_leaf(kind: Any) -> None:
    source = flow.ones(2, requires_grad=True)
    made = flow.Tensor._make_subclass(kind, source * 2, True)
    assert type(made) is kind and made.is_leaf and made.requires_grad


@pytest.fixture(params=["flow", "torch"])
def torch(request: pytest.FixtureRequest) -> Any:
    """Both libraries: these tests say what PyTorch does, too."""
    return flow if request.param == "flow" else pytest.importorskip("torch")


def labelled(torch: Any) -> Any:
    class Labelled(torch.Tensor):
        @staticmethod
        def __new__(cls: Any, data: Any, labels: Any = None, *args: Any, **kwargs: Any) -> Any:
            return super().__new__(cls, data, *args, **kwargs)

        def __init__(self, data: Any, labels: Any = None) -> None:
            super().__init__()
            self.labels = labels

        def clone(self, *args: Any, **kwargs: Any) -> Any:
            made = super().clone(*args, **kwargs)
            made.labels = self.labels
            return made

    return Labelled


def test_methods_and_operators_return_the_subclass(torch: Any) -> None:
    kind = labelled(torch)
    source = torch.ones(2, 3, requires_grad=True)
    x = kind(source, ["a"])
    assert x.labels == ["a"] and x.clone().labels == ["a"] and type(x.clone()) is kind
    results = [x + 1, 1 - x, x * x, torch.ones(3) * x, x[0], x.T, x.sum(0), x.detach(), -x, x == 1]
    results += [*x.split(1), x.max(1).values, x.data, x.to(torch.float64), x.unsqueeze(0)]
    assert {type(y) for y in results} == {kind}
    assert type(x.as_subclass(torch.Tensor)) is torch.Tensor and type(x.shape) is torch.Size
    assert not hasattr(x + 1, "labels")
    (x * x).sum().backward()
    assert source.grad.tolist() == [[2.0] * 3] * 2
    y = kind([1.0, 2.0])
    y += 1
    assert type(y) is kind and y.tolist() == [2, 3] and type(y.clone()) is kind


def test_a_class_decides_by_its_torch_function(torch: Any) -> None:
    seen = []

    class Watched(torch.Tensor):
        @classmethod
        def __torch_function__(
            cls, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            seen.append(func.__name__)
            if func is torch.Tensor.cos:
                return "cosine"
            if func is torch.Tensor.sin:
                return NotImplemented
            if func is torch.Tensor.tan:
                return torch.Tensor.__torch_function__(func, (torch.Tensor,), args, kwargs)
            return super().__torch_function__(func, types, args, kwargs)

    x = torch.ones(2).as_subclass(Watched)
    assert type(x.tan()) is torch.Tensor and type(torch.ones(2).tan()) is torch.Tensor
    seen.clear()
    assert x.cos() == "cosine" and type(x.exp()) is Watched and seen == ["cos", "exp"]
    with pytest.raises(TypeError, match="__torch_function__"):
        x.sin()
    seen.clear()
    with torch._C.DisableTorchFunctionSubclass():
        assert type(x.exp()) is torch.Tensor
    assert not seen


def test_a_more_derived_class_goes_first(torch: Any) -> None:
    class Base(torch.Tensor):
        pass

    class Derived(Base):
        pass

    x, y = torch.ones(2).as_subclass(Base), torch.ones(2).as_subclass(Derived)
    assert type(x.add(y)) is Derived and type(y.add(x)) is Derived


def test_functions_return_plain_tensors_here_where_they_compute() -> None:
    x = flow.ones(2).as_subclass(labelled(flow))
    assert type(flow.exp(x)) is flow.Tensor and type(flow.flip(x, [0])) is type(x)
    x.labels = ["a"]
    twin = copy.deepcopy(x)
    assert type(twin) is type(x) and twin.labels == ["a"] and twin.labels is not x.labels


def test_functions_ask_a_class_that_is_no_tensor(torch: Any) -> None:
    class Box:
        @classmethod
        def __torch_function__(cls, func: Any, types: Any, args: Any, kwargs: Any = None) -> Any:
            if func is torch.sin:
                return NotImplemented
            return func.__name__, types, len(args), kwargs or {}

    box, x = Box(), torch.ones(1)
    assert torch.exp(box) == ("exp", (Box,), 1, {})
    assert torch.stack([box, box], dim=1) == ("stack", (Box,), 1, {"dim": 1})
    assert torch.cat([x, box]) == ("cat", (Box,), 1, {})
    assert torch.nn.functional.relu(box)[1] == (Box,) and torch.sum(box)[2:] == (1, {})
    assert torch.add(x, box, alpha=2) == ("add", (Box,), 2, {"alpha": 2})
    with pytest.raises(TypeError):
        torch.sin(box)


def test_fields_are_copied_without_the_values(torch: Any) -> None:
    kind = labelled(torch)
    x, y = kind([1.0, 2.0], ["a"]), kind([3.0, 4.0])
    assert dict(x.__dict__) == {"labels": ["a"]} and vars(y)["labels"] is None
    x._meta = {"spacing": 2}  # as MONAI calls it
    y.__dict__ = copy.copy(x.__dict__)
    y.__dict__.update(copy.deepcopy(dict(x.__dict__)), more=1)
    assert y.tolist() == [3, 4] and y.labels == ["a"] and y._meta == {"spacing": 2} and y.more == 1
    assert x.requires_grad_().requires_grad and "more" not in x.__dict__ and len(x.__dict__) == 2


def test_a_class_beside_tensor_has_no_dict_of_its_own(torch: Any) -> None:
    class Meta:
        def take(self, other: Any) -> None:
            self.__dict__ = {**other.__dict__}

    class Scan(Meta, torch.Tensor):
        pass

    x, y = (torch.tensor([float(n)]).as_subclass(Scan) for n in (1, 2))
    x.spacing = 3
    y.take(x)
    assert y.tolist() == [2] and y.spacing == 3 and list(y.__dict__) == ["spacing"]
    assert type(y + 1) is Scan and type(y.exp()) is Scan

    class Mixed(Meta, Image if torch is flow else torch.Tensor):  # type: ignore[misc]
        pass

    z = torch.ones(1).as_subclass(Mixed)
    z.take(x)
    assert z.tolist() == [1] and z.spacing == 3


def test_a_function_is_told_from_the_method_of_its_name(torch: Any) -> None:
    class Parts(torch.Tensor):
        @classmethod
        def __torch_function__(
            cls, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            seen.append((func.__name__, func == torch.Tensor.unbind))
            return super().__torch_function__(func, types, args, kwargs)

    seen: list[Any] = []
    x = torch.ones(2).as_subclass(Parts)
    assert type(torch.unbind(x)[0]) is type(x.unbind()[0]) is type(torch.stack([x, x])) is Parts
    assert seen == [("unbind", False), ("unbind", True), ("stack", False)]
