"""Loops around steps: trainers, callbacks, accumulation, early stopping, timers, bad batches."""

import copy
import logging
import math
import time
import warnings
from collections import defaultdict
from contextlib import contextmanager

import oneflow_lite as flow
from oneflow_lite import nn
from oneflow_lite.nn import functional as F
from oneflow_lite.optim import lr_scheduler
from tests.compiler.programs.kit import STEPS, blobs, curve, program

logger = logging.getLogger(__name__)


def classifier(hidden=8):
    """Build a network for `blobs`."""
    return nn.Sequential(nn.Linear(4, hidden), nn.ReLU(), nn.Linear(hidden, 3))


class LightningModule(nn.Module):
    """A base class whose methods a training script overrides."""

    def __init__(self):
        super().__init__()
        self.trainer, self.logged, self.global_step = None, {}, 0

    def log(self, name, value, prog_bar=False):
        self.logged[name] = value.detach() if isinstance(value, flow.Tensor) else value

    def on_train_batch_start(self, batch, batch_idx):
        pass

    def on_before_optimizer_step(self, optimizer):
        pass

    def on_train_batch_end(self, outputs, batch, batch_idx):
        pass


class Trainer:
    """Runs the hooks of a module, and those of callbacks, around its steps."""

    def __init__(self, max_steps, callbacks=(), gradient_clip_val=None, compiled=None):
        self.max_steps, self.callbacks, self.gradient_clip_val = (
            max_steps,
            list(callbacks),
            gradient_clip_val,
        )
        self.run_batch = compiled(self.run_batch)

    def call(self, hook, *args):
        for callback in self.callbacks:
            if (function := getattr(callback, hook, None)) is not None:
                function(self, self.module, *args)
        getattr(self.module, hook)(*args)

    def run_batch(self, batch):
        result = self.module.training_step(batch, 0)
        loss = result["loss"] if isinstance(result, dict) else result
        self.optimizer.zero_grad()
        loss.backward()
        if self.gradient_clip_val is not None:
            nn.utils.clip_grad_norm_(self.module.parameters(), self.gradient_clip_val)
        self.call("on_before_optimizer_step", self.optimizer)
        self.optimizer.step()
        return {"loss": loss.detach()}

    def fit(self, module, loader):
        self.module, module.trainer = module, self
        self.optimizer, self.schedulers = module.configure_optimizers()
        module.train()
        for batch_idx, batch in zip(range(self.max_steps), loader, strict=False):
            self.call("on_train_batch_start", batch, batch_idx)
            outputs = self.run_batch(batch)
            module.global_step += 1
            for scheduler in self.schedulers:
                scheduler.step()
            self.call("on_train_batch_end", outputs, batch, batch_idx)
            yield outputs


class GradNorms:
    """A callback that keeps the gradients' norms of the last step."""

    def __init__(self):
        self.norms = {}

    def on_before_optimizer_step(self, trainer, module, optimizer):
        named = [(name, p) for name, p in module.named_parameters() if p.grad is not None]
        self.norms = {f"grad_norm/{name}": p.grad.norm() for name, p in named}


@program
def lightning_like(compiled):
    """a trainer with hooks and callbacks: self.log keeps tensors in a dict, a callback norms"""

    class LitClassifier(LightningModule):
        def __init__(self, lr=0.05):
            super().__init__()
            self.lr, self.net = lr, classifier()

        def forward(self, x):
            return self.net(x)

        def training_step(self, batch, batch_idx):
            x, y = batch
            logits = self(x)
            loss = F.cross_entropy(logits, y)
            self.log("train_loss", loss, prog_bar=True)
            self.log("train_acc", (logits.argmax(1) == y).float().mean())
            return {"loss": loss}

        def configure_optimizers(self):
            optimizer = flow.optim.SGD(self.parameters(), lr=self.lr, momentum=0.9)
            return optimizer, [lr_scheduler.ExponentialLR(optimizer, 0.97)]

    norms, model = GradNorms(), LitClassifier()
    trainer = Trainer(STEPS, [norms], gradient_clip_val=1.0, compiled=compiled)
    for outputs in trainer.fit(model, blobs()):
        yield outputs, model, model.logged, norms.norms, trainer.optimizer


class Metric:
    """A sum over batches, and how many there were, as tensors."""

    def __init__(self):
        self.reset()

    def reset(self):
        self.total, self.count = flow.tensor(0.0), flow.tensor(0)

    def update(self, values):
        self.total = self.total + values.detach().sum()
        self.count += values.numel()

    def compute(self):
        return self.total / self.count.clamp(min=1)


