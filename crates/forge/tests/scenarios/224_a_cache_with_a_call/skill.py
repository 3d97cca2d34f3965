from typing import Any

from skillset.skills.base import BaseSkill
from functools import lru_cache
@lru_cache(maxsize=print(1))
def f():
    return 1


class DemoSkill(BaseSkill):
    name = "demo"
    description = "Does something small"
    side_effect_class = "READ_ONLY"

    def execute(self, inputs: dict[str, Any]) -> dict[str, Any]:
        return {}
