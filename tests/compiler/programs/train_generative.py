"""Models that make data: adversaries, autoencoders, flows, diffusion, energies, pictures."""

import copy
import math
from collections import namedtuple

import numpy as np

import oneflow_lite as flow
from oneflow_lite import nn
from oneflow_lite.nn import functional as F
from tests.compiler.programs.kit import blobs, images, program


class AttrDict(dict):
    """A dict whose keys are attributes, too."""

    def __getattr__(self, name):
        try:
            return self[name]
        except KeyError:
            raise AttributeError(name) from None

    def __setattr__(self, name, value):
        self[name] = value


def weights_init(m):
    classname = m.__class__.__name__
    if classname.find("Conv") != -1:
        nn.init.normal_(m.weight, 0.0, 0.02)
    elif classname.find("BatchNorm") != -1:
        nn.init.normal_(m.weight, 1.0, 0.02)
        nn.init.constant_(m.bias, 0)


@program
def dcgan_two_optimizers(compiled):
    """a convolutional GAN, both optimizers in one step, labels filled in place, five floats"""
    opt = AttrDict(nz=4, ngf=3, ndf=3, lr=2e-3, beta1=0.5)
    netG = nn.Sequential(
        nn.ConvTranspose2d(opt.nz, opt.ngf, 4, 1, 0, bias=False),
        nn.BatchNorm2d(opt.ngf),
        nn.ReLU(True),
        nn.ConvTranspose2d(opt.ngf, 3, 4, 2, 1, bias=False),
        nn.Tanh(),
    ).apply(weights_init)
    netD = nn.Sequential(
        nn.Conv2d(3, opt.ndf, 4, 2, 1, bias=False),
        nn.LeakyReLU(0.2, inplace=True),
        nn.Conv2d(opt.ndf, 1, 4, 1, 0, bias=False),
        nn.Flatten(0),
    ).apply(weights_init)
    criterion = nn.BCEWithLogitsLoss()
    real_label, fake_label = 1.0, 0.0
    optimizerD = flow.optim.Adam(netD.parameters(), lr=opt.lr, betas=(opt.beta1, 0.999))
    optimizerG = flow.optim.Adam(netG.parameters(), lr=opt.lr, betas=(opt.beta1, 0.999))

    @compiled
    def train_step(real, noise):
        netD.zero_grad()
        label = flow.full((real.size(0),), real_label, dtype=real.dtype)
        output = netD(real)
        errD_real = criterion(output, label)
        errD_real.backward()
        D_x = output.sigmoid().mean().item()
        fake = netG(noise)
        label.fill_(fake_label)
        output = netD(fake.detach())
        errD_fake = criterion(output, label)
        errD_fake.backward()
        D_G_z1 = output.sigmoid().mean().item()
        errD = errD_real + errD_fake
        optimizerD.step()
        netG.zero_grad()
        label.fill_(real_label)
        output = netD(fake)
        errG = criterion(output, label)
        errG.backward()
        D_G_z2 = output.sigmoid().mean().item()
        optimizerG.step()
        return errD.item(), errG.item(), D_x, D_G_z1, D_G_z2

    for real, _ in images():
        noise = flow.randn(real.size(0), opt.nz, 1, 1)
        yield train_step(real, noise), netG, netD, optimizerG, optimizerD


def gradient_penalty(critic, real, fake, center=1.0):
    alpha = flow.rand(real.size(0), *(1 for _ in range(real.dim() - 1)))
    interpolates = (alpha * real + (1 - alpha) * fake).requires_grad_(True)
    scores = critic(interpolates)
    gradients = flow.autograd.grad(
        outputs=scores,
        inputs=interpolates,
        grad_outputs=flow.ones_like(scores),
        create_graph=True,
        retain_graph=True,
    )[0]
    return ((gradients.view(real.size(0), -1).norm(2, dim=1) - center) ** 2).mean()


