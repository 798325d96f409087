"""The commands of `academy bench`. May import the benchmarks, typer and rich."""

import asyncio
import dataclasses
import json
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from app.bench.start import StartResult, measure_start
from app.bench.trace import measure_trace
from engine.errors import EngineError

bench_app = typer.Typer(help="Measure this installation.", no_args_is_help=True)

_AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object as the last line.")]


@bench_app.callback()
def _bench() -> None:
    """Measure this installation; ratios compare with the alternative in the same run."""


@bench_app.command()
def start(
    ranks: Annotated[str, typer.Option(help="Numbers of ranks, with commas.")] = "1,2,4,8",
    repeats: Annotated[int, typer.Option(min=1, help="Runs per number of ranks.")] = 7,
    as_json: _AsJson = False,
) -> None:
    """Start ranks from a parked slot, against torchrun on the same program."""
    console = Console(stderr=True)
    try:
        counts = [int(part) for part in ranks.split(",")]
    except ValueError:
        raise typer.BadParameter("write numbers with commas, like 1,2,4") from None
    if not all(1 <= count <= 8 for count in counts):
        raise typer.BadParameter("each number of ranks must be from 1 to 8")
    try:
        with console.status("warming up") as status:
            results = asyncio.run(measure_start(counts, repeats, status.update))
    except EngineError as error:
        console.print(str(error))
        raise typer.Exit(3) from None
    _print_start(results)
    if as_json:
        rows = {str(r.ranks): _without_ranks(r) for r in results}
        typer.echo(json.dumps({"ranks": rows}))


@bench_app.command()
def trace(
    steps: Annotated[int, typer.Option(min=1, help="Steps per run.")] = 10,
    repeats: Annotated[int, typer.Option(min=1, help="Runs on either side.")] = 5,
    as_json: _AsJson = False,
) -> None:
    """Trace a 4-rank FSDP2 step at the default level, against the same step untraced."""
    console = Console(stderr=True)
    try:
        with console.status("warming up") as status:
            result = asyncio.run(measure_trace(steps, repeats, status.update))
    except EngineError as error:
        console.print(str(error))
        raise typer.Exit(3) from None
    table = Table(title="One step on 4 ranks (medians)")
    for heading in ("untraced ms", "traced ms", "ratio", "events per step"):
        table.add_column(heading, justify="right")
    table.add_row(
        f"{result.untraced_step_ms:.1f}",
        f"{result.traced_step_ms:.1f}",
        f"{result.overhead_ratio:.3f}",
        f"{result.events_per_step:.0f}",
    )
    Console().print(table)
    if as_json:
        typer.echo(json.dumps(dataclasses.asdict(result)))


def _without_ranks(result: StartResult) -> dict[str, float]:
    return {k: v for k, v in dataclasses.asdict(result).items() if k != "ranks"}


def _print_start(results: list[StartResult]) -> None:
    table = Table(title="From a parked slot, against torchrun (medians)")
    for heading in (
        "ranks",
        "wall ms",
        "torchrun wall ms",
        "times faster",
        "times less CPU",
        "first output ms",
        "private MiB per rank",
    ):
        table.add_column(heading, justify="right")
    for r in results:
        table.add_row(
            str(r.ranks),
            f"{r.wall_ms:.0f}",
            f"{r.torchrun_wall_ms:.0f}",
            f"{r.wall_ratio:.1f}",
            f"{r.cpu_ratio:.1f}",
            f"{r.first_output_ms:.0f}",
            f"{r.private_mib:.1f}",
        )
    Console().print(table)
