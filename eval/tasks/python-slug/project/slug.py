"""Names for addresses."""


def slugify(title):
    """Return the title in lower case with dashes between its words."""
    out = []
    for char in title.lower():
        out.append(char if char.isalnum() else "-")
    return "".join(out)
