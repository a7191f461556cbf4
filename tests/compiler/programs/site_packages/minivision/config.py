"""Switches of the whole package."""

import os

_USE_FUSED_ATTN = int(os.environ.get("MINIVISION_FUSED_ATTN", "0"))


def use_fused_attn():
    """Return whether new models use fused attention."""
    return _USE_FUSED_ATTN > 0


def set_fused_attn(enable=True):
    """Switch fused attention."""
    global _USE_FUSED_ATTN
    _USE_FUSED_ATTN = int(enable)
