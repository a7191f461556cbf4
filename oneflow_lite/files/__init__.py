"""Tensors in files: `flow.save` and `flow.load`, PyTorch's files, checkpoints of several ranks.

It imports `nn` (for Parameter), `distributed` and the rooms below. Programs are saved with it;
`flow.distributed.checkpoint` and the sharded optimizer lead to it.
"""
