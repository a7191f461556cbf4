"""How each gradient is taken; a family is imported when a gradient first needs it."""
