"""The file that registers each name. Written by `python -m tests.stubs --write`; not by hand."""

FUNCTORS = {
    "activation": """
        celu celu_ elu elu_ gelu glu gumbel_softmax hardshrink hardsigmoid hardsigmoid_ hardswish
        hardswish_ hardtanh hardtanh_ leaky_relu leaky_relu_ logsigmoid mish mish_ prelu relu
        relu6 relu6_ relu_ rrelu rrelu_ selu selu_ silu silu_ softplus softshrink softsign
        tanhshrink threshold threshold_
    """,
    "arithmetic": """
        abs abs_ add add_ addcdiv addcdiv_ addcmul addcmul_ ceil ceil_ clamp clamp_ clamp_max
        clamp_max_ clamp_min clamp_min_ copysign copysign_ deg2rad deg2rad_ div div_ float_power
        float_power_ floor floor_ floor_divide floor_divide_ fmax fmin fmod fmod_ frac frac_ frexp
        gcd gcd_ heaviside heaviside_ lcm lcm_ ldexp ldexp_ lerp lerp_ maximum minimum mul mul_
        nan_to_num nan_to_num_ neg neg_ nextafter nextafter_ positive pow pow_ rad2deg rad2deg_
        reciprocal reciprocal_ remainder remainder_ round round_ rsqrt rsqrt_ rsub sign sign_ sqrt
        sqrt_ square square_ sub sub_ tensor_where trunc trunc_ where
    """,
    "attention": "multi_head_attention_forward scaled_dot_product_attention",
    "calculus": "cumulative_trapezoid diff gradient kron trapezoid vander",
    "complex": "angle complex conj polar sgn sgn_ view_as_complex view_as_real",
    "conv": "conv1d conv2d conv3d conv_tbc conv_transpose1d conv_transpose2d conv_transpose3d",
    "copies": """
        alias_copy as_strided_copy as_strided_scatter diagonal_copy diagonal_scatter expand_copy
        narrow_copy permute_copy select_copy select_scatter slice_copy slice_scatter split_copy
        split_with_sizes_copy squeeze_copy t_copy transpose_copy unbind_copy unfold_copy
        unsqueeze_copy view_as_complex_copy view_as_real_copy view_copy
    """,
    "counting": "bincount histc histogram histogramdd unique unique_consecutive",
    "creation": """
        arange empty empty_like eye full full_like linspace logspace new_empty new_full new_ones
        new_tensor new_zeros ones ones_like range scalar_tensor zeros zeros_like
    """,
    "decompositions": """
        cholesky geqrf linalg_cholesky_ex linalg_eig linalg_eigh linalg_eigvals linalg_eigvalsh
        linalg_householder_product linalg_ldl_factor linalg_ldl_factor_ex linalg_ldl_solve
        linalg_lu linalg_lu_factor linalg_lu_factor_ex linalg_lu_solve linalg_qr linalg_svd
        linalg_svdvals lu lu_solve lu_unpack ormqr pca_lowrank qr svd svd_lowrank
    """,
    "distances": """
        bilinear cdist corrcoef cosine_similarity cov dist linalg_cond linalg_matrix_norm
        linalg_matrix_rank linalg_norm linalg_vector_norm normalize pairwise_distance pdist renorm
        renorm_
    """,
    "dropout": """
        alpha_dropout alpha_dropout_ dropout dropout1d dropout1d_ dropout2d dropout2d_ dropout3d
        dropout3d_ dropout_ feature_alpha_dropout feature_alpha_dropout_ feature_dropout
        feature_dropout_
    """,
    "einsum": "einsum tensordot",
    "embedding": "embedding embedding_bag one_hot",
    "indexing": "getitem index_put index_put_ narrow select setitem",
    "inplace": "copy_ fill fill_ zero_",
    "joining": """
        atleast_1d atleast_2d atleast_3d block_diag broadcast_tensors cartesian_prod cat chunk
        column_stack combinations dsplit dstack hsplit hstack meshgrid split split_with_sizes
        stack tensor_split unbind unsafe_chunk unsafe_split unsafe_split_with_sizes vsplit vstack
    """,
    "linalg": """
        cholesky_inverse cholesky_solve cross det linalg_cross linalg_diagonal linalg_inv
        linalg_inv_ex linalg_lstsq linalg_pinv linalg_solve linalg_solve_ex
        linalg_solve_triangular linalg_tensorinv linalg_tensorsolve linalg_vander logdet
        matrix_exp pinverse slogdet triangular_solve
    """,
    "logic": """
        allclose bitwise_and bitwise_and_ bitwise_left_shift bitwise_left_shift_ bitwise_not
        bitwise_not_ bitwise_or bitwise_or_ bitwise_right_shift bitwise_right_shift_ bitwise_xor
        bitwise_xor_ eq eq_ equal ge ge_ gt gt_ isclose isfinite isinf isnan isneginf isposinf
        isreal le le_ logical_and logical_and_ logical_not logical_not_ logical_or logical_or_
        logical_xor logical_xor_ lt lt_ ne ne_ rlshift rrshift signbit
    """,
    "loss": """
        cosine_embedding_loss gaussian_nll_loss hinge_embedding_loss huber_loss kl_div l1_loss
        margin_ranking_loss mse_loss multi_margin_loss multilabel_margin_loss
        multilabel_soft_margin_loss poisson_nll_loss smooth_l1_loss soft_margin_loss
        triplet_margin_loss triplet_margin_with_distance_loss
    """,
    "loss_classification": """
        binary_cross_entropy binary_cross_entropy_with_logits cross_entropy ctc_loss
        linear_cross_entropy nll_loss
    """,
    "masked": """
        masked_amax masked_amin masked_argmax masked_argmin masked_cumprod masked_cumsum
        masked_log_softmax masked_logaddexp masked_logsumexp masked_mean masked_median masked_norm
        masked_normalize masked_prod masked_softmax masked_softmin masked_std masked_sum
        masked_var
    """,
    "masking": """
        argwhere masked_fill masked_fill_ masked_scatter masked_scatter_ masked_select nonzero
        nonzero_static
    """,
    "matmul": """
        addbmm addbmm_ addmm addmm_ addmv addmv_ addr addr_ baddbmm baddbmm_ bmm chain_matmul dot
        inner linalg_multi_dot linalg_vecdot linear matmul matmul_nt matmul_tn matrix_power mm mv
        outer vdot
    """,
    "normalization": """
        batch_norm group_norm instance_norm layer_norm native_batch_norm native_group_norm
        native_layer_norm rms_norm
    """,
    "optim": """
        adadelta_update adafactor_update adagrad_update adam_update adamax_update asgd_update
        muon_update nadam_update radam_update rmsprop_update rprop_update sgd_update
    """,
    "padding": "pad",
    "pooling": """
        adaptive_avg_pool1d adaptive_avg_pool2d adaptive_avg_pool3d adaptive_max_pool1d
        adaptive_max_pool1d_with_indices adaptive_max_pool2d adaptive_max_pool2d_with_indices
        adaptive_max_pool3d adaptive_max_pool3d_with_indices avg_pool1d avg_pool2d avg_pool3d
        fractional_max_pool2d fractional_max_pool2d_with_indices fractional_max_pool3d
        fractional_max_pool3d_with_indices local_response_norm lp_pool1d lp_pool2d lp_pool3d
        max_pool1d max_pool1d_with_indices max_pool2d max_pool2d_with_indices max_pool3d
        max_pool3d_with_indices max_unpool1d max_unpool2d max_unpool3d
    """,
    "random": """
        _sample_dirichlet _standard_gamma bernoulli bernoulli_ binomial cauchy_ dropout_mask
        exponential_ geometric_ log_normal_ multinomial normal normal_ orthogonal_ poisson rand
        rand_like randint randint_like randn randn_like random_ randperm trunc_normal_ uniform_
    """,
    "rearranging": """
        channel_shuffle constant_pad_nd diag diag_embed diagflat diagonal flip fliplr flipud
        pixel_shuffle pixel_unshuffle repeat repeat_interleave roll rot90 tile trace tril tril_
        tril_indices triu triu_ triu_indices unravel_index
    """,
    "recurrent": "gru gru_cell lstm lstm_cell rnn_relu rnn_relu_cell rnn_tanh rnn_tanh_cell",
    "reduce": """
        all amax amin aminmax any argmax argmin count_nonzero cummax cummin cumprod cumprod_
        cumsum cumsum_ logcumsumexp logsumexp max mean min nanmean nansum prod segment_reduce sum
    """,
    "resampling": """
        affine_grid grid_sample grid_sampler grid_sampler_2d grid_sampler_3d interpolate
        upsample_bilinear upsample_nearest
    """,
    "scatter": """
        gather index_add index_add_ index_copy index_copy_ index_fill index_fill_ index_reduce
        index_reduce_ index_select put put_ scatter scatter_ scatter_add scatter_add_
        scatter_reduce scatter_reduce_ take take_along_dim
    """,
    "shape": """
        adjoint broadcast_to cast clone conj_physical conj_physical_ contiguous expand expand_as
        flatten imag is_complex is_floating_point is_tensor movedim numel permute ravel real
        reshape reshape_as resolve_conj result_type squeeze squeeze_ sum_to sum_to_size swapaxes
        swapaxes_ t t_ to to_device transpose transpose_ unflatten unsqueeze unsqueeze_ view
        view_as
    """,
    "softmax": "log_softmax softmax softmin",
    "sorting": """
        argsort bucketize isin kthvalue median mode msort nanmedian nanquantile quantile
        searchsorted sort topk
    """,
    "special_functions": """
        bessel_j0 bessel_j1 bessel_y0 bessel_y1 digamma digamma_ entr erfcx erfinv erfinv_ i0 i0_
        i0e i1 i1e igamma igamma_ igammac igammac_ lgamma lgamma_ log_ndtr logit logit_
        modified_bessel_k0 modified_bessel_k1 mvlgamma mvlgamma_ ndtr ndtri polygamma
        scaled_modified_bessel_k0 scaled_modified_bessel_k1 spherical_bessel_j0 tensor_polygamma
        tensor_polygamma_ xlog1py zeta
    """,
    "spectral": """
        bartlett_window blackman_window fft_fft fft_fft2 fft_fftfreq fft_fftn fft_fftshift
        fft_hfft fft_hfft2 fft_hfftn fft_ifft fft_ifft2 fft_ifftn fft_ifftshift fft_ihfft
        fft_ihfft2 fft_ihfftn fft_irfft fft_irfft2 fft_irfftn fft_rfft fft_rfft2 fft_rfftfreq
        fft_rfftn hamming_window hann_window istft kaiser_window stft
    """,
    "statistics": "norm std std_mean var var_mean",
    "transcendental": """
        acos acos_ acosh acosh_ asin asin_ asinh asinh_ atan atan2 atan2_ atan_ atanh atanh_ cos
        cos_ cosh cosh_ erf erf_ erfc erfc_ exp exp2 exp2_ exp_ expm1 expm1_ hypot hypot_ log
        log10 log10_ log1p log1p_ log2 log2_ log_ logaddexp logaddexp2 sigmoid sigmoid_ sin sin_
        sinc sinc_ sinh sinh_ tan tan_ tanh tanh_ xlogy xlogy_
    """,
    "unfolding": "as_strided as_strided_ fold functional_unfold unfold",
}

