"""``privkit doctor``: is this installation sound?"""

import typer


def doctor() -> None:
    """Check names, versions and devices. Exit 2 if something would give wrong results."""
    from importlib.metadata import PackageNotFoundError, version

    from privkit.clash import owners, replaced

    for name in ("privkit-audit", "numpy", "scipy", "torch", "dp-accounting", "opacus", "onnxruntime"):
        try:
            typer.echo(f"{name} {version(name)}")
        except PackageNotFoundError:
            typer.echo(f"{name} is not installed")
    for name, others in owners().items():
        typer.echo(f"warning: {name} is also shipped by {', '.join(others)}; uninstall one of the two")
    bad = replaced()
    for name in bad:
        typer.echo(f"error: the package {name} that Python finds is not privkit's; reinstall privkit-audit")
    import torch

    typer.echo(f"CUDA: {'yes' if torch.cuda.is_available() else 'no'}")
    typer.echo("not sound: see the errors above" if bad else "all is well")
    raise typer.Exit(2 if bad else 0)
