"""`python -m` runs the executable."""

from vskill_client.main import main

main()
