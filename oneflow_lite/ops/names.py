"""Written by `python -m oneflow_lite.ops.index --write`; not by hand."""

# By family what its files register; `name_` is in the family of `name`.
FAMILIES = {
    "activation": """
        celu elu elu_grad gelu gelu_grad glu gumbel_softmax hardshrink hardsigmoid hardswish
        hardswish_grad hardtanh hardtanh_grad leaky_relu leaky_relu_grad logsigmoid mish mish_grad
        prelu relu relu6 relu_grad rrelu selu shrink_grad silu silu_grad softplus softplus_grad
        softshrink softsign tanhshrink threshold threshold_grad
    """,
    "arithmetic": """
        abs add addcdiv addcmul ceil clamp clamp_max clamp_min copysign deg2rad div div_trunc
        extreme_grad flat_in float_power floor floor_divide fmax fmin fmod frac frexp gcd
        heaviside lcm ldexp lerp mask_finite mask_less maximum minimum mul mul_scalar nan_to_num
        neg nextafter positive pow pow_grad_exponent pow_integer rad2deg reciprocal remainder
        round rsqrt rsub sign sqrt square sub tensor_where trunc where
    """,
    "attention": """
        attention attention_dropout attention_grad multi_head_attention_forward
        scaled_dot_product_attention
    """,
    "calculus": "cumulative_trapezoid diff gradient kron trapezoid vander",
    "collectives": """
        all_gather all_reduce all_to_all barrier broadcast_from gather_to gradient_arrived
        gradient_reduced_ receive_from_ reduce_scatter reduce_to scatter_from send_to
    """,
    "complex": "angle complex conj polar sgn view_as_complex view_as_real",
    "conv": """
        conv conv1d conv2d conv3d conv_input_grad conv_tbc conv_transpose1d conv_transpose2d
        conv_transpose3d conv_weight_grad
    """,
    "copies": """
        alias_copy as_strided_copy as_strided_scatter diagonal_copy diagonal_scatter expand_copy
        narrow_copy permute_copy select_copy select_scatter slice_copy slice_scatter split_copy
        split_with_sizes_copy squeeze_copy t_copy transpose_copy unbind_copy unfold_copy
        unsqueeze_copy view_as_complex_copy view_as_real_copy view_copy
    """,
    "counting": """
        bincount histc histogram histogram_edges histogram_of histogramdd unique
        unique_consecutive
    """,
    "creation": """
        arange empty empty_like eye fill_constant full full_like linspace logspace new_empty
        new_empty_strided new_full new_ones new_tensor new_zeros ones ones_like range
        scalar_tensor zeros zeros_like
    """,
    "decompositions": """
        cholesky free_of_phase geqrf linalg_cholesky_ex linalg_eig linalg_eigh linalg_eigvals
        linalg_eigvalsh linalg_householder_product linalg_ldl_factor linalg_ldl_factor_ex
        linalg_ldl_solve linalg_lu linalg_lu_factor linalg_lu_factor_ex linalg_lu_solve linalg_qr
        linalg_svd linalg_svdvals lobpcg lu lu_permutation lu_solve lu_unpack ormqr over_gaps
        pca_lowrank qr svd svd_lowrank
    """,
    "distances": """
        bilinear cdist corrcoef cosine_similarity cov dist linalg_cond linalg_matrix_norm
        linalg_matrix_rank linalg_norm linalg_vector_norm normalize pairwise_distance pdist renorm
        upper_pairs upper_pairs_grad
    """,
    "dropout": """
        alpha_dropout dropout dropout1d dropout2d dropout3d feature_alpha_dropout feature_dropout
    """,
    "einsum": "contract einsum tensordot",
    "embedding": """
        embedding embedding_bag embedding_bag_argmax embedding_bag_coefficients embedding_bag_sum
        embedding_bag_sum_dots embedding_bag_sum_grad embedding_scale one_hot
    """,
    "global_tensors": "global_to_global global_to_local local_to_global",
    "indexing": """
        getitem getitem_advanced getitem_advanced_grad getitem_grad index_put narrow select
        setitem setitem_grad setitem_overwritten
    """,
    "inplace": "copy_ fill zero_",
    "joining": """
        atleast_1d atleast_2d atleast_3d block_diag broadcast_tensors cartesian_prod cat chunk
        column_stack combinations dsplit dstack hsplit hstack meshgrid split split_with_sizes
        stack tensor_split unbind unsafe_chunk unsafe_split unsafe_split_with_sizes vsplit vstack
    """,
    "levels": "enter_batch enter_jet leave_batch leave_jet sum_batch",
    "linalg": """
        cholesky_inverse cholesky_solve cofactor cofactor_grad cross det linalg_cross linalg_det
        linalg_diagonal linalg_inv linalg_inv_ex linalg_lstsq linalg_pinv linalg_slogdet
        linalg_solve linalg_solve_ex linalg_solve_triangular linalg_solve_turned linalg_tensorinv
        linalg_tensorsolve linalg_vander logdet matrix_exp pinv pinverse slogdet triangular_solve
    """,
    "logic": """
        allclose bitwise_and bitwise_left_shift bitwise_not bitwise_or bitwise_right_shift
        bitwise_xor eq equal ge gt isclose isfinite isinf isnan isneginf isposinf isreal le
        logical_and logical_not logical_or logical_xor lt ne rlshift rrshift signbit
    """,
    "loss": """
        cosine_embedding_loss gaussian_nll_loss hinge_embedding_loss huber huber_grad huber_loss
        kl_div l1_loss least_variance margin_ranking_loss mse_loss multi_margin_loss
        multilabel_margin_loss multilabel_soft_margin_loss poisson_nll_loss smooth_l1_loss
        soft_margin_loss triplet_margin_loss triplet_margin_with_distance_loss
    """,
    "loss_classification": """
        bce_with_logits binary_cross_entropy binary_cross_entropy_with_logits cross_entropy
        ctc_loss ctc_occupancy ctc_occupancy_grad linear_cross_entropy nll_loss nll_loss_grad
    """,
    "loss_vocabulary": """
        cross_entropy_rows cross_entropy_rows_grad linear_cross_entropy_rows
        linear_cross_entropy_rows_grad
    """,
    "masked": """
        masked_amax masked_amin masked_argmax masked_argmin masked_cumprod masked_cumsum
        masked_log_softmax masked_logaddexp masked_logsumexp masked_mean masked_median masked_norm
        masked_normalize masked_prod masked_softmax masked_softmin masked_std masked_sum
        masked_var
    """,
    "masking": """
        argwhere masked_fill masked_scatter masked_scatter_grad masked_select masked_select_grad
        nonzero nonzero_static
    """,
    "matmul": """
        addbmm addmm addmv addr baddbmm bmm chain_matmul dot inner linalg_multi_dot linalg_vecdot
        linear matmul matmul_nt matmul_tn matrix_power mm mv outer vdot
    """,
    "normalization": """
        affine_norm affine_norm_grad batch_norm group_norm instance_norm layer_norm
        native_batch_norm native_group_norm native_layer_norm rms_norm standardize
        standardize_grad update_running
    """,
    "optim": """
        adadelta_update adafactor_update adagrad_update adam_update adamax_update asgd_update
        muon_update nadam_update radam_update rmsprop_update rprop_update sgd_update
    """,
    "padding": "pad pad_grad",
    "pooling": """
        adaptive_avg_pool adaptive_avg_pool1d adaptive_avg_pool2d adaptive_avg_pool3d
        adaptive_avg_pool_grad adaptive_max_pool adaptive_max_pool1d
        adaptive_max_pool1d_with_indices adaptive_max_pool2d adaptive_max_pool2d_with_indices
        adaptive_max_pool3d adaptive_max_pool3d_with_indices avg_pool avg_pool1d avg_pool2d
        avg_pool3d avg_pool_grad fractional_max_pool fractional_max_pool2d
        fractional_max_pool2d_with_indices fractional_max_pool3d
        fractional_max_pool3d_with_indices local_response_norm lp_pool1d lp_pool2d lp_pool3d
        max_pool max_pool1d max_pool1d_with_indices max_pool2d max_pool2d_with_indices max_pool3d
        max_pool3d_with_indices max_unpool max_unpool1d max_unpool2d max_unpool3d plane_put
        plane_take
    """,
    "random": """
        _sample_dirichlet _standard_gamma _von_mises bernoulli beta_slope beta_tail binomial
        cauchy_ check_values dropout_mask exponential_ gamma_slope gamma_tail geometric_
        log_normal_ multinomial normal orthogonal_ poisson rand rand_like randint randint_like
        randn randn_like random_ random_integers random_normal random_permutation random_uniform
        randperm trunc_normal_ uniform_
    """,
    "rearranging": """
        channel_shuffle constant_pad_nd diag diag_embed diagflat diagonal diagonal_grad flip
        fliplr flipud pixel_shuffle pixel_unshuffle repeat repeat_index repeat_interleave roll
        rot90 tile trace tril tril_indices triu triu_indices unravel_index
    """,
    "recurrent": """
        gru gru_cell gru_layer gru_layer_grad lstm lstm_cell lstm_layer lstm_layer_grad rnn_layer
        rnn_layer_grad rnn_relu rnn_relu_cell rnn_tanh rnn_tanh_cell
    """,
    "reduce": """
        all amax amin aminmax any argmax argmin count_nonzero cummax cummin cumprod cumprod_grad
        cumsum cumsum_grad logcumsumexp logsumexp max mean min nanmean nansum prod
        product_of_others recurrence segment_ids segment_reduce shift sum tie_weights
    """,
    "resampling": """
        affine_grid grid_sample grid_sampler grid_sampler_2d grid_sampler_3d interpolate
        plane_sample plane_sample_grid_grad plane_sample_input_grad resample resample_grad
        upsample_bilinear upsample_nearest
    """,
    "scatter": """
        gather gather_grad index_add index_copy index_fill index_from_zero index_mask index_reduce
        index_select put scatter scatter_add scatter_amax scatter_amin scatter_groups scatter_mask
        scatter_multiply scatter_overwritten scatter_prod scatter_reduce scatter_tie_weights take
        take_along_dim
    """,
    "shape": """
        adjoint broadcast_to cast clone conj_physical contiguous copy_ expand expand_as fill_
        flatten imag is_complex is_floating_point is_tensor movedim numel permute ravel real
        reshape reshape_as resolve_conj result_type squeeze sum_to sum_to_size swapaxes t to
        to_device transpose unflatten unsqueeze view view_as view_dtype
    """,
    "softmax": "log_softmax log_softmax_grad softmax softmax_grad softmin",
    "sorting": """
        argsort bucketize isin kthvalue median median_of_all mode msort nanmedian nanmedian_of_all
        nanquantile quantile searchsorted sort topk
    """,
    "special_functions": """
        bessel_j0 bessel_j1 bessel_jn bessel_y0 bessel_y1 digamma entr erfcx erfinv i0 i0e i1 i1e
        igamma igammac lgamma log_ndtr log_ndtr_grad logit modified_bessel_in modified_bessel_k0
        modified_bessel_k1 mvlgamma ndtr ndtri polygamma polygamma_n scaled_modified_bessel_k0
        scaled_modified_bessel_k1 spherical_bessel_j0 tensor_polygamma xlog1py zeta
    """,
    "spectral": """
        bartlett_window blackman_window fft_c2c fft_c2r fft_c2r_grad fft_fft fft_fft2 fft_fftfreq
        fft_fftn fft_fftshift fft_hfft fft_hfft2 fft_hfftn fft_ifft fft_ifft2 fft_ifftn
        fft_ifftshift fft_ihfft fft_ihfft2 fft_ihfftn fft_irfft fft_irfft2 fft_irfftn fft_r2c
        fft_r2c_grad fft_rfft fft_rfft2 fft_rfftfreq fft_rfftn hamming_window hann_window istft
        kaiser_window stft
    """,
    "statistics": "norm safe_divide std std_mean var var_mean",
    "strided": "as_strided as_strided_grad as_strided_grad_grad",
    "transcendental": """
        acos acosh asin asinh atan atan2 atanh cos cosh erf erfc exp exp2 expm1 hypot log log10
        log1p log2 logaddexp logaddexp2 sigmoid sigmoid_grad sin sinc sinc_grad sinh tan tanh
        tanh_grad xlogy
    """,
    "unfolding": "as_strided col2im fold functional_unfold im2col unfold unfold_grad",
    "views": "copy_slices take_slices take_slices_grad",
}

