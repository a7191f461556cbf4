"""How Programs come about: ops are captured instead of run, gradients and updates among them."""
