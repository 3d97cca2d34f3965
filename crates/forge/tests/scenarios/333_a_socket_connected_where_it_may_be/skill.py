import socket
from typing import Any

from skillset.skills.base import BaseSkill


class DemoSkill(BaseSkill):
    name = "demo"
    description = "Does something small"
    side_effect_class = "NETWORK"

    def execute(self, inputs: dict[str, Any]) -> dict[str, Any]:
        with socket.socket() as line:
            line.connect(("api.example.com", 443))
            line.sendall(b"x")
        return {"x": 1}
