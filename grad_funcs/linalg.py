"""Gradients of solving, inverting and determinants, of the exponential and of products.

All but the pseudoinverse and least squares are holomorphic: plain derivatives, with transposes.
"""

from __future__ import annotations

from oneflow_lite.autograd.rules.forward_rules import register_push, register_taylor
from oneflow_lite.autograd.rules.gradient_rules import register_grad_func
from oneflow_lite.errors import NotDifferentiableError
from oneflow_lite.grad_funcs.decompositions import (
    adjoint,
    block,
    columns,
    conj,
    placed,
    solve_triangular,
    transposed,
)

# --- Solving ------------------------------------------------------------------------------------


@register_grad_func("linalg_solve_ex", saves="a, y0")
def linalg_solve_ex_grads(F, ctx, dx, _):
    """db = a⁻ᵀ dx, da = −db xᵀ"""
    db = F.linalg_solve_turned(ctx.a, dx, check_errors=ctx.check_errors)[0]
    da = -F.matmul_nt(db, ctx.y0) if ctx.needs_input_grad[0] else None
    return da, db


@register_grad_func("linalg_solve_turned", saves="a, y0")
def linalg_solve_turned_grads(F, ctx, dx, _):
    """db = a⁻¹ dx, da = −x dbᵀ"""
    db = F.linalg_solve_ex(ctx.a, dx, check_errors=ctx.check_errors)[0]
    da = -F.matmul_nt(ctx.y0, db) if ctx.needs_input_grad[0] else None
    return da, db


@register_grad_func("linalg_inv_ex", saves="y0")
def linalg_inv_ex_da(F, ctx, dy, _):
    """−yᵀ dy yᵀ"""
    turned = transposed(F, ctx.y0)
    return -F.matmul(turned, F.matmul(dy, turned))


@register_grad_func("linalg_solve_triangular", saves="a, y")
def linalg_solve_triangular_grads(F, ctx, dx):
    """db = a⁻ᵀ dx; da = −db xᵀ, or −xᵀ db if a stands on the right, in its triangle"""
    a, x, left = transposed(F, ctx.a), transposed(F, ctx.y), ctx.left
    db = solve_triangular(F, a, dx, not ctx.upper, left, ctx.unitriangular)
    if not ctx.needs_input_grad[0]:
        return None, db
    da = -(F.matmul(db, x) if left else F.matmul(x, db))
    if ctx.upper:
        return F.triu(da, diagonal=int(ctx.unitriangular)), db
    return F.tril(da, diagonal=-int(ctx.unitriangular)), db


# --- Least squares ------------------------------------------------------------------------------


@register_grad_func("pinv", saves="x, y")
def pinv_grads(F, ctx, dy):
    return _pinv_dx(F, conj(F, ctx.x), conj(F, ctx.y), dy), None, None


def _pinv_dx(F, x, y, dy):
    """−yᴴ dy yᴴ + (1 − x y) dyᴴ y yᴴ + yᴴ y dyᴴ (1 − y x), where the rank does not change

    G. H. Golub and V. Pereyra, "The differentiation of pseudo-inverses" (1973).
    """
    yh, dyh = adjoint(F, y), adjoint(F, dy)
    left, right = F.matmul(F.matmul(dyh, y), yh), F.matmul(yh, F.matmul(y, dyh))
    dx = left - F.matmul(x, F.matmul(y, left)) + right - F.matmul(F.matmul(right, y), x)
    return dx - F.matmul(F.matmul(yh, dy), yh)


@register_grad_func("linalg_lstsq", saves="a, b", materialize=False)
def linalg_lstsq_grads(F, ctx, dx, rank, ds):
    if ds is not None:
        raise NotDifferentiableError(
            "linalg.lstsq: the singular values have no gradient; use linalg.svdvals"
        )
    a, b = conj(F, ctx.a), conj(F, ctx.b)
    inverse = F.pinv(a, None, None, hermitian=False)
    da = _pinv_dx(F, a, inverse, F.matmul(dx, adjoint(F, b))) if ctx.needs_input_grad[0] else None
    return da, F.matmul(adjoint(F, inverse), dx)


# --- Determinants -------------------------------------------------------------------------------


@register_grad_func("linalg_det", saves="x")
def linalg_det_dx(F, ctx, dy):
    return _over(F, dy) * F.cofactor(ctx.x)


def _over(F, x):
    """(...) as numbers to multiply matrices with"""
    return columns(F, F.unsqueeze(x, dim=x.ndim))


@register_grad_func("cofactor", saves="x")
def cofactor_dx(F, ctx, dy):
    return F.cofactor_grad(dy, ctx.x)


@register_grad_func("cofactor_grad", wrt="g", saves="x")
def cofactor_grad_dg(F, ctx, d):
    return F.cofactor_grad(d, ctx.x)  # second derivatives are symmetric


