import shutil
from typing import Any

from skillset.skills.base import BaseSkill


class DemoSkill(BaseSkill):
    name = "demo"
    description = "Does something small"
    side_effect_class = "FILE_WRITE"

    def execute(self, inputs: dict[str, Any]) -> dict[str, Any]:
        shutil.copytree("notes", dst="/root/x")
        return {"x": 1}
