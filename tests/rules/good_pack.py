"""A plugin as small as can be, for packs that are good but for one thing."""

MANIFEST_TEXT = b"""\
name: shelf
version: "1.0.0"
tools:
  - id: shelf
    mcp: [python, shelf_server.py]
agents: [agents/]
skills: [skills/]
"""
AGENT_TEXT = b"name: shelver\nmodel: rehearsal\nfunctions: [shelf.*]\nrehearsal:\n  - say: Done.\n"
SKILL_TEXT = b"---\nname: use-shelf\ndescription: How.\n---\nDo it well.\n"
FILES = {
    "oz0-plugin.yaml": MANIFEST_TEXT,
    "agents/shelver.yaml": AGENT_TEXT,
    "shelf_server.py": b"print('a server')\n",
    "skills/use.md": SKILL_TEXT,
}