@program
def metric_objects(compiled):
    """metrics that are updated inside the step, rebound or in place, and reset after each epoch"""
    net = classifier()
    optimizer = flow.optim.Adam(net.parameters(), lr=0.02)
    metrics = {"loss": Metric(), "accuracy": Metric()}

    @compiled
    def step(x, y):
        logits = net(x)
        loss = F.cross_entropy(logits, y, reduction="none")
        optimizer.zero_grad()
        loss.mean().backward()
        optimizer.step()
        metrics["loss"].update(loss)
        metrics["accuracy"].update((logits.argmax(-1) == y).float())

    for i, (x, y) in enumerate(blobs()):
        step(x, y)
        yield {name: metric.compute() for name, metric in metrics.items()}, net, optimizer
        if i % 10 == 9:
            for metric in metrics.values():
                metric.reset()


@program(kinds=4)
def gradient_accumulation(compiled):
    """gradients of four batches before each update, by an int that counts the steps up"""
    net, accumulation_steps = classifier(), 4
    optimizer = flow.optim.AdamW(net.parameters(), lr=0.02)

    @compiled
    def train_step(i, x, y):
        loss = F.cross_entropy(net(x), y) / accumulation_steps
        loss.backward()
        if (i + 1) % accumulation_steps == 0:
            nn.utils.clip_grad_norm_(net.parameters(), 1.0)
            optimizer.step()
            optimizer.zero_grad()
        return loss.detach() * accumulation_steps

    for i, (x, y) in enumerate(blobs(44)):
        yield train_step(i, x, y), net, optimizer


class EarlyStopping:
    """Stops when a loss has not become smaller for a while; keeps the best weights."""

    def __init__(self, patience=3, min_delta=0.0):
        self.patience, self.min_delta = patience, min_delta
        self.counter, self.best, self.best_state, self.stop = 0, math.inf, None, False

    def __call__(self, value, model):
        if value < self.best - self.min_delta:
            self.best, self.counter = value, 0
            self.best_state = copy.deepcopy(model.state_dict())
        else:
            self.counter += 1
            self.stop = self.counter >= self.patience
        return self.stop


@program
def k_fold_early_stopping(compiled):
    """three folds, each with a new model and step; validation, plateaus, patience, best weights"""
    x, y = next(iter(blobs(1, batch=24)))
    indices = flow.randperm(24).reshape(3, 8)
    scores = []
    for fold in range(3):
        train_idx = flow.cat([indices[k] for k in range(3) if k != fold])
        model = classifier()
        optimizer = flow.optim.Rprop(model.parameters(), lr=0.01)
        scheduler = lr_scheduler.ReduceLROnPlateau(optimizer, factor=0.5, patience=2)
        stopper = EarlyStopping()

        @compiled
        def train_epoch(idx):
            model.train()
            optimizer.zero_grad()
            loss = F.cross_entropy(model(x[idx]), y[idx])
            loss.backward()
            optimizer.step()
            return loss.detach()

        @compiled
        def validate(idx):
            model.eval()
            with flow.inference_mode():
                return F.cross_entropy(model(x[idx]), y[idx])

        for _ in range(15):
            loss, val_loss = train_epoch(train_idx), validate(indices[fold])
            scheduler.step(val_loss)
            stop = stopper(val_loss.item(), model)
            yield loss, val_loss, stopper, scheduler.state_dict(), model, optimizer
            if stop:  # go on from the best weights, with new patience
                model.load_state_dict(stopper.best_state)
                stopper.counter = 0
        scores.append(stopper.best)
        yield scores


@program(kinds=20)
def ensemble_of_twenty(compiled):
    """twenty instances of one class take turns in one compiled method"""

    class Member:
        def __init__(self, seed):
            flow.manual_seed(seed)
            self.net = nn.Sequential(nn.Linear(2, 4), nn.Tanh(), nn.Linear(4, 1))
            self.optimizer = flow.optim.SGD(self.net.parameters(), lr=0.05)

        @compiled
        def fit(self, x, y):
            self.optimizer.zero_grad()
            loss = F.mse_loss(self.net(x), y)
            loss.backward()
            self.optimizer.step()
            return loss.detach()

    members = [Member(seed) for seed in range(20)]
    for x, y in curve(4):
        for member in members:
            yield member.fit(x, y), member.net, member.optimizer


