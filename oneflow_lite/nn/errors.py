"""Exceptions that only modules raise, derived as those of `oneflow_lite.errors` are."""

from __future__ import annotations

from oneflow_lite.errors import FlowError


class ModuleNameError(FlowError, KeyError):
    """A parameter, buffer or submodule cannot be registered under this name."""

    __str__ = Exception.__str__  # KeyError would show the message as a quoted key


class ModuleAttributeError(FlowError, AttributeError):
    """A module has no such attribute, or `Module.__init__` has not run yet."""


class MissingMethodError(FlowError, NotImplementedError):
    """A method was called that a subclass has to define, as `forward`."""


class HookError(FlowError, RuntimeError):
    """A hook returned something that cannot be used."""
