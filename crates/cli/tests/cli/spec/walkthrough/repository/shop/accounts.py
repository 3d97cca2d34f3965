"""What the shop knows of its users."""

RECORDS = [
    {"user": "ann", "item": "lamp", "paid": 40},
    {"user": "anna", "item": "table", "paid": 120},
]


def records_of(user: str) -> list[dict]:
    """All records of a user."""
    return [record for record in RECORDS if record["user"].startswith(user)]
