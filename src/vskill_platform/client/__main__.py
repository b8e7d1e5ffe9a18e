"""`python -m` runs the executable."""

from vskill_platform.client.main import main

main()
