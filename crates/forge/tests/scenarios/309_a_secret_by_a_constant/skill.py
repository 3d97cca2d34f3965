from typing import Any

from skillset.skills.base import BaseSkill
import os
NAME = "API_KEY"


class DemoSkill(BaseSkill):
    name = "demo"
    description = "Does something small"
    side_effect_class = "SECRET_READ"

    def execute(self, inputs: dict[str, Any]) -> dict[str, Any]:
        env = os.environ
        return {"x": len(env[NAME]), "y": bool(os.getenv("API_" "KEY"))}
        return {}
