"""Distribution: the base class, and the computations that all distributions share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from oneflow_lite.arrays.refusals import guard_all
from oneflow_lite.arrays.size import Size
from oneflow_lite.autograd.engine.rule_namespace import FUNCTORS_F as F
from oneflow_lite.autograd.engine.run import grad
from oneflow_lite.distributions.constraints import Constraint, is_dependent
from oneflow_lite.distributions.utils import lazy_property, missing
from oneflow_lite.errors import ArgumentError, MissingMethodError
from oneflow_lite.functors.random import default_generator
from oneflow_lite.tensors.caller_warnings import warn_caller
from oneflow_lite.tensors.mode import inference_mode, no_grad
from oneflow_lite.tensors.tensor import Tensor

__all__ = ["Distribution", "ExponentialFamily"]


def parameters(**named: Constraint) -> Any:
    """Return `arg_constraints`: the constraint of each parameter."""
    return named


class Distribution:
    """The base of all distributions.

    `batch_shape` is the shape of the parameters together, `event_shape` the shape of a draw. A
    subclass declares the constraints of its parameters as `arg_constraints`, and the constraint of
    its draws as `support`. `expand` expands attributes that are tensors or distributions whose
    shapes begin with the shape of the batch.

    Parameters
    ----------
    batch_shape, event_shape : tuple of int
    validate_args : bool, optional
        Whether values of parameters and samples are checked (on the CPU; shapes are everywhere).
        By default as `set_default_validate_args` says: yes, unless Python runs with `-O`.

    Raises
    ------
    ArgumentError
        When a parameter does not fulfil its constraint in `arg_constraints`.
    """

    has_rsample: Any = False
    has_enumerate_support: Any = False
    _validate_args = __debug__

    arg_constraints: Any = property(
        missing("arg_constraints", "The constraint of each parameter, by name.")
    )
    support: Any = property(missing("support", "The constraint that every draw fulfils."))
    mean: Any = property(missing("mean", "The mean of the draws."))
    mode: Any = property(missing("mode", "The most probable draw."))
    variance: Any = property(missing("variance", "The variance of the draws."))
    stddev: Any = property(lambda self: self.variance.sqrt(), doc="The square root of `variance`.")
    batch_shape: Any = property(
        lambda self: self._batch_shape, doc="The shape of the parameters together."
    )
    event_shape: Any = property(lambda self: self._event_shape, doc="The shape of one draw.")

    rsample: Callable[..., Any] = missing(
        "rsample", "Return draws as `sample` does, with gradients of the parameters."
    )
    log_prob: Callable[..., Any] = missing(
        "log_prob", "Return the logarithm of the density, or of the probability, at `value`."
    )
    cdf: Callable[..., Any] = missing("cdf", "Return the probability of a draw up to `value`.")
    icdf: Callable[..., Any] = missing(
        "icdf", "Return the number below which a draw is with the probability `value`."
    )
    entropy: Callable[..., Any] = missing("entropy", "Return the entropy, in nats.")
    enumerate_support: Callable[..., Any] = missing(
        "enumerate_support", "Return all draws that are possible, along a new first dimension."
    )

    @staticmethod
    def set_default_validate_args(value: bool) -> None:
        """Set whether distributions check the values of their arguments."""
        if value not in (True, False):
            raise ArgumentError(f"value: expected True or False, got {value!r}")
        Distribution._validate_args = value

    def __init__(
        self,
        batch_shape: Sequence[int] = (),
        event_shape: Sequence[int] = (),
        validate_args: bool | None = None,
    ) -> None:
        self._batch_shape, self._event_shape = Size(batch_shape), Size(event_shape)
        if validate_args is not None:
            self._validate_args = validate_args
        if self._validate_args:
            self._check_parameters()
        super().__init__()  # that of another base class

    def _check_parameters(self) -> None:
        constraints = self._said("arg_constraints") or {}
        for name, constraint in constraints.items():
            if is_dependent(constraint):
                continue
            # A lazy parameter would be computed for the check; the given parameter was checked.
            lazy = name not in vars(self) and isinstance(getattr(type(self), name), lazy_property)
            if not lazy:
                self._check(name, getattr(self, name), constraint)

    def _said(self, name: str) -> Any:
        """Return what the subclass declares; None, with a warning, when it does not."""
        try:
            return getattr(self, name)
        except NotImplementedError:
            warn_caller(
                f"{type(self).__name__} declares no {name}, so values are not validated; "
                "declare it, or pass validate_args=False"
            )
            return None

    def _check(self, name: str, value: Tensor, constraint: Constraint) -> None:
        value = value.detach()
        says = {"name": type(self).__name__, "argument": name, "expected": constraint.says()}
        F.check_values(value, constraint.check(value), **says, generator=default_generator)

    def expand(self, batch_shape: Sequence[int], _instance: Distribution | None = None) -> Any:
        """Return the distribution with its parameters expanded to `batch_shape`."""
        new = self._get_checked_instance(type(self), _instance)
        batch_shape, n = Size(batch_shape), len(self.batch_shape)
        for name, value in vars(self).items():
            inner = isinstance(value, Distribution)
            if isinstance(value, Tensor) or inner:
                shape = tuple(value.batch_shape if inner else value.shape)
                if shape[:n] == self.batch_shape:
                    value = value.expand(batch_shape + shape[n:])
            new.__dict__[name] = value
        new._batch_shape = batch_shape
        return new

    def _get_checked_instance(self, cls: Any, _instance: Distribution | None = None) -> Any:
        """Return the instance that `expand` fills: a bare instance, or the subclass's own."""
        if _instance is None and type(self).__init__ is not cls.__init__:
            name = type(self).__name__
            raise MissingMethodError(f"{name} has an __init__ of its own; define expand() as well")
        return type(self).__new__(type(self)) if _instance is None else _instance

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        """Return draws of shape `sample_shape + batch_shape + event_shape`, without gradient."""
        with no_grad():
            return self.rsample(sample_shape)

    def sample_n(self, n: int) -> Tensor:
        """Return n draws; deprecated."""
        warn_caller("sample_n(n): call sample((n,)) instead", FutureWarning)
        return self.sample((n,))

    def perplexity(self) -> Tensor:
        """Return the exponential of the entropy."""
        return self.entropy().exp()

    def _extended_shape(self, sample_shape: Sequence[int] = ()) -> Size:
        """Return the shape of draws."""
        return Size((*sample_shape, *self._batch_shape, *self._event_shape))

    def _validate_sample(self, value: Tensor | float) -> None:
        """Raise `ArgumentError` when `value` has not the shape of a draw, or is no draw."""
        if not isinstance(value, Tensor):
            raise ArgumentError(f"value: expected a Tensor, got {type(value).__name__}")
        shape, expected = tuple(value.shape), self._batch_shape + self._event_shape
        n = len(self._event_shape)
        fits = len(shape) >= n and shape[len(shape) - n :] == self._event_shape
        for size, wanted in zip(reversed(shape), reversed(expected), strict=False):
            fits = fits and (size == wanted or 1 in (size, wanted))
        if not fits:
            raise ArgumentError(
                f"value: expected a shape that broadcasts with {expected}, the batch_shape and the "
                f"event_shape, and ends with the event_shape {self._event_shape}, got {shape}"
            )
        if (support := self._said("support")) is not None:
            self._check("value", value, support)

    def _checked(self, value: Tensor | float) -> Any:
        """Return a value, after a check if values are checked."""
        if self._validate_args:
            self._validate_sample(value)
        return value

    def __repr__(self) -> str:
        shown = {name: vars(self)[name] for name in self.arg_constraints if name in vars(self)}
        says = (f"{k}: {v if v.numel() == 1 else v.size()}" for k, v in shown.items())
        return f"{type(self).__name__}({', '.join(says)})"


