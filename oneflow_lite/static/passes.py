"""The passes, under the name by which users import them."""

from oneflow_lite.static.runtime.passes import (
    DEFAULT_PASSES as DEFAULT_PASSES,
    PASSES as PASSES,
    plannable as plannable,
    run_passes as run_passes,
)
