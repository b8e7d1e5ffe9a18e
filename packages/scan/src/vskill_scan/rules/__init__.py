"""The rules: as data in the files beside this one, as code where they need no text, and what searches for them."""
