from typing import Any

from skillset.skills.base import BaseSkill
from xml.etree import ElementTree


class DemoSkill(BaseSkill):
    name = "demo"
    description = "Does something small"
    side_effect_class = "READ_ONLY"

    def execute(self, inputs: dict[str, Any]) -> dict[str, Any]:
        try:
            root = ElementTree.fromstring(str(inputs["text"]))
        except ElementTree.ParseError as error:
            raise ValueError(str(error)) from error
        return {"tag": root.tag}