@register_grad_func("cofactor_grad", wrt="x", saves="g, x")
def cofactor_grad_dx(F, ctx, d):
    """det x · ((⟨y, g⟩ ⟨y, d⟩ − ⟨y gᵀ y, d⟩) y − y zᵀ y) with y = x⁻ᵀ

    and z = ⟨y, g⟩ d + ⟨y, d⟩ g − d yᵀ g − g yᵀ d. For a singular x it raises.
    """
    g, x = ctx.g, ctx.x
    inverse = F.linalg_inv_ex(x, check_errors=True)[0]
    y = transposed(F, inverse)
    along_g, along_d = _inner(F, y, g), _inner(F, y, d)
    turned_g, turned_d = F.matmul(inverse, g), F.matmul(inverse, d)
    z = along_g * d + along_d * g - F.matmul(d, turned_g) - F.matmul(g, turned_d)
    crossed = _inner(F, transposed(F, turned_g), F.matmul(inverse, d))
    inner = (along_g * along_d - crossed) * y - F.matmul(y, F.matmul(transposed(F, z), y))
    return _over(F, F.linalg_det(x)) * inner


def _inner(F, x, y):
    """Σ x y, for each matrix"""
    return F.sum(x * y, dim=(x.ndim - 2, x.ndim - 1), keepdim=True)


@register_grad_func("linalg_slogdet", saves="x, y0")
def linalg_slogdet_dx(F, ctx, dsign, dlog):
    """(d log|det| − i Im(conj(d sign) sign)) x⁻ᴴ; of real numbers the sign is constant"""
    inverse = F.linalg_inv_ex(ctx.x, check_errors=True)[0]
    if ctx.x.dtype.kind == "c":
        dlog = dlog + F.imag(dsign * ctx.y0) * 1j
    return _over(F, dlog) * transposed(F, inverse)


# --- Functions of a matrix, products ------------------------------------------------------------


@register_grad_func("matrix_exp", saves="x")
def matrix_exp_dx(F, ctx, dy):
    """The upper right block of exp [[xᵀ, dy], [0, xᵀ]]"""
    x, n = transposed(F, ctx.x), ctx.x.shape[-1]
    whole = placed(F, x, 0, 2 * n, 0, 2 * n) + placed(F, x, n, 2 * n, n, 2 * n)
    whole = whole + placed(F, dy, 0, 2 * n, n, 2 * n)
    return block(F, F.matrix_exp(whole), 0, n, n, n)


@register_grad_func("linalg_cross", wrt="x", saves="y")
def linalg_cross_dx(F, ctx, dz):
    return F.linalg_cross(ctx.y, dz, dim=ctx.dim)


@register_grad_func("linalg_cross", wrt="y", saves="x")
def linalg_cross_dy(F, ctx, dz):
    return F.linalg_cross(dz, ctx.x, dim=ctx.dim)


# --- Forward mode ---------------------------------------------------------------------------------


@register_push("linalg_inv_ex")
def inv_push(F, ctx, da):
    return -(ctx.y0 @ da @ ctx.y0), None


@register_push("linalg_solve_ex")
def solve_push(F, ctx, da, db):
    return F.linalg_solve_ex(ctx.a, _moved(ctx, da, db), check_errors=False)[0], None


@register_push("linalg_solve_turned")
def solve_turned_push(F, ctx, da, db):
    da = None if da is None else transposed(F, da)
    return F.linalg_solve_turned(ctx.a, _moved(ctx, da, db), check_errors=False)[0], None


def _moved(ctx, da, db):
    """db − da x"""
    if da is None:
        return db
    moved = da @ ctx.y0
    return -moved if db is None else db - moved


@register_taylor("linalg_inv_ex")
def inv_series(F, y, a, **attrs):
    """y a = 1: y_k = -y_0 Σ_{j>0} a_j y_{k-j}."""
    made = [y]
    for k in range(1, len(a)):
        rest = _rest(a, made, k)
        made.append(None if rest is None else -(y @ rest))
    return made, None


@register_taylor("linalg_solve_ex")
def solve_series(F, y, a, b, **attrs):
    """a y = b: y_k = a_0⁻¹ (b_k - Σ_{j>0} a_j y_{k-j})."""
    made = [y]
    for k in range(1, len(a)):
        moved = _rest(a, made, k)
        rest = b[k] if moved is None else -moved if b[k] is None else b[k] - moved
        solved = None if rest is None else F.linalg_solve_ex(a[0], rest, check_errors=False)[0]
        made.append(solved)
    return made, None


@register_taylor("linalg_solve_turned")
def solve_turned_series(F, y, a, b, **attrs):
    return solve_series(F, y, [c if c is None else transposed(F, c) for c in a], b)


def _rest(a, made, k):
    total = None
    for j in range(1, k + 1):
        if a[j] is not None and made[k - j] is not None:
            term = a[j] @ made[k - j]
            total = term if total is None else total + term
    return total


@register_taylor("linalg_solve_triangular")
def solve_triangular_series(F, y, a, b, *, upper, left, unitriangular):
    """As `solve_series`; of a only the triangle counts."""
    if not left:
        return NotImplemented
    take, diagonal = (F.triu, 1) if upper else (F.tril, -1)
    attrs = {"upper": upper, "unitriangular": unitriangular}
    sides = [c if c is None else take(c, diagonal=diagonal if unitriangular else 0) for c in a]
    made = [y]
    for k in range(1, len(a)):
        moved = _rest(sides, made, k)
        rest = b[k] if moved is None else -moved if b[k] is None else b[k] - moved
        made.append(None if rest is None else F.linalg_solve_triangular(a[0], rest, **attrs))
    return made
