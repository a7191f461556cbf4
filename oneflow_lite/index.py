"""Which file registers which name. Written by `python -m tests.stubs --write`; not by hand."""

FUNCTORS = {
    "activation": """
        celu celu_ elu elu_ gelu glu logsigmoid mish mish_ selu selu_ silu silu_ softplus softsign
        tanhshrink
    """,
    "activation_piecewise": """
        hardshrink hardsigmoid hardsigmoid_ hardswish hardswish_ hardtanh hardtanh_ leaky_relu
        leaky_relu_ relu relu6 relu6_ relu_ softshrink threshold threshold_
    """,
    "adaptive_pooling": """
        adaptive_avg_pool1d adaptive_avg_pool2d adaptive_max_pool1d adaptive_max_pool2d
    """,
    "arithmetic": """
        abs abs_ add add_ addcdiv addcdiv_ addcmul addcmul_ ceil ceil_ clamp clamp_ clamp_max
        clamp_max_ clamp_min clamp_min_ div div_ floor floor_ floor_divide floor_divide_ fmod
        fmod_ frac frac_ lerp lerp_ maximum minimum mul mul_ nan_to_num nan_to_num_ neg neg_
        positive pow pow_ reciprocal reciprocal_ remainder remainder_ round round_ rsqrt rsqrt_
        sign sign_ sqrt sqrt_ square square_ sub sub_ trunc trunc_ where
    """,
    "checks": "cast",
    "comparison": "allclose eq equal ge gt isclose isfinite isinf isnan le lt ne",
    "complex": "angle complex conj polar sgn sgn_ view_as_complex view_as_real",
    "conv": "conv1d conv2d",
    "creation": """
        arange empty empty_like eye full full_like linspace new_full new_ones new_tensor new_zeros
        ones ones_like zeros zeros_like
    """,
    "diagonals": "diag diag_embed diagonal trace tril tril_ triu triu_",
    "dropout": "dropout",
    "einsum": "einsum tensordot",
    "embedding": "embedding one_hot",
    "extrema": "amax amin argmax argmin max min",
    "index_select": "index_add index_add_ index_fill index_fill_ index_select",
    "indexing": "getitem narrow select setitem",
    "inplace": "copy_ fill_ zero_",
    "joining": "cat column_stack concat concatenate dstack hstack meshgrid stack vstack",
    "logic": """
        bitwise_and bitwise_and_ bitwise_not bitwise_or bitwise_or_ bitwise_xor bitwise_xor_
        logical_and logical_not logical_or logical_xor
    """,
    "loss": "huber_loss kl_div l1_loss mse_loss smooth_l1_loss",
    "loss_classification": """
        binary_cross_entropy binary_cross_entropy_with_logits cross_entropy nll_loss
    """,
    "loss_ranking": """
        cosine_embedding_loss gaussian_nll_loss hinge_embedding_loss margin_ranking_loss
        poisson_nll_loss
    """,
    "masking": "masked_fill masked_fill_ masked_scatter masked_scatter_ masked_select nonzero",
    "matmul": """
        addmm addmm_ addmv baddbmm baddbmm_ bmm dot linear matmul matmul_nt matmul_tn mm mv outer
    """,
    "normalization": "batch_norm group_norm instance_norm layer_norm rms_norm",
    "optim": "adam_update sgd_update",
    "padding": "pad",
    "pooling": "avg_pool1d avg_pool2d max_pool1d max_pool2d",
    "random": """
        bernoulli bernoulli_ dropout_mask normal_ orthogonal_ rand rand_like randint randn
        randn_like randperm trunc_normal_ uniform_
    """,
    "rearranging": "flip repeat roll tile",
    "reduce": "all any count_nonzero logsumexp mean prod sum",
    "scan": "cumprod cumprod_ cumsum cumsum_",
    "scatter": "gather scatter scatter_ scatter_add scatter_add_ take take_along_dim",
    "shape": """
        broadcast_to clone contiguous expand expand_as flatten imag movedim permute ravel real
        reshape reshape_as squeeze squeeze_ sum_to t t_ to_device transpose transpose_ unflatten
        unsqueeze unsqueeze_ view view_as
    """,
    "similarity": "cosine_similarity normalize",
    "softmax": "log_softmax softmax softmin",
    "sorting": "argsort sort topk",
    "splitting": "chunk split unbind",
    "statistics": "norm std std_mean var var_mean",
    "transcendental": """
        erf erf_ erfc erfc_ exp exp2 exp2_ exp_ expm1 expm1_ log log10 log10_ log1p log1p_ log2
        log2_ log_ logaddexp sigmoid sigmoid_ tanh tanh_ xlogy xlogy_
    """,
    "trigonometric": """
        acos acos_ acosh acosh_ asin asin_ asinh asinh_ atan atan2 atan2_ atan_ atanh atanh_ cos
        cos_ cosh cosh_ hypot hypot_ sin sin_ sinc sinc_ sinh sinh_ tan tan_
    """,
    "unfolding": "unfold",
}

