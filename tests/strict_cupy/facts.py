"""Places where CuPy's interface is narrower than NumPy's: tables of names, read off CuPy 14."""

# Public names of NumPy's that CuPy does not have.
LACKING_FUNCTIONS = frozenset(
    """
    asmatrix block bmat busday_count busday_offset bytes_ char character clongdouble complex256
    cumulative_prod cumulative_sum datetime64 datetime_as_string datetime_data einsum_path emath
    errstate float128 frompyfunc fromregex geomspace getbufsize geterr geterrcall
    histogram_bin_edges info insert is_busday isdtype isnat longdouble ma matrix matrix_transpose
    matvec memmap nanpercentile nanquantile ndenumerate nditer nested_iters object_ polyder polydiv
    polyint rec recarray setbufsize seterr seterrcall spacing str_ strings timedelta64 unstack
    vecdot vecmat void
    """.split()
)
# CuPy has these, the stand-in does not imitate them.
NOT_IMITATED = frozenset("c_ mgrid ogrid poly1d r_ vectorize".split())
LACKING_LINALG = frozenset(
    """
    diagonal matmul matrix_norm matrix_transpose multi_dot outer svdvals tensordot trace vecdot
    vector_norm
    """.split()
)

_REDUCTION = frozenset({"initial", "where"})
_SPREAD = frozenset({"where", "mean", "correction"})
_CREATION = frozenset({"device", "like"})
LACKING_KEYWORDS: dict[str, frozenset[str]] = {
    **dict.fromkeys("all any mean nanmean".split(), frozenset({"where"})),
    **dict.fromkeys("sum prod max min amax amin nansum nanprod nanmax nanmin".split(), _REDUCTION),
    **dict.fromkeys("std var nanstd nanvar".split(), _SPREAD),
    **dict.fromkeys("arange asarray asanyarray empty eye full ones zeros".split(), _CREATION),
    **dict.fromkeys("empty_like full_like ones_like zeros_like linspace".split(), _CREATION),
    **dict.fromkeys("array ascontiguousarray asfortranarray identity tri".split(), _CREATION),
    **dict.fromkeys("sort argsort".split(), frozenset({"order", "stable"})),
    **dict.fromkeys("partition argpartition".split(), frozenset({"kind", "order"})),
    **dict.fromkeys("percentile quantile".split(), frozenset({"weights"})),
    "astype": frozenset({"device"}),
    "broadcast_to": frozenset({"subok"}),
    "count_nonzero": frozenset({"keepdims"}),
    "isin": frozenset({"kind"}),
    "reshape": frozenset({"copy", "shape"}),
    "trim_zeros": frozenset({"axis"}),
    "unique": frozenset({"sorted"}),
    "unravel_index": frozenset({"shape"}),
}

# These launch no kernel: they answer with a view, or look at shapes and dtypes only.
VIEWS = frozenset(
    """
    array_split as_strided atleast_1d atleast_2d atleast_3d broadcast_arrays broadcast_shapes
    broadcast_to can_cast diagonal dsplit expand_dims hsplit imag iscomplexobj isrealobj isscalar
    issubdtype matrix_transpose may_share_memory min_scalar_type moveaxis ndim permute_dims
    promote_types ravel real reshape result_type rollaxis shape shares_memory size
    sliding_window_view split squeeze swapaxes transpose view vsplit
    """.split()
)

# These write their first argument.
WRITING = frozenset("copyto fill fill_diagonal place put putmask sort".split())

# These take a shape, a number or host data first; elsewhere CuPy refuses a list.
HOST_FIRST = frozenset(
    """
    arange broadcast_shapes dtype empty eye fromfunction full identity indices linspace logspace
    ones promote_types ravel_multi_index result_type tri tril_indices triu_indices zeros
    """.split()
)

# Python answers of NumPy's that are 0-d arrays in CuPy.
ARRAY_ANSWERS = frozenset("allclose array_equal array_equiv count_nonzero".split())

# What `ufunc.at` can scatter into when an index is an array, by ufunc.
_WORDS = "int32 uint32 uint64"
SCATTER_DTYPES: dict[str, frozenset[str]] = {
    "add": frozenset(f"{_WORDS} float16 float32 float64".split()),
    "subtract": frozenset("int32 uint32".split()),
    **dict.fromkeys(("maximum", "minimum"), frozenset(f"{_WORDS} float32 float64".split())),
    **dict.fromkeys(
        ("bitwise_and", "bitwise_or", "bitwise_xor"), frozenset(f"{_WORDS} int64".split())
    ),
}

# Which ufuncs have the other methods; every ufunc has `outer`.
UFUNC_METHODS: dict[str, frozenset[str]] = {
    "reduce": frozenset({"add", "multiply"}),
    "accumulate": frozenset({"add", "multiply"}),
    "reduceat": frozenset({"add"}),
    "at": frozenset(SCATTER_DTYPES),
}

GENERATOR_METHODS = frozenset(
    """
    beta binomial chisquare dirichlet exponential f gamma geometric hypergeometric integers
    logseries poisson power random standard_exponential standard_gamma standard_normal uniform
    """.split()
)
RANDOM_FUNCTIONS = frozenset(
    """
    beta binomial chisquare choice exponential gamma geometric gumbel laplace lognormal
    multinomial normal permutation poisson rand randint randn random random_sample seed shuffle
    standard_exponential standard_gamma standard_normal uniform
    """.split()
)
SPECIAL_FUNCTIONS = frozenset(
    """
    bdtr beta betainc betaincinv betaln binom boxcox cbrt cosm1 digamma ellipk entr erf erfc
    erfcinv erfcx erfinv exp1 exp10 exp2 expi expit expm1 expn exprel gamma gammainc gammaincc
    gammainccinv gammaincinv gammaln gammasgn huber i0 i0e i1 i1e inv_boxcox j0 j1 k0 k0e k1 k1e
    kl_div log1p log_expit log_ndtr log_softmax loggamma logit logsumexp multigammaln ndtr ndtri
    poch polygamma pseudo_huber psi rel_entr rgamma round sici sinc softmax xlog1py xlogy y0 y1 yn
    zeta zetac
    """.split()
)
SCIPY_LINALG_FUNCTIONS = frozenset(
    "bandwidth block_diag expm lu lu_factor lu_solve solve_triangular toeplitz".split()
)
