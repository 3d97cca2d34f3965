from typing import Any

from skillset.skills.base import BaseSkill

class DemoSkill(BaseSkill):
    name = "demo"
    description = "Does something small"
    side_effect_class = "READ_ONLY"

    def execute(self, inputs: dict[str, Any]) -> dict[str, Any]:
        f = open("/etc/hostname", "rb", buffering=0)
        f.__init__("out.txt", "wb")
        return {"x": 1}
