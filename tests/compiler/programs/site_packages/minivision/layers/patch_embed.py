"""Images to sequences of patches."""

from minivision.layers.helpers import to_2tuple
from oneflow_lite import nn


class PatchEmbed(nn.Module):
    """A convolution that takes steps as long as its kernel."""

    def __init__(self, img_size=8, patch_size=4, in_chans=3, embed_dim=8):
        super().__init__()
        self.img_size, self.patch_size = to_2tuple(img_size), to_2tuple(patch_size)
        sizes = zip(self.img_size, self.patch_size, strict=True)
        self.grid_size = tuple(size // patch for size, patch in sizes)
        self.num_patches = self.grid_size[0] * self.grid_size[1]
        self.proj = nn.Conv2d(in_chans, embed_dim, self.patch_size, stride=self.patch_size)

    def forward(self, x):
        _, _, H, W = x.shape
        assert self.img_size[0] == H, f"Input height ({H}) doesn't match ({self.img_size[0]})."
        assert self.img_size[1] == W, f"Input width ({W}) doesn't match ({self.img_size[1]})."
        return self.proj(x).flatten(2).transpose(1, 2)
