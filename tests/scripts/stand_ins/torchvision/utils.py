"""Pictures of batches: made, and not written."""

import torch


def make_grid(tensor, nrow=8, padding=2, normalize=False, **options):
    if isinstance(tensor, (list, tuple)):
        tensor = torch.stack(list(tensor))
    tensor = tensor.detach()
    if tensor.dim() == 2:
        tensor = tensor[None]
    if tensor.dim() == 3:
        tensor = tensor[None]
    return torch.cat(list(tensor[:nrow]), 2)


def save_image(tensor, fp, **options):
    make_grid(tensor, **options)