@program
def wgan_gradient_penalty(compiled):
    """a Wasserstein GAN with a gradient penalty; the generator has its turn every second time"""
    generator = nn.Sequential(nn.Linear(2, 8), nn.ReLU(), nn.Linear(8, 4))
    critic = nn.Sequential(nn.Linear(4, 8), nn.LeakyReLU(0.2), nn.Linear(8, 1))
    opt_g, opt_c = (flow.optim.Adam(m.parameters(), 1e-2, (0.0, 0.9)) for m in (generator, critic))

    @compiled
    def critic_step(real, lambda_gp=10):
        fake = generator(flow.randn(len(real), 2)).detach()
        loss = critic(fake).mean() - critic(real).mean()
        loss = loss + lambda_gp * gradient_penalty(critic, real, fake)
        opt_c.zero_grad()
        loss.backward()
        opt_c.step()
        return loss.item()

    @compiled
    def generator_step(batch_size):
        for p in critic.parameters():
            p.requires_grad_(False)
        loss = -critic(generator(flow.randn(batch_size, 2))).mean()
        opt_g.zero_grad()
        loss.backward()
        opt_g.step()
        for p in critic.parameters():
            p.requires_grad_(True)
        return loss.item()

    for i, (real, _) in enumerate(blobs()):
        losses = [critic_step(real)]
        if i % 2:
            losses.append(generator_step(real.shape[0]))
        yield losses, generator, critic, opt_g, opt_c


VAEOutput = namedtuple("VAEOutput", ["recon", "mu", "logvar"])


