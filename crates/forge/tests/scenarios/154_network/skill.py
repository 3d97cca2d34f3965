from typing import Any

from skillset.skills.base import BaseSkill
import urllib.request


class DemoSkill(BaseSkill):
    name = "demo"
    description = "Does something small"
    side_effect_class = "NETWORK"

    def execute(self, inputs: dict[str, Any]) -> dict[str, Any]:
        with urllib.request.urlopen("https://api.example.com/x") as answer:
            return {"x": answer.read().decode()}
