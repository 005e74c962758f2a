"""`runlake show RUN`: one run as a person reads it."""

from __future__ import annotations

from typing import Annotated

import typer

from analytics.commands.options import (
    FormatOption,
    FormulasOption,
    LakeOption,
    OutOption,
    Output,
    VersionOption,
    emit,
    opened,
)


def show(
    run: Annotated[
        str, typer.Argument(metavar="RUN", help="The run's id, or a beginning of it that no other run has.")
    ],
    lake: LakeOption = None,
    at: VersionOption = None,
    format_: FormatOption = None,
    out: OutOption = None,
    formulas: FormulasOption = "escape",
) -> None:
    """A readable timeline of one run: what was said, called, decided and used, and where it was cut."""
    with opened(lake, at) as source:
        emit(source.show(run), Output(format_, out, formulas))