KERNELS = {
    "activation": """
        elu elu_grad gelu gelu_grad logsigmoid mish mish_grad silu silu_grad softplus
        softplus_grad softsign
    """,
    "activation_piecewise": """
        hardshrink hardsigmoid hardswish hardswish_grad hardtanh hardtanh_grad leaky_relu
        leaky_relu_grad relu relu_grad shrink_grad softshrink threshold threshold_grad
    """,
    "adaptive_pooling": "adaptive_avg_pool adaptive_avg_pool_grad adaptive_max_pool",
    "arithmetic": """
        abs add ceil clamp clamp_max clamp_min div div_trunc extreme_grad floor floor_divide fmod
        frac lerp mask_finite mask_less maximum minimum mul mul_scalar nan_to_num neg pow
        pow_grad_exponent pow_integer reciprocal remainder round rsqrt sign sqrt square sub trunc
        where
    """,
    "comparison": "allclose eq equal ge gt isclose isfinite isinf isnan le lt ne",
    "complex": "angle complex conj polar sgn view_as_complex view_as_real",
    "conv": "conv conv_input_grad conv_weight_grad",
    "creation": "arange empty eye fill_constant full linspace ones_like zeros_like",
    "diagonals": "diag_embed diagonal diagonal_grad tril triu",
    "einsum": "contract",
    "embedding": "embedding embedding_scale one_hot",
    "extrema": "amax amin argmax argmin max min tie_weights",
    "index_select": "index_add index_mask index_select",
    "indexing": """
        getitem getitem_advanced getitem_advanced_grad getitem_grad narrow select setitem_
        setitem_grad setitem_overwritten
    """,
    "joining": "cat stack",
    "logic": """
        bitwise_and bitwise_not bitwise_or bitwise_xor logical_and logical_not logical_or
        logical_xor
    """,
    "loss": """
        bce_with_logits binary_cross_entropy huber huber_grad least_variance nll_loss
        nll_loss_grad
    """,
    "masking": """
        masked_fill masked_scatter masked_scatter_grad masked_select masked_select_grad nonzero
    """,
    "matmul": "dot matmul matmul_nt matmul_tn",
    "normalization": """
        batch_norm layer_norm rms_norm standardize standardize_grad update_running
    """,
    "optim": "adam_update sgd_update",
    "padding": "pad pad_grad",
    "pooling": "avg_pool avg_pool_grad max_pool plane_put plane_take",
    "random": """
        bernoulli bernoulli_ dropout_mask normal_ orthogonal_ random_integers random_normal
        random_permutation random_uniform trunc_normal_ uniform_
    """,
    "rearranging": "flip repeat roll",
    "reduce": "all any count_nonzero logsumexp mean prod sum",
    "scan": "cumprod cumsum cumsum_grad recurrence shift",
    "scatter": """
        gather gather_grad index_from_zero scatter scatter_add scatter_mask scatter_multiply
        scatter_overwritten
    """,
    "shape": """
        cast clone copy_ expand fill_ imag permute real reshape squeeze sum_to to_device transpose
        unsqueeze view_dtype
    """,
    "softmax": "log_softmax log_softmax_grad softmax softmax_grad",
    "sorting": "argsort sort topk",
    "statistics": "norm safe_divide std var",
    "transcendental": """
        erf erfc exp exp2 expm1 log log10 log1p log2 logaddexp sigmoid sigmoid_grad tanh tanh_grad
        xlogy
    """,
    "trigonometric": """
        acos acosh asin asinh atan atan2 atanh cos cosh hypot sin sinc sinc_grad sinh tan
    """,
    "unfolding": "unfold unfold_grad",
    "views": "copy_slices take_slices take_slices_grad",
}

