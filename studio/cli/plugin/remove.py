"""`oz0 plugin remove`: a plugin out of this studio's catalog, and what that does to its work."""

import click

from studio.cli import _told
from studio.cli.plugin import _folder


@click.command(
    cls=_told.Told,
    short_help="Remove a plugin from the studio here.",
    exits={
        _told.Exit.DONE: "it is removed",
        _told.Exit.FAILED: "there is no studio here",
        _told.Exit.UNREADABLE: "there is no plugin of that name",
    },
    examples=["oz0 plugin remove shelf", "oz0 plugin remove shelf --json"],
)
@click.argument("name")
@_folder.json_option
def remove(name: str, as_json: bool) -> None:
    """Remove the plugin called NAME from the studio of this state folder.

    Its agents start no job and its functions no call any more. What runs may end, what waits is refused, and where a
    call may have acted a person is asked. Its versions are kept: adding it again brings it back.
    """
    from studio.cli import _this_studio

    _this_studio.ready()
    from jobs.operations.removing import remove as remove_plugin

    tenant, person = _this_studio.me()
    done = remove_plugin(tenant=tenant, plugin=name, actor=_this_studio.actor(person, "oz0 plugin remove"))
    if done is None:
        _folder.refuse(f"there is no plugin {name} in the catalog; its page lists those there are", as_json)
    if as_json:
        _folder.show_json({"plugin": name, "done": "removed", "tools": done.tools, "jobs": done.jobs})
    else:
        click.echo(f"removed {name}")
