from typing import Any

from skillset.skills.base import BaseSkill
from concurrent.futures import ThreadPoolExecutor


class DemoSkill(BaseSkill):
    name = "demo"
    description = "Does something small"
    side_effect_class = "READ_ONLY"

    def execute(self, inputs: dict[str, Any]) -> dict[str, Any]:
        with ThreadPoolExecutor(max_workers=2) as pool:
            return {"x": list(pool.map(len, ["a"]))}
