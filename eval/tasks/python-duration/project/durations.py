"""Durations as people write them."""

UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400}


def parse_duration(text):
    """Return the seconds that a text such as "90s" or "1h30m" stands for."""
    text = text.strip().lower()
    if not text:
        raise ValueError("an empty duration")
    seconds = 0
    number = ""
    for char in text:
        if char.isdigit():
            number += char
        elif char in UNITS and number:
            seconds = int(number) * UNITS[char]
            number = ""
        else:
            raise ValueError(f"not a duration: {text!r}")
    if number:
        raise ValueError(f"a number without a unit: {text!r}")
    return seconds
