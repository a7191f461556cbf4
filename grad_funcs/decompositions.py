"""Gradients of factorizations, in the form of the literature: with adjoints, such as Lᴴ.

Around the rule of an op with complex outputs the engine conjugates dy and the result. So each rule
conjugates the saved tensors instead: f(conj a, conj b) is conj f(a, b) for all ops used here.

M. B. Giles, "An extended collection of matrix derivative results" (2008), has the real cases;
L. Wan and S. Zhang, "Automatic differentiation for complex valued SVD" (2019), the complex ones.
"""

from __future__ import annotations

from oneflow_lite.autograd.rules.forward_rules import register_taylor
from oneflow_lite.autograd.rules.gradient_rules import register_grad_func
from oneflow_lite.errors import NotDifferentiableError


def conj(F, x):
    return F.conj(x) if x.dtype.kind == "c" else x


def transposed(F, x):
    return F.transpose(x, dim0=x.ndim - 2, dim1=x.ndim - 1)


def adjoint(F, x):
    return conj(F, transposed(F, x))


def diagonal(F, x):
    return F.diagonal(x, offset=0, dim1=x.ndim - 2, dim2=x.ndim - 1)


def diagonal_matrix(F, x):
    return F.diag_embed(x, offset=0, dim1=x.ndim - 1, dim2=x.ndim)


def rows(F, x):
    """(..., N) as rows to scale columns with."""
    return F.unsqueeze(x, dim=x.ndim - 1)


def columns(F, x):
    """(..., N) as columns to scale rows with."""
    return F.unsqueeze(x, dim=x.ndim)


def solve_triangular(F, a, b, upper, left=True, unitriangular=False):
    """a⁻¹ b, or b a⁻¹ unless left"""
    return F.linalg_solve_triangular(a, b, upper=upper, left=left, unitriangular=unitriangular)


def block(F, x, i, m, j, n):
    """x[..., i : i + m, j : j + n]"""
    x = F.narrow(x, dim=x.ndim - 2, start=i, length=m)
    return F.narrow(x, dim=x.ndim - 1, start=j, length=n)


def placed(F, x, i, m, j, n):
    """Zeros (..., m, n) with x at row i and column j."""
    rows, columns = x.shape[-2:]
    return F.pad(x, pad=(j, n - j - columns, i, m - i - rows), mode="constant")


def _skew(F, x):
    return x - adjoint(F, x)


def _gaps(F, values):
    """v_j − v_i off the diagonal, 1 on it"""
    return rows(F, values) - columns(F, values) + diagonal_matrix(F, F.ones_like(values))


def _over(F, x, gaps, d_values, *d_vectors):
    """x / gaps; for a loss that does not use the values, 0 where it uses neither vector of a pair

    Vectors of equal values may turn among themselves. Where the loss uses neither, the turn does
    not matter, and 0 / 0 is 0. Where it uses both, as V h(w) Vᴴ does, the quotient is 0 / 0, too,
    but stands for h'(w), which nothing here tells. With h(w) = 0 that loss has no gradient by V, so
    the values must not be used either. docs/subgradients.md has examples.
    """
    if d_values is not None:
        return x / gaps
    d, other = (*d_vectors, None)[:2]
    return F.over_gaps(x, gaps, other, None) if d is None else F.over_gaps(x, gaps, d, other)


def _of_values(F, d, values):
    """d, as a function of the values: in second derivatives `_over` has to know that they count"""
    return d + values * 0


# --- Cholesky, LU, QR ---------------------------------------------------------------------------


@register_grad_func("linalg_cholesky_ex", saves="y0")
def linalg_cholesky_ex_dx(F, ctx, dy, _):
    """L⁻ᴴ Φ(Lᴴ dL) L⁻¹, made Hermitian, where Φ is the lower triangle with half the diagonal"""
    y = conj(F, ctx.y0)
    if ctx.upper:
        y, dy = adjoint(F, y), adjoint(F, dy)
    yh = adjoint(F, y)
    inner = F.tril(F.matmul(yh, dy), diagonal=0)
    inner = inner + adjoint(F, F.tril(inner, diagonal=-1))
    if y.dtype.kind == "c":  # the diagonal of L is real
        inner = (inner + adjoint(F, inner)) * 0.5
    inner = solve_triangular(F, yh, inner, upper=True)
    return solve_triangular(F, y, inner, upper=False, left=False) * 0.5


