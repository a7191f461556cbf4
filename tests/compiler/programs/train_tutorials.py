"""Loops as tutorials write them: histories, meters, scalers, schedules, and batches of NumPy."""

import copy
import math
import random
from collections import deque

import numpy as np

import oneflow_lite as flow
from oneflow_lite import nn
from oneflow_lite.nn import functional as F
from tests.compiler.programs.kit import STEPS, blobs, curve, images, program, tokens
from tests.compiler.programs.train_loops import classifier


@program
def mlp_with_history(compiled):
    """a classifier whose step appends loss and accuracy to a history, a dict of lists"""
    net, criterion = classifier(16), nn.CrossEntropyLoss()
    optimizer = flow.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
    history = {"loss": [], "accuracy": []}

    @compiled
    def train_step(x, y):
        optimizer.zero_grad()
        logits = net(x)
        loss = criterion(logits, y)
        loss.backward()
        optimizer.step()
        history["loss"].append(loss.item())
        history["accuracy"].append((logits.argmax(1) == y).sum().item() / len(y))

    for x, y in blobs():
        train_step(x, y)
        yield history, net, optimizer


class AverageMeter:
    """Computes and stores the average and current value."""

    def __init__(self):
        self.reset()

    def reset(self):
        self.val = 0
        self.avg = 0
        self.sum = 0
        self.count = 0

    def update(self, val, n=1):
        self.val = val
        self.sum += val * n
        self.count += n
        self.avg = self.sum / self.count


@program
def convnet_with_meters(compiled):
    """a convolutional network; average meters for loss and accuracy are updated in the step"""
    net = nn.Sequential(
        nn.Conv2d(3, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Linear(64, 4),
    )  # fmt: skip
    optimizer = flow.optim.Adam(net.parameters(), lr=0.01)
    losses, top1 = AverageMeter(), AverageMeter()

    def accuracy(output, target):
        correct = output.topk(1)[1].t().eq(target.reshape(1, -1))
        return correct.reshape(-1).float().sum() * (100.0 / target.size(0))

    @compiled
    def train(x, y):
        output = net(x)
        loss = F.cross_entropy(output, y)
        losses.update(loss.item(), x.size(0))
        top1.update(accuracy(output, y).item(), x.size(0))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    for x, y in images():
        train(x, y)
        yield vars(losses), vars(top1), net, optimizer


@program(kinds=2)
def language_model_with_warmup(compiled):
    """a transformer: clipped gradients, and a cosine schedule that is set inside by a counter"""

    class Trainer:
        def __init__(self):
            self.embed, self.head = nn.Embedding(11, 8), nn.Linear(8, 11)
            layer = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.1, batch_first=True)
            self.model = nn.ModuleList([self.embed, layer, self.head])
            self.optimizer = flow.optim.AdamW(self.model.parameters(), lr=0.01)
            self.iteration, self.warmup, self.total = 0, 5, STEPS

        def learning_rate(self):
            if self.iteration < self.warmup:
                return 0.01 * (self.iteration + 1) / self.warmup
            done = (self.iteration - self.warmup) / (self.total - self.warmup)
            return 0.001 + 0.5 * (1.0 + math.cos(math.pi * done)) * 0.009

        @compiled
        def step(self, x, y):
            lr = self.learning_rate()
            for group in self.optimizer.param_groups:
                group["lr"] = lr
            logits = self.head(self.model[1](self.embed(x)))
            loss = F.cross_entropy(logits.flatten(0, 1), y.flatten())
            self.optimizer.zero_grad(set_to_none=True)
            loss.backward()
            norm = nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
            self.optimizer.step()
            self.iteration += 1
            return {"loss": loss.item(), "norm": norm.item(), "lr": lr}

    trainer = Trainer()
    for x, y in tokens():
        yield trainer.step(x, y), trainer.iteration, trainer.model, trainer.optimizer


