"""Images: models of an installed package, segmentation, sizes in rotation, mixup."""

import argparse
import itertools
import logging
from types import SimpleNamespace

import oneflow_lite as flow
from oneflow_lite import nn
from oneflow_lite.nn import functional as F
from tests.compiler.programs.kit import images, program

_logger = logging.getLogger("train")


@program
def package_resnet(compiled):
    """a residual network of an installed package, trained by a script's arguments"""
    from minivision import create_model
    from minivision.loss import LabelSmoothingCrossEntropy
    from minivision.metrics import AverageMeter, accuracy
    from minivision.optim import create_optimizer

    parser = argparse.ArgumentParser()
    parser.add_argument("--model", default="tiny_seresnet")
    parser.add_argument("--opt", default="nesterov")
    parser.add_argument("--lr", type=float, default=0.05)
    parser.add_argument("--weight-decay", type=float, default=1e-4)
    parser.add_argument("--clip-grad", type=float, default=None)
    parser.add_argument("--smoothing", type=float, default=0.1)
    args = parser.parse_args(["--clip-grad", "5.0"])
    model = create_model(args.model, num_classes=4, drop_path_rate=0.1)
    optimizer = create_optimizer(model, args.opt, args.lr, args.weight_decay)
    loss_fn = LabelSmoothingCrossEntropy(args.smoothing)
    losses, top1 = AverageMeter(), AverageMeter()

    @compiled
    def train_one_batch(input, target):
        output = model(input)
        loss = loss_fn(output, target)
        optimizer.zero_grad()
        loss.backward()
        if args.clip_grad is not None:
            nn.utils.clip_grad_norm_(model.parameters(), args.clip_grad)
        optimizer.step()
        return loss.detach(), accuracy(output.detach(), target, topk=(1, 2))

    for input, target in images(20):
        loss, (acc1, _) = train_one_batch(input, target)
        losses.update(loss.item(), input.size(0))
        top1.update(acc1.item(), input.size(0))
        yield loss, acc1, losses, top1, model, optimizer


@program
def package_vit(compiled):
    """a vision transformer of an installed package, compiled as a module"""
    from minivision import create_model
    from minivision.optim import create_optimizer

    model = create_model("tiny_vit", num_classes=4, drop_path_rate=0.2, global_pool="avg")
    optimizer = create_optimizer(model, "adamw", lr=1e-2, weight_decay=0.05)
    network = compiled(model)
    for x, y in images():
        loss = F.cross_entropy(network(x), y)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        yield loss, model, optimizer


