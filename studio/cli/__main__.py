"""`python -m studio.cli` is `oz0` from a checkout of it; `studio/program.py` is how its processes start each other."""

from studio.cli import main

main(prog_name="oz0")
