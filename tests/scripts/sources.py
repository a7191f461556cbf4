"""The public scripts that are run on both libraries: repository, commit, path, and what is changed.

They were chosen by a rule, not by outcome: of each repository, the first few of its scripts in the
order of a hash of their paths, among those that take a gradient, read no data that has to be
downloaded, and need no package beyond a few. Files that define models are run by a `call`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple


class Source(NamedTuple):
    """A script: `edits` are (file or "", pattern, replacement); `prepare` is code run before."""

    repository: str
    commit: str
    path: str
    args: str = ""
    edits: tuple[tuple[str, str, str], ...] = ()
    prepare: str = ""
    call: str = ""
    packages: tuple[str, ...] = ()
    aside: bool = False

    def __str__(self) -> str:
        return f"{self.repository}/{self.path}"

    @property
    def changed(self) -> str:
        """Say what is not as it was published, apart from data and devices."""
        said = [f"`{self.args}`"] if self.args else []
        said += ["edited"] if self.edits else []
        said += ["data"] if self.prepare else []
        said += ["called"] if self.call else []
        return ", ".join(said)


def S(path: str, args: str = "", *edits: tuple[str, str, str], **options: Any) -> dict[str, Any]:
    return {"path": path, "args": args, "edits": edits, **options}


def M(path: str, call: str, *edits: tuple[str, str, str], **options: Any) -> dict[str, Any]:
    return {"path": path, "call": call, "edits": edits, **options}


# What PyTorch itself no longer takes.
ITEM = ("", r"\.data\[0\]", ".item()")
GREY = ("", r"\(\s*mean=\(0\.5, 0\.5, 0\.5\), std=\(0\.5, 0\.5, 0\.5\)\)", "((0.5,), (0.5,))")
GREY_ALSO = ("", r"\(\[0\.5, 0\.5, 0\.5\], \[0\.5, 0\.5, 0\.5\]\)", "((0.5,), (0.5,))")
GYMNASIUM = ("", r"import gym\b", "import gymnasium as gym")

IMAGE = "torch.rand(2, 3, 32, 32)"
PATCHES = "image_size=32, num_classes=10, dim=32, heads=2"

_WORDS = "text('{}', ' '.join(random.choice('the cat sat on a mat and saw it'.split()) for _ in range(4000)))"

_PACKAGES = {"rtqichen/torchdiffeq": "rtqichen+torchdiffeq"}

_LISTED: Mapping[str, list[dict[str, Any]]] = {
    "AntixK/PyTorch-VAE a6896b944c918dd7030e7d795a8c13e5c6345ec7": [
        M("models/vq_vae.py", f"from models import VQVAE\nm = VQVAE(3, 8, 16, [16, 32], img_size=32)\ntrain(m, {IMAGE})"),
        M("models/vanilla_vae.py", "from models import VanillaVAE\nm = VanillaVAE(3, 8)\ntrain(m, torch.rand(2, 3, 64, 64))"),
        M("models/mssim_vae.py", "from models import MSSIMVAE\nm = MSSIMVAE(3, 8)\ntrain(m, torch.rand(2, 3, 64, 64))"),
    ],
    "EmilienDupont/augmented-neural-odes 88d9865fa863069fa65e538ee11eebea934dbbe4": [
        M("anode/models.py", "from anode.models import ODENet\ntrain(ODENet('cpu', 2, 8), torch.randn(4, 2))", packages=("rtqichen+torchdiffeq",)),
    ],
    "Diego999/pyGAT 3664f2dc90cbf971564c0bf186dc794f12446d0c": [
        M("models.py", "from models import GAT\ntrain(GAT(5, 4, 3, 0.5, 0.2, 2), torch.randn(6, 5), (torch.rand(6, 6) > 0.5).float())"),
    ],
    "L1aoXingyu/pytorch-beginner a57dd7ea35c9965a41f4963dee62d38884f92a65": [
        S("08-AutoEncoder/simple_autoencoder.py"),
        S("05-Recurrent Neural Network/recurrent_network.py", "", ITEM),
        S("02-Logistic Regression/Logistic_Regression.py"),
        S("01-Linear Regression/Linear_Regression.py"),
        S("09-Generative Adversarial network/conv_gan.py", "", ("", r"transforms.Normalize\(.*\)", "transforms.Normalize((0.5,), (0.5,))"), ("", r"criterion\((\w+), ", r"criterion(\1.squeeze(), ")),
    ],
    "MorvanZhou/PyTorch-Tutorial dbe154a9e56635e51c6b0c2ccea8ae36cfb585a7": [
        S("tutorial-contents/504_batch_normalization.py"),
        S("tutorial-contents/401_CNN.py", "", ("", "n_iter=", "max_iter=")),
        S("tutorial-contents/202_variable.py"),
        S("tutorial-contents/301_regression.py"),
        S("tutorial-contents/405_DQN_Reinforcement_learning.py"),
        S("tutorial-contents/406_GAN.py"),
        S("tutorial-contents/501_why_torch_dynamic_graph.py"),
        S("tutorial-contents/403_RNN_regressor.py"),
        S("tutorial-contents/502_GPU.py"),
        M("tutorial-contents/303_build_nn_quickly.py", "train(net2, torch.randn(5, 1))"),
    ],
    "akamaster/pytorch_resnet_cifar10 d5489e8995e81e91ce6b1d69dcc98ad579b0b153": [
        S("trainer.py", "-b 16"),
        M("resnet.py", f"from resnet import resnet20\ntrain(resnet20(), {IMAGE})"),
    ],
    "activatedgeek/LeNet-5 95b55a838f9d90536fd3b303cede12cf8b5da47f": [
        M("lenet.py", "from lenet import LeNet5\ntrain(LeNet5(), torch.randn(2, 1, 32, 32))"),
    ],
    "bfortuner/pytorch_tiramisu c1cf07967f20ebd1e7d4ca0a61126f9cab11be99": [
        M("models/tiramisu.py", f"from models.tiramisu import FCDenseNet57\ntrain(FCDenseNet57(5), {IMAGE})"),
    ],
    "dragen1860/MAML-Pytorch 98a00d41724c133bd29619a2fb2cc46dd128a368": [
        M("learner.py", "from learner import Learner\nm = Learner([('conv2d', [4, 1, 3, 3, 2, 0]), ('relu', [True]), ('bn', [4]), ('flatten', []), ('linear', [5, 144])], 1, 28)\ntrain(m, torch.randn(3, 1, 14, 14))"),
    ],
    "eriklindernoren/PyTorch-GAN 36d3c77e5ff20ebe0aeefd322326a134a279b93e": [
        S("implementations/aae/aae.py"),
        S("implementations/infogan/infogan.py"),
        S("implementations/pix2pix/pix2pix.py", "--batch_size 1", prepare="images('../../data/facades/train', 4, 256, 512); images('../../data/facades/val', 2, 256, 512)"),
        S("implementations/began/began.py", "", ITEM),
        S("implementations/cyclegan/cyclegan.py", "--img_height 32 --img_width 32 --n_residual_blocks 2", prepare="[images(f'../../data/monet2photo/{m}/{s}', 4, 40, 40) for m in ('train', 'test') for s in 'AB']"),
        S("implementations/wgan_div/wgan_div.py"),
        S("implementations/relativistic_gan/relativistic_gan.py"),
        S("implementations/ebgan/ebgan.py"),
        M("implementations/stargan/models.py", "from models import GeneratorResNet\ntrain(GeneratorResNet((3, 32, 32), 1, 2), torch.randn(1, 3, 32, 32), torch.ones(1, 2))"),
        M("implementations/srgan/models.py", "from models import GeneratorResNet\ntrain(GeneratorResNet(n_residual_blocks=2), torch.randn(1, 3, 16, 16))"),
        M("implementations/esrgan/models.py", "from models import GeneratorRRDB\ntrain(GeneratorRRDB(3, 8, 1), torch.randn(1, 3, 16, 16))"),
    ],
    "facebookresearch/higher 15a247ac06cac0d22601322677daff0dcfff062e": [
        S("examples/deep-energy-mnist.py", "", ("", r'torch.device\("cuda"\)', 'torch.device("cpu")'), packages=("facebookresearch+higher",)),
    ],
    "google-research/torchsde eb3a00e31cbd56176270066ed2f62c394cf6acb7": [
        M("torchsde/_core/sdeint.py", "import torchsde\nclass E(torch.nn.Module):\n    noise_type, sde_type = 'diagonal', 'ito'\n    def __init__(self):\n        super().__init__()\n        self.a = torch.nn.Linear(2, 2)\n    def f(self, t, y): return self.a(y)\n    def g(self, t, y): return 0.1 * torch.ones_like(y)\n    def forward(self, y): return torchsde.sdeint(self, y, torch.tensor([0., 0.1]), dt=0.05, method='euler')\ntrain(E(), torch.randn(3, 2))", packages=("google-research+torchsde",)),
    ],
    "gpleiss/efficient_densenet_pytorch d2d0629dae2912ec4f0444fab5e3df4c375c44fd": [
        M("models/densenet.py", f"from models.densenet import DenseNet\ntrain(DenseNet(block_config=(2, 2)), {IMAGE})"),
    ],
    "graykode/nlp-tutorial d05e31ec81d56d70c1db89b99ab07e948f7ebc11": [
        S("4-2.Seq2Seq(Attention)/Seq2Seq(Attention).py"),
        S("1-1.NNLM/NNLM.py"),
        S("5-1.Transformer/Transformer(Greedy_decoder).py"),
        S("4-1.Seq2Seq/Seq2Seq.py"),
        S("5-1.Transformer/Transformer.py"),
        S("3-1.TextRNN/TextRNN.py"),
        S("4-3.Bi-LSTM(Attention)/Bi-LSTM(Attention).py"),
        S("3-3.Bi-LSTM/Bi-LSTM.py"),
        S("2-1.TextCNN/TextCNN.py"),
    ],
    "greydanus/hamiltonian-nn bcc362235dc623ffe48f22ccc22417e02e9803b4": [
        S("experiment-2body/train.py"),
        M("hnn.py", "from hnn import HNN\nfrom nn_models import MLP\nm = HNN(2, MLP(2, 20, 2))\no = torch.optim.Adam(m.parameters(), 1e-2)\nx = torch.randn(6, 2, requires_grad=True)\nfor _ in range(4):\n    (m.time_derivative(x) - 1).square().mean().backward()\n    o.step(); o.zero_grad()"),
    ],
    "higgsfield/RL-Adventure 0f82b6922e8a1a8515fc4c84c28702e7caa226f1": [
        M("common/layers.py", "train(torch.nn.Sequential(NoisyLinear(4, 3, False), torch.nn.ReLU(), NoisyLinear(3, 2, False)), torch.randn(5, 4))"),
    ],
    "hunkim/PyTorchZeroToAll e5a260fac0b4ff1e2ec434fc6f0d962ac97fc289": [
        S("12_4_hello_rnn_emb.py"),
        S("12_2_hello_rnn.py"),
        S("06_logistic_regression.py"),
        S("07_diabets_logistic.py"),
        S("11_1_toy_inception_mnist.py", "", ITEM),
        S("10_1_cnn_mnist.py"),
    ],
    "ikostrikov/pytorch-a3c 48d95844755e2c3e2c7e48bbd1a7141f7212b63f": [
        M("model.py", "from model import ActorCritic\nfrom gym.spaces import Discrete\nm = ActorCritic(1, Discrete(3))\ntrain(m, (torch.randn(1, 1, 42, 42), (torch.zeros(1, 256), torch.zeros(1, 256))))"),
    ],
    "ikostrikov/pytorch-flows bf12ed91b86867b38d74982f5e2d44c248604df9": [
        M("flows.py", "import flows\nm = flows.FlowSequential(flows.MADE(4, 16, None), flows.BatchNormFlow(4), flows.Reverse(4), flows.CouplingLayer(4, 16, torch.arange(4) % 2.0), flows.LUInvertibleMM(4))\nm.train()\no = torch.optim.Adam(m.parameters(), 1e-3)\nfor _ in range(4):\n    o.zero_grad()\n    (-m.log_probs(torch.randn(8, 4)).mean()).backward()\n    o.step()"),
    ],
    "jadore801120/attention-is-all-you-need-pytorch 132907dd272e2cc92e3c10e6c4e783a87ff8893d": [
        M("transformer/Models.py", "from transformer.Models import Transformer\nm = Transformer(20, 20, 0, 0, 16, 16, 32, 2, 2, 8, 8)\ntrain(m, torch.randint(1, 20, (3, 7)), torch.randint(1, 20, (3, 6)))"),
    ],
    "jakesnell/prototypical-networks c9bb4d258267c11cb6e23f0a19242d24ca98ad8a": [
        M("protonets/models/few_shot.py", "from protonets.models.few_shot import load_protonet_conv\nm = load_protonet_conv(x_dim=(1, 28, 28), hid_dim=8, z_dim=8)\no = torch.optim.Adam(m.parameters(), 1e-3)\nfor _ in range(4):\n    o.zero_grad()\n    m.loss({'xs': torch.randn(3, 2, 1, 28, 28), 'xq': torch.randn(3, 2, 1, 28, 28)})[0].backward()\n    o.step()"),
    ],
    "jcjohnson/pytorch-examples 0003fcdc606a79951e53bf8f46f8574fa4739f23": [
        S("autograd/two_layer_net_custom_function.py"),
        S("autograd/two_layer_net_autograd.py"),
        S("nn/two_layer_net_module.py"),
        S("nn/two_layer_net_optim.py"),
        S("nn/dynamic_net.py"),
    ],
    "kamenbliznashki/normalizing_flows 97a73a01bcee3ac8015dfeeb3cffb035ec39a1f2": [
        S("planar_flow.py", "--train --target_potential u_z1"),
        S("bnaf.py", "--train --dataset 8gaussians --n_steps 10 --hidden_dim 20", ("", ", verbose=True", "")),
        S("maf.py", "--train --dataset TOY --n_epochs 1"),
    ],
    "karpathy/makemore 988aa59e4d8fefa526d06f3b453ad116258398d4": [
        S("makemore.py", "--max-steps 8", prepare="text('names.txt', '\\n'.join(''.join(random.choice('abcdeimnor') for _ in range(random.randint(3, 9))) for _ in range(3000)))"),
        S("makemore.py", "--max-steps 8 --type gru", prepare="text('names.txt', '\\n'.join(''.join(random.choice('abcdeimnor') for _ in range(random.randint(3, 9))) for _ in range(3000)))"),
    ],
    "karpathy/minGPT 37baab71b9abea1b76ab957409a1cc2fbfba8a26": [
        M("mingpt/model.py", "from mingpt.model import GPT\nc = GPT.get_default_config()\nc.model_type, c.vocab_size, c.block_size = 'gpt-nano', 20, 16\nc.embd_pdrop = c.resid_pdrop = c.attn_pdrop = 0.0\nm = GPT(c)\no = torch.optim.AdamW(m.parameters(), 1e-3)\nfor _ in range(4):\n    o.zero_grad()\n    m(torch.randint(20, (2, 16)), torch.randint(20, (2, 16)))[1].backward()\n    o.step()"),
        S("projects/adder/adder.py", "--trainer.max_iters=8", packages=("karpathy+minGPT",)),
    ],
    "karpathy/nanoGPT 3adf61e154c3fe3fca428ad6bc3818b27a3b8291": [
        M("model.py", "from model import GPT, GPTConfig\nm = GPT(GPTConfig(block_size=16, vocab_size=20, n_layer=2, n_head=2, n_embd=32, dropout=0.1))\no = m.configure_optimizers(0.1, 1e-3, (0.9, 0.95), 'cpu')\nfor _ in range(4):\n    o.zero_grad()\n    m(torch.randint(20, (2, 16)), torch.randint(20, (2, 16)))[1].backward()\n    o.step()"),
    ],
    "karpathy/pytorch-normalizing-flows b60e119b37be10ce2930ef9fa17e58686aaf2b3d": [
        M("nflib/flows.py", "from nflib.flows import *\nfrom torch.distributions import MultivariateNormal\nm = NormalizingFlowModel(MultivariateNormal(torch.zeros(2), torch.eye(2)), [ActNorm(2), Invertible1x1Conv(2), AffineHalfFlow(2, False), MAF(2, 0)])\no = torch.optim.Adam(m.parameters(), 1e-3)\nfor _ in range(4):\n    o.zero_grad()\n    z, p, d = m(torch.randn(8, 2))\n    (-(p + d).mean()).backward()\n    o.step()"),
        M("nflib/spline_flows.py", "from nflib.spline_flows import NSF_CL\ntrain(NSF_CL(4, K=5, B=3, hidden_dim=8), torch.randn(6, 4))"),
    ],
    "kuangliu/pytorch-cifar 49b7aa97b0c12fe0d4054e670403a16b6b834ddd": [
        S("main.py", "", ("utils.py", "_, term_width = .*", "term_width = 80"), ("main.py", "SimpleDLA\\(\\)", "MobileNetV2()")),
        M("models/dla_simple.py", f"from models import SimpleDLA\ntrain(SimpleDLA(), {IMAGE})"),
        M("models/shufflenetv2.py", f"from models import ShuffleNetV2\ntrain(ShuffleNetV2(0.5), {IMAGE})"),
        M("models/mobilenetv2.py", f"from models import MobileNetV2\ntrain(MobileNetV2(), {IMAGE})"),
        M("models/resnet.py", f"from models import ResNet18\ntrain(ResNet18(), {IMAGE})"),
        M("models/efficientnet.py", f"from models import EfficientNetB0\ntrain(EfficientNetB0(), {IMAGE})"),
        M("models/preact_resnet.py", f"from models import PreActResNet18\ntrain(PreActResNet18(), {IMAGE})"),
    ],
    "locuslab/TCN 2f8c2b817050206397458dfd1f5a25ce8a32fe65": [
        M("TCN/tcn.py", "from TCN.tcn import TemporalConvNet\ntrain(TemporalConvNet(4, [8, 8], 3), torch.randn(2, 4, 20))"),
        M("TCN/word_cnn/model.py", "from TCN.word_cnn.model import TCN\ntrain(TCN(8, 20, [8, 8]), torch.randint(20, (2, 10)))"),
    ],
    "lucidrains/vit-pytorch 69d24fe9e3024c0d4b02761123b8583a24ebed1e": [
        S("vit_pytorch/vat.py", packages=("lucidrains+vit-pytorch",)),
        M("vit_pytorch/nest.py", f"from vit_pytorch.nest import NesT\ntrain(NesT(image_size=32, patch_size=4, dim=16, heads=2, num_hierarchies=2, block_repeats=(1, 1), num_classes=10), {IMAGE})"),
        M("vit_pytorch/vit_3d.py", "from vit_pytorch.vit_3d import ViT\ntrain(ViT(image_size=16, frames=4, image_patch_size=8, frame_patch_size=2, num_classes=10, dim=32, depth=2, heads=2, mlp_dim=32), torch.rand(2, 3, 4, 16, 16))"),
        M("vit_pytorch/jet_vit.py", f"from vit_pytorch.jet_vit import *\nimport inspect\nc = [v for k, v in list(locals().items()) if inspect.isclass(v) and v.__module__.endswith('jet_vit')][-1]\ntrain(c(patch_size=8, depth=2, mlp_dim=32, dim_head=16, {PATCHES}), {IMAGE})"),
        M("vit_pytorch/simple_vit.py", f"from vit_pytorch.simple_vit import SimpleViT\ntrain(SimpleViT(patch_size=8, depth=2, mlp_dim=32, {PATCHES}), {IMAGE})"),
        M("vit_pytorch/deepvit.py", f"from vit_pytorch.deepvit import DeepViT\ntrain(DeepViT(patch_size=8, depth=2, mlp_dim=32, {PATCHES}), {IMAGE})"),
        M("vit_pytorch/cait.py", f"from vit_pytorch.cait import CaiT\ntrain(CaiT(patch_size=8, depth=2, cls_depth=1, mlp_dim=32, {PATCHES}), {IMAGE})"),
        M("vit_pytorch/levit.py", f"from vit_pytorch.levit import LeViT\ntrain(LeViT(image_size=64, num_classes=10, stages=2, dim=(16, 32), depth=1, heads=2, mlp_mult=2), torch.rand(2, 3, 64, 64))"),
        M("vit_pytorch/mobile_vit.py", "from vit_pytorch.mobile_vit import MobileViT\ntrain(MobileViT((64, 64), [32, 48, 64], [8, 8, 16, 16, 24, 24, 32, 32, 40, 40, 64], 10), torch.rand(2, 3, 64, 64))"),
    ],
    "lukemelas/EfficientNet-PyTorch 7e8b0d312162f335785fb5dcfa1df29a75a1783a": [
        M("efficientnet_pytorch/model.py", f"from efficientnet_pytorch import EfficientNet\ntrain(EfficientNet.from_name('efficientnet-b0'), torch.rand(4, 3, 64, 64))"),
    ],
    "milesial/Pytorch-UNet 21d7850f2af30a9695bbeea75f3136aa538cfc4a": [
        M("unet/unet_model.py", "from unet import UNet\ntrain(UNet(3, 2), torch.rand(1, 3, 32, 32), steps=3)"),
    ],
    "nikhilbarhate99/PPO-PyTorch 728cce83d7ab628fe2634eabcdf3239997eb81dd": [
        M("PPO.py", "m = PPO(4, 2, 1e-3, 1e-3, 0.99, 2, 0.2, False)\nfor _ in range(2):\n    for i in range(8):\n        m.select_action(np.linspace(-1, i, 4))\n        m.buffer.rewards.append(float(i)); m.buffer.is_terminals.append(i == 7)\n    m.update()", ("", r"\Z", "\nimport numpy as np\n")),
    ],
    "oscarknagg/few-shot 672de83a853cc2d5e9fe304dc100b4a735c10c15": [
        M("few_shot/models.py", "from few_shot.models import FewShotClassifier\ntrain(FewShotClassifier(1, 5), torch.randn(4, 1, 28, 28))"),
    ],
    "pranz24/pytorch-soft-actor-critic c1805660b3961694be54079a355155a5cad492f5": [
        M("model.py", "from model import *\np, q = GaussianPolicy(3, 2, 16), QNetwork(3, 2, 16)\no = torch.optim.Adam([*p.parameters(), *q.parameters()], 1e-3)\nfor _ in range(4):\n    s = torch.randn(5, 3)\n    a, l, _ = p.sample(s)\n    o.zero_grad()\n    (0.2 * l - torch.min(*q(s, a))).mean().backward()\n    o.step()"),
    ],
    "pytorch/examples 77f55b912142e11fcfdf5b530231fb9c52f181e8": [
        S("regression/main.py"),
        S("distributed/ddp-tutorial-series/single_gpu.py", "2 10", ("", r"device = 0\b", "device = 'cpu'")),
        S("time_sequence_prediction/train.py", "--steps 1", ("", r"torch\.load\('traindata.pt'\)", "np.load('waves.npy')"), prepare="waves('waves.npy')"),
        S("vae/main.py"),
        S("mnist_rnn/main.py"),
        S("super_resolution/main.py", "--upscale_factor 2 --batchSize 4", prepare="images('dataset/BSDS300/images/train', 8, 40, 48); images('dataset/BSDS300/images/test', 4, 40, 48)"),
        S("dcgan/main.py", "--dataset fake --batchSize 8 --imageSize 64 --ngf 16 --ndf 16"),
        S("mnist_forward_forward/main.py", "--epochs 2"),
        S("reinforcement_learning/reinforce.py"),
        S("reinforcement_learning/actor_critic.py"),
        S("word_language_model/main.py", "--emsize 32 --nhid 32", prepare="[text(f'data/wikitext-2/{n}.txt', ' '.join(random.choice('the cat sat on a mat and saw it'.split()) for _ in range(3000))) for n in ('train', 'valid', 'test')]"),
        S("word_language_model/main.py", "--model Transformer --emsize 32 --nhid 32 --nhead 2", prepare="[text(f'data/wikitext-2/{n}.txt', ' '.join(random.choice('the cat sat on a mat and saw it'.split()) for _ in range(3000))) for n in ('train', 'valid', 'test')]"),
        S("mnist/main.py"),
        M("fast_neural_style/neural_style/transformer_net.py", "from transformer_net import TransformerNet\ntrain(TransformerNet(), torch.rand(1, 3, 32, 32))"),
        M("super_resolution/model.py", "from model import Net\ntrain(Net(2), torch.rand(2, 1, 16, 16))"),
        M("language_translation/src/model.py", "from model import Translator\nm = Translator(2, 2, 16, 2, 20, 20, 32, 0.1)\ns, t = torch.randint(20, (6, 3)), torch.randint(20, (5, 3))\nmask = torch.triu(torch.ones(5, 5), 1).bool()\ntrain(m, s, t, torch.zeros(6, 6).bool(), mask, torch.zeros(3, 6).bool(), torch.zeros(3, 5).bool(), torch.zeros(3, 6).bool())"),
    ],
    "rtqichen/torchdiffeq 657943acefa826ef04c025ebeb1ff5e9d60dc268": [
        S("examples/latent_ode.py", packages=("rtqichen+torchdiffeq",)),
        S("examples/bouncing_ball.py", packages=("rtqichen+torchdiffeq",)),
        S("examples/odenet_mnist.py", "--network resnet --batch_size 8", packages=("rtqichen+torchdiffeq",)),
        S("examples/learn_physics.py", packages=("rtqichen+torchdiffeq",)),
        S("examples/ode_demo.py", packages=("rtqichen+torchdiffeq",)),
        S("examples/ode_demo.py", "--adjoint", packages=("rtqichen+torchdiffeq",)),
    ],
    "seungeunrho/minimalRL c8efed8481e3cd40e9739cfde220a55522555b57": [
        S("dqn.py", "", GYMNASIUM),
        S("ppo-lstm.py", "", GYMNASIUM),
        S("ppo.py", "", GYMNASIUM),
        S("ppo-continuous.py", "", GYMNASIUM),
        S("REINFORCE.py", "", GYMNASIUM),
        S("acer.py", "", GYMNASIUM),
        S("actor_critic.py", "", GYMNASIUM),
    ],
    "sfujim/TD3 34770ccdcb51df6f6c7d85c1ba7e40d71b940d16": [
        M("TD3.py", "import numpy as np\nfrom TD3 import TD3\nfrom utils import ReplayBuffer\nb, r = ReplayBuffer(3, 1), np.random.default_rng(0)\nfor _ in range(64):\n    b.add(r.normal(size=3), r.normal(size=1), r.normal(size=3), r.normal(), False)\na = TD3(3, 1, 1.0)\nfor _ in range(4):\n    a.train(b, 16)"),
        M("DDPG.py", "import numpy as np\nfrom DDPG import DDPG\nfrom utils import ReplayBuffer\nb, r = ReplayBuffer(3, 1), np.random.default_rng(0)\nfor _ in range(64):\n    b.add(r.normal(size=3), r.normal(size=1), r.normal(size=3), r.normal(), False)\na = DDPG(3, 1, 1.0)\nfor _ in range(4):\n    a.train(b, 16)"),
    ],
    "sksq96/pytorch-vae 14ce22796fe0ee5120f4f1cdb1dbaf515e72559d": [
        M("vae.py", "from vae import VAE\ntrain(VAE(image_channels=3, h_dim=1024, z_dim=8), torch.rand(2, 3, 64, 64))"),
    ],
    "spro/practical-pytorch c520c52e68e945d88fff563dba1c028b6ec0197b": [
        S("char-rnn-classification/train.py", "", ITEM),
    ],
    "timesler/facenet-pytorch 787da06156087cd6b616fe6608213722bddc30cd": [
        M("models/inception_resnet_v1.py", "from models.inception_resnet_v1 import InceptionResnetV1\ntrain(InceptionResnetV1(classify=True, num_classes=5), torch.rand(2, 3, 80, 80), steps=2)"),
    ],
    "tkipf/pygcn 1600b5b748b3976413d1e307540ccc62605b4d6d": [
        M("pygcn/models.py", "from pygcn.models import GCN\ni = torch.randint(6, (2, 20))\na = torch.sparse_coo_tensor(i, torch.rand(20), (6, 6))\ntrain(GCN(5, 4, 3, 0.5), torch.randn(6, 5), a)"),
    ],
    "tonyduan/normalizing-flows 3ee9127e3753be3878a0a4fd3ea435ff2d31d143": [
        S("examples/ex_2d.py", "", packages=("tonyduan+normalizing-flows",)),
        S("examples/ex_1d.py", "", packages=("tonyduan+normalizing-flows",)),
    ],
    "udacity/deep-reinforcement-learning 561eec3ae8678a23a4557f1a15414a9b076fdfff": [
        M("ddpg-bipedal/model.py", "from model import Actor, Critic\na, c = Actor(4, 2, 0), Critic(4, 2, 0)\ntrain(a, torch.randn(3, 4))\ntrain(c, torch.randn(3, 4), torch.randn(3, 2))"),
    ],
    "weiaicunzai/pytorch-cifar100 11d8418f415b261e4ae3cb1ffe20d06ec95b98e4": [
        S("train.py", "-net shufflenetv2 -b 16"),
        M("models/wideresidual.py", f"from models.wideresidual import wideresnet\ntrain(wideresnet(10, 1), {IMAGE})"),
        M("models/shufflenetv2.py", f"from models.shufflenetv2 import shufflenetv2\ntrain(shufflenetv2(), {IMAGE})"),
        M("models/squeezenet.py", f"from models.squeezenet import squeezenet\ntrain(squeezenet(), {IMAGE})"),
        M("models/attention.py", f"from models.attention import attention56\ntrain(attention56(), {IMAGE}, steps=2)"),
    ],
    "xternalz/WideResNet-pytorch 1171f93d5a9ae28eb5e603e5e7545f488d0df6ab": [
        M("wideresnet.py", f"from wideresnet import WideResNet\ntrain(WideResNet(10, 10, 1), {IMAGE})"),
    ],
    "yunjey/pytorch-tutorial 0500d3df5a2a8080ccfccbc00aca0eacc21818db": [
        S("tutorials/02-intermediate/language_model/main.py", "", prepare="text('data/train.txt', '\\n'.join(' '.join(random.choice('the cat sat on a mat and saw it'.split()) for _ in range(10)) for _ in range(3000)))"),
        S("tutorials/02-intermediate/recurrent_neural_network/main.py"),
        S("tutorials/03-advanced/variational_autoencoder/main.py"),
        S("tutorials/02-intermediate/bidirectional_recurrent_neural_network/main.py"),
        S("tutorials/01-basics/feedforward_neural_network/main.py"),
        S("tutorials/02-intermediate/convolutional_neural_network/main.py"),
        S("tutorials/01-basics/logistic_regression/main.py"),
        S("tutorials/03-advanced/generative_adversarial_network/main.py"),
        S("tutorials/01-basics/linear_regression/main.py"),
    ],
    "znxlwm/pytorch-MNIST-CelebA-GAN-DCGAN c88438c7807326492757623bf9117ee2eb5de8bf": [
        S("pytorch_MNIST_GAN.py", "", ("", r"transforms.Normalize\(.*\)", "transforms.Normalize((0.5,), (0.5,))"), ("", r"D\((x_|G_result)\)", r"D(\1).squeeze()"), ITEM),
        S("pytorch_MNIST_DCGAN.py", "", ITEM, ("", r"transforms.Normalize\(.*\)", "transforms.Normalize((0.5,), (0.5,))")),
    ],
}  # fmt: skip

# Set aside unopened, and run when all the others had been.
_ASIDE = {
    "L1aoXingyu/pytorch-beginner a57dd7ea35c9965a41f4963dee62d38884f92a65": [
        "03-Neural Network/neural_network.py",
        "08-AutoEncoder/conv_autoencoder.py",
    ],
    "MorvanZhou/PyTorch-Tutorial dbe154a9e56635e51c6b0c2ccea8ae36cfb585a7": [
        "tutorial-contents/302_classification.py",
        "tutorial-contents/304_save_reload.py",
        "tutorial-contents/306_optimizer.py",
        "tutorial-contents/402_RNN_classifier.py",
        "tutorial-contents/404_autoencoder.py",
        "tutorial-contents/503_dropout.py",
    ],
    "devnag/pytorch-generative-adversarial-networks 26db8c9fec86817d9211d2c0a424b48b14d5a0e0": [
        "gan_pytorch.py",
    ],
    "eriklindernoren/PyTorch-GAN 36d3c77e5ff20ebe0aeefd322326a134a279b93e": [
        "implementations/acgan/acgan.py",
        "implementations/cgan/cgan.py",
        "implementations/dcgan/dcgan.py",
        "implementations/gan/gan.py",
        "implementations/lsgan/lsgan.py",
        "implementations/sgan/sgan.py",
        "implementations/wgan/wgan.py",
        "implementations/wgan_gp/wgan_gp.py",
    ],
    "graykode/nlp-tutorial d05e31ec81d56d70c1db89b99ab07e948f7ebc11": [
        "1-2.Word2Vec/Word2Vec-Skipgram(Softmax).py",
        "3-2.TextLSTM/TextLSTM.py",
        "5-2.BERT/BERT.py",
    ],
    "hunkim/PyTorchZeroToAll e5a260fac0b4ff1e2ec434fc6f0d962ac97fc289": [
        "03_auto_gradient.py",
        "05_linear_regression.py",
        "08_2_dataset_loade_logistic.py",
        "09_2_softmax_mnist.py",
    ],
    "jcjohnson/pytorch-examples 0003fcdc606a79951e53bf8f46f8574fa4739f23": [
        "nn/two_layer_net_nn.py",
    ],
    "ne7ermore/torch-light facd5e12f45127e81951ca1e6119960e196c6165": [
        "cbow/main.py",
    ],
    "oliverguhr/transformer-time-series-prediction 4e120f3f9b67482dd9a8ca88b49671881120d20f": [
        "transformer-multistep.py",
        "transformer-singlestep.py",
    ],
    "rtqichen/torchdiffeq 657943acefa826ef04c025ebeb1ff5e9d60dc268": [
        "examples/cnf.py",
    ],
    "sweetice/Deep-reinforcement-learning-with-pytorch 7b9fac7e5e40ffdc6f7ccb8b0a81e7841370a996": [
        "Char01 DQN/DQN.py",
        "Char02 Policy Gradient/PolicyGradient.py",
        "Char02 Policy Gradient/naive-policy-gradient.py",
        "Char07 PPO/PPO_CartPole_v0.py",
        "Char07 PPO/PPO_MountainCar-v0.py",
    ],
}

SOURCES = [
    Source(*name.split(), **options) for name, listed in _LISTED.items() for options in listed
]
SOURCES += [
    Source(
        *name.split(), path, packages=tuple(_PACKAGES.get(name.split()[0], "").split()), aside=True
    )
    for name, paths in _ASIDE.items()
    for path in paths
]
