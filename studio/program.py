"""Starting the product's own programs so that they find its modules, whatever lies in the folder they run in.

`python -m` looks into the working folder first. An author works in a folder of their own, where a `catalog.py` or a
`redis.py` would be taken for the studio's. So `command` gives the line that starts a module through this very file: it
runs without the working folder on the path, and adds the folder that the studio itself was read from, which a checkout
needs. A plugin's own server is started by `catalog/sessions/process.py`, as its author would, and inherits none of it.
"""

import os
import runpy
import sys
from typing import Final

ROOT: Final = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))  # noqa: PTH100, PTH120  no import more than needed


def command(module: str, *words: str) -> list[str]:
    """The command line that runs a module of the product with these words."""
    return [sys.executable, "-P", os.path.abspath(__file__), module, *words]  # noqa: PTH100


def main() -> None:
    """Run the module that the first word names, as `python -m` would."""
    if ROOT not in sys.path:
        sys.path.insert(0, ROOT)
    del sys.argv[0]
    runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