GRAD_FUNCS = {
    "activation": """
        elu elu_grad gelu gelu_grad logsigmoid mish mish_grad silu silu_grad softplus
        softplus_grad softsign
    """,
    "activation_piecewise": """
        hardshrink hardsigmoid hardswish hardswish_grad hardtanh hardtanh_grad leaky_relu
        leaky_relu_grad relu relu_grad shrink_grad softshrink threshold threshold_grad
    """,
    "adaptive_pooling": "adaptive_avg_pool adaptive_avg_pool_grad adaptive_max_pool",
    "arithmetic": """
        abs add ceil clamp clamp_max clamp_min div div_trunc extreme_grad floor floor_divide fmod
        frac lerp mask_finite mask_less maximum minimum mul mul_scalar nan_to_num neg pow
        pow_grad_exponent reciprocal remainder round rsqrt sign sqrt square sub trunc where
    """,
    "complex": "angle complex conj polar sgn view_as_complex view_as_real",
    "conv": "conv conv_input_grad conv_weight_grad",
    "diagonals": "diag_embed diagonal diagonal_grad tril triu",
    "einsum": "contract",
    "embedding": "embedding embedding_scale",
    "extrema": "amax amin max min tie_weights",
    "index_select": "index_add index_select",
    "indexing": """
        getitem getitem_advanced getitem_advanced_grad getitem_grad narrow select setitem_
        setitem_grad
    """,
    "joining": "cat stack",
    "loss": """
        bce_with_logits binary_cross_entropy huber huber_grad least_variance nll_loss
        nll_loss_grad
    """,
    "masking": """
        masked_fill masked_scatter masked_scatter_grad masked_select masked_select_grad
    """,
    "matmul": "dot matmul matmul_nt matmul_tn",
    "normalization": "batch_norm layer_norm rms_norm standardize standardize_grad",
    "padding": "pad pad_grad",
    "pooling": "avg_pool avg_pool_grad max_pool plane_put plane_take",
    "random": "bernoulli bernoulli_ dropout_mask normal_ uniform_",
    "rearranging": "flip repeat roll",
    "reduce": "logsumexp mean prod sum",
    "scan": "cumprod cumsum cumsum_grad recurrence shift",
    "scatter": "gather gather_grad scatter scatter_add",
    "shape": """
        cast clone copy_ expand fill_ imag permute real reshape squeeze sum_to to_device transpose
        unsqueeze
    """,
    "softmax": "log_softmax log_softmax_grad softmax softmax_grad",
    "sorting": "sort topk",
    "statistics": "norm safe_divide std var",
    "transcendental": """
        erf erfc exp exp2 expm1 log log10 log1p log2 logaddexp sigmoid sigmoid_grad tanh tanh_grad
        xlogy
    """,
    "trigonometric": """
        acos acosh asin asinh atan atan2 atanh cos cosh hypot sin sinc sinc_grad sinh tan
    """,
    "unfolding": "unfold unfold_grad",
    "views": "copy_slices take_slices take_slices_grad",
}

PLACES = {
    "Tensor": """
        acos acos_ acosh acosh_ arccos=acos arccos_=acos_ arccosh=acosh arccosh_=acosh_
        arcsin=asin arcsin_=asin_ arcsinh=asinh arcsinh_=asinh_ arctan=atan arctan2=atan2
        arctan2_=atan2_ arctan_=atan_ arctanh=atanh arctanh_=atanh_ asin asin_ asinh asinh_ atan
        atan2 atan2_ atan_ atanh atanh_ cos cos_ cosh cosh_ hardshrink hardsigmoid_ hardswish_
        hypot hypot_ mish_ relu relu6_ relu_ silu_ sin sin_ sinc sinc_ sinh sinh_ tan tan_
    """,
    "fft": "",
    "flow": """
        acos acos_ acosh acosh_ arccos=acos arccos_=acos_ arccosh=acosh arccosh_=acosh_
        arcsin=asin arcsin_=asin_ arcsinh=asinh arcsinh_=asinh_ arctan=atan arctan2=atan2
        arctan_=atan_ arctanh=atanh arctanh_=atanh_ asin asin_ asinh asinh_ atan atan2 atan_ atanh
        atanh_ celu celu_ cos cos_ cosh cosh_ hardshrink hypot relu relu_ selu selu_ sin sin_ sinc
        sinc_ sinh sinh_ tan tan_ threshold threshold_
    """,
    "functional": """
        celu celu_ elu elu_ gelu glu hardshrink hardsigmoid hardswish hardtanh hardtanh_
        leaky_relu leaky_relu_ logsigmoid mish relu relu6 relu_ selu selu_ silu softplus
        softshrink softsign tanhshrink threshold threshold_
    """,
    "linalg": "",
    "masked": "",
    "special": "sinc",
}
