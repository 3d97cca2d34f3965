from typing import Any

from skillset.skills.base import BaseSkill
from collections import Counter, defaultdict


class DemoSkill(BaseSkill):
    name = "demo"
    description = "Does something small"
    side_effect_class = "READ_ONLY"

    def execute(self, inputs: dict[str, Any]) -> dict[str, Any]:
        seen = defaultdict(list)
        return {"x": Counter(inputs["x"].split()), "y": seen}
