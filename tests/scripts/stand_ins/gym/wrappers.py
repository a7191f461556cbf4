"""None is needed."""
