from __future__ import division as annotations
from typing import Any

from skillset.skills.base import BaseSkill
def f(x: print(1)):
    return x


class DemoSkill(BaseSkill):
    name = "demo"
    description = "Does something small"
    side_effect_class = "READ_ONLY"

    def execute(self, inputs: dict[str, Any]) -> dict[str, Any]:
        return {}
