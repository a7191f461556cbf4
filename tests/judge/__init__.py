"""The judge of `flow.compile`: the plain function runs beside each replay, and all is compared."""

from tests.judge.judge import Judge, JudgeError, judge
from tests.judge.judged_world import World

__all__ = ["Judge", "JudgeError", "World", "judge"]
