from typing import Any

from skillset.skills.base import BaseSkill
from xml.etree import ElementInclude


class DemoSkill(BaseSkill):
    name = "demo"
    description = "Does something small"
    side_effect_class = "READ_ONLY"

    def execute(self, inputs: dict[str, Any]) -> dict[str, Any]:
        return {"x": str(ElementInclude)}
