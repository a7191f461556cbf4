"""Vision transformers."""

from functools import partial

import oneflow_lite as flow
from minivision.layers import Attention, DropPath, Mlp, PatchEmbed
from minivision.registry import register_model
from oneflow_lite import nn

default_cfgs = {"tiny_vit": {"num_classes": 10, "img_size": 8}}


class Block(nn.Module):
    """Attention and an MLP, each behind a norm and beside a shortcut."""

    def __init__(self, dim, num_heads, mlp_ratio=2.0, drop=0.0, drop_path=0.0, norm_layer=None):
        super().__init__()
        self.norm1, self.norm2 = norm_layer(dim), norm_layer(dim)
        self.attn = Attention(dim, num_heads)
        self.mlp = Mlp(dim, int(dim * mlp_ratio), drop=drop)
        self.drop_path1 = DropPath(drop_path) if drop_path > 0.0 else nn.Identity()
        self.drop_path2 = DropPath(drop_path) if drop_path > 0.0 else nn.Identity()

    def forward(self, x):
        x = x + self.drop_path1(self.attn(self.norm1(x)))
        return x + self.drop_path2(self.mlp(self.norm2(x)))


class VisionTransformer(nn.Module):
    """Patches, a class token, positions, blocks, a head."""

    def __init__(
        self,
        num_classes,
        img_size,
        embed_dim=8,
        depth=2,
        num_heads=2,
        global_pool="token",
        drop_rate=0.0,
        drop_path_rate=0.0,
    ):
        super().__init__()
        assert global_pool in ("", "avg", "token")
        self.global_pool = global_pool
        self.num_prefix_tokens = 1
        norm_layer = partial(nn.LayerNorm, eps=1e-6)
        self.patch_embed = PatchEmbed(img_size, embed_dim=embed_dim)
        self.cls_token = nn.Parameter(flow.zeros(1, 1, embed_dim))
        self.pos_embed = nn.Parameter(
            flow.randn(1, self.patch_embed.num_patches + 1, embed_dim) * 0.02
        )
        dpr = [x.item() for x in flow.linspace(0, drop_path_rate, depth)]
        self.blocks = nn.Sequential(
            *[Block(embed_dim, num_heads, 2.0, drop_rate, p, norm_layer) for p in dpr]
        )
        self.norm = norm_layer(embed_dim)
        self.head = nn.Linear(embed_dim, num_classes)

    def no_weight_decay(self):
        return {"pos_embed", "cls_token"}

    def forward_features(self, x):
        x = self.patch_embed(x)
        x = flow.cat((self.cls_token.expand(x.shape[0], -1, -1), x), dim=1) + self.pos_embed
        return self.norm(self.blocks(x))

    def forward_head(self, x):
        if self.global_pool:
            avg = self.global_pool == "avg"
            x = x[:, self.num_prefix_tokens :].mean(dim=1) if avg else x[:, 0]
        return self.head(x)

    def forward(self, x):
        return self.forward_head(self.forward_features(x))


@register_model
def tiny_vit(**kwargs):
    """Build a transformer of two blocks."""
    return VisionTransformer(**kwargs)