KERNELS = {
    "activation": """
        elu elu_grad gelu gelu_grad hardshrink hardsigmoid hardswish hardswish_grad hardtanh
        hardtanh_grad leaky_relu leaky_relu_grad logsigmoid mish mish_grad relu relu_grad
        shrink_grad silu silu_grad softplus softplus_grad softshrink softsign threshold
        threshold_grad
    """,
    "arithmetic": """
        abs add ceil clamp clamp_max clamp_min copysign div div_trunc extreme_grad floor
        floor_divide fmax fmin fmod frac frexp gcd heaviside lcm lerp mask_finite mask_less
        maximum minimum mul mul_scalar nan_to_num neg nextafter pow pow_grad_exponent pow_integer
        reciprocal remainder round rsqrt sign sqrt square sub trunc where
    """,
    "collectives": """
        all_gather all_reduce all_reduce_ all_to_all barrier broadcast_from broadcast_from_
        gather_to gradient_arrived gradient_reduced_ receive_from_ reduce_scatter reduce_to
        reduce_to_ scatter_from send_to
    """,
    "complex": "angle complex conj polar sgn view_as_complex view_as_real",
    "conv": "conv conv_input_grad conv_weight_grad",
    "counting": "bincount histc histogram_edges histogram_of unique unique_consecutive",
    "creation": "arange empty eye fill_constant full linspace logspace ones_like zeros_like",
    "decompositions": """
        free_of_phase geqrf linalg_cholesky_ex linalg_eig linalg_eigh linalg_eigvals
        linalg_eigvalsh linalg_ldl_factor_ex linalg_ldl_solve linalg_lu_factor_ex linalg_qr
        linalg_svd linalg_svdvals lu_permutation
    """,
    "distances": "cdist upper_pairs upper_pairs_grad",
    "einsum": "contract",
    "embedding": """
        embedding embedding_bag_argmax embedding_bag_coefficients embedding_bag_sum
        embedding_bag_sum_dots embedding_bag_sum_grad embedding_scale one_hot
    """,
    "global_tensors": "global_to_global global_to_local local_to_global",
    "indexing": """
        getitem getitem_advanced getitem_advanced_grad getitem_grad narrow select setitem_
        setitem_grad setitem_overwritten
    """,
    "joining": "cat stack",
    "linalg": """
        cofactor cofactor_grad linalg_cross linalg_det linalg_inv_ex linalg_lstsq linalg_slogdet
        linalg_solve_ex linalg_solve_triangular matrix_exp pinv
    """,
    "logic": """
        allclose bitwise_and bitwise_left_shift bitwise_not bitwise_or bitwise_right_shift
        bitwise_xor eq equal ge gt isclose isfinite isinf isnan le logical_and logical_not
        logical_or logical_xor lt ne signbit
    """,
    "loss": "huber huber_grad least_variance",
    "loss_classification": """
        bce_with_logits binary_cross_entropy ctc_loss ctc_occupancy ctc_occupancy_grad nll_loss
        nll_loss_grad
    """,
    "masking": """
        masked_fill masked_scatter masked_scatter_grad masked_select masked_select_grad nonzero
    """,
    "matmul": "dot matmul matmul_nt matmul_tn",
    "normalization": """
        affine_norm affine_norm_grad batch_norm rms_norm standardize standardize_grad
        update_running
    """,
    "optim": """
        adadelta_update adafactor_update adagrad_update adam_update adamax_update asgd_update
        muon_update nadam_update radam_update rmsprop_update rprop_update sgd_update
    """,
    "padding": "pad pad_grad",
    "pooling": """
        adaptive_avg_pool adaptive_avg_pool_grad adaptive_max_pool avg_pool avg_pool_grad
        fractional_max_pool max_pool max_unpool plane_put plane_take
    """,
    "random": """
        _sample_dirichlet _standard_gamma _von_mises bernoulli bernoulli_ beta_tail binomial
        cauchy_ check_values dropout_mask exponential_ gamma_tail geometric_ log_normal_
        multinomial normal normal_ orthogonal_ poisson random_ random_integers random_normal
        random_permutation random_uniform trunc_normal_ uniform_
    """,
    "rearranging": "diag_embed diagonal diagonal_grad flip repeat repeat_index roll tril triu",
    "recurrent": "gru_layer gru_layer_grad lstm_layer lstm_layer_grad rnn_layer rnn_layer_grad",
    "reduce": """
        all amax amin any argmax argmin count_nonzero cummax cummin cumprod cumprod_grad cumsum
        cumsum_grad logcumsumexp logsumexp max mean min prod product_of_others recurrence
        segment_ids shift sum tie_weights
    """,
    "resampling": """
        plane_sample plane_sample_grid_grad plane_sample_input_grad resample resample_grad
    """,
    "scatter": """
        gather gather_grad index_add index_copy index_from_zero index_mask index_select scatter
        scatter_add scatter_amax scatter_amin scatter_groups scatter_mask scatter_multiply
        scatter_overwritten scatter_prod scatter_tie_weights
    """,
    "shape": """
        cast clone copy_ expand fill_ imag permute real reshape squeeze sum_to to_device transpose
        unsqueeze view_dtype
    """,
    "softmax": "log_softmax log_softmax_grad softmax softmax_grad",
    "sorting": """
        argsort isin kthvalue median median_of_all mode nanmedian nanmedian_of_all searchsorted
        sort topk
    """,
    "special_functions": """
        bessel_j0 bessel_j1 bessel_jn bessel_y0 bessel_y1 digamma entr erfcx erfinv i0 i0e i1 i1e
        igamma igammac lgamma log_ndtr log_ndtr_grad logit modified_bessel_in modified_bessel_k0
        modified_bessel_k1 ndtr ndtri polygamma_n scaled_modified_bessel_k0
        scaled_modified_bessel_k1 spherical_bessel_j0 xlog1py zeta
    """,
    "spectral": "fft_c2c fft_c2r fft_c2r_grad fft_r2c fft_r2c_grad",
    "statistics": "norm safe_divide std var",
    "strided": "as_strided as_strided_grad as_strided_grad_grad",
    "transcendental": """
        acos acosh asin asinh atan atan2 atanh cos cosh erf erfc exp exp2 expm1 hypot log log10
        log1p log2 logaddexp logaddexp2 sigmoid sigmoid_grad sin sinc sinc_grad sinh tan tanh
        tanh_grad xlogy
    """,
    "unfolding": "col2im im2col unfold unfold_grad",
    "views": "copy_slices take_slices take_slices_grad",
}