class ExponentialFamily(Distribution):
    """Distributions with densities exp(θ·t(x) - F(θ) + k(x)).

    A subclass gives the natural parameters θ as `_natural_params`, the log normalizer F as
    `_log_normalizer(*θ)`, and the mean of the carrier measure k as `_mean_carrier_measure`.
    """

    _natural_params: Any = property(missing("_natural_params"))
    _mean_carrier_measure: Any = property(missing("_mean_carrier_measure"))
    _log_normalizer: Callable[..., Any] = missing("_log_normalizer")

    def _at_natural(self) -> tuple[Tensor, list[Tensor], Any]:
        """Return F(θ), θ and ∇F(θ)."""
        with inference_mode(False):
            given = self._natural_params
            natural = [p if p.requires_grad else p.detach().requires_grad_() for p in given]
            normalizer = self._log_normalizer(*natural)
        slopes = grad(normalizer.sum(), natural, create_graph=True)
        return normalizer, natural, slopes

    def entropy(self) -> Tensor:
        """Return F(θ) - θ·∇F(θ) - E k(x).

        Nielsen and Nock, Entropies and cross-entropies of exponential families, 2010.
        """
        result, natural, slopes = self._at_natural()
        result = result - self._mean_carrier_measure
        for parameter, slope in zip(natural, slopes, strict=True):
            inner = parameter * slope
            result = result - inner.reshape((*self._batch_shape, -1)).sum(-1)
        return result


guard_all(globals())
