"""Representations without labels: contrast, queues, moving targets, teachers, memories."""

import copy
import itertools
import math
from contextlib import contextmanager

import oneflow_lite as flow
from oneflow_lite import nn
from oneflow_lite.nn import functional as F
from tests.compiler.programs.kit import blobs, program


def mlp(*sizes, act=nn.ReLU, norm=None):
    """Build a perceptron."""
    layers = []
    for i, (a, b) in enumerate(itertools.pairwise(sizes)):
        layers.append(nn.Linear(a, b))
        if i < len(sizes) - 2:
            layers += [norm(b)] if norm is not None else []
            layers.append(act())
    return nn.Sequential(*layers)


class TwoCrops:
    """Two random views of one batch."""

    def __init__(self, noise=0.1):
        self.noise = noise

    def __call__(self, x):
        return [x + self.noise * flow.randn_like(x) for _ in range(2)]


@program
def simclr(compiled):
    """contrast between two views: similarities in a square, its diagonal masked out"""
    model = mlp(4, 8, 4, norm=nn.BatchNorm1d)
    optimizer = flow.optim.Adam(model.parameters(), lr=1e-2, weight_decay=1e-4)
    crops, temperature, n_views = TwoCrops(), 0.5, 2

    def info_nce_loss(features):
        batch = features.shape[0] // n_views
        labels = flow.cat([flow.arange(batch) for _ in range(n_views)], dim=0)
        labels = (labels.unsqueeze(0) == labels.unsqueeze(1)).float()
        features = F.normalize(features, dim=1)
        similarity = flow.matmul(features, features.T) / temperature
        assert similarity.shape == labels.shape == (n_views * batch, n_views * batch)
        eye = flow.eye(labels.shape[0], dtype=flow.bool)
        log_prob = similarity.masked_fill(eye, -1e9).log_softmax(dim=1)
        return -(labels * ~eye * log_prob).sum() / features.size(0)

    @compiled
    def step(images):
        loss = info_nce_loss(model(flow.cat(images, dim=0)))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss.tolist()

    for x, _ in blobs():
        yield step(crops(x)), model, optimizer


class MoCo(nn.Module):
    def __init__(self, dim=4, K=24, m=0.9, T=0.2):
        super().__init__()
        self.K, self.m, self.T, self.ptr = K, m, T, 0
        self.encoder_q, self.encoder_k = mlp(4, 8, dim), mlp(4, 8, dim)
        pairs = zip(self.encoder_q.parameters(), self.encoder_k.parameters(), strict=True)
        for param_q, param_k in pairs:
            param_k.data.copy_(param_q.data)
            param_k.requires_grad = False
        self.register_buffer("queue", F.normalize(flow.randn(dim, K), dim=0))

    @flow.no_grad()
    def _momentum_update_key_encoder(self):
        pairs = zip(self.encoder_q.parameters(), self.encoder_k.parameters(), strict=True)
        for param_q, param_k in pairs:
            param_k.data = param_k.data * self.m + param_q.data * (1.0 - self.m)

    @flow.no_grad()
    def _dequeue_and_enqueue(self, keys):
        batch_size = keys.shape[0]
        assert self.K % batch_size == 0
        self.queue[:, self.ptr : self.ptr + batch_size] = keys.T
        self.ptr = (self.ptr + batch_size) % self.K

    def forward(self, im_q, im_k):
        q = F.normalize(self.encoder_q(im_q), dim=1)
        with flow.no_grad():
            self._momentum_update_key_encoder()
            k = F.normalize(self.encoder_k(im_k), dim=1)
        l_pos = flow.einsum("nc,nc->n", [q, k]).unsqueeze(-1)
        l_neg = flow.einsum("nc,ck->nk", [q, self.queue.clone().detach()])
        logits = flow.cat([l_pos, l_neg], dim=1) / self.T
        self._dequeue_and_enqueue(k)
        return logits, flow.zeros(logits.shape[0], dtype=flow.long)


