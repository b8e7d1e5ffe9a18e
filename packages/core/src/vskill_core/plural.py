"""Numbers with the noun that agrees, for pages, commands and messages."""


def counted(number: int, thing: str, things: str = "") -> str:
    """`1 skill`, `2 skills`, `1,000 entries`."""
    return f"{number:,} {thing if number == 1 else things or thing + 's'}"
