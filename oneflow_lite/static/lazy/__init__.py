"""Capture of Programs: ops are written down instead of run, gradients and updates among them."""
