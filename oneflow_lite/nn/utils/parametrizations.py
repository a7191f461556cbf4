"""Ready parametrizations: orthogonal weights, and weights of a given norm."""

from __future__ import annotations

import functools
from enum import Enum, auto
from typing import Any

from oneflow_lite.arrays.dtype import finfo
from oneflow_lite.arrays.refusals import guard_all
from oneflow_lite.errors import ArgumentError, DimError, MissingMethodError, arg_error
from oneflow_lite.functors.creation import eye, zeros_like
from oneflow_lite.functors.decompositions import geqrf, linalg_householder_product
from oneflow_lite.functors.joining import cat
from oneflow_lite.functors.linalg import linalg_solve, matrix_exp
from oneflow_lite.functors.logic import allclose
from oneflow_lite.functors.random import randn
from oneflow_lite.nn import functional as F
from oneflow_lite.nn.module import Module
from oneflow_lite.nn.utils import parametrize
from oneflow_lite.nn.utils.layers import default_dim
from oneflow_lite.nn.utils.spectral_norm import as_matrix, check_iterations, random_unit_vector
from oneflow_lite.nn.utils.weight_norm import norm_except_dim, normed
from oneflow_lite.ops.exposure import expose
from oneflow_lite.tensors.mode import no_grad
from oneflow_lite.tensors.tensor import Tensor

expose(globals())

__all__ = ["orthogonal", "spectral_norm", "weight_norm"]


class _OrthMaps(Enum):
    matrix_exp = auto()
    cayley = auto()
    householder = auto()


class _Orthogonal(Module):
    base: Tensor | None

    def __init__(
        self, weight: Tensor, orthogonal_map: _OrthMaps, *, use_trivialization: bool = True
    ) -> None:
        super().__init__()
        if weight.is_complex() and orthogonal_map is _OrthMaps.householder:
            raise arg_error(
                "orthogonal",
                "orthogonal_map",
                expected="'matrix_exp' or 'cayley' for a complex tensor",
                got="'householder'",
                hint="choose one of these",
                kind=ArgumentError,
            )
        self.shape = weight.shape
        self.orthogonal_map = orthogonal_map
        if use_trivialization:
            self.register_buffer("base", None)

    def forward(self, X: Tensor) -> Tensor:
        """Return the orthogonal matrix that X stands for."""
        n, k = X.shape[-2:]
        Q: Tensor = self._columns(X.mT).mT if n < k else self._columns(X)
        return Q

    def _columns(self, X: Tensor) -> Tensor:
        n, k = X.shape[-2:]
        if self.orthogonal_map is _OrthMaps.householder:
            # Below the diagonal, with 1 on it, each column is the normal of a reflection.
            A = X.tril(-1)
            tau = 2.0 / (1.0 + (A * A).sum(-2))
            Q = linalg_householder_product(A, tau)
            # The diagonal of X holds signs, and is not trained.
            Q = Q * X.detach().diagonal(dim1=-2, dim2=-1).int().unsqueeze(-2)
        else:
            X = X.tril()
            if n != k:
                X = cat([X, X.new_zeros(n, n - k).expand(*X.shape[:-2], -1, -1)], -1)
            A = X - X.mH
            if self.orthogonal_map is _OrthMaps.matrix_exp:
                Q = matrix_exp(A)
            else:
                one = eye(n, dtype=A.dtype, device=A.device)
                Q = linalg_solve(one - A * 0.5, one + A * 0.5)
            if n != k:
                Q = Q[..., :k]
        base = getattr(self, "base", None)
        return Q if base is None else base @ Q

    @no_grad()
    def right_inverse(self, Q: Tensor) -> Tensor:
        """Return an X that stands for Q; a matrix that is not orthogonal is made orthogonal."""
        if Q.shape != self.shape:
            raise arg_error(
                "orthogonal",
                "value",
                expected=f"a matrix, or batch of matrices, of shape {tuple(self.shape)}",
                got=f"shape {tuple(Q.shape)}",
                hint="set it to a tensor of the weight's shape",
                kind=ArgumentError,
            )
        transposed = Q.shape[-2] < Q.shape[-1]
        tall = Q.mT if transposed else Q
        n, k = tall.shape[-2:]
        if not hasattr(self, "base"):
            if self.orthogonal_map is not _OrthMaps.householder:
                raise MissingMethodError(
                    f"orthogonal(): with use_trivialization=False the {self.orthogonal_map.name} "
                    "map has no inverse that is written; leave use_trivialization out"
                )
            A, tau = geqrf(tall)
            diagonal = A.diagonal(dim1=-2, dim2=-1)  # a view: it gets the signs
            signs = diagonal.sign()
            diagonal.copy_(signs.where(tau != 0, -signs))
            inverse: Tensor = A.mT if transposed else A
            return inverse
        if n != k:  # any columns that complete the basis
            noise = randn(*tall.shape[:-2], n, n - k, dtype=Q.dtype, device=Q.device)
            self.base = _make_orthogonal(cat([tall, noise], -1))
        else:
            self.base = tall.clone() if _is_orthogonal(tall) else _make_orthogonal(tall)
        # Zeros below the diagonal stand for the base itself; -1 undoes the sign of each reflection.
        origin: Tensor = zeros_like(Q)
        origin.diagonal(dim1=-2, dim2=-1).fill_(-1.0)
        return origin


