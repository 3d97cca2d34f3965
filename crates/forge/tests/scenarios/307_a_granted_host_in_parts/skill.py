from typing import Any

from skillset.skills.base import BaseSkill
import json
import socket
import urllib.request
BASE = "https://" + "api.example.com"


class DemoSkill(BaseSkill):
    name = "demo"
    description = "Does something small"
    side_effect_class = "NETWORK"

    def execute(self, inputs: dict[str, Any]) -> dict[str, Any]:
        with urllib.request.urlopen(BASE + "/x") as answer:
            return {"x": json.load(answer), "y": socket.create_connection(("api.example.com", 443), timeout=3).fileno()}
        return {}
