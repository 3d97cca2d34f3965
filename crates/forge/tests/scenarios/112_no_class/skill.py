from typing import Any

from skillset.skills.base import BaseSkill