def _is_orthogonal(Q: Tensor) -> bool:
    n, k = Q.shape[-2:]
    one = eye(k, dtype=Q.dtype, device=Q.device)
    return allclose(Q.mH @ Q, one, atol=10.0 * n * float(finfo(Q.dtype).eps))


def _make_orthogonal(A: Tensor) -> Tensor:
    X, tau = geqrf(A)
    Q: Tensor = linalg_householder_product(X, tau) * X.diagonal(dim1=-2, dim2=-1).sgn().unsqueeze(
        -2
    )
    return Q


def orthogonal(
    module: Module,
    name: str = "weight",
    orthogonal_map: str | None = None,
    *,
    use_trivialization: bool = True,
) -> Module:
    """Keep a matrix, or batch of matrices, orthogonal (a complex matrix unitary).

    Of a wide matrix the rows are orthogonal, of a tall matrix the columns.

    Parameters
    ----------
    module : Module
        Changed, and returned.
    name : str
        The parameter.
    orthogonal_map : {'matrix_exp', 'cayley', 'householder'}, optional
        exp(A) or (1 - A/2)^-1 (1 + A/2) for a skew A, or products of reflections. By default
        'matrix_exp' for square and complex matrices, else 'householder'.
    use_trivialization : bool
        Whether the map starts at the present value, in the buffer `base`: better conditioned, and
        any value can be set.

    Raises
    ------
    ArgumentError
        When the module has no such parameter, it has fewer than two dimensions, or the map does not
        exist.

    Notes
    -----
    Lezcano-Casado, Trivializations for Gradient-Based Optimization on Manifolds, 2019.

    Examples
    --------
    >>> import oneflow_lite as flow
    >>> layer = flow.nn.utils.parametrizations.orthogonal(flow.nn.Linear(4, 2))
    >>> flow.allclose(layer.weight @ layer.weight.t(), flow.eye(2), atol=1e-5)
    True
    """
    weight = _tensor_of("orthogonal", module, name)
    if weight.ndim < 2:
        raise arg_error(
            "orthogonal",
            "name",
            expected="a matrix or a batch of matrices",
            got=f"shape {tuple(weight.shape)}",
            hint="name another parameter",
            kind=ArgumentError,
        )
    if orthogonal_map is None:
        square = weight.shape[-2] == weight.shape[-1]
        orthogonal_map = "matrix_exp" if square or weight.is_complex() else "householder"
    if orthogonal_map not in _OrthMaps.__members__:
        raise arg_error(
            "orthogonal",
            "orthogonal_map",
            expected="'matrix_exp', 'cayley' or 'householder'",
            got=repr(orthogonal_map),
            hint="choose one of these",
            kind=ArgumentError,
        )
    chosen = _Orthogonal(weight, _OrthMaps[orthogonal_map], use_trivialization=use_trivialization)
    return parametrize.register_parametrization(module, name, chosen, unsafe=True)


class _WeightNorm(Module):
    def __init__(self, dim: int | None = 0) -> None:
        super().__init__()
        self.dim = -1 if dim is None else dim

    def forward(self, weight_g: Tensor, weight_v: Tensor) -> Tensor:
        """Return g v / |v|."""
        return normed(weight_v, weight_g, self.dim)

    def right_inverse(self, weight: Tensor) -> tuple[Tensor, Tensor]:
        """Return length and direction of a weight."""
        return norm_except_dim(weight, 2, self.dim), weight


def weight_norm(module: Module, name: str = "weight", dim: int | None = 0) -> Module:
    """Compute a weight as g v / |v|, from its lengths g and directions v.

    `original0` holds the lengths, over all dimensions but `dim` (one length for None), `original1`
    the directions. State dicts of the older `nn.utils.weight_norm` are loaded, too. Salimans and
    Kingma, Weight Normalization, 2016.

    Examples
    --------
    >>> import oneflow_lite as flow
    >>> layer = flow.nn.utils.parametrizations.weight_norm(flow.nn.Linear(2, 3))
    >>> list(layer.state_dict())[1:]
    ['parametrizations.weight.original0', 'parametrizations.weight.original1']
    """
    parametrize.register_parametrization(module, name, _WeightNorm(dim), unsafe=True)
    module._register_load_state_dict_pre_hook(functools.partial(_rename, name))
    return module


