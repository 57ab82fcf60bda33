"""`python -m studio.cli` is `oz0`, for processes that start each other."""

from studio.cli import main

main(prog_name="oz0")
