"""Arithmetic: each bad argument raises an error that names it, and nothing is changed."""

import pytest

import oneflow_lite as flow

ONE = """
    neg abs sgn sign square sqrt rsqrt reciprocal floor ceil trunc frac round nan_to_num conj angle
    positive
""".split()
TWO = """
    add sub mul div pow floor_divide fmod remainder maximum minimum clamp_min clamp_max
""".split()
B, I = flow.tensor([[True]]), flow.tensor([[1, 0, 2]])  # noqa: E741
REAL_ONLY = """
    sign floor ceil trunc frac round maximum minimum clamp_min clamp_max fmod remainder
""".split()
ERRORS = [
    *[(lambda x, n=n: getattr(flow, n)(2.0), TypeError, n, "input") for n in ONE],
    *[(lambda x, n=n: getattr(flow, n)(x, "a"), TypeError, n, "other") for n in TWO
      if n[:5] != "clamp"],
    *[(lambda x, n=n: getattr(flow, n)(x, flow.ones(5)), RuntimeError, n, "") for n in TWO],
    *[(lambda x, n=n: getattr(flow, n)(*[x * 1j] * (1 + (n in TWO))), RuntimeError, n, "input")
      for n in REAL_ONLY],
    *[(lambda x, n=n: getattr(flow, n)(I, I), RuntimeError, n, "other")
      for n in ("floor_divide", "fmod", "remainder")],
    *[(lambda x, n=n: getattr(flow, n)(B, B), RuntimeError, n, "other")
      for n in ("sub", "floor_divide", "fmod", "remainder")],
    (lambda x: flow.neg(B), RuntimeError, "neg", "input"),
    (lambda x: flow.positive(B), RuntimeError, "positive", "input"),
    (lambda x: 1 - B, RuntimeError, "sub", "other"),
    (lambda x: flow.frac(I), RuntimeError, "frac", "input"),
    (lambda x: flow.round(x, decimals=1.5), TypeError, "round", "decimals"),
    (lambda x: flow.add(x, x, alpha=1j), RuntimeError, "add", "alpha"),
    (lambda x: flow.sub(x, x, alpha="a"), TypeError, "sub", "alpha"),
    (lambda x: flow.add(I, I, alpha=0.5), RuntimeError, "add", "alpha"),
    (lambda x: flow.div(x, x, rounding_mode="up"), ValueError, "div", "rounding_mode"),
    (lambda x: flow.div(x, 1j, rounding_mode="floor"), RuntimeError, "div", "other"),
    (lambda x: flow.div(I, I, rounding_mode="trunc"), RuntimeError, "div", "other"),
    (lambda x: flow.pow(I, -1), RuntimeError, "pow", "exponent"),
    (lambda x: flow.maximum(x, 2.0), TypeError, "maximum", "other"),
    (lambda x: flow.clamp(x), ValueError, "clamp", "min"),
    (lambda x: flow.clamp(x, 1j), RuntimeError, "clamp", "min"),
    (lambda x: flow.clamp(x, max="a"), TypeError, "clamp", "max"),
    (lambda x: flow.clamp_min(x, None), TypeError, "clamp_min", "min"),
    (lambda x: flow.clamp_max(x, x * 1j), RuntimeError, "clamp_max", "max"),
    (lambda x: flow.where(x, x, x), RuntimeError, "where", "condition"),
    (lambda x: flow.where(x > 0, x), TypeError, "where", "other"),
    (lambda x: flow.where(x > 0, x, flow.ones(5)), RuntimeError, "where", "other"),
    (lambda x: flow.where(True, x, x), TypeError, "where", "condition"),
    (lambda x: flow.lerp(x, x, "a"), TypeError, "lerp", "weight"),
    (lambda x: flow.lerp(x, flow.ones(5), 0.5), RuntimeError, "lerp", "end"),
    (lambda x: flow.addcmul(x, x, [1.0]), TypeError, "addcmul", "tensor2"),
    (lambda x: flow.addcmul(x, flow.ones(5), x), RuntimeError, "addcmul", "tensor1"),
    (lambda x: flow.addcmul(I, I, I, value=0.5), RuntimeError, "addcmul", "value"),
    (lambda x: flow.addcdiv(x, I, I), RuntimeError, "addcdiv", "tensor2"),
    (lambda x: flow.complex(x, x.double()), RuntimeError, "complex", "imag"),
    (lambda x: flow.complex(x.half(), x.half()), RuntimeError, "complex", "real"),
    (lambda x: flow.complex(x, I), RuntimeError, "complex", "imag"),
    (lambda x: flow.complex(x, 1.0), TypeError, "complex", "imag"),
]  # fmt: skip


@pytest.mark.parametrize(("call", "kind", "name", "argument"), ERRORS)
def test_errors_leave_everything_as_it_was(call, kind, name, argument):
    x = flow.tensor([[1.0, -2.0, 3.0]], requires_grad=True)
    with pytest.raises(kind, match=rf"(?s)^{name}\(\).*{argument}") as caught:
        call(x)
    assert isinstance(caught.value, flow.errors.FlowError)
    assert x.tolist() == [[1, -2, 3]] and x._version == 0 and x.grad is None
    assert I.tolist() == [[1, 0, 2]] and B.tolist() == [[True]]