def _rename(name: str, state_dict: Any, prefix: str, *_: Any) -> None:
    """Rename the entries that the older `weight_norm` saved."""
    old = [f"{prefix}{name}_{part}" for part in "gv"]
    if all(key in state_dict for key in old):
        for i, key in enumerate(old):
            new = f"{prefix}parametrizations.{name}.original{i}"
            state_dict[new] = state_dict.pop(key)


class _SpectralNorm(Module):
    _u: Tensor
    _v: Tensor

    def __init__(
        self, weight: Tensor, n_power_iterations: int = 1, dim: int = 0, eps: float = 1e-12
    ) -> None:
        super().__init__()
        if not -weight.ndim <= dim < weight.ndim:
            raise arg_error(
                "spectral_norm",
                "dim",
                expected=f"{-weight.ndim} to {weight.ndim - 1}",
                got=dim,
                hint="name a dimension of the weight",
                kind=DimError,
            )
        check_iterations("spectral_norm", n_power_iterations)
        self.dim = dim % weight.ndim
        self.eps = eps
        if weight.ndim > 1:  # the norm of a vector needs no iteration
            self.n_power_iterations = n_power_iterations
            matrix = as_matrix(weight.detach(), self.dim)
            height, width = matrix.shape
            self.register_buffer("_u", random_unit_vector(matrix, height, eps))
            self.register_buffer("_v", random_unit_vector(matrix, width, eps))
            self._iterate(matrix, 15)  # so that the first forward begins near the singular vectors

    @no_grad()
    def _iterate(self, matrix: Tensor, n_power_iterations: int) -> None:
        for _ in range(n_power_iterations):
            self._u.copy_(F.normalize(matrix.mv(self._v), dim=0, eps=self.eps))
            self._v.copy_(F.normalize(matrix.H.mv(self._u), dim=0, eps=self.eps))

    def forward(self, weight: Tensor) -> Tensor:
        """Return the weight divided by its largest singular value."""
        if weight.ndim == 1:
            return F.normalize(weight, dim=0, eps=self.eps)
        matrix = as_matrix(weight, self.dim)
        if self.training:
            self._iterate(matrix, self.n_power_iterations)
        # The next forward writes the vectors before this one may have run backward.
        u, v = self._u.clone(), self._v.clone()
        result: Tensor = weight / u.vdot(matrix.mv(v))
        return result

    def right_inverse(self, value: Tensor) -> Tensor:
        """Return the value: it is divided when it is read."""
        return value


def spectral_norm(
    module: Module,
    name: str = "weight",
    n_power_iterations: int = 1,
    eps: float = 1e-12,
    dim: int | None = None,
) -> Module:
    """Divide a weight by its largest singular value, found by power iteration.

    In evaluation mode the vectors of the iteration stay. Miyato et al., Spectral Normalization for
    Generative Adversarial Networks, 2018.

    Parameters
    ----------
    module : Module
        Changed, and returned.
    name : str
        The parameter.
    n_power_iterations : int
        Each time the weight is read in training mode.
    eps : float
        The least norm that a vector is divided by.
    dim : int, optional
        The dimension of the outputs: 1 for transposed convolutions, otherwise 0.

    Raises
    ------
    ArgumentError
        When the module has no such parameter, or `n_power_iterations` is not positive.
    DimError
        When the weight has no such dimension.

    Examples
    --------
    >>> import oneflow_lite as flow
    >>> _ = flow.manual_seed(0)
    >>> layer = flow.nn.utils.parametrizations.spectral_norm(flow.nn.Linear(3, 3))
    >>> round(flow.linalg.matrix_norm(layer.weight, 2).item(), 3)
    1.0
    """
    weight = _tensor_of("spectral_norm", module, name)
    dim = default_dim(module) if dim is None else dim
    chosen = _SpectralNorm(weight, n_power_iterations, dim, eps)
    return parametrize.register_parametrization(module, name, chosen)


def _tensor_of(op: str, module: Module, name: str) -> Tensor:
    tensor = getattr(module, name, None)
    if isinstance(tensor, Tensor):
        return tensor
    raise arg_error(
        op,
        "name",
        expected=f"a parameter or buffer of {module._get_name()}",
        got=repr(name),
        hint="see named_parameters()",
        kind=ArgumentError,
    )


guard_all(globals())
