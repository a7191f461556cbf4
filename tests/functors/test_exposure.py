"""Every operator is reachable wherever PyTorch offers it: `flow`, Tensor, `nn.functional`."""

import pytest

import oneflow_lite as flow

OPERATORS = """
    add sub mul div pow neg abs sign exp log sqrt rsqrt sin cos tan tanh sigmoid relu leaky_relu elu
    gelu silu softplus clamp maximum minimum where square reciprocal erf log1p expm1 log2 log10 exp2
    sinh cosh asin acos atan atan2 floor ceil round trunc frac fmod remainder lerp addcmul addcdiv
    hypot logaddexp sinc xlogy nan_to_num clamp_min clamp_max matmul mm bmm dot linear einsum sum
    mean max min amax amin var std prod cumsum logsumexp softmax log_softmax argmax argmin reshape
    view flatten squeeze unsqueeze transpose permute t expand broadcast_to cat stack split chunk
    unbind gather scatter scatter_add index_select masked_fill masked_select tril triu pad flip roll
    repeat sort topk one_hot conv1d conv2d max_pool1d max_pool2d avg_pool1d avg_pool2d
    adaptive_avg_pool2d relu6 hardtanh hardsigmoid hardswish selu celu mish softsign logsigmoid
    tanhshrink outer mv addmm addmv baddbmm cumprod diagonal diag trace movedim unflatten narrow
    select tile meshgrid hstack vstack norm std_mean var_mean take_along_dim index_add index_fill
    masked_scatter rms_norm group_norm normalize cosine_similarity huber_loss kl_div
    binary_cross_entropy layer_norm batch_norm dropout embedding nll_loss cross_entropy mse_loss
    l1_loss binary_cross_entropy_with_logits smooth_l1_loss
""".split()


@pytest.mark.parametrize("name", OPERATORS)
def test_is_where_pytorch_has_it(name):
    torch = pytest.importorskip("torch")
    places = (
        (torch, flow),
        (torch.Tensor, flow.Tensor),
        (torch.nn.functional, flow.nn.functional),
    )
    offered = [ours for theirs, ours in places if hasattr(theirs, name)]
    assert offered
    for ours in offered:
        assert callable(getattr(ours, name, None)), f"{name} is missing from {ours}"