# By places the functors that are exposed there, `name=functor` under another name.
EXPOSED = {
    "Tensor": """
        __rlshift__=rlshift __rrshift__=rrshift add_ addbmm_ addcdiv_ addcmul_ addmm_ addmv_ addr_
        arctan2_=atan2_ atan2_ baddbmm_ bernoulli_ bitwise_and_ bitwise_left_shift_ bitwise_not_
        bitwise_or_ bitwise_right_shift_ bitwise_xor_ cauchy_ contiguous copysign_ cumprod_
        cumsum_ digamma_ div_ divide_=div_ dropout1d_ dropout2d_ dropout3d_ eq_ erfinv_ expand
        expand_as exponential_ float_power_ floor_divide_ fmod_ ge_ geometric_ greater_=gt_
        greater_equal_=ge_ gt_ hardsigmoid_ hardswish_ heaviside_ hypot_ igamma_ igammac_
        index_add_ index_copy_ index_fill_ index_reduce_ le_ lerp_ less_=lt_ less_equal_=le_
        lgamma_ log_normal_ logical_and_ logical_not_ logical_or_ logical_xor_ lt_ masked_fill_
        masked_scatter_ mish_ mul_ multiply_=mul_ mvlgamma_ ne_ new_empty new_empty_strided
        new_full new_ones new_tensor new_zeros nextafter_ normal_ not_equal_=ne_
        polygamma=tensor_polygamma polygamma_=tensor_polygamma_ pow_ put_ random_ relu6_
        remainder_ renorm_ repeat reshape_as scatter_ scatter_add_ scatter_reduce_ sgn_ sign_
        silu_ squeeze_ sub_ subtract_=sub_ sum_to_size swapaxes_ swapdims_=transpose_ t_ to
        transpose_ tril_ triu_ true_divide_=div_ unfold uniform_ unsqueeze_ view view_as
        where=tensor_where
    """,
    "Tensor flow": """
        abs abs_ absolute=abs absolute_=abs_ acos acos_ acosh acosh_ add addbmm addcdiv addcmul
        addmm addmv addr adjoint all allclose amax amin aminmax angle any arccos=acos
        arccos_=acos_ arccosh=acosh arccosh_=acosh_ arcsin=asin arcsin_=asin_ arcsinh=asinh
        arcsinh_=asinh_ arctan2=atan2 arctan=atan arctan_=atan_ arctanh=atanh arctanh_=atanh_
        argmax argmin argsort argwhere as_strided as_strided_ as_strided_scatter asin asin_ asinh
        asinh_ atan atan2 atan_ atanh atanh_ baddbmm bernoulli bincount bitwise_and
        bitwise_left_shift bitwise_not bitwise_or bitwise_right_shift bitwise_xor bmm broadcast_to
        ceil ceil_ cholesky_inverse cholesky_solve chunk clamp clamp_ clamp_max clamp_max_
        clamp_min clamp_min_ clip=clamp clip_=clamp_ clone conj conj_physical conj_physical_
        copysign corrcoef cos cos_ cosh cosh_ count_nonzero cov cross cummax cummin cumprod cumsum
        deg2rad deg2rad_ diag diag_embed diagflat diagonal diagonal_scatter diff dist div
        divide=div dot dsplit eq equal erf_ erfc_ exp exp2_ exp_ expm1_ fix=trunc fix_=trunc_
        flatten flip fliplr flipud float_power floor floor_ floor_divide fmax fmin fmod frac frac_
        frexp gather gcd gcd_ ge geqrf ger=outer greater=gt greater_equal=ge gt heaviside histc
        histogram hsplit hypot i0_ igamma igammac index_add index_copy index_fill index_put
        index_put_ index_reduce index_select inner inverse=linalg_inv is_complex is_floating_point
        isclose isfinite isinf isnan isneginf isposinf isreal istft kron kthvalue lcm lcm_ ldexp
        ldexp_ le lerp less=lt less_equal=le lgamma log log10 log10_ log1p_ log2 log2_ log_
        logaddexp logaddexp2 logcumsumexp logdet logical_and logical_not logical_or logical_xor
        logit_ lt lu lu_solve masked_fill masked_scatter masked_select max maximum mean median min
        minimum mm mode moveaxis=movedim movedim msort mul multinomial multiply=mul mv mvlgamma
        nan_to_num nan_to_num_ nanmean nanmedian nanquantile nansum narrow narrow_copy ne neg neg_
        negative=neg negative_=neg_ nextafter nonzero nonzero_static norm not_equal=ne numel
        orgqr=linalg_householder_product ormqr outer permute pinverse positive pow prod put qr
        quantile rad2deg rad2deg_ ravel reciprocal reciprocal_ remainder renorm repeat_interleave
        reshape resolve_conj resolve_neg=resolve_conj roll rot90 round_ rsqrt rsqrt_ scatter
        scatter_add scatter_reduce select select_scatter sgn sigmoid_ sign signbit sin sin_ sinc_
        sinh sinh_ slice_scatter sort split split_with_sizes sqrt sqrt_ square square_ squeeze std
        stft sub subtract=sub sum svd swapaxes swapdims=transpose t take take_along_dim tan tan_
        tanh_ tensor_split tile topk trace transpose triangular_solve tril triu true_divide=div
        trunc trunc_ unbind unflatten unique unique_consecutive unsafe_chunk unsafe_split
        unsafe_split_with_sizes unsqueeze var vdot vsplit xlogy_
    """,
    "Tensor flow functional": "hardshrink prelu relu relu_ sigmoid tanh",
    "Tensor flow functional special": "log_softmax softmax",
    "Tensor flow linalg": "cholesky det matmul matrix_exp matrix_power slogdet",
    "Tensor flow special": """
        digamma erf erfc erfinv exp2 expm1 i0 log1p logit logsumexp round sinc xlogy
    """,
    "fft": """
        fft2=fft_fft2 fft=fft_fft fftfreq=fft_fftfreq fftn=fft_fftn fftshift=fft_fftshift
        hfft2=fft_hfft2 hfft=fft_hfft hfftn=fft_hfftn ifft2=fft_ifft2 ifft=fft_ifft
        ifftn=fft_ifftn ifftshift=fft_ifftshift ihfft2=fft_ihfft2 ihfft=fft_ihfft
        ihfftn=fft_ihfftn irfft2=fft_irfft2 irfft=fft_irfft irfftn=fft_irfftn rfft2=fft_rfft2
        rfft=fft_rfft rfftfreq=fft_rfftfreq rfftn=fft_rfftn
    """,
    "flow": """
        _sample_dirichlet _standard_gamma affine_grid_generator=affine_grid alias_copy
        alpha_dropout_ arange as_strided_copy atleast_1d atleast_2d atleast_3d bartlett_window
        binomial blackman_window block_diag broadcast_tensors bucketize cartesian_prod cat cdist
        chain_matmul column_stack combinations complex concat=cat concatenate=cat constant_pad_nd
        cumulative_trapezoid detach_copy=alias_copy diagonal_copy dropout_ dstack einsum empty
        empty_like expand_copy eye feature_alpha_dropout_ feature_dropout feature_dropout_ fill
        full full_like gradient grid_sampler grid_sampler_2d grid_sampler_3d gru gru_cell
        hamming_window hann_window histogramdd hstack imag is_tensor isin kaiser_window linspace
        lobpcg logspace lstm lstm_cell lu_unpack meshgrid native_batch_norm native_group_norm
        native_layer_norm normal ones ones_like pca_lowrank permute_copy poisson polar rand
        rand_like randint randint_like randn randn_like randperm range real result_type rnn_relu
        rnn_relu_cell rnn_tanh rnn_tanh_cell row_stack=vstack rsub scalar_tensor searchsorted
        segment_reduce select_copy slice_copy split_copy split_with_sizes_copy squeeze_copy stack
        std_mean svd_lowrank t_copy tensordot transpose_copy trapezoid trapz=trapezoid
        tril_indices triu_indices unbind_copy unfold_copy unravel_index unsqueeze_copy vander
        var_mean view_as_complex view_as_complex_copy view_as_real view_as_real_copy view_copy
        vstack where zeros zeros_like
    """,
    "flow functional": """
        adaptive_avg_pool1d adaptive_max_pool1d alpha_dropout avg_pool1d batch_norm bilinear
        binary_cross_entropy_with_logits celu celu_ channel_shuffle conv1d conv2d conv3d conv_tbc
        conv_transpose1d conv_transpose2d conv_transpose3d cosine_embedding_loss cosine_similarity
        ctc_loss dropout embedding feature_alpha_dropout group_norm hinge_embedding_loss
        instance_norm kl_div layer_norm margin_ranking_loss max_pool1d max_pool1d_with_indices
        max_pool2d max_pool3d pairwise_distance pdist pixel_shuffle pixel_unshuffle
        poisson_nll_loss rms_norm rrelu rrelu_ selu selu_ threshold threshold_ triplet_margin_loss
    """,
    "flow special": "polygamma",
    "functional": """
        adaptive_avg_pool2d adaptive_avg_pool3d adaptive_max_pool1d_with_indices
        adaptive_max_pool2d adaptive_max_pool2d_with_indices adaptive_max_pool3d
        adaptive_max_pool3d_with_indices affine_grid avg_pool2d avg_pool3d binary_cross_entropy
        cross_entropy dropout1d dropout2d dropout3d elu elu_ embedding_bag fold
        fractional_max_pool2d fractional_max_pool2d_with_indices fractional_max_pool3d
        fractional_max_pool3d_with_indices gaussian_nll_loss gelu glu grid_sample gumbel_softmax
        hardsigmoid hardswish hardtanh hardtanh_ huber_loss interpolate l1_loss leaky_relu
        leaky_relu_ linear linear_cross_entropy local_response_norm logsigmoid lp_pool1d lp_pool2d
        lp_pool3d max_pool2d_with_indices max_pool3d_with_indices max_unpool1d max_unpool2d
        max_unpool3d mish mse_loss multi_head_attention_forward multi_margin_loss
        multilabel_margin_loss multilabel_soft_margin_loss nll_loss normalize one_hot pad relu6
        scaled_dot_product_attention silu smooth_l1_loss soft_margin_loss softmin softplus
        softshrink softsign tanhshrink triplet_margin_with_distance_loss unfold=functional_unfold
        upsample=interpolate upsample_bilinear upsample_nearest
    """,
    "linalg": """
        cholesky_ex=linalg_cholesky_ex cond=linalg_cond cross=linalg_cross
        diagonal=linalg_diagonal eig=linalg_eig eigh=linalg_eigh eigvals=linalg_eigvals
        eigvalsh=linalg_eigvalsh householder_product=linalg_householder_product inv=linalg_inv
        inv_ex=linalg_inv_ex ldl_factor=linalg_ldl_factor ldl_factor_ex=linalg_ldl_factor_ex
        ldl_solve=linalg_ldl_solve lstsq=linalg_lstsq lu=linalg_lu lu_factor=linalg_lu_factor
        lu_factor_ex=linalg_lu_factor_ex lu_solve=linalg_lu_solve matrix_norm=linalg_matrix_norm
        matrix_rank=linalg_matrix_rank multi_dot=linalg_multi_dot norm=linalg_norm
        pinv=linalg_pinv qr=linalg_qr solve=linalg_solve solve_ex=linalg_solve_ex
        solve_triangular=linalg_solve_triangular svd=linalg_svd svdvals=linalg_svdvals
        tensorinv=linalg_tensorinv tensorsolve=linalg_tensorsolve vander=linalg_vander
        vecdot=linalg_vecdot vector_norm=linalg_vector_norm
    """,
    "masked": """
        amax=masked_amax amin=masked_amin argmax=masked_argmax argmin=masked_argmin
        cumprod=masked_cumprod cumsum=masked_cumsum log_softmax=masked_log_softmax
        logaddexp=masked_logaddexp logsumexp=masked_logsumexp mean=masked_mean
        median=masked_median norm=masked_norm normalize=masked_normalize prod=masked_prod
        softmax=masked_softmax softmin=masked_softmin std=masked_std sum=masked_sum var=masked_var
    """,
    "special": """
        bessel_j0 bessel_j1 bessel_y0 bessel_y1 entr erfcx expit=sigmoid gammainc=igamma
        gammaincc=igammac gammaln=lgamma i0e i1 i1e log_ndtr modified_bessel_i0=i0
        modified_bessel_i1=i1 modified_bessel_k0 modified_bessel_k1 multigammaln=mvlgamma ndtr
        ndtri psi=digamma scaled_modified_bessel_k0 scaled_modified_bessel_k1 spherical_bessel_j0
        xlog1py zeta
    """,
}

# Of Tensor, in `functors/methods.py`.
METHODS = """
    H T __abs__ __add__ __and__ __eq__ __floordiv__ __ge__ __getitem__ __gt__ __iadd__ __iand__
    __ifloordiv__ __ilshift__ __imod__ __imul__ __invert__ __ior__ __ipow__ __irshift__ __isub__
    __itruediv__ __ixor__ __le__ __lshift__ __lt__ __matmul__ __mod__ __mul__ __ne__ __neg__
    __or__ __pos__ __pow__ __radd__ __rand__ __rfloordiv__ __rmatmul__ __rmod__ __rmul__ __ror__
    __rpow__ __rshift__ __rsub__ __rtruediv__ __rxor__ __setitem__ __sub__ __truediv__ __xor__
    backward bfloat16 bool byte cdouble cfloat char cpu cuda double float half imag int long mH mT
    real short to_device type_as
"""
