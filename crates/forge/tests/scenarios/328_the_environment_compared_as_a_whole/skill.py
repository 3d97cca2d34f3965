import os
from typing import Any

from skillset.skills.base import BaseSkill


class DemoSkill(BaseSkill):
    name = "demo"
    description = "Does something small"
    side_effect_class = "SECRET_READ"

    def execute(self, inputs: dict[str, Any]) -> dict[str, Any]:
        return {"x": os.environ in [inputs], "y": "API_KEY" in os.environ in [inputs]}
