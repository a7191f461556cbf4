"""An exception on its way from a worker to the main process."""

from __future__ import annotations

import traceback
from multiprocessing.reduction import ForkingPickler
from typing import Any, NoReturn


class _Text(str):
    """A message that KeyError, which shows the repr of its argument, shows as it is."""

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
        try:
            ForkingPickler.dumps(self.exc_type)
        except Exception:  # a class of a function's body, say
            self.exc_type = RuntimeError

    def reraise(self) -> NoReturn:
        """Raise the exception again; a RuntimeError where its class takes more than a message."""
        message = _Text(self.exc_msg)
        try:
            if getattr(self.exc_type, "message", None):  # such classes often take no other argument
                error = self.exc_type(message=message)
            else:
                error = self.exc_type(message)
        except Exception:
            error = RuntimeError(message)
        raise error
