import tempfile
from typing import Any

from skillset.skills.base import BaseSkill


class DemoSkill(BaseSkill):
    name = "demo"
    description = "Does something small"
    side_effect_class = "FILE_WRITE"

    def execute(self, inputs: dict[str, Any]) -> dict[str, Any]:
        with tempfile.NamedTemporaryFile(dir="/etc"):
            return {"x": 1}