@program
def mixed_precision(compiled):
    """autocast and a gradient scaler, whose update lowers the scale at a batch that overflows"""
    net = classifier()
    optimizer = flow.optim.SGD(net.parameters(), lr=0.05, momentum=0.9)
    scaler = flow.amp.GradScaler("cpu", init_scale=256.0)

    @compiled
    def train_step(x, y):
        optimizer.zero_grad()
        with flow.autocast("cpu", dtype=flow.float16):
            loss = F.cross_entropy(net(x), y)
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()
        return loss.item()

    for i, (x, y) in enumerate(blobs(60)):
        loss = train_step(x * 3e38 if i == 20 else x, y)
        momenta = [state["momentum_buffer"].tolist() for state in optimizer.state.values()]
        # Not the tensors: a step that is left out in a replay counts its writes.
        yield loss, scaler.state_dict(), momenta, [p.tolist() for p in net.parameters()]


@program
def lbfgs_curve_fit(compiled):
    """a curve is fitted by L-BFGS with a line search, which calls a compiled closure"""
    net = nn.Sequential(nn.Linear(2, 6), nn.Tanh(), nn.Linear(6, 1))
    optimizer = flow.optim.LBFGS(net.parameters(), max_iter=4, line_search_fn="strong_wolfe")
    x, y = next(curve(1, batch=16))

    @compiled
    def closure():
        optimizer.zero_grad()
        loss = F.mse_loss(net(x), y)
        loss.backward()
        return loss

    for _ in range(8):
        loss = optimizer.step(closure)
        yield loss.detach(), net, optimizer


@program
def batches_of_numpy(compiled):
    """a step that is given a dict of NumPy arrays and makes tensors of them, scaled and cast"""
    net = classifier()
    optimizer = flow.optim.Adam(net.parameters(), lr=0.02)
    rng = np.random.default_rng(0)
    mean, std = 127.5, 64.0

    @compiled
    def train_step(batch):
        x = flow.from_numpy(batch["data"].astype(np.float32)).sub(mean).div(std)
        y = flow.tensor(batch["label"], dtype=flow.int64)
        weight = flow.as_tensor(batch["weight"])
        loss = (F.cross_entropy(net(x), y, reduction="none") * weight).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss.item()

    for _ in range(STEPS):
        data, label = rng.integers(0, 256, (8, 4)).astype(np.uint8), rng.integers(0, 3, 8)
        batch = {"data": data, "label": label, "weight": rng.random(8, dtype=np.float32)}
        yield train_step(batch), net, optimizer


@program
def early_stopping(compiled):
    """a running mean and the best loss in Python; whether to stop is decided outside the step"""
    net, state = classifier(), {"running": 0.0, "best": float("inf"), "seen": 0}
    optimizer = flow.optim.RMSprop(net.parameters(), lr=0.01)

    @compiled
    def train_step(x, y):
        optimizer.zero_grad()
        loss = F.cross_entropy(net(x), y)
        loss.backward()
        optimizer.step()
        state["running"] = 0.9 * state["running"] + 0.1 * loss.item()
        state["best"] = min(state["best"], loss.item())
        state["seen"] += x.size(0)
        return loss.item()

    bad, best = 0, math.inf
    for x, y in blobs():
        loss = train_step(x, y)
        best, bad = (state["best"], 0) if state["best"] < best else (best, bad + 1)
        yield loss, bad, state, net, optimizer


