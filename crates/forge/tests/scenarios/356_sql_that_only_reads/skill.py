from typing import Any

from skillset.skills.base import BaseSkill
import sqlite3


class DemoSkill(BaseSkill):
    name = "demo"
    description = "Does something small"
    side_effect_class = "READ_ONLY"

    def execute(self, inputs: dict[str, Any]) -> dict[str, Any]:
        base = sqlite3.connect("file:logs/a.db?mode=ro", uri=True)
        rows = base.execute("SELECT attach, count(*) FROM mail WHERE vacuum = 1 GROUP BY attach").fetchall()
        return {"rows": len(rows)}
