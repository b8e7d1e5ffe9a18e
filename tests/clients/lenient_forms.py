"""Skills whose SKILL.md is not what the specification asks for, as people publish them, by the folder that they are in."""

BODY = "# Title\n\nTidies CSV tables.\n"

LENIENT: dict[str, bytes] = {
    "Spaced_Name": f"---\nname: My Own/Name\ndescription: Tidies.\n---\n{BODY}".encode(),
    "long-text": f"---\nname: long-text\ndescription: {'word ' * 400}\n---\n{BODY}".encode(),
    "windows": f"\ufeff---\nname: windows\ndescription: Tidies.\n---\n{BODY}".replace("\n", "\r\n").encode(),
    "bare-colon": f"---\nname: bare-colon\ndescription: Use it: always\n---\n{BODY}".encode(),
    "tabs": f"---\nname: tabs\n\tdescription: Tidies.\n---\n{BODY}".encode(),
    "unnamed": f"---\ndescription: Tidies.\n---\n{BODY}".encode(),
    "undescribed": f"---\nname: undescribed\n---\n{BODY}".encode(),
    "open-end": f"---\nname: open-end\ndescription: Tidies.\n\n{BODY}".encode(),
    "no-front-matter": BODY.encode(),
}
#: The npm client `skills` reads the front matter itself, as YAML, and installs only what has both fields as text.
INSTALLED_BY_SKILLS = ("Spaced_Name", "long-text", "windows")
