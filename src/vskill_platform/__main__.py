"""`python -m vskill_platform` is the command `vskill-platform`."""

from vskill_platform.cli import main

if __name__ == "__main__":
    main()
