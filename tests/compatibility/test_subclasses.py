"""Subclasses of Tensor as packages write them for PyTorch."""

from __future__ import annotations

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
    assert type(y + 1) is flow.Tensor
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