@register_grad_func("linalg_lu_factor_ex", saves="y0, y1")
def linalg_lu_factor_ex_dx(F, ctx, dy, *_):
    """P L⁻ᴴ (tril(Lᴴ dL, −1) + triu(dU Uᴴ)) U⁻ᴴ, and terms of the part beyond the square"""
    y = conj(F, ctx.y0)
    m, n = y.shape[-2:]
    k = min(m, n)
    square, d = block(F, y, 0, k, 0, k), block(F, dy, 0, k, 0, k)
    lh, uh = adjoint(F, square), adjoint(F, F.triu(square, diagonal=0))
    one = diagonal_matrix(F, F.ones_like(diagonal(F, square)))
    lower = F.matmul(F.triu(lh, diagonal=1) + one, d)
    upper = F.matmul(d, uh)
    if n > k:  # U₂ = L⁻¹ A₂
        dright = block(F, dy, 0, k, k, n - k)
        lower = lower - F.matmul(dright, adjoint(F, block(F, y, 0, k, k, n - k)))
        dright = solve_triangular(F, lh, dright, upper=True, unitriangular=True)
    if m > k:  # L₂ = A₂ U⁻¹
        dbelow = block(F, dy, k, m - k, 0, k)
        upper = upper - F.matmul(adjoint(F, block(F, y, k, m - k, 0, k)), dbelow)
        dbelow = solve_triangular(F, uh, dbelow, upper=False, left=False)
    inner = F.tril(lower, diagonal=-1) + F.triu(upper, diagonal=0)
    inner = solve_triangular(F, lh, inner, upper=True, unitriangular=True)
    dx = solve_triangular(F, uh, inner, upper=False, left=False)
    if m != n:
        dx = placed(F, dx, 0, m, 0, n)
        dx = dx + (placed(F, dright, 0, m, k, n) if n > k else placed(F, dbelow, k, m, 0, n))
    order = F.argsort(F.lu_permutation(ctx.y1, size=m), dim=ctx.y1.ndim - 1, descending=False)
    order = F.expand(columns(F, order), shape=dx.shape)
    return F.gather(dx, dim=dx.ndim - 2, index=order)


@register_grad_func("linalg_qr", saves="y0, y1")
def linalg_qr_dx(F, ctx, dq, dr):
    if ctx.mode == "r":
        raise NotDifferentiableError(
            "linalg.qr: the gradient needs Q, which mode 'r' does not compute; use mode='reduced'"
        )
    q, r = conj(F, ctx.y0), conj(F, ctx.y1)
    k, n = r.shape[-2:]
    if k > n:
        raise NotDifferentiableError(
            "linalg.qr: with mode 'complete' the last columns of Q are arbitrary for a matrix of "
            "more rows than columns, so they have no gradient; use mode='reduced'"
        )
    if k == n:
        return _square_qr(F, q, r, dq, dr)
    # A = Q (U V): V = Qᴴ Y is linear in Y, the other columns.
    dright, right = block(F, dr, 0, k, k, n - k), block(F, r, 0, k, k, n - k)
    dq = dq + F.matmul(F.matmul(q, right), adjoint(F, dright))
    dleft = _square_qr(F, q, block(F, r, 0, k, 0, k), dq, block(F, dr, 0, k, 0, k))
    return placed(F, dleft, 0, k, 0, n) + placed(F, F.matmul(q, dright), 0, k, k, n)


def _square_qr(F, q, r, dq, dr):
    """(dQ + Q Ψ(dR Rᴴ − Qᴴ dQ)) R⁻ᴴ, Ψ(X) the Hermitian matrix with the upper triangle of X"""
    inner = F.triu(F.matmul(dr, adjoint(F, r)) - F.matmul(adjoint(F, q), dq), diagonal=0)
    inner = inner + adjoint(F, F.triu(inner, diagonal=1))
    if inner.dtype.kind == "c":  # the diagonal of R is real
        inner = inner - diagonal_matrix(F, F.imag(diagonal(F, inner)) * 1j)
    inner = dq + F.matmul(q, inner)
    return solve_triangular(F, adjoint(F, r), inner, upper=False, left=False)


# --- Singular values ----------------------------------------------------------------------------