@program
def averaged_weights(compiled):
    """an exponential moving average of the weights, updated in the step, with a count of updates"""

    class ModelEMA:
        def __init__(self, model, decay):
            self.module, self.decay, self.updates = copy.deepcopy(model), decay, 0

        def update(self, model):
            self.updates += 1
            with flow.no_grad():
                pairs = zip(self.module.parameters(), model.parameters(), strict=True)
                for ours, theirs in pairs:
                    ours.mul_(self.decay).add_(theirs, alpha=1 - self.decay)

    net = classifier()
    ema = ModelEMA(net, 0.95)
    optimizer = flow.optim.SGD(net.parameters(), lr=0.1)

    @compiled
    def train_step(x, y):
        loss = F.cross_entropy(net(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        ema.update(net)
        return loss.item()

    for x, y in blobs():
        yield train_step(x, y), ema.updates, ema.module, net, optimizer


@program(kinds=4)
def accumulation_with_a_counter(compiled):
    """gradients of four batches are accumulated; the losses are summed up in a float outside"""

    class State:
        micro_step, running_loss = 0, 0.0

    net, accumulate, state, logged = classifier(), 4, State(), []
    optimizer = flow.optim.Adam(net.parameters(), lr=0.02)

    @compiled
    def micro_batch(x, y):
        loss = F.cross_entropy(net(x), y) / accumulate
        loss.backward()
        state.running_loss += loss.item()
        state.micro_step += 1
        if state.micro_step % accumulate == 0:
            optimizer.step()
            optimizer.zero_grad()
            logged.append(state.running_loss)
            state.running_loss = 0.0

    for x, y in blobs(44):
        micro_batch(x, y)
        yield state.micro_step, state.running_loss, logged, net, optimizer


@program
def gan_with_losses_in_lists(compiled):
    """a generative adversarial network, in one step that keeps both losses and D(x) in lists"""
    netG = nn.Sequential(nn.Linear(3, 8), nn.ReLU(), nn.Linear(8, 2))
    netD = nn.Sequential(nn.Linear(2, 8), nn.LeakyReLU(0.2), nn.Linear(8, 1), nn.Sigmoid())
    optimizerG = flow.optim.Adam(netG.parameters(), lr=0.01, betas=(0.5, 0.999))
    optimizerD = flow.optim.Adam(netD.parameters(), lr=0.01, betas=(0.5, 0.999))
    criterion, G_losses, D_losses, scores = nn.BCELoss(), [], [], []

    @compiled
    def step(real):
        netD.zero_grad()
        label = flow.full((real.size(0),), 1.0)
        output = netD(real).view(-1)
        errD_real = criterion(output, label)
        errD_real.backward()
        D_x = output.mean().item()
        fake = netG(flow.randn(real.size(0), 3))
        label.fill_(0.0)
        output = netD(fake.detach()).view(-1)
        errD_fake = criterion(output, label)
        errD_fake.backward()
        D_G_z1 = output.mean().item()
        errD = errD_real + errD_fake
        optimizerD.step()
        netG.zero_grad()
        label.fill_(1.0)
        errG = criterion(netD(fake).view(-1), label)
        errG.backward()
        optimizerG.step()
        G_losses.append(errG.item())
        D_losses.append(errD.item())
        scores.append((D_x, D_G_z1))

    for x, _ in curve():
        step(x)
        yield G_losses, D_losses, scores, netG, netD, optimizerG, optimizerD


@program
def vae_with_kl_history(compiled):
    """a variational autoencoder: both parts of the loss go to lists, annealed by an int argument"""
    encoder, decoder = nn.Linear(4, 6), nn.Linear(3, 4)
    net = nn.ModuleList([encoder, decoder])
    optimizer = flow.optim.Adam(net.parameters(), lr=0.02)
    history = {"reconstruction": [], "kl": [], "total": 0.0}

    @compiled
    def train_step(x, beta):
        mu, logvar = encoder(x).chunk(2, dim=1)
        z = mu + flow.randn_like(mu) * (0.5 * logvar).exp()
        reconstruction = F.mse_loss(decoder(z), x, reduction="sum")
        kl = -0.5 * flow.sum(1 + logvar - mu.pow(2) - logvar.exp())
        loss = reconstruction + beta * kl
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        history["reconstruction"].append(reconstruction.item() / len(x))
        history["kl"].append(kl.item() / len(x))
        history["total"] += loss.item()

    for i, (x, _) in enumerate(blobs()):
        train_step(x, flow.tensor(min(1.0, i / 10)))
        yield history, net, optimizer


@program
def dqn_with_replay_buffer(compiled):
    """a Q-network learns from a replay buffer of NumPy arrays, given as a tuple of stacked ones"""
    policy = nn.Sequential(nn.Linear(3, 8), nn.ReLU(), nn.Linear(8, 2))
    target = copy.deepcopy(policy)
    optimizer = flow.optim.AdamW(policy.parameters(), lr=0.01, amsgrad=True)
    memory, losses = deque(maxlen=50), deque(maxlen=10)

    @compiled
    def optimize(states, actions, rewards, next_states, dones):
        state, next_state = flow.from_numpy(states), flow.from_numpy(next_states)
        action = flow.from_numpy(actions).long().unsqueeze(1)
        reward, done = flow.tensor(rewards), flow.tensor(dones.astype(np.float32))
        q = policy(state).gather(1, action).squeeze(1)
        with flow.no_grad():
            expected = reward + 0.9 * (1 - done) * target(next_state).max(1)[0]
        loss = F.smooth_l1_loss(q, expected)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_value_(policy.parameters(), 100)
        optimizer.step()
        losses.append(loss.item())
        for ours, theirs in zip(target.parameters(), policy.parameters(), strict=True):
            ours.data.copy_(0.95 * ours.data + 0.05 * theirs.data)

    state = np.random.randn(3).astype(np.float32)
    for i in range(STEPS + 8):
        action, after = random.randrange(2), np.random.randn(3).astype(np.float32)
        memory.append((state, action, np.float32(after.sum()), after, i % 9 == 8))
        state = after
        if len(memory) < 8:
            continue
        s, a, r, s2, d = zip(*random.sample(memory, 8), strict=True)
        optimize(np.stack(s), np.array(a), np.array(r), np.stack(s2), np.array(d))
        yield losses, policy, target, optimizer


@program
def lstm_text(compiled):
    """a character LSTM: its hidden state is handed on by the caller, losses are smoothed outside"""
    embed, lstm, head = nn.Embedding(11, 6), nn.LSTM(6, 8, batch_first=True), nn.Linear(8, 11)
    net = nn.ModuleList([embed, lstm, head])
    optimizer = flow.optim.Adam(net.parameters(), lr=0.02)
    total, smooth = 0, None

    @compiled
    def train_step(x, y, hidden):
        nonlocal total, smooth
        hidden = tuple(h.detach() for h in hidden)
        output, hidden = lstm(embed(x), hidden)
        loss = F.cross_entropy(head(output).reshape(-1, 11), y.reshape(-1))
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(net.parameters(), 5)
        optimizer.step()
        value = loss.item()
        smooth = value if smooth is None else smooth * 0.99 + value * 0.01
        total += x.numel()
        return hidden

    hidden = (flow.zeros(1, 4, 8), flow.zeros(1, 4, 8))
    for x, y in tokens():
        hidden = train_step(x, y, hidden)
        yield hidden, total, smooth, net, optimizer


@program
def siamese_triplets(compiled):
    """an embedding learned from triplets; the share of easy ones is counted in ints outside"""
    net, stats = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3)), {}
    optimizer = flow.optim.Adam(net.parameters(), lr=0.02)
    stats.update(loss=0.0, easy=0, n=0)

    @compiled
    def train_step(anchor, positive, negative):
        optimizer.zero_grad()
        a, p, n = net(anchor), net(positive), net(negative)
        loss = F.triplet_margin_loss(a, p, n, margin=1.0)
        loss.backward()
        optimizer.step()
        easy = F.pairwise_distance(a, p) + 1.0 < F.pairwise_distance(a, n)
        stats["loss"] += loss.item() * anchor.size(0)
        stats["easy"] += easy.sum().item()
        stats["n"] += anchor.size(0)
        return stats["loss"] / stats["n"]

    for x, _ in blobs():
        yield train_step(x, x + 0.1 * flow.randn(8, 4), x.flip(0)), stats, net, optimizer


