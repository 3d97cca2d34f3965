from typing import Any

from skillset.skills.base import BaseSkill
from sqlite3 import DatabaseError, connect


class DemoSkill(BaseSkill):
    name = "demo"
    description = "Does something small"
    side_effect_class = "READ_ONLY"

    def execute(self, inputs: dict[str, Any]) -> dict[str, Any]:
        try:
            base = connect("file:logs/a.db?mode=ro", uri=True)
        except DatabaseError as error:
            raise ValueError(str(error)) from error
        base.close()
        return {}