class VAE(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.cfg = cfg
        self.fc1 = nn.Linear(cfg.input_dim, cfg.hidden)
        self.fc21, self.fc22 = nn.Linear(cfg.hidden, cfg.latent), nn.Linear(cfg.hidden, cfg.latent)
        self.fc3, self.fc4 = nn.Linear(cfg.latent, cfg.hidden), nn.Linear(cfg.hidden, cfg.input_dim)

    def encode(self, x):
        h1 = F.relu(self.fc1(x))
        return self.fc21(h1), self.fc22(h1)

    def reparameterize(self, mu, logvar):
        if not self.training:
            return mu
        std = flow.exp(0.5 * logvar)
        return mu + flow.randn_like(std) * std

    def forward(self, x):
        mu, logvar = self.encode(x.view(-1, self.cfg.input_dim))
        z = self.reparameterize(mu, logvar)
        return VAEOutput(flow.sigmoid(self.fc4(F.relu(self.fc3(z)))), mu, logvar)


@program
def vae(compiled):
    """a variational autoencoder: named tuples, an AttrDict, a loss as a float, evaluation too"""
    cfg = AttrDict(input_dim=int(np.prod((1, 4, 4))), hidden=8, latent=2)
    cfg.beta = 0.5
    model = VAE(cfg)
    optimizer = flow.optim.Adam(model.parameters(), lr=1e-2)

    def loss_function(out, x):
        bce = F.binary_cross_entropy(out.recon, x.view(-1, cfg.input_dim), reduction="sum")
        kld = -0.5 * flow.sum(1 + out.logvar - out.mu.pow(2) - out.logvar.exp())
        return bce + cfg.beta * kld

    @compiled
    def train(data):
        model.train()
        optimizer.zero_grad()
        loss = loss_function(model(data), data)
        loss.backward()
        optimizer.step()
        return loss.item()

    @compiled
    def test(data):
        model.eval()
        with flow.no_grad():
            out = model(data)
            return out, loss_function(out, data).item()

    for data, _ in images(size=4, channels=1):
        data = data.sigmoid()
        yield train(data), test(data), model, optimizer


class Coupling(nn.Module):
    def __init__(self, dim, hidden, mask):
        super().__init__()
        self.register_buffer("mask", mask)
        self.net = nn.Sequential(nn.Linear(dim, hidden), nn.Tanh(), nn.Linear(hidden, 2 * dim))
        self.scale = nn.Parameter(flow.zeros(dim))

    def forward(self, x, log_det):
        log_s, t = self.net(x * self.mask).chunk(2, dim=1)
        log_s = self.scale * flow.tanh(log_s) * (1 - self.mask)
        y = x * self.mask + (1 - self.mask) * (x * log_s.exp() + t)
        return y, log_det + log_s.sum(dim=1)


@program
def normalizing_flow(compiled):
    """a RealNVP: coupling layers that pass on a log-determinant, masks as buffers, bits per dim"""
    dim = 4
    masks = [flow.tensor([float((i + j) % 2) for j in range(dim)]) for i in range(4)]
    layers = nn.ModuleList([Coupling(dim, 6, mask) for mask in masks])
    prior_loc, prior_log_scale = flow.zeros(dim), flow.zeros(dim)
    optimizer = flow.optim.Adamax(layers.parameters(), lr=1e-2)

    def log_prob(x):
        z, log_det = x, 0
        for layer in layers:
            z, log_det = layer(z, log_det)
        normal = flow.distributions.Normal(prior_loc, prior_log_scale.exp(), validate_args=False)
        return normal.log_prob(z).sum(dim=-1) + log_det

    @compiled
    def step(x):
        nll = -log_prob(x).mean()
        optimizer.zero_grad()
        nll.backward()
        optimizer.step()
        return nll.item() / (np.log(2) * np.prod(x.shape[1:]))

    for x, _ in blobs():
        yield step(x), layers, optimizer


def extract(a, t, x_shape):
    out = a.gather(-1, t)
    return out.reshape(t.shape[0], *((1,) * (len(x_shape) - 1)))


class GaussianDiffusion(nn.Module):
    def __init__(self, model, timesteps=10, loss_type="huber"):
        super().__init__()
        self.model, self.timesteps, self.loss_type = model, timesteps, loss_type
        alphas_cumprod = flow.cumprod(1 - flow.linspace(1e-3, 0.2, timesteps), dim=0)
        self.register_buffer("sqrt_alphas_cumprod", alphas_cumprod.sqrt())
        self.register_buffer("sqrt_one_minus_alphas_cumprod", (1 - alphas_cumprod).sqrt())

    @property
    def loss_fn(self):
        if self.loss_type == "l1":
            return F.l1_loss
        elif self.loss_type == "huber":
            return F.smooth_l1_loss
        raise ValueError(f"invalid loss type {self.loss_type}")

    def q_sample(self, x_start, t, noise=None):
        noise = flow.randn_like(x_start) if noise is None else noise
        mean = extract(self.sqrt_alphas_cumprod, t, x_start.shape) * x_start
        return mean + extract(self.sqrt_one_minus_alphas_cumprod, t, x_start.shape) * noise

    def forward(self, img):
        b, _, h, w, img_size = *img.shape, 8
        assert h == img_size and w == img_size, f"height and width must be {img_size}"
        t = flow.randint(0, self.timesteps, (b,)).long()
        noise = flow.randn_like(img)
        return self.loss_fn(noise, self.model(self.q_sample(img, t, noise), t))


class TimeNet(nn.Module):
    def __init__(self, dim=4):
        super().__init__()
        self.dim = dim
        self.time_mlp = nn.Linear(dim, dim)
        self.conv1, self.conv2 = nn.Conv2d(1, dim, 3, padding=1), nn.Conv2d(dim, 1, 3, padding=1)

    def forward(self, x, time):
        half_dim = self.dim // 2
        freqs = flow.exp(flow.arange(half_dim) * -(math.log(10000) / (half_dim - 1)))
        emb = time[:, None] * freqs[None, :]
        emb = self.time_mlp(flow.cat((emb.sin(), emb.cos()), dim=-1))
        return self.conv2(F.silu(self.conv1(x) + emb[:, :, None, None]))


@program
def denoising_diffusion(compiled):
    """a diffusion model that draws its time steps, losses by a property, averaged weights"""
    diffusion = GaussianDiffusion(TimeNet())
    ema_model, decay = copy.deepcopy(diffusion.model).requires_grad_(False), 0.95
    opt = flow.optim.Adam(diffusion.parameters(), lr=1e-2, betas=(0.9, 0.99))

    def update_moving_average(ma_model, current_model):
        pairs = zip(current_model.parameters(), ma_model.parameters(), strict=True)
        for current_params, ma_params in pairs:
            old_weight, up_weight = ma_params.data, current_params.data
            ma_params.data = old_weight * decay + (1 - decay) * up_weight

    @compiled
    def train_step(img):
        opt.zero_grad()
        loss = diffusion(img)
        loss.backward()
        opt.step()
        return loss.item()

    for img, _ in images(batch=2, channels=1):
        loss = train_step(img)
        update_moving_average(ema_model, diffusion.model)
        yield loss, diffusion, ema_model, opt


class Sampler:
    """Langevin steps from a buffer of examples."""

    def __init__(self, model, shape, steps=3, step_size=0.1):
        self.model, self.steps, self.step_size = model, steps, step_size
        self.examples = flow.rand(shape) * 2 - 1

    def generate(self):
        is_training = self.model.training
        self.model.eval()
        for p in self.model.parameters():
            p.requires_grad = False
        had_gradients_enabled = flow.is_grad_enabled()
        flow.set_grad_enabled(True)
        inp = self.examples.clone().requires_grad_(True)
        for _ in range(self.steps):
            inp.data.add_(flow.randn_like(inp), alpha=0.005)
            out = -self.model(inp)
            out.sum().backward()
            inp.grad.data.clamp_(-0.03, 0.03)
            inp.data.add_(-self.step_size * inp.grad.data)
            inp.grad.detach_()
            inp.grad.zero_()
            inp.data.clamp_(min=-1.0, max=1.0)
        for p in self.model.parameters():
            p.requires_grad = True
        self.model.train(is_training)
        flow.set_grad_enabled(had_gradients_enabled)
        return inp.detach()


@program
def energy_langevin(compiled):
    """an energy-based model: Langevin steps inside; requires_grad, modes restored"""
    net = nn.Sequential(nn.Linear(4, 8), nn.SiLU(), nn.Dropout(0.1), nn.Linear(8, 1))
    optimizer = flow.optim.Adam(net.parameters(), lr=1e-2, betas=(0.0, 0.999))
    sampler = Sampler(net, (8, 4))

    @compiled
    def training_step(real):
        small_noise = flow.randn_like(real) * 0.005
        real = (real + small_noise).clamp_(min=-1.0, max=1.0)
        fake = sampler.generate()
        real_out, fake_out = net(flow.cat([real, fake], dim=0)).chunk(2, dim=0)
        reg_loss = 0.1 * (real_out**2 + fake_out**2).mean()
        loss = reg_loss + fake_out.mean() - real_out.mean()
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(net.parameters(), max_norm=0.1)
        optimizer.step()
        return loss.detach(), fake

    for real, _ in blobs():
        loss, fake = training_step(real)
        sampler.examples.copy_(fake)
        yield loss, fake, net, optimizer


def gram_matrix(input):
    a, b, c, d = input.size()
    features = input.view(a * b, c * d)
    return flow.mm(features, features.t()).div(a * b * c * d)


class StyleLoss(nn.Module):
    def __init__(self, target_feature):
        super().__init__()
        self.target = gram_matrix(target_feature).detach()

    def forward(self, input):
        self.loss = F.mse_loss(gram_matrix(input), self.target)
        return input


class ContentLoss(nn.Module):
    def __init__(self, target):
        super().__init__()
        self.target = target.detach()

    def forward(self, input):
        self.loss = F.mse_loss(input, self.target)
        return input


@program
def style_transfer(compiled):
    """a picture that is optimized through layers which keep their losses as attributes"""
    (style, _), (content, _) = images(2, batch=1)
    conv1, conv2 = nn.Conv2d(3, 4, 3, padding=1), nn.Conv2d(4, 4, 3, padding=1)
    relu = nn.ReLU(inplace=False)
    model = nn.Sequential()
    model.add_module("conv_1", conv1)
    model.add_module("style_loss_1", StyleLoss(conv1(style)))
    model.add_module("relu_1", relu)
    model.add_module("conv_2", conv2)
    model.add_module("content_loss_2", ContentLoss(conv2(relu(conv1(content)))))
    model.eval().requires_grad_(False)
    style_losses, content_losses = [model.style_loss_1], [model.content_loss_2]
    picture = content.clone().requires_grad_(True)
    optimizer = flow.optim.Adam([picture], lr=0.05)
    run = [0]

    def closure(style_weight=1000, content_weight=1):
        with flow.no_grad():
            picture.clamp_(0, 1)
        optimizer.zero_grad()
        model(picture)
        style_score = content_score = 0
        for sl in style_losses:
            style_score += sl.loss
        for cl in content_losses:
            content_score += cl.loss
        loss = style_weight * style_score + content_weight * content_score
        loss.backward()
        optimizer.step()
        return loss

    closure = compiled(closure)
    for _ in range(30):
        loss = closure()
        run[0] += 1
        losses = [layer.loss.item() for layer in style_losses + content_losses]
        yield loss.detach(), losses, picture, optimizer, run