@program(kinds=3)
def moco_queue(compiled):
    """a queue of keys, written at a Python position that goes round; keys' weights set as .data"""
    model, crops = MoCo(), TwoCrops()
    optimizer = flow.optim.SGD(model.encoder_q.parameters(), 0.05, momentum=0.9)
    criterion = nn.CrossEntropyLoss()

    @compiled
    def train(images):
        output, target = model(im_q=images[0], im_k=images[1])
        loss = criterion(output, target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss.detach()

    for x, _ in blobs():
        yield train(crops(x)), model.ptr, model, optimizer


class BYOL(nn.Module):
    def __init__(self, net, moving_average_decay=0.9):
        super().__init__()
        self.online_encoder, self.online_predictor = net, mlp(4, 8, 4)
        self.target_encoder, self.decay = None, moving_average_decay

    def get_target_encoder(self):
        if self.target_encoder is None:
            self.target_encoder = copy.deepcopy(self.online_encoder).requires_grad_(False)
        return self.target_encoder

    @flow.no_grad()
    def update_moving_average(self):
        assert self.target_encoder is not None, "target encoder has not been created yet"
        online, target = self.online_encoder.parameters(), self.target_encoder.parameters()
        for current_params, ma_params in zip(online, target, strict=True):
            ma_params.mul_(self.decay).add_(current_params, alpha=1 - self.decay)

    def forward(self, one, two):
        preds = [self.online_predictor(self.online_encoder(x)) for x in (one, two)]
        with flow.no_grad():
            encoder = self.get_target_encoder()
            projs = [encoder(x).detach_() for x in (two, one)]
        losses = [
            2 - 2 * F.cosine_similarity(p, z, dim=-1) for p, z in zip(preds, projs, strict=True)
        ]
        return sum(losses).mean()


@program
def byol_moving_target(compiled):
    """a target network, deep-copied at the first step, that follows the online one inside it"""
    learner, crops = BYOL(mlp(4, 8, 4)), TwoCrops()
    opt = flow.optim.Adam(learner.parameters(), lr=3e-3)

    @compiled
    def step(one, two):
        loss = learner(one, two)
        opt.zero_grad()
        loss.backward()
        opt.step()
        learner.update_moving_average()
        return loss.detach()

    for x, _ in blobs():
        yield step(*crops(x)), learner, opt


@contextmanager
def evaluating(net):
    """Switch a network to evaluation, and back."""
    istrain = net.training
    try:
        net.eval()
        yield net
    finally:
        if istrain:
            net.train()


@program
def distillation(compiled):
    """a frozen teacher under no_grad in a context manager of one's own, soft and hard targets"""
    teacher, student = mlp(4, 16, 3, norm=nn.BatchNorm1d), mlp(4, 6, 3)
    optimizer = flow.optim.Adam(student.parameters(), lr=1e-2)
    params = {"alpha": 0.7, "temperature": 4.0}

    def loss_fn_kd(outputs, labels, teacher_outputs, params):
        alpha, T = params["alpha"], params["temperature"]
        soft = nn.KLDivLoss(reduction="batchmean")(
            F.log_softmax(outputs / T, dim=1), F.softmax(teacher_outputs / T, dim=1)
        )
        return soft * (alpha * T * T) + F.cross_entropy(outputs, labels) * (1.0 - alpha)

    @compiled
    def step(x, y):
        with flow.no_grad(), evaluating(teacher) as net:
            targets = net(x)
        outputs = student(x)
        loss = loss_fn_kd(outputs, y, targets, params)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss.item(), outputs.detach().max(1)[1].numpy()

    for x, y in blobs():
        loss, predicted = step(x, y)
        yield loss, predicted, (predicted == y.numpy()).mean(), teacher, student, optimizer


class MemoryBank(nn.Module):
    """A row for each example of a data set, drawn to the newest features."""

    def __init__(self, size, dim, momentum=0.5):
        super().__init__()
        stdv = 1.0 / math.sqrt(dim / 3)
        self.register_buffer("memory", flow.rand(size, dim).mul_(2 * stdv).add_(-stdv))
        self.momentum = momentum
        self.updates = 0

    def forward(self, features, idx, negatives):
        weight = self.memory[flow.cat([idx.unsqueeze(1), negatives], dim=1)]
        return flow.bmm(weight, features.unsqueeze(2)).squeeze(2)

    def update(self, features, idx):
        with flow.no_grad():
            old = self.memory.index_select(0, idx)
            new = old.mul_(self.momentum).add_(features * (1 - self.momentum))
            self.memory.index_copy_(0, idx, F.normalize(new, dim=1))
        self.updates += 1


@program
def memory_bank(compiled):
    """instance discrimination: rows of a memory bank are written in place, and writes counted"""
    net, bank = mlp(4, 8, 4), MemoryBank(16, 4)
    data = flow.randn(16, 4)
    optimizer = flow.optim.SGD(net.parameters(), lr=0.05, momentum=0.9, nesterov=True)

    @compiled
    def step(idx, negatives):
        features = F.normalize(net(data[idx]), p=2, dim=1)
        logits = bank(features, idx, negatives) / 0.1
        loss = F.cross_entropy(logits, flow.zeros(len(idx), dtype=flow.int64))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        bank.update(features, idx)
        return loss.detach()

    for _ in range(30):
        idx = flow.randperm(16)[:6]
        yield step(idx, flow.randint(0, 16, (6, 3))), bank.updates, bank, net, optimizer
