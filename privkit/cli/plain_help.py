"""Help in plain text, with every argument described."""

import inspect
from typing import Any

import click
from typer.core import TyperCommand
from typer.models import ArgumentInfo


class PlainCommand(TyperCommand):
    """A command whose help is complete, whichever typer and click are installed.

    Typer 0.20 escapes brackets for rich even where rich does not print, and click 8.5 forgets what an argument is for.
    """

    def __init__(self, *args: Any, **named: Any) -> None:
        super().__init__(*args, **named)
        described = inspect.signature(self.callback).parameters if self.callback else {}
        for param in self.params:
            info = described[param.name].default if param.name in described else None
            if isinstance(info, ArgumentInfo):
                vars(param)["help"] = info.help

    def format_arguments(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write nothing: typer has a section for arguments, and click 8.5 would add one of its own."""

    def get_help(self, ctx: click.Context) -> str:
        """Return the help page."""
        return super().get_help(ctx).replace("\\[", "[")
