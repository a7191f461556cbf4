"""Numbers to watch."""


class AverageMeter:
    """The last value and the mean so far."""

    def __init__(self):
        self.reset()

    def reset(self):
        self.val = self.avg = self.sum = self.count = 0

    def update(self, val, n=1):
        self.val = val
        self.sum += val * n
        self.count += n
        self.avg = self.sum / self.count


def accuracy(output, target, topk=(1,)):
    """Return the share of targets among the k best answers, in percent, for each k."""
    maxk = min(max(topk), output.size(1))
    _, pred = output.topk(maxk, 1, True, True)
    correct = pred.t().eq(target.reshape(1, -1).expand_as(pred.t()))
    hits = [correct[: min(k, maxk)].reshape(-1).float().sum(0) for k in topk]
    return [hit * 100.0 / target.size(0) for hit in hits]
