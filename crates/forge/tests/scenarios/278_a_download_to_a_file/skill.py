from typing import Any

from skillset.skills.base import BaseSkill
import urllib.request


class DemoSkill(BaseSkill):
    name = "demo"
    description = "Does something small"
    side_effect_class = "NETWORK"

    def execute(self, inputs: dict[str, Any]) -> dict[str, Any]:
        urllib.request.urlretrieve("https://api.example.com/x", "x")
        return {}
