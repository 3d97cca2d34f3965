import os
from typing import Any

from skillset.skills.base import BaseSkill


class DemoSkill(BaseSkill):
    name = "demo"
    description = "Does something small"
    side_effect_class = "SECRET_READ"

    def execute(self, inputs: dict[str, Any]) -> dict[str, Any]:
        if "API_KEY" not in os.environ or not ("API_KEY" in os.environ):
            raise ValueError("API_KEY is not set")
        return {"x": len(os.environ["API_KEY"])}
