"""Losses for classification."""

from oneflow_lite import nn
from oneflow_lite.nn import functional as F


class LabelSmoothingCrossEntropy(nn.Module):
    """Cross entropy with targets that leave some probability to all classes."""

    def __init__(self, smoothing=0.1):
        super().__init__()
        assert smoothing < 1.0
        self.smoothing = smoothing
        self.confidence = 1.0 - smoothing

    def forward(self, x, target):
        logprobs = F.log_softmax(x, dim=-1)
        nll_loss = -logprobs.gather(dim=-1, index=target.unsqueeze(1)).squeeze(1)
        smooth_loss = -logprobs.mean(dim=-1)
        return (self.confidence * nll_loss + self.smoothing * smooth_loss).mean()


class SoftTargetCrossEntropy(nn.Module):
    """Cross entropy with a probability for each class."""

    def forward(self, x, target):
        return (-target * F.log_softmax(x, dim=-1)).sum(dim=-1).mean()
