from typing import Any

from skillset.skills.base import BaseSkill
import sqlite3
from contextlib import closing
from pathlib import Path


class DemoSkill(BaseSkill):
    name = "demo"
    description = "Does something small"
    side_effect_class = "READ_ONLY"

    def execute(self, inputs: dict[str, Any]) -> dict[str, Any]:
        path = Path("logs") / str(inputs["name"])
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as base:
            base.row_factory = sqlite3.Row
            count: int = base.execute("SELECT count(*) FROM lines").fetchone()[0]
        with closing(sqlite3.connect(":memory:")) as other:
            other.execute("CREATE TABLE t (a)")
        with closing(sqlite3.connect("file:" + str(path) + "?mode=ro&immutable=1", uri=True)) as third:
            rows = third.execute("SELECT a FROM t").fetchall()
        return {"count": count, "rows": len(rows)}
