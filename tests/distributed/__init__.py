"""Several processes: `cases` are run by every rank of a world that `test_worlds` starts."""
