"""The parts of which models are built."""

from minivision.layers.activations import create_act as create_act, get_act_layer as get_act_layer
from minivision.layers.attention import Attention as Attention
from minivision.layers.drop import DropPath as DropPath
from minivision.layers.helpers import make_divisible as make_divisible, to_2tuple as to_2tuple
from minivision.layers.mlp import Mlp as Mlp
from minivision.layers.norm_act import BatchNormAct2d as BatchNormAct2d
from minivision.layers.patch_embed import PatchEmbed as PatchEmbed
from minivision.layers.squeeze_excite import SqueezeExcite as SqueezeExcite
