from typing import Any

from skillset.skills.base import BaseSkill
import xml.etree.ElementTree as ET


class DemoSkill(BaseSkill):
    name = "demo"
    description = "Does something small"
    side_effect_class = "READ_ONLY"

    def execute(self, inputs: dict[str, Any]) -> dict[str, Any]:
        keep = ET.ElementTree(ET.Element("a")).write
        keep("logs/out.xml")
        return {}