@register_grad_func("linalg_svd", saves="y0, y1, y2", materialize=False)
def linalg_svd_dx(F, ctx, du, ds, dvh):
    """U ((X S + S Y) / E + dS) Vᴴ + W S⁻¹ Vᴴ + U S⁻¹ Zᴴ

    X and Y say how the first vectors turn among themselves, W and Z how they turn out of their
    space, and E_ij = s_j² − s_i².
    """
    u, s, v = conj(F, ctx.y0), ctx.y1, transposed(F, ctx.y2)
    k = s.shape[-1]
    if du is None and dvh is None:
        return F.matmul(_first(F, u, k) * rows(F, ds), adjoint(F, _first(F, v, k)))
    inner = None if ds is None else diagonal_matrix(F, ds)
    dv = None if dvh is None else adjoint(F, dvh)
    used = ds, *[None if d is None else _first(F, d, k) for d in (du, dv)]
    turns, out_of_u, out_of_v = [], None, None
    if du is not None:
        turn, out_of_u = _turns(F, u, du, k)
        turns.append(turn)
        inner = _added(inner, _over(F, turn * rows(F, s), _gaps(F, s * s), *used))
    if dv is not None:
        turn, out_of_v = _turns(F, v, dv, k)
        turns.append(turn)
        inner = _added(inner, _over(F, columns(F, s) * turn, _gaps(F, s * s), *used))
    if u.dtype.kind == "c":
        phase = sum(F.imag(diagonal(F, turn)) for turn in turns)
        inner = F.free_of_phase(inner, phase, of="linalg.svd")
        if len(turns) == 2:
            along = _over(F, rows(F, diagonal(F, turns[0])), rows(F, s * 2), *used)
            inner = inner + diagonal_matrix(F, F.squeeze(along, dim=along.ndim - 2))
    u, vh = _first(F, u, k), adjoint(F, _first(F, v, k))
    left = F.matmul(u, inner)
    if out_of_u is not None:
        left = left + _over(F, out_of_u, rows(F, s), *used)
    dx = F.matmul(left, vh)
    if out_of_v is not None:
        dx = dx + F.matmul(u, adjoint(F, _over(F, out_of_v, rows(F, s), *used)))
    return dx


def _first(F, x, k):
    return F.narrow(x, dim=x.ndim - 1, start=0, length=k)


def _added(x, y):
    return y if x is None else x + y


def _turns(F, u, du, k):
    """Return how du turns the first k columns of u among themselves, and out of their space."""
    turn = F.matmul(adjoint(F, u), du)
    m, n = u.shape[-2:]
    if n > k:  # u is a whole basis
        turn = _skew(F, turn)
        rest = F.narrow(u, dim=u.ndim - 1, start=k, length=n - k)
        return block(F, turn, 0, k, 0, k), F.matmul(rest, block(F, turn, k, n - k, 0, k))
    out = du - F.matmul(u, turn) if m > k else None
    return _skew(F, turn), out


@register_grad_func("linalg_svdvals", saves="x")
def linalg_svdvals_dx(F, ctx, ds):
    u, s, vh = F.linalg_svd(ctx.x, full_matrices=False)
    return F.matmul(u * rows(F, _of_values(F, ds, s)), vh)


# --- Eigenvalues --------------------------------------------------------------------------------


@register_grad_func("linalg_eigh", saves="y0, y1", materialize=False)
def linalg_eigh_dx(F, ctx, dw, dv):
    """V (dw + skew(Vᴴ dV) / E) Vᴴ, a Hermitian matrix, with E_ij = w_j − w_i"""
    w, v = ctx.y0, conj(F, ctx.y1)
    vh = adjoint(F, v)
    if dv is None:
        return F.matmul(v * rows(F, dw), vh)
    turn = F.matmul(vh, dv)
    along = diagonal(F, turn)
    if v.dtype.kind == "c":
        turn = F.free_of_phase(turn, F.imag(along), of="linalg.eigh")
    turn = _skew(F, turn - diagonal_matrix(F, along)) * 0.5
    inner = _over(F, turn, _gaps(F, w), dw, dv)
    if dw is not None:
        inner = inner + diagonal_matrix(F, dw)
    return F.matmul(F.matmul(v, inner), vh)


@register_grad_func("linalg_eigvalsh", saves="x")
def linalg_eigvalsh_dx(F, ctx, dw):
    w, v = F.linalg_eigh(ctx.x, UPLO=ctx.UPLO)
    return F.matmul(v * rows(F, _of_values(F, dw, w)), adjoint(F, v))


@register_grad_func("linalg_eig", saves="y0, y1", materialize=False)
def linalg_eig_dx(F, ctx, dw, dv):
    """V⁻ᴴ (dw + (Vᴴ dV − Vᴴ V re diag(Vᴴ dV)) / E̅) Vᴴ with E_ij = w_j − w_i"""
    v = conj(F, ctx.y1)
    vh = adjoint(F, v)
    if dv is None:
        return _similar(F, vh, columns(F, dw) * vh)
    turn = F.matmul(vh, dv)
    along = diagonal(F, turn)
    turn = F.free_of_phase(turn, F.imag(along), of="linalg.eig")
    turn = turn - F.matmul(vh, v * rows(F, F.real(along)))  # eigenvectors have length 1
    turn = turn - diagonal_matrix(F, diagonal(F, turn))
    inner = _over(F, turn, _gaps(F, ctx.y0), dw, dv)  # the values are conjugated already
    if dw is not None:
        inner = inner + diagonal_matrix(F, dw)
    return _similar(F, vh, F.matmul(inner, vh))


