from typing import Any

from skillset.skills.base import BaseSkill
import asyncio


class DemoSkill(BaseSkill):
    name = "demo"
    description = "Does something small"
    side_effect_class = "READ_ONLY"

    def execute(self, inputs: dict[str, Any]) -> dict[str, Any]:
        async def work(n: int) -> int:
            await asyncio.sleep(0)
            return n

        async def both() -> list[int]:
            return list(await asyncio.gather(work(1), work(2)))

        return {"x": asyncio.run(both())}
        return {}