GRAD_FUNCS = {
    "activation": """
        elu elu_grad gelu gelu_grad hardshrink hardsigmoid hardswish hardswish_grad hardtanh
        hardtanh_grad leaky_relu leaky_relu_grad logsigmoid mish mish_grad relu relu_grad
        shrink_grad silu silu_grad softplus softplus_grad softshrink softsign threshold
        threshold_grad
    """,
    "arithmetic": """
        abs add ceil clamp clamp_max clamp_min copysign div div_trunc extreme_grad floor
        floor_divide fmax fmin fmod frac frexp lerp mask_finite mask_less maximum minimum mul
        mul_scalar nan_to_num neg nextafter pow pow_grad_exponent reciprocal remainder round rsqrt
        sign sqrt square sub trunc where
    """,
    "collectives": """
        all_gather all_reduce all_reduce_ all_to_all broadcast_from broadcast_from_ gather_to
        reduce_scatter reduce_to scatter_from
    """,
    "complex": "angle complex conj polar sgn view_as_complex view_as_real",
    "conv": "conv conv_input_grad conv_weight_grad",
    "decompositions": """
        free_of_phase linalg_cholesky_ex linalg_eig linalg_eigh linalg_eigvals linalg_eigvalsh
        linalg_ldl_solve linalg_lu_factor_ex linalg_qr linalg_svd linalg_svdvals
    """,
    "distances": "cdist upper_pairs upper_pairs_grad",
    "einsum": "contract",
    "embedding": """
        embedding embedding_bag_coefficients embedding_bag_sum embedding_bag_sum_dots
        embedding_bag_sum_grad embedding_scale
    """,
    "global_tensors": "global_to_global global_to_local local_to_global",
    "indexing": """
        getitem getitem_advanced getitem_advanced_grad getitem_grad narrow select setitem_
        setitem_grad
    """,
    "joining": "cat stack",
    "linalg": """
        cofactor cofactor_grad linalg_cross linalg_det linalg_inv_ex linalg_lstsq linalg_slogdet
        linalg_solve_ex linalg_solve_triangular matrix_exp pinv
    """,
    "loss": "huber huber_grad least_variance",
    "loss_classification": """
        bce_with_logits binary_cross_entropy ctc_loss ctc_occupancy ctc_occupancy_grad nll_loss
        nll_loss_grad
    """,
    "masking": """
        masked_fill masked_scatter masked_scatter_grad masked_select masked_select_grad
    """,
    "matmul": "dot matmul matmul_nt matmul_tn",
    "normalization": """
        affine_norm affine_norm_grad batch_norm rms_norm standardize standardize_grad
    """,
    "padding": "pad pad_grad",
    "pooling": """
        adaptive_avg_pool adaptive_avg_pool_grad adaptive_max_pool avg_pool avg_pool_grad
        fractional_max_pool max_pool max_unpool plane_put plane_take
    """,
    "random": """
        _sample_dirichlet _standard_gamma bernoulli bernoulli_ beta_tail cauchy_ dropout_mask
        exponential_ gamma_tail geometric_ log_normal_ normal normal_ poisson random_ uniform_
    """,
    "rearranging": "diag_embed diagonal diagonal_grad flip repeat roll tril triu",
    "recurrent": "gru_layer lstm_layer rnn_layer",
    "reduce": """
        amax amin cummax cummin cumprod cumprod_grad cumsum cumsum_grad logcumsumexp logsumexp max
        mean min prod product_of_others recurrence shift sum tie_weights
    """,
    "resampling": """
        plane_sample plane_sample_grid_grad plane_sample_input_grad resample resample_grad
    """,
    "scatter": """
        gather gather_grad index_add index_copy index_select scatter scatter_add scatter_amax
        scatter_amin scatter_prod scatter_tie_weights
    """,
    "shape": """
        cast clone copy_ expand fill_ imag permute real reshape squeeze sum_to to_device transpose
        unsqueeze
    """,
    "softmax": "log_softmax log_softmax_grad softmax softmax_grad",
    "sorting": "kthvalue median median_of_all mode nanmedian nanmedian_of_all sort topk",
    "special_functions": """
        bessel_j0 bessel_j1 bessel_jn bessel_y0 bessel_y1 digamma entr erfcx erfinv i0 i0e i1 i1e
        igamma igammac lgamma log_ndtr log_ndtr_grad logit modified_bessel_in modified_bessel_k0
        modified_bessel_k1 ndtr ndtri polygamma_n scaled_modified_bessel_k0
        scaled_modified_bessel_k1 spherical_bessel_j0 xlog1py zeta
    """,
    "spectral": "fft_c2c fft_c2r fft_c2r_grad fft_r2c fft_r2c_grad",
    "statistics": "norm safe_divide std var",
    "strided": "as_strided as_strided_grad as_strided_grad_grad",
    "transcendental": """
        acos acosh asin asinh atan atan2 atanh cos cosh erf erfc exp exp2 expm1 hypot log log10
        log1p log2 logaddexp logaddexp2 sigmoid sigmoid_grad sin sinc sinc_grad sinh tan tanh
        tanh_grad xlogy
    """,
    "unfolding": "col2im im2col unfold unfold_grad",
    "views": "copy_slices take_slices take_slices_grad",
}

