from typing import Any

from skillset.skills.base import BaseSkill
import os
from pathlib import Path


class DemoSkill(BaseSkill):
    name = "demo"
    description = "Does something small"
    side_effect_class = "FILE_WRITE"

    def execute(self, inputs: dict[str, Any]) -> dict[str, Any]:
        folder = Path("notes")
        folder.mkdir(exist_ok=True)
        (folder / "x.txt").write_text("y")
        os.replace("notes/a", os.path.join("notes", "b"))
        with open(f"{folder}/z", "a") as file:
            file.write("x")
        return {}
