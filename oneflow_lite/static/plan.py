"""The plan that passes work on, under the name by which users import it."""

from oneflow_lite.static.runtime.plan import (
    ExecutionPlan as ExecutionPlan,
    MemoryPlan as MemoryPlan,
    PassReport as PassReport,
)
