"""Lines of a table."""


def split_line(line):
    """Return the fields of a line of comma-separated values."""
    return [field.strip('"') for field in line.split(",")]
