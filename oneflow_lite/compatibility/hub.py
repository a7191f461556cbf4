"""`torch.hub` and `utils.model_zoo`: weights by URL, and models of a folder with a `hubconf.py`."""

from __future__ import annotations

import hashlib
import importlib.util
import os
import re
import shutil
import sys
import tempfile
import urllib.request
from pathlib import Path
from types import ModuleType
from typing import Any
from urllib.parse import urlparse as urlparse

from oneflow_lite.errors import ArgumentError, UnsupportedError, arg_error
from oneflow_lite.files.serialization import load as _load

HASH_REGEX = re.compile(r"-([a-f0-9]*)\.")  # the beginning of a file's SHA-256, in its name
_folder: list[str] = []


def _get_torch_home() -> str:
    """Return the folder of fetched files: TORCH_HOME, or `torch` in the user's cache."""
    cache = os.environ.get("XDG_CACHE_HOME", "~/.cache")
    return os.path.expanduser(os.environ.get("TORCH_HOME", os.path.join(cache, "torch")))


def get_dir() -> str:
    """Return the folder of fetched models: that of `set_dir`, or `hub` in TORCH_HOME."""
    return _folder[0] if _folder else os.path.join(_get_torch_home(), "hub")


def set_dir(d: str | os.PathLike[str]) -> None:
    """Set the folder of fetched models."""
    _folder[:] = [os.path.expanduser(d)]


def download_url_to_file(
    url: str, dst: str, hash_prefix: str | None = None, progress: bool = True
) -> None:
    """Fetch a file; raise `ArgumentError` unless its SHA-256 begins with a prefix."""
    target = Path(dst).expanduser()
    with urllib.request.urlopen(url) as source:
        handle, name = tempfile.mkstemp(dir=target.parent)
        try:
            with open(handle, "wb") as file:
                shutil.copyfileobj(source, file)
            digest = hashlib.sha256(Path(name).read_bytes()).hexdigest()
            if not digest.startswith(hash_prefix or ""):
                expected, hint = f"a file whose hash begins with {hash_prefix}", "fetch it anew"
                kind = ArgumentError
                raise arg_error("download_url_to_file", "url", expected, digest, hint, kind)
            os.replace(name, target)
        finally:
            Path(name).unlink(missing_ok=True)


def load_state_dict_from_url(
    url: str,
    model_dir: str | None = None,
    map_location: Any = None,
    progress: bool = True,
    check_hash: bool = False,
    file_name: str | None = None,
    weights_only: bool = True,
) -> Any:
    """Return what a file of weights holds; it is fetched once, into `hub/checkpoints`."""
    folder = Path(model_dir or os.path.join(get_dir(), "checkpoints"))
    folder.mkdir(parents=True, exist_ok=True)
    name = file_name or os.path.basename(urlparse(url).path)
    if not (folder / name).exists():
        found = HASH_REGEX.search(name) if check_hash else None
        download_url_to_file(url, str(folder / name), found.group(1) if found else None, progress)
    return _load(folder / name, map_location=map_location)


load_url = load_state_dict_from_url


def _entries(repo_or_dir: Any, source: str, op: str) -> ModuleType:
    """Return the module `hubconf.py` of a folder."""
    if source != "local":
        raise UnsupportedError(
            f"hub.{op}(): repositories are not fetched; fetch {repo_or_dir} and pass its folder "
            "with source='local'"
        )
    file = Path(repo_or_dir) / "hubconf.py"
    spec = importlib.util.spec_from_file_location("hubconf", file)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.path.insert(0, str(repo_or_dir))
    try:
        spec.loader.exec_module(module)
    finally:
        sys.path.remove(str(repo_or_dir))
    return module


def list(github: Any, *args: Any, source: str = "github", **options: Any) -> Any:
    """Return the names of the models of a folder, with `source="local"`."""
    found = vars(_entries(github, source, "list")).items()
    return [name for name, value in found if callable(value) and name[0] != "_"]


def help(github: Any, model: str, *args: Any, source: str = "github", **options: Any) -> Any:
    """Return the docstring of a model of a folder, with `source="local"`."""
    return getattr(_entries(github, source, "help"), model).__doc__


def load(repo_or_dir: Any, model: str, *args: Any, source: str = "github", **kwargs: Any) -> Any:
    """Return a model of a folder, with `source="local"`, built with the other arguments."""
    for option in ("trust_repo", "force_reload", "verbose", "skip_validation"):
        kwargs.pop(option, None)
    return getattr(_entries(repo_or_dir, source, "load"), model)(*args, **kwargs)
