from typing import Any

from skillset.skills.base import BaseSkill
import asyncio


class DemoSkill(BaseSkill):
    name = "demo"
    description = "Does something small"
    side_effect_class = "NETWORK"

    def execute(self, inputs: dict[str, Any]) -> dict[str, Any]:
        asyncio.open_connection(host="evil.example.net", port=1)
        return {}
