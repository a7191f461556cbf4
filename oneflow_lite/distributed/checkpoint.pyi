"""Written by `python -m oneflow_lite.ops.index --write`; not by hand."""

from oneflow_lite.files.sharded_files import (
    FileSystemReader as FileSystemReader, FileSystemWriter as FileSystemWriter, load as load,
    remove_old as remove_old, save as save, saved as saved
)
