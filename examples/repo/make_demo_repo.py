"""Make the git repository that the demo works on: `python make_demo_repo.py FOLDER`.

Nothing happens when it is there already. A hook plays the colleague who keeps writing: after each commit there is a new
change to commit, so the demo can be run as often as one likes. The git server itself cannot write files.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

README = "# Demo\nThe repository of the git demo. Its hook adds a line to CHANGES.md after each commit.\n"
HOOK = """\
#!/bin/sh
echo "- change $(($(wc -l < CHANGES.md) + 1)), not committed yet" >> CHANGES.md
"""


def make(folder: Path) -> bool:
    """Make the repository in `folder`. Whether it was made, and not there already."""
    if (folder / ".git").is_dir():
        return False
    # Made beside its place and moved there, so a repository that is there is always a whole one.
    building = folder.with_name(f"{folder.name}.{os.getpid()}")
    shutil.rmtree(building, ignore_errors=True)
    building.mkdir(parents=True)
    _git(building, "init", "--quiet", "--initial-branch=main")
    for name, value in {
        "user.name": "Demo Clerk",
        "user.email": "clerk@demo.invalid",
        "commit.gpgsign": "false",
    }.items():
        _git(building, "config", name, value)
    (building / "README.md").write_text(README)
    (building / "CHANGES.md").write_text("")
    hook = building / ".git" / "hooks" / "post-commit"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text(HOOK)
    hook.chmod(0o755)
    _git(building, "add", "--all")
    _git(building, "commit", "--quiet", "--message=Begin")
    building.rename(folder)
    return True


def _git(folder: Path, *words: str) -> None:
    """Run git without the person's own settings."""
    bare = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    subprocess.run(
        ["git", "-C", str(folder), *words],
        check=True,
        env=bare | {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"},
    )


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: python make_demo_repo.py FOLDER")
    make(Path(sys.argv[1]))