@program
def timer_inside(compiled):
    """a step that looks at the clock: no replay can"""
    net, times = classifier(), defaultdict(list)
    optimizer = flow.optim.SGD(net.parameters(), lr=0.05)

    @contextmanager
    def timer(name):
        start = time.perf_counter()
        yield
        times[name].append(time.perf_counter() - start)

    @compiled
    def step(x, y):
        with timer("forward"):
            loss = F.cross_entropy(net(x), y)
        with timer("backward"):
            optimizer.zero_grad()
            loss.backward()
        optimizer.step()
        return loss.detach()

    for x, y in blobs(STEPS // 2):
        yield step(x, y), {name: len(each) for name, each in times.items()}, net, optimizer


class EMA:
    """A moving average of parameters that can stand in for them for a while."""

    def __init__(self, parameters, decay):
        self.parameters, self.decay, self.num_updates = list(parameters), decay, 0
        self.shadow = [p.clone().detach() for p in self.parameters]
        self.collected = []

    def update(self):
        self.num_updates += 1
        decay = min(self.decay, (1 + self.num_updates) / (10 + self.num_updates))
        with flow.no_grad():
            for s, p in zip(self.shadow, self.parameters, strict=True):
                s.sub_((1.0 - decay) * (s - p))

    @contextmanager
    def average_parameters(self):
        self.collected = [p.clone() for p in self.parameters]
        for s, p in zip(self.shadow, self.parameters, strict=True):
            p.data.copy_(s.data)
        try:
            yield
        finally:
            for c, p in zip(self.collected, self.parameters, strict=True):
                p.data.copy_(c.data)


@program
def weight_average_swapped_in(compiled):
    """a moving average of weights, updated outside and swapped in for a compiled validation"""
    net = classifier()
    optimizer = flow.optim.SGD(net.parameters(), lr=0.05, momentum=0.9)
    ema = EMA(net.parameters(), decay=0.9)

    @compiled
    def train_step(x, y):
        optimizer.zero_grad(set_to_none=False)
        loss = F.cross_entropy(net(x), y)
        loss.backward()
        optimizer.step()
        return loss.detach()

    @compiled
    def validate(x, y):
        with flow.no_grad(), ema.average_parameters():
            return F.cross_entropy(net(x), y)

    for x, y in blobs():
        loss = train_step(x, y)
        ema.update()
        yield loss, validate(x, y), ema.shadow, ema.num_updates, net, optimizer


@program
def scheduler_inside(compiled):
    """a learning rate that is computed and set inside the step: other Python numbers every time"""
    net = classifier()
    optimizer = flow.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
    scheduler = lr_scheduler.CosineAnnealingLR(optimizer, T_max=STEPS)

    @compiled
    def step(x, y):
        loss = F.cross_entropy(net(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        scheduler.step()
        return loss.item(), scheduler.get_last_lr()[0]

    for x, y in blobs(STEPS // 2):
        yield step(x, y), net, optimizer, scheduler


@program
def debug_print_on_a_bad_batch(compiled):
    """a branch that prints and warns, taken for one batch in forty; logging that is switched off"""
    net = classifier()
    optimizer = flow.optim.Adam(net.parameters(), lr=0.02)

    @compiled
    def step(x, y, valid=True):
        logits = net(x)
        logger.debug("batch of %d, logits %s", len(x), logits.shape)
        if not valid:
            print(f"bad batch: {tuple(x.shape)} {x.dtype}, logits {logits.mean().item():.4f}")
            warnings.warn("skipping a batch", UserWarning, stacklevel=2)
            return None
        loss = F.cross_entropy(logits, y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss.detach()

    for i, (x, y) in enumerate(blobs(40)):
        yield step(x, y, valid=i != 12), net, optimizer


@program
def skip_what_raises(compiled):
    """a try around the loss; one batch has labels of another length, and is left out"""
    net, skipped = classifier(), []
    optimizer = flow.optim.Adam(net.parameters(), lr=0.02)

    @compiled
    def step(x, y):
        optimizer.zero_grad()
        try:
            loss = F.cross_entropy(net(x), y)
        except (RuntimeError, ValueError) as e:
            skipped.append(type(e).__name__)
            return None
        loss.backward()
        optimizer.step()
        return loss.detach()

    for i, (x, y) in enumerate(blobs(40)):
        yield step(x, y[:-1] if i == 20 else y), skipped, net, optimizer


@program
def skip_what_is_not_finite(compiled):
    """a loss scaler that looks at the gradients' values and skips an update: Python decides"""
    net = classifier()
    optimizer = flow.optim.SGD(net.parameters(), lr=0.05)
    scaler = {"scale": 4.0, "growth": 0}

    @compiled
    def step(x, y):
        loss = F.cross_entropy(net(x), y)
        optimizer.zero_grad()
        (loss * scaler["scale"]).backward()
        found_inf = any(not flow.isfinite(p.grad).all() for p in net.parameters())
        if found_inf:
            scaler["scale"] /= 2
        else:
            for p in net.parameters():
                p.grad.div_(scaler["scale"])
            optimizer.step()
        return loss.item()

    for i, (x, y) in enumerate(blobs(STEPS // 2)):
        yield step(x * math.inf if i == 9 else x, y), scaler, net, optimizer
