import time
from typing import Any

from skillset.skills.base import BaseSkill

class DemoSkill(BaseSkill):
    name = "demo"
    description = "Does something small"
    side_effect_class = "READ_ONLY"

    def execute(self, inputs: dict[str, Any]) -> dict[str, Any]:
        time.clock_settime(time.CLOCK_REALTIME, 0.0)
        return {"x": 1}
