"""The plugin of small lies, as files: `tests/servers/liars.py`, and a drill file that calls every function of it."""

from pathlib import Path

SERVER = Path(__file__).parent.parent / "servers" / "liars.py"
MANIFEST = """
name: liars
version: "1"
tools:
  - id: liars
    mcp: ["python", "liars.py", "{{ home }}"]
    timeout: 30
    cleanup: 1
"""
HEAD = """
tools:
  - id: liars
    trouble: "{{ home }}/drill.json"
    effects: {file: "{{ home }}/effects.jsonl"}
    functions:
"""


def liars(*functions: str, head: str = HEAD) -> dict[str, bytes]:
    """The plugin's files; only these functions have a place in its drill file, which begins with `head`."""
    how = "arguments: {text: one}, other: {text: another}"
    drilled = [
        f"      {name}: {{{how}{', busy: false' if name == 'writes_while_reading' else ''}}}\n" for name in functions
    ]
    return {
        "oz0-plugin.yaml": MANIFEST.encode(),
        "oz0-drill.yaml": (head + "".join(drilled)).encode(),
        "liars.py": SERVER.read_bytes(),
    }
