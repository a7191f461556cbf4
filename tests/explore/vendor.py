"""The libraries of the explorer's page, from npm.

`python -m tests.explore.vendor` takes the files that `VERSIONS` names from the packages as npm has
them and writes them beside it, with licences and new checksums. To renew a library, change its
version in `VERSIONS`, run this and the tests of the page, and look at the page.
"""

from __future__ import annotations

import hashlib
import subprocess
import tarfile
import tempfile
from pathlib import Path

import attrs

FOLDER = Path(__file__).resolve().parents[2] / "oneflow_lite" / "explore" / "page" / "vendor"
HEAD = """\
# Each line: our file, npm's package, version, the file in the package, sha256.
# `python -m tests.explore.vendor` renews them.
"""


@attrs.frozen
class File:
    """A line of `VERSIONS`."""

    name: str
    package: str
    version: str
    origin: str
    sha256: str

    def __str__(self) -> str:
        return " ".join(attrs.astuple(self))


def listed() -> list[File]:
    """Return what `VERSIONS` names."""
    lines = (FOLDER / "VERSIONS").read_text().splitlines()
    return [File(*line.split()) for line in lines if not line.startswith("#")]


def checksum(name: str) -> str:
    """Return the sha256 of one of our copies."""
    return hashlib.sha256((FOLDER / name).read_bytes()).hexdigest()


def renewed(file: File) -> File:
    """Copy a file from npm, and return its line."""
    with tempfile.TemporaryDirectory() as folder:
        spec = f"{file.package}@{file.version}"
        command = ["npm", "pack", "--silent", "--pack-destination", folder, spec]
        packed = subprocess.run(command, check=True, capture_output=True, text=True)
        with tarfile.open(Path(folder) / packed.stdout.split()[-1]) as archive:
            content = archive.extractfile(f"package/{file.origin}")
            assert content is not None, file
            (FOLDER / file.name).write_bytes(content.read())
    return attrs.evolve(file, sha256=checksum(file.name))


def main() -> None:
    """Renew all files."""
    lines = [str(renewed(file)) for file in listed()]
    (FOLDER / "VERSIONS").write_text(HEAD + "\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