def _similar(F, vh, x):
    return F.linalg_solve_ex(vh, x, check_errors=True)[0]


@register_grad_func("linalg_eigvals", saves="x")
def linalg_eigvals_dx(F, ctx, dw):
    w, v = F.linalg_eig(ctx.x)
    vh = transposed(F, v)  # the rule is conjugated around: V̅ stands for V
    return _similar(F, vh, columns(F, _of_values(F, dw, w)) * vh)


@register_grad_func("lobpcg", saves="a, b, y0, y1", materialize=False)
def lobpcg_grads(F, ctx, dw, dx):
    """Σ dw x xᵀ − sym(z xᵀ) for a, where (a − w b) z + b x ν = dx and xᵀ b z = 0

    for each pair, and −Σ w dw x xᵀ + sym(w z xᵀ) − ½ ν x xᵀ for b. The start does not matter.
    """
    w, x = ctx.y0, ctx.y1
    xt, m, da, db = transposed(F, x), x.shape[-2], None, None
    if dw is not None:
        da = F.matmul(x * rows(F, dw), xt)
        db = -F.matmul(x * rows(F, dw * w), xt)
    if dx is not None:
        one = diagonal_matrix(F, F.ones_like(diagonal(F, ctx.a))) if ctx.b is None else ctx.b
        a, one = [F.unsqueeze(y, dim=y.ndim - 2) for y in (ctx.a, one)]  # before one for each pair
        border = columns(F, transposed(F, x if ctx.b is None else F.matmul(ctx.b, x)))
        system = placed(F, a - columns(F, columns(F, w)) * one, 0, m + 1, 0, m + 1)
        system = system + placed(F, border, 0, m + 1, m, m + 1)
        system = system + placed(F, transposed(F, border), m, m + 1, 0, m + 1)
        right = placed(F, columns(F, transposed(F, dx)), 0, m + 1, 0, 1)
        both = F.linalg_solve_ex(system, right, check_errors=True)[0]
        z = transposed(F, F.squeeze(block(F, both, 0, m, 0, 1), dim=both.ndim - 1))
        nu = F.squeeze(block(F, both, m, 1, 0, 1), dim=both.ndim - 1)
        nu = F.squeeze(nu, dim=nu.ndim - 1)
        da = _added(da, -_symmetric(F, F.matmul(z, xt)))
        turn = _symmetric(F, F.matmul(z * rows(F, w), xt))
        db = _added(db, turn - F.matmul(x * rows(F, nu), xt) * 0.5)
    return da, None if ctx.b is None else db, None, None


def _symmetric(F, x):
    return (x + transposed(F, x)) * 0.5


@register_grad_func("free_of_phase")
def free_of_phase_dx(F, ctx, d):
    return d, None


@register_grad_func("over_gaps", saves="gaps, y")
def over_gaps_grads(F, ctx, d):
    """Of the quotient itself: of 0 / 0 no second derivative is known, so it is inf or nan."""
    dx = d / ctx.gaps
    return dx, -dx * ctx.y, None, None


# --- LDL ----------------------------------------------------------------------------------------


@register_grad_func("linalg_ldl_solve", wrt="b", saves="factors, pivots")
def linalg_ldl_solve_db(F, ctx, dy):
    factors = ctx.factors
    if ctx.hermitian:  # x̅ is xᵀ
        factors = conj(F, factors)
    return F.linalg_ldl_solve(factors, ctx.pivots, dy, hermitian=ctx.hermitian)


# --- Series ---------------------------------------------------------------------------------------


@register_taylor("linalg_cholesky_ex")
def cholesky_series(F, y, x, *, upper, **attrs):
    """l lᴴ = x: l_k = l_0 Φ(l_0⁻¹ r l_0⁻ᴴ), r = x_k - Σ_{0<j<k} l_j l_{k-j}ᴴ.

    Φ takes the lower triangle with half of the diagonal (Smith, "Differentiation of the Cholesky
    algorithm", 1995).
    """
    low = adjoint(F, y) if upper else y
    made = [low]
    for k in range(1, len(x)):
        # As the gradient does, the series takes x for the Hermitian matrix that it stands for.
        rest = None if x[k] is None else (x[k] + adjoint(F, x[k])) * 0.5
        for j in range(1, k):
            if made[j] is not None and made[k - j] is not None:
                term = made[j] @ adjoint(F, made[k - j])
                rest = -term if rest is None else rest - term
        if rest is None:
            made.append(None)
            continue
        solve = F.linalg_solve_triangular
        left = solve(low, rest, upper=False)
        inner = adjoint(F, solve(low, adjoint(F, left), upper=False))
        made.append(low @ (F.tril(inner) - F.tril(F.triu(inner)) * 0.5))
    return [c if c is None or not upper else adjoint(F, c) for c in made], None
