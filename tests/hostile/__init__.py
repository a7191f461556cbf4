"""Every public callable with hostile values in the place of each argument."""