PLACES = {
    "Tensor": """
        __rlshift__=rlshift __rrshift__=rrshift abs abs_ absolute=abs absolute_=abs_ acos acos_
        acosh acosh_ add add_ addbmm addbmm_ addcdiv addcdiv_ addcmul addcmul_ addmm addmm_ addmv
        addmv_ addr addr_ adjoint all allclose amax amin aminmax angle any arccos=acos
        arccos_=acos_ arccosh=acosh arccosh_=acosh_ arcsin=asin arcsin_=asin_ arcsinh=asinh
        arcsinh_=asinh_ arctan=atan arctan2=atan2 arctan2_=atan2_ arctan_=atan_ arctanh=atanh
        arctanh_=atanh_ argmax argmin argsort argwhere as_strided as_strided_ as_strided_scatter
        asin asin_ asinh asinh_ atan atan2 atan2_ atan_ atanh atanh_ baddbmm baddbmm_ bernoulli
        bernoulli_ bincount bitwise_and bitwise_and_ bitwise_left_shift bitwise_left_shift_
        bitwise_not bitwise_not_ bitwise_or bitwise_or_ bitwise_right_shift bitwise_right_shift_
        bitwise_xor bitwise_xor_ bmm broadcast_to cauchy_ ceil ceil_ cholesky cholesky_inverse
        cholesky_solve chunk clamp clamp_ clamp_max clamp_max_ clamp_min clamp_min_ clip=clamp
        clip_=clamp_ clone conj conj_physical conj_physical_ contiguous copysign copysign_
        corrcoef cos cos_ cosh cosh_ count_nonzero cov cross cummax cummin cumprod cumprod_ cumsum
        cumsum_ deg2rad deg2rad_ det diag diag_embed diagflat diagonal diagonal_scatter diff
        digamma digamma_ dist div div_ divide=div divide_=div_ dot dropout1d_ dropout2d_
        dropout3d_ dsplit eq eq_ equal erf erf_ erfc erfc_ erfinv erfinv_ exp exp2 exp2_ exp_
        expand expand_as expm1 expm1_ exponential_ fix=trunc fix_=trunc_ flatten flip fliplr
        flipud float_power float_power_ floor floor_ floor_divide floor_divide_ fmax fmin fmod
        fmod_ frac frac_ frexp gather gcd gcd_ ge ge_ geometric_ geqrf ger=outer greater=gt
        greater_=gt_ greater_equal=ge greater_equal_=ge_ gt gt_ hardshrink hardsigmoid_ hardswish_
        heaviside heaviside_ histc histogram hsplit hypot hypot_ i0 i0_ igamma igamma_ igammac
        igammac_ index_add index_add_ index_copy index_copy_ index_fill index_fill_ index_put
        index_put_ index_reduce index_reduce_ index_select inner inverse=linalg_inv is_complex
        is_floating_point isclose isfinite isinf isnan isneginf isposinf isreal istft kron
        kthvalue lcm lcm_ ldexp ldexp_ le le_ lerp lerp_ less=lt less_=lt_ less_equal=le
        less_equal_=le_ lgamma lgamma_ log log10 log10_ log1p log1p_ log2 log2_ log_ log_normal_
        log_softmax logaddexp logaddexp2 logcumsumexp logdet logical_and logical_and_ logical_not
        logical_not_ logical_or logical_or_ logical_xor logical_xor_ logit logit_ logsumexp lt lt_
        lu lu_solve masked_fill masked_fill_ masked_scatter masked_scatter_ masked_select matmul
        matrix_exp matrix_power max maximum mean median min minimum mish_ mm mode moveaxis=movedim
        movedim msort mul mul_ multinomial multiply=mul multiply_=mul_ mv mvlgamma mvlgamma_
        nan_to_num nan_to_num_ nanmean nanmedian nanquantile nansum narrow narrow_copy ne ne_ neg
        neg_ negative=neg negative_=neg_ new_empty new_full new_ones new_tensor new_zeros
        nextafter nextafter_ nonzero nonzero_static norm normal_ not_equal=ne not_equal_=ne_ numel
        orgqr=linalg_householder_product ormqr outer permute pinverse polygamma=tensor_polygamma
        polygamma_=tensor_polygamma_ positive pow pow_ prelu prod put put_ qr quantile rad2deg
        rad2deg_ random_ ravel reciprocal reciprocal_ relu relu6_ relu_ remainder remainder_
        renorm renorm_ repeat repeat_interleave reshape reshape_as resolve_conj
        resolve_neg=resolve_conj roll rot90 round round_ rsqrt rsqrt_ scatter scatter_ scatter_add
        scatter_add_ scatter_reduce scatter_reduce_ select select_scatter sgn sgn_ sigmoid
        sigmoid_ sign sign_ signbit silu_ sin sin_ sinc sinc_ sinh sinh_ slice_scatter slogdet
        softmax sort split split_with_sizes sqrt sqrt_ square square_ squeeze squeeze_ std stft
        sub sub_ subtract=sub subtract_=sub_ sum sum_to_size svd swapaxes swapaxes_
        swapdims=transpose swapdims_=transpose_ t t_ take take_along_dim tan tan_ tanh tanh_
        tensor_split tile to topk trace transpose transpose_ triangular_solve tril tril_ triu
        triu_ true_divide=div true_divide_=div_ trunc trunc_ unbind unflatten unfold uniform_
        unique unique_consecutive unsafe_chunk unsafe_split unsafe_split_with_sizes unsqueeze
        unsqueeze_ var vdot view view_as vsplit where=tensor_where xlogy xlogy_
    """,
    "fft": """
        fft=fft_fft fft2=fft_fft2 fftfreq=fft_fftfreq fftn=fft_fftn fftshift=fft_fftshift
        hfft=fft_hfft hfft2=fft_hfft2 hfftn=fft_hfftn ifft=fft_ifft ifft2=fft_ifft2
        ifftn=fft_ifftn ifftshift=fft_ifftshift ihfft=fft_ihfft ihfft2=fft_ihfft2
        ihfftn=fft_ihfftn irfft=fft_irfft irfft2=fft_irfft2 irfftn=fft_irfftn rfft=fft_rfft
        rfft2=fft_rfft2 rfftfreq=fft_rfftfreq rfftn=fft_rfftn
    """,
    "flow": """
        _sample_dirichlet _standard_gamma abs abs_ absolute=abs absolute_=abs_ acos acos_ acosh
        acosh_ adaptive_avg_pool1d adaptive_max_pool1d add addbmm addcdiv addcmul addmm addmv addr
        adjoint affine_grid_generator=affine_grid alias_copy all allclose alpha_dropout
        alpha_dropout_ amax amin aminmax angle any arange arccos=acos arccos_=acos_ arccosh=acosh
        arccosh_=acosh_ arcsin=asin arcsin_=asin_ arcsinh=asinh arcsinh_=asinh_ arctan=atan
        arctan2=atan2 arctan_=atan_ arctanh=atanh arctanh_=atanh_ argmax argmin argsort argwhere
        as_strided as_strided_ as_strided_copy as_strided_scatter asin asin_ asinh asinh_ atan
        atan2 atan_ atanh atanh_ atleast_1d atleast_2d atleast_3d avg_pool1d baddbmm
        bartlett_window batch_norm bernoulli bilinear binary_cross_entropy_with_logits bincount
        binomial bitwise_and bitwise_left_shift bitwise_not bitwise_or bitwise_right_shift
        bitwise_xor blackman_window block_diag bmm broadcast_tensors broadcast_to bucketize
        cartesian_prod cat cdist ceil ceil_ celu celu_ chain_matmul channel_shuffle cholesky
        cholesky_inverse cholesky_solve chunk clamp clamp_ clamp_max clamp_max_ clamp_min
        clamp_min_ clip=clamp clip_=clamp_ clone column_stack combinations complex concat=cat
        concatenate=cat conj conj_physical conj_physical_ constant_pad_nd conv1d conv2d conv3d
        conv_tbc conv_transpose1d conv_transpose2d conv_transpose3d copysign corrcoef cos cos_
        cosh cosh_ cosine_embedding_loss cosine_similarity count_nonzero cov cross ctc_loss cummax
        cummin cumprod cumsum cumulative_trapezoid deg2rad deg2rad_ det detach_copy=alias_copy
        diag diag_embed diagflat diagonal diagonal_copy diagonal_scatter diff digamma dist div
        divide=div dot dropout dropout_ dsplit dstack einsum embedding empty empty_like eq equal
        erf erf_ erfc erfc_ erfinv exp exp2 exp2_ exp_ expand_copy expm1 expm1_ eye
        feature_alpha_dropout feature_alpha_dropout_ feature_dropout feature_dropout_ fill
        fix=trunc fix_=trunc_ flatten flip fliplr flipud float_power floor floor_ floor_divide
        fmax fmin fmod frac frac_ frexp full full_like gather gcd gcd_ ge geqrf ger=outer gradient
        greater=gt greater_equal=ge grid_sampler grid_sampler_2d grid_sampler_3d group_norm gru
        gru_cell gt hamming_window hann_window hardshrink heaviside hinge_embedding_loss histc
        histogram histogramdd hsplit hstack hypot i0 i0_ igamma igammac imag index_add index_copy
        index_fill index_put index_put_ index_reduce index_select inner instance_norm
        inverse=linalg_inv is_complex is_floating_point is_tensor isclose isfinite isin isinf
        isnan isneginf isposinf isreal istft kaiser_window kl_div kron kthvalue layer_norm lcm
        lcm_ ldexp ldexp_ le lerp less=lt less_equal=le lgamma linspace log log10 log10_ log1p
        log1p_ log2 log2_ log_ log_softmax logaddexp logaddexp2 logcumsumexp logdet logical_and
        logical_not logical_or logical_xor logit logit_ logspace logsumexp lstm lstm_cell lt lu
        lu_solve lu_unpack margin_ranking_loss masked_fill masked_scatter masked_select matmul
        matrix_exp matrix_power max max_pool1d max_pool1d_with_indices max_pool2d max_pool3d
        maximum mean median meshgrid min minimum mm mode moveaxis=movedim movedim msort mul
        multinomial multiply=mul mv mvlgamma nan_to_num nan_to_num_ nanmean nanmedian nanquantile
        nansum narrow narrow_copy native_batch_norm native_group_norm native_layer_norm ne neg
        neg_ negative=neg negative_=neg_ nextafter nonzero nonzero_static norm normal not_equal=ne
        numel ones ones_like orgqr=linalg_householder_product ormqr outer pairwise_distance
        pca_lowrank pdist permute permute_copy pinverse pixel_shuffle pixel_unshuffle poisson
        poisson_nll_loss polar polygamma positive pow prelu prod put qr quantile rad2deg rad2deg_
        rand rand_like randint randint_like randn randn_like randperm range ravel real reciprocal
        reciprocal_ relu relu_ remainder renorm repeat_interleave reshape resolve_conj
        resolve_neg=resolve_conj result_type rms_norm rnn_relu rnn_relu_cell rnn_tanh
        rnn_tanh_cell roll rot90 round round_ row_stack=vstack rrelu rrelu_ rsqrt rsqrt_ rsub
        scalar_tensor scatter scatter_add scatter_reduce searchsorted segment_reduce select
        select_copy select_scatter selu selu_ sgn sigmoid sigmoid_ sign signbit sin sin_ sinc
        sinc_ sinh sinh_ slice_copy slice_scatter slogdet softmax sort split split_copy
        split_with_sizes split_with_sizes_copy sqrt sqrt_ square square_ squeeze squeeze_copy
        stack std std_mean stft sub subtract=sub sum svd svd_lowrank swapaxes swapdims=transpose t
        t_copy take take_along_dim tan tan_ tanh tanh_ tensor_split tensordot threshold threshold_
        tile topk trace transpose transpose_copy trapezoid trapz=trapezoid triangular_solve tril
        tril_indices triplet_margin_loss triu triu_indices true_divide=div trunc trunc_ unbind
        unbind_copy unflatten unfold_copy unique unique_consecutive unravel_index unsafe_chunk
        unsafe_split unsafe_split_with_sizes unsqueeze unsqueeze_copy vander var var_mean vdot
        view_as_complex view_as_complex_copy view_as_real view_as_real_copy view_copy vsplit
        vstack where xlogy xlogy_ zeros zeros_like
    """,
    "functional": """
        adaptive_avg_pool1d adaptive_avg_pool2d adaptive_avg_pool3d adaptive_max_pool1d
        adaptive_max_pool1d_with_indices adaptive_max_pool2d adaptive_max_pool2d_with_indices
        adaptive_max_pool3d adaptive_max_pool3d_with_indices affine_grid alpha_dropout avg_pool1d
        avg_pool2d avg_pool3d batch_norm bilinear binary_cross_entropy
        binary_cross_entropy_with_logits celu celu_ channel_shuffle conv1d conv2d conv3d conv_tbc
        conv_transpose1d conv_transpose2d conv_transpose3d cosine_embedding_loss cosine_similarity
        cross_entropy ctc_loss dropout dropout1d dropout2d dropout3d elu elu_ embedding
        embedding_bag feature_alpha_dropout fold fractional_max_pool2d
        fractional_max_pool2d_with_indices fractional_max_pool3d
        fractional_max_pool3d_with_indices gaussian_nll_loss gelu glu grid_sample group_norm
        gumbel_softmax hardshrink hardsigmoid hardswish hardtanh hardtanh_ hinge_embedding_loss
        huber_loss instance_norm interpolate kl_div l1_loss layer_norm leaky_relu leaky_relu_
        linear linear_cross_entropy local_response_norm log_softmax logsigmoid lp_pool1d lp_pool2d
        lp_pool3d margin_ranking_loss max_pool1d max_pool1d_with_indices max_pool2d
        max_pool2d_with_indices max_pool3d max_pool3d_with_indices max_unpool1d max_unpool2d
        max_unpool3d mish mse_loss multi_head_attention_forward multi_margin_loss
        multilabel_margin_loss multilabel_soft_margin_loss nll_loss normalize one_hot pad
        pairwise_distance pdist pixel_shuffle pixel_unshuffle poisson_nll_loss prelu relu relu6
        relu_ rms_norm rrelu rrelu_ scaled_dot_product_attention selu selu_ sigmoid silu
        smooth_l1_loss soft_margin_loss softmax softmin softplus softshrink softsign tanh
        tanhshrink threshold threshold_ triplet_margin_loss triplet_margin_with_distance_loss
        unfold=functional_unfold upsample=interpolate upsample_bilinear upsample_nearest
    """,
    "linalg": """
        cholesky cholesky_ex=linalg_cholesky_ex cond=linalg_cond cross=linalg_cross det
        diagonal=linalg_diagonal eig=linalg_eig eigh=linalg_eigh eigvals=linalg_eigvals
        eigvalsh=linalg_eigvalsh householder_product=linalg_householder_product inv=linalg_inv
        inv_ex=linalg_inv_ex ldl_factor=linalg_ldl_factor ldl_factor_ex=linalg_ldl_factor_ex
        ldl_solve=linalg_ldl_solve lstsq=linalg_lstsq lu=linalg_lu lu_factor=linalg_lu_factor
        lu_factor_ex=linalg_lu_factor_ex lu_solve=linalg_lu_solve matmul matrix_exp
        matrix_norm=linalg_matrix_norm matrix_power matrix_rank=linalg_matrix_rank
        multi_dot=linalg_multi_dot norm=linalg_norm pinv=linalg_pinv qr=linalg_qr slogdet
        solve=linalg_solve solve_ex=linalg_solve_ex solve_triangular=linalg_solve_triangular
        svd=linalg_svd svdvals=linalg_svdvals tensorinv=linalg_tensorinv
        tensorsolve=linalg_tensorsolve vander=linalg_vander vecdot=linalg_vecdot
        vector_norm=linalg_vector_norm
    """,
    "masked": """
        amax=masked_amax amin=masked_amin argmax=masked_argmax argmin=masked_argmin
        cumprod=masked_cumprod cumsum=masked_cumsum log_softmax=masked_log_softmax
        logaddexp=masked_logaddexp logsumexp=masked_logsumexp mean=masked_mean
        median=masked_median norm=masked_norm normalize=masked_normalize prod=masked_prod
        softmax=masked_softmax softmin=masked_softmin std=masked_std sum=masked_sum var=masked_var
    """,
    "special": """
        bessel_j0 bessel_j1 bessel_y0 bessel_y1 digamma entr erf erfc erfcx erfinv exp2
        expit=sigmoid expm1 gammainc=igamma gammaincc=igammac gammaln=lgamma i0 i0e i1 i1e log1p
        log_ndtr log_softmax logit logsumexp modified_bessel_i0=i0 modified_bessel_i1=i1
        modified_bessel_k0 modified_bessel_k1 multigammaln=mvlgamma ndtr ndtri polygamma
        psi=digamma round scaled_modified_bessel_k0 scaled_modified_bessel_k1 sinc softmax
        spherical_bessel_j0 xlog1py xlogy zeta
    """,
}

