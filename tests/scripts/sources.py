"""The public scripts that are run on both libraries, as `sources.toml` lists them.

They were chosen by a rule, not by outcome: of each repository, the first few of its scripts in the
order of a hash of their paths, among those that take a gradient, read no data that has to be
downloaded, and need no package beyond a few. Files that define models are run by a `call`. Those
under `aside` were set aside unopened, and run when all the others had been.
"""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import NamedTuple


class Source(NamedTuple):
    """A script: `edits` are (file or "", pattern, replacement); `prepare` is code run before."""

    repository: str
    commit: str
    path: str
    args: str = ""
    edits: tuple[tuple[str, str, str], ...] = ()
    prepare: str = ""
    call: str = ""
    packages: tuple[str, ...] = ()
    aside: bool = False

    def __str__(self) -> str:
        return f"{self.repository}/{self.path}"

    @property
    def changed(self) -> str:
        """Say what is not as it was published, apart from data sets and devices."""
        said = [f"`{self.args}`"] if self.args else []
        said += ["edited"] if self.edits else []
        said += ["data"] if self.prepare else []
        said += ["called"] if self.call else []
        return ", ".join(said)


def read(path: Path) -> list[Source]:
    """Return the scripts of a list."""
    found = []
    for repository, listed in tomllib.loads(path.read_text()).items():
        commit, packages = listed["commit"], tuple(listed.get("packages", ()))
        for script in listed.get("script", []):
            edits = tuple(tuple(edit) for edit in script.pop("edits", ()))
            found.append(Source(repository, commit, edits=edits, packages=packages, **script))
        for name in listed.get("aside", []):
            found.append(Source(repository, commit, name, packages=packages, aside=True))
    return found


SOURCES = read(Path(__file__).with_name("sources.toml"))
