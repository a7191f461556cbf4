"""`torch.types`, `nn.common_types` and `jit.annotations`: aliases for annotations."""

from __future__ import annotations

import builtins
import os
from collections.abc import Sequence
from typing import (  # noqa: UP035
    IO,
    Any as Any,
    Dict as Dict,
    List as List,
    NamedTuple as NamedTuple,
    Optional as Optional,
    Tuple as Tuple,
    TypeVar,
    Union as Union,
)

from oneflow_lite.arrays.device import Device as _device
from oneflow_lite.arrays.dtype_object import dtype
from oneflow_lite.arrays.size import Size
from oneflow_lite.tensors.tensor import Tensor as Tensor

_dtype = dtype
_int, _float, _bool, _complex = builtins.int, builtins.float, builtins.bool, builtins.complex
py_sym_types: tuple[type, ...] = ()
Number = Union[int, float, bool]  # noqa: UP007
IntLikeType, FloatLikeType, BoolLikeType = int, float, bool
Device = Union[_device, str, int, None]  # noqa: UP007
_size = Union[Size, List[int], Tuple[int, ...]]  # noqa: UP006, UP007
_symsize = _size
_TensorOrTensors = Union[Tensor, Sequence[Tensor]]  # noqa: UP007
_TensorOrTensorsOrGradEdge = _TensorOrTensors
_TensorOrOptionalTensors = Union[Tensor, Sequence[Optional[Tensor]]]  # noqa: UP007, UP045
_dispatchkey = str
_layout = _qscheme = object
Storage = Any
FileLike = Union[str, "os.PathLike[str]", IO[bytes]]
BroadcastingList1 = BroadcastingList2 = BroadcastingList3 = BroadcastingList4 = List  # noqa: UP006
BroadcastingList5 = BroadcastingList6 = List  # noqa: UP006
_T = TypeVar("_T")
_size_any_t = Union[int, Tuple[int, ...]]  # noqa: UP006, UP007
_size_1_t = Union[int, Tuple[int]]  # noqa: UP006, UP007
_size_2_t = Union[int, Tuple[int, int]]  # noqa: UP006, UP007
_size_3_t = Union[int, Tuple[int, int, int]]  # noqa: UP006, UP007
_size_2_opt_t = Union[int, Tuple[Optional[int], Optional[int]]]  # noqa: UP006, UP007, UP045
_ratio_any_t = Union[float, Tuple[float, ...]]  # noqa: UP006, UP007
_ratio_2_t = Union[float, Tuple[float, float]]  # noqa: UP006, UP007
_ratio_3_t = Union[float, Tuple[float, float, float]]  # noqa: UP006, UP007
