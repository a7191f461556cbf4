"""Writes complex numbers into random programs for `flow.compile`."""

from __future__ import annotations

from tests.fuzz.compiled_words import lines
from tests.fuzz.compiled_writer import Writer

# What follows `name =`. `c0` is a complex leaf, `c1` a complex buffer.
OPS = lines("""
{x} * c0; c0 + {x}; c0.conj() * {x}; c1 * {x}; c1 - c0; c0 / ({x} * {x} + 0.5); {x} * 1j; {x} @ c0.T
{x} + (0.5 - 1j); {x} * (0.25 + {s} * 1j); {x}.abs(); {x}.angle(); {x}.real; {x}.imag; {x}.conj()
c0.real; c0.imag; c1.imag; {x}.sgn(); {x}.exp(); {x} ** 2; ({x} * 1j).exp(); (c0 * {x}).real
flow.complex({x}, {y}); flow.view_as_real({x}); flow.view_as_real(c1); {x}.sum(); {x}.cumsum({d})
({x} * {x}.conj()).real; {x}.detach() * c0; flow.stack([{x}, c0], {d}); flow.cat([c0, c1], {d})
{x}.mean({d}); {x}.T; {x}.reshape(-1); flow.where({x}.abs() > {s}, {x}, c0); {x}.cos(); {x}.tanh()
{x}.to(flow.complex128); {x}.is_complex() * {y}; flow.view_as_complex(flow.stack([{x}, {y}], -1))
flow.zeros_like(c1) + {x}; flow.ones(3, dtype=flow.complex128) * {x}; c0[0]; c1[:, 1:]
{x}.prod({d})
""")

# Whole lines.
WRITES = lines("""
{x}.mul_(1j); {x}.mul_(c0); {x}.add_(c1); {x}.real.add_({y}); {x}.imag.zero_(); {x}.imag.mul_({s})
{x}.copy_(c0); c1.mul_(1j); c1.add_({x}); c1[0] = {s}; c1.real.copy_({y}); c1.imag[0] = 0.5
flow.view_as_real({x}).mul_({s}); {x} *= {s} * 1j; {x}.exp_(); {x}.sub_({y}, alpha=2)
""")

CHANGES = lines("""
c1.mul_(2j); c1 = data((2, 3), 41, dtype="complex128"); c0.detach().imag.zero_(); c0.grad = None
c0.data = data((2, 3), 42, dtype="complex128"); c1.imag = 0.5; c0.requires_grad_(False)
""")


class ComplexNumbers(Writer):
    """Writes ops on complex tensors."""

    def complex_world(self) -> None:
        self.setting(f"c0 = data((2, 3), {self.number(0, 9)}, 'C', 'complex128', True)")
        self.setting(f"c1 = data((2, 3), {self.number(0, 9)}, 'C', 'complex128')")
        self.inputs.append("c0")
        self.shown += ["c0", "c1"]
        self.known += ["c0", "c1"]
        self.changes += CHANGES

    def write_complex(self) -> None:
        if self.rarely(5):
            for _ in range(6):
                line = self.filled(self.pick(WRITES))
                if self.may_write(line) and self.add(line):
                    return
        else:
            self.make(OPS)
