from typing import Any

from skillset.skills.base import BaseSkill
from functools import partial, reduce, wraps
import operator
def twice(f):
    @wraps(f)
    def inner(x):
        return f(x) * 2
    return inner


ADD = 0


class DemoSkill(BaseSkill):
    name = "demo"
    description = "Does something small"
    side_effect_class = "READ_ONLY"

    def execute(self, inputs: dict[str, Any]) -> dict[str, Any]:
        return {"x": twice(len)("x")}
        return {}
