"""``privkit export-data``: the objects that come with privkit as files, in the layout of a public data set."""

from pathlib import Path

import typer


def export_data(
    layout: str = typer.Argument(..., help="Whose folders to imitate: pacs or office-caltech."),
    out: Path = typer.Option(..., "--out", help="Folder in which the data set's folder is made."),
    per_class: int | None = typer.Option(
        None, "--per-class", help="Objects per class, 1 to 33, the same in every domain. Default: all."
    ),
    side: int = typer.Option(64, "--side", help="Pixels a side: 64 or 32."),
) -> None:
    """Write stored objects as files. They lie as those of a public data set do: to try its loader without having it."""
    from privkit import plug
    from privkit.data._layout_export import LAYOUTS, export
    from privkit.data.objects import CLASSES, Objects

    objects = plug.build("privkit.data", {"name": "objects", "per_class": per_class, "side": side})
    assert isinstance(objects, Objects)
    folder = export(objects, layout=layout, out=out)
    pictures = sum(1 for _ in folder.glob("*/*/*.png"))
    domains = LAYOUTS[layout].drawn
    typer.echo(f"{folder}: {pictures:,} pictures, {len(domains)} domains, {len(CLASSES)} classes.")
    typer.echo(
        "They are emoji, not the data set's own pictures: README.txt there says whose, under which licence."
    )
