"""Gradient rules of the ops; a family is imported when a gradient first needs it."""