@program
def autoencoder_with_progress(compiled):
    """an autoencoder that prints a progress line in its step, with the loss in it"""
    net = nn.Sequential(nn.Linear(4, 2), nn.ReLU(), nn.Linear(2, 4))
    optimizer = flow.optim.Adam(net.parameters(), lr=0.02)

    @compiled
    def train_step(i, x):
        loss = F.mse_loss(net(x), x)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(f"\r{i}/{STEPS}: loss {loss.item():.4f}", end="")

    for i, (x, _) in enumerate(blobs(STEPS // 2)):
        train_step(i, x)
        yield net, optimizer


@program
def multi_task_losses(compiled):
    """two heads, weighted losses by name; a dict of floats is returned, a list of dicts kept"""
    trunk = nn.Sequential(nn.Linear(4, 8), nn.ReLU())
    heads = nn.ModuleDict({"kind": nn.Linear(8, 3), "size": nn.Linear(8, 1)})
    net = nn.ModuleList([trunk, heads])
    optimizer = flow.optim.SGD(net.parameters(), lr=0.02)
    weights, log = {"kind": 1.0, "size": 0.5}, []

    @compiled
    def train_step(x, targets):
        features = trunk(x)
        losses = {
            "kind": F.cross_entropy(heads["kind"](features), targets["kind"]),
            "size": F.mse_loss(heads["size"](features).squeeze(1), targets["size"]),
        }
        loss = sum(weights[name] * losses[name] for name in losses)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        values = {f"loss/{name}": value.item() for name, value in losses.items()}
        values["loss/total"] = loss.item()
        log.append(values)
        return values

    for x, y in blobs():
        yield train_step(x, {"kind": y, "size": x.norm(dim=1)}), log, net, optimizer


@program
def warmup_by_an_argument(compiled):
    """a learning rate that warms up, computed of the step's number and set in the step"""
    net, base_lr, warmup = classifier(), 0.1, 10
    optimizer = flow.optim.SGD(net.parameters(), lr=base_lr, momentum=0.9)
    rates = []

    @compiled
    def train_step(step, x, y):
        lr = base_lr * min(1.0, (step + 1) / warmup)
        for g in optimizer.param_groups:
            g["lr"] = lr
        optimizer.zero_grad()
        loss = F.cross_entropy(net(x), y)
        loss.backward()
        optimizer.step()
        rates.append(lr)
        return loss.item()

    for step, (x, y) in enumerate(blobs()):
        yield train_step(step, x, y), rates, net, optimizer


@program
def stochastic_weight_averaging(compiled):
    """an averaged model, and a schedule that both take their step inside the compiled step"""
    net = classifier()
    swa_model = flow.optim.swa_utils.AveragedModel(net)
    optimizer = flow.optim.SGD(net.parameters(), lr=0.1)
    scheduler = flow.optim.lr_scheduler.StepLR(optimizer, step_size=20, gamma=0.5)

    @compiled
    def train_step(x, y):
        optimizer.zero_grad()
        loss = F.cross_entropy(net(x), y)
        loss.backward()
        optimizer.step()
        swa_model.update_parameters(net)
        scheduler.step()
        return loss.item()

    for x, y in blobs():
        yield train_step(x, y), swa_model, scheduler, net, optimizer


@program
def distillation_with_temperature(compiled):
    """a student learns from a teacher's softened scores; three losses go to lists in a dict"""
    teacher, student, T, alpha = classifier(32), classifier(4), 4.0, 0.25
    optimizer = flow.optim.Adam(student.parameters(), lr=0.02)
    losses = {name: [] for name in ("soft", "hard", "total")}

    @compiled
    def train_step(x, y):
        with flow.no_grad():
            soft_targets = F.softmax(teacher(x) / T, dim=-1)
        logits = student(x)
        soft_prob = F.log_softmax(logits / T, dim=-1)
        soft = (soft_targets * (soft_targets.log() - soft_prob)).sum() / x.size(0) * T**2
        hard = F.cross_entropy(logits, y)
        loss = alpha * soft + (1 - alpha) * hard
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        for name, value in zip(losses, (soft, hard, loss), strict=True):
            losses[name].append(value.item())

    for x, y in blobs():
        train_step(x, y)
        yield losses, student, optimizer


@program
def regression_from_scratch(compiled):
    """a line is fitted with w.data -= lr * w.grad; the history is a list of tuples of floats"""
    w, b = flow.zeros(2, 1, requires_grad=True), flow.zeros(1, requires_grad=True)
    lr, history = 0.1, []

    @compiled
    def train_step(x, y):
        loss = ((x @ w + b - y) ** 2).mean()
        loss.backward()
        w.data -= lr * w.grad
        b.data -= lr * b.grad
        w.grad.zero_()
        b.grad.zero_()
        history.append((loss.item(), b.item()))

    for x, y in curve():
        train_step(x, y)
        yield history, w, b
