from typing import Any

from skillset.skills.base import BaseSkill
import os


class DemoSkill(BaseSkill):
    name = "demo"
    description = "Does something small"
    side_effect_class = "SECRET_READ"

    def execute(self, inputs: dict[str, Any]) -> dict[str, Any]:
        f = [x := os.environ][0]["OTHER"]
        return {}
