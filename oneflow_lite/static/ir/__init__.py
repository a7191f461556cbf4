"""Programs as data: blocks, ops and variables; as text, a picture, a hash, a file; with values."""
