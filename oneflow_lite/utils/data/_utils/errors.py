"""An exception on its way from a worker to the main process."""

from __future__ import annotations

import traceback
from typing import Any, NoReturn


class _Text(str):
    """A message that a KeyError, which shows its argument's repr, shows unchanged."""

    def __repr__(self) -> str:
        return str(self)


class ExceptionWrapper:
    """The class of an exception, where it can be sent, and its traceback as text.

    Parameters
    ----------
    error : Exception
        The exception that was raised.
    where : str
        The place where that happened, for the message.
    """

    def __init__(self, error: Exception, where: str = "in background") -> None:
        name = type(error).__name__
        text = "".join(traceback.format_exception(error))
        self.exc_msg = f"Caught {name} {where}.\nOriginal {text}"
        self.exc_type: Any = type(error)
        from multiprocessing.reduction import ForkingPickler  # absent where no process can start

        try:
            ForkingPickler.dumps(self.exc_type)
        except Exception:  # say, a class defined inside a function
            self.exc_type = RuntimeError

    def reraise(self) -> NoReturn:
        """Raise the exception again; a RuntimeError where its class takes more than a message."""
        message = _Text(self.exc_msg)
        try:
            if getattr(self.exc_type, "message", None):  # often the only argument of such a class
                error = self.exc_type(message=message)
            else:
                error = self.exc_type(message)
        except Exception:
            error = RuntimeError(message)
        raise error
