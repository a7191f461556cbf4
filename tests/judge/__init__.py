"""The judge of `flow.compile`: the plain function runs beside each replay, and all is compared."""

from tests.judge.judge import Judge, JudgeError, judge
from tests.judge.judged_world import World
from tests.judge.loops import judged_loops

__all__ = ["Judge", "JudgeError", "World", "judge", "judged_loops"]
