import os
import shutil
import tempfile
from typing import Any

from skillset.skills.base import BaseSkill


class DemoSkill(BaseSkill):
    name = "demo"
    description = "Does something small"
    side_effect_class = "FILE_WRITE"

    def execute(self, inputs: dict[str, Any]) -> dict[str, Any]:
        shutil.copyfile(src="/data/x", dst="notes/x")
        os.makedirs(name="notes/deep", exist_ok=True)
        with tempfile.NamedTemporaryFile(dir="notes", prefix="a"):
            return {"x": 1}
