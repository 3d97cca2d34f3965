from typing import Any

from skillset.skills.base import BaseSkill
from collections import defaultdict
COUNTS: defaultdict[str, int] = defaultdict(lambda: 0)


class DemoSkill(BaseSkill):
    name = "demo"
    description = "Does something small"
    side_effect_class = "READ_ONLY"

    def execute(self, inputs: dict[str, Any]) -> dict[str, Any]:
        COUNTS["a"] += 1
        return {}