@program
def package_fine_tuning(compiled):
    """a frozen backbone of an installed package under a head of one's own; validation too"""
    from minivision import create_model, list_models

    assert "tiny_resnet" in list_models("tiny")
    backbone = create_model("tiny_resnet")
    backbone.reset_classifier(0)
    for param in backbone.parameters():
        param.requires_grad = False
    head = nn.Linear(backbone.feature_info[-1]["num_chs"], 4)
    optimizer = flow.optim.Adam((p for p in head.parameters() if p.requires_grad), lr=0.05)

    @compiled
    def train_step(x, y):
        backbone.eval()
        with flow.no_grad():
            features = backbone(x)
        loss = F.cross_entropy(head(features), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss.item()

    @compiled
    @flow.no_grad()
    def validate(x, y):
        return (head(backbone(x)).argmax(dim=1) == y).float().mean().item()

    for x, y in images():
        yield train_step(x, y), validate(x, y), head, optimizer


class DoubleConv(nn.Module):
    def __init__(self, in_channels, out_channels):
        super().__init__()
        self.double_conv = nn.Sequential(
            nn.Conv2d(in_channels, out_channels, kernel_size=3, padding=1, bias=False),
            nn.BatchNorm2d(out_channels),
            nn.ReLU(inplace=True),
        )

    def forward(self, x):
        return self.double_conv(x)


class Up(nn.Module):
    def __init__(self, in_channels, out_channels):
        super().__init__()
        self.up = nn.Upsample(scale_factor=2, mode="nearest")
        self.conv = DoubleConv(in_channels, out_channels)

    def forward(self, x1, x2):
        x1 = self.up(x1)
        diff_y, diff_x = (x2.size()[i] - x1.size()[i] for i in (2, 3))
        pads = [diff_x // 2, diff_x - diff_x // 2, diff_y // 2, diff_y - diff_y // 2]
        return self.conv(flow.cat([x2, F.pad(x1, pads)], dim=1))


class UNet(nn.Module):
    def __init__(self, n_channels, n_classes, width=3, depth=2):
        super().__init__()
        widths = [width * 2**i for i in range(depth + 1)]
        self.inc = DoubleConv(n_channels, width)
        self.downs = nn.ModuleList(
            nn.Sequential(nn.MaxPool2d(2), DoubleConv(a, b)) for a, b in itertools.pairwise(widths)
        )
        self.ups = nn.ModuleList(Up(a + b, a) for a, b in itertools.pairwise(widths))
        self.outc = nn.Conv2d(width, n_classes, kernel_size=1)

    def forward(self, x):
        skips = [self.inc(x)]
        for down in self.downs:
            skips.append(down(skips[-1]))
        x = skips.pop()
        for up in reversed(self.ups):
            x = up(x, skips.pop())
        return self.outc(x)


def dice_loss(probs, target, eps=1e-6):
    dims = tuple(range(2, probs.ndim))
    inter = 2 * (probs * target).sum(dim=dims)
    sets = probs.sum(dim=dims) + target.sum(dim=dims)
    return 1 - ((inter + eps) / (sets + eps)).mean()


@program
def unet_segmentation(compiled):
    """a U-Net with a list of skips, an odd image size, and a dictionary of losses"""
    net = UNet(n_channels=1, n_classes=2)
    optimizer = flow.optim.RMSprop(net.parameters(), lr=1e-2, momentum=0.9)
    weights = {"ce": 1.0, "dice": 0.5}

    def train_step(image, mask):
        net.train()
        logits = net(image)
        onehot = F.one_hot(mask, 2).permute(0, 3, 1, 2).float()
        losses = {"ce": F.cross_entropy(logits, mask), "dice": dice_loss(logits.sigmoid(), onehot)}
        total = sum(weights[name] * loss for name, loss in losses.items())
        optimizer.zero_grad(set_to_none=True)
        total.backward()
        optimizer.step()
        return {name: loss.detach() for name, loss in losses.items()} | {"total": float(total)}

    train_step = compiled(train_step)
    for image, _ in images(20, batch=2, size=9, channels=1):
        yield train_step(image, (image[:, 0] > 1).long()), net, optimizer


@program(kinds=18)
def multi_scale(compiled):
    """a convolutional network on images of 18 sizes in rotation"""
    cfg = SimpleNamespace(base=6, sizes=18, widths=(3, 4, 6))
    layers = []
    for a, b in zip(cfg.widths, cfg.widths[1:], strict=False):
        layers += [nn.Conv2d(a, b, 3, padding="same"), nn.SiLU()]
    net = nn.Sequential(*layers, nn.AdaptiveAvgPool2d((1, 1)), nn.Flatten(), nn.Linear(6, 4))
    optimizer = flow.optim.SGD(net.parameters(), lr=0.05, momentum=0.9)

    @compiled
    def step(x, y):
        optimizer.zero_grad()
        loss = F.cross_entropy(net(x), y)
        loss.backward()
        optimizer.step()
        return loss.detach()

    for i, (_, y) in enumerate(images(3 * cfg.sizes, batch=2)):
        size = cfg.base + i % cfg.sizes
        yield step(flow.randn(2, 3, size, size), y), net, optimizer


@program
def mixup_and_smoothing(compiled):
    """mixup with soft targets and label smoothing, its share a tensor"""
    from minivision.loss import SoftTargetCrossEntropy

    net = nn.Sequential(nn.Flatten(), nn.Linear(192, 8), nn.ReLU(), nn.Linear(8, 4))
    optimizer = flow.optim.SGD(net.parameters(), lr=0.05, weight_decay=5e-4)
    criterion = SoftTargetCrossEntropy()
    beta = flow.distributions.Beta(0.4, 0.4)

    def soft(target, num_classes=4, smoothing=0.1):
        off = smoothing / num_classes
        return F.one_hot(target, num_classes) * (1 - smoothing) + off

    @compiled
    def train(inputs, targets, lam):
        y = soft(targets)
        mixed = inputs.lerp(inputs.flip(0), 1 - lam)
        loss = criterion(net(mixed), lam * y + (1 - lam) * y.flip(0))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if _logger.isEnabledFor(logging.DEBUG):
            _logger.debug("loss %.3f", loss.item())
        return loss.item()

    for inputs, targets in images():
        yield train(inputs, targets, beta.sample()), net, optimizer


@program
def einops_attention(compiled):
    """latents that look at patches: einops, installed for real, in a step that returns floats"""
    from einops import rearrange, reduce, repeat

    latents = nn.Parameter(flow.randn(3, 8))
    to_q, to_kv, head = nn.Linear(8, 8), nn.Linear(12, 16), nn.Linear(8, 4)
    net = nn.ModuleList([to_q, to_kv, head, nn.ParameterList([latents])])
    optimizer = flow.optim.RAdam(net.parameters(), lr=0.02)

    def attend(x, context, heads=2):
        k, v = to_kv(context).chunk(2, dim=-1)
        q, k, v = (rearrange(t, "b n (h d) -> b h n d", h=heads) for t in (to_q(x), k, v))
        sim = flow.einsum("bhid,bhjd->bhij", q, k) * q.shape[-1] ** -0.5
        return rearrange(sim.softmax(dim=-1) @ v, "b h n d -> b n (h d)")

    @compiled
    def step(images, labels):
        patches = rearrange(images, "b c (h p1) (w p2) -> b (h w) (p1 p2 c)", p1=2, p2=2)
        x = repeat(latents, "n d -> b n d", b=len(images))
        logits = head(reduce(x + attend(x, patches), "b n d -> b d", "mean"))
        loss = F.cross_entropy(logits, labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss.item(), logits.argmax(-1).tolist()

    for x, y in images():
        yield step(x, y), net, optimizer
