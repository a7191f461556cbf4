"""Argument checks that elementwise functors share; they stand in `checks.py`."""

from oneflow_lite.functors.checks import (
    check_number as check_number,
    real as real,
    real_floating as real_floating,
    real_floating_pair as real_floating_pair,
)
