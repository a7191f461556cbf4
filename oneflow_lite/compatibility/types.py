"""`torch.types`, `nn.common_types` and `jit.annotations`: aliases for annotations."""

# ruff: noqa: UP006, UP007, UP035, UP045  # packages take apart the aliases of typing, as PyTorch's

from __future__ import annotations

import builtins
import os
from collections.abc import Sequence
from typing import (
    IO,
    Any as Any,
    Dict as Dict,
    List as List,
    NamedTuple as NamedTuple,
    Optional as Optional,
    Tuple as Tuple,
    Union as Union,
)

from oneflow_lite.arrays.device import Device as _device
from oneflow_lite.arrays.dtype_object import dtype
from oneflow_lite.arrays.size import Size
from oneflow_lite.tensors.tensor import Tensor as Tensor

_dtype = dtype
_int, _float, _bool, _complex = builtins.int, builtins.float, builtins.bool, builtins.complex
py_sym_types: tuple[type, ...] = ()
Number = Union[int, float, bool]
IntLikeType, FloatLikeType, BoolLikeType = int, float, bool
Device = Union[_device, str, int, None]
_size = Union[Size, List[int], Tuple[int, ...]]
_symsize = _size
_TensorOrTensors = Union[Tensor, Sequence[Tensor]]
_TensorOrTensorsOrGradEdge = _TensorOrTensors
_TensorOrOptionalTensors = Union[Tensor, Sequence[Optional[Tensor]]]
_dispatchkey = str
_layout = _qscheme = object
Storage = Any
FileLike = Union[str, "os.PathLike[str]", IO[bytes]]
BroadcastingList1 = BroadcastingList2 = BroadcastingList3 = BroadcastingList4 = List
BroadcastingList5 = BroadcastingList6 = List
_size_any_t = Union[int, Tuple[int, ...]]
_size_1_t = Union[int, Tuple[int]]
_size_2_t = Union[int, Tuple[int, int]]
_size_3_t = Union[int, Tuple[int, int, int]]
_size_2_opt_t = Union[int, Tuple[Optional[int], Optional[int]]]
_ratio_any_t = Union[float, Tuple[float, ...]]
_ratio_2_t = Union[float, Tuple[float, float]]
_ratio_3_t = Union[float, Tuple[float, float, float]]
