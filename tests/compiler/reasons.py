"""The words that a reason of `explain()` has to say, and those that it must not."""

from __future__ import annotations

import re
from collections.abc import Collection

LINE = re.compile(r"at .+:\d+ in \S+")
# Names of the compiler's own, addresses, and words that name nothing.
INTERNAL = re.compile(
    r"argument_\d|FUNCTORS|stand-in|_F\b|\b0x[0-9a-f]{6,}|\b[aegpty]\d+\b|what differs|^something|"
    r"\b(a|the) tensors? (of shape \(.*\) )?from outside|_modules\[|_parameters\[|_buffers\[|\bo\b"
)
# What belongs to the thread or the process, and to no line.
SETTINGS = (
    "grad mode", "inference mode", "the default dtype", "the default device",
    "whether there are hooks on all modules",
)  # fmt: skip


def check_reason(reason: str, names: Collection[str]) -> None:
    """Require that a reason names a line or one of a user's variables, and nothing internal."""
    plain = LINE.sub("", reason)
    assert not INTERNAL.search(plain), reason
    words = set(re.findall(r"\w+", plain))
    assert LINE.search(reason) or words & set(names) or reason.startswith(SETTINGS), reason