METHODS = """
    H T __abs__ __add__ __and__ __cuda_array_interface__ __eq__ __floordiv__ __ge__ __getitem__
    __gt__ __iadd__ __iand__ __ifloordiv__ __ilshift__ __imod__ __imul__ __invert__ __ior__
    __ipow__ __irshift__ __isub__ __itruediv__ __ixor__ __le__ __lshift__ __lt__ __matmul__
    __mod__ __mul__ __ne__ __neg__ __or__ __pos__ __pow__ __radd__ __rand__ __rfloordiv__
    __rmatmul__ __rmod__ __rmul__ __ror__ __rpow__ __rshift__ __rsub__ __rtruediv__ __rxor__
    __setitem__ __sub__ __truediv__ __xor__ apply_ backward bfloat16 bool byte cdouble cfloat char
    copy_ cpu cuda data_ptr dense_dim dim_order double fill_ float get_device half imag int
    is_conj is_cpu is_distributed is_inference is_ipu is_maia is_meta is_mkldnn is_mps is_mtia
    is_neg is_nested is_nonzero is_pinned is_quantized is_same_size is_set_to is_shared is_signed
    is_sparse is_sparse_csr is_vulkan is_xla is_xpu layout long mH mT map_ ndimension real resize_
    resize_as_ set_ short sparse_dim to to_dense to_device type type_as zero_
"""
