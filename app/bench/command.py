"""The commands of `academy bench`. May import the benchmarks, typer and rich."""

import asyncio
import dataclasses
import json
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from app.bench.queue import QueueResult, measure_queue
from app.bench.simulate import NUM_LAYERS, SimulateResult, measure_simulate
from app.bench.soak import MIN_RUNS, SoakResult, measure_soak
from app.bench.start import StartResult, measure_start
from app.bench.trace import TraceSize, measure_trace
from engine.errors import EngineError
from engine.program import MAX_RANKS, MAX_SIMULATED_RANKS

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
    counts = _rank_counts(ranks, MAX_RANKS)
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
    steps: Annotated[int, typer.Option(min=1, help="Steps per run.")] = 8,
    repeats: Annotated[int, typer.Option(min=1, help="Runs on either side.")] = 3,
    width: Annotated[int, typer.Option(min=64, max=1024, help="Width of the transformer.")] = 512,
    as_json: _AsJson = False,
) -> None:
    """Trace a 4-rank FSDP2 step at the default level, against the same step untraced."""
    console = Console(stderr=True)
    if width % 64:
        raise typer.BadParameter("the width must be a multiple of 64")
    size = TraceSize(num_steps=steps, width=width)
    try:
        with console.status("warming up") as status:
            result = asyncio.run(measure_trace(size, repeats, status.update))
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


@bench_app.command()
def simulate(
    ranks: Annotated[str, typer.Option(help="Numbers of ranks, with commas.")] = "1024,4096",
    layers: Annotated[
        int, typer.Option(min=1, help="Layers of the transformer; 18 make 1 B parameters.")
    ] = NUM_LAYERS,
    repeats: Annotated[int, typer.Option(min=1, help="Simulations per number of ranks.")] = 3,
    as_json: _AsJson = False,
) -> None:
    """Simulate a step of a 1 B-parameter transformer under fully_shard, with AdamW."""
    console = Console(stderr=True)
    counts = _rank_counts(ranks, MAX_SIMULATED_RANKS)
    try:
        with console.status("warming up") as status:
            results = asyncio.run(measure_simulate(counts, layers, repeats, status.update))
    except EngineError as error:
        console.print(str(error))
        raise typer.Exit(3) from None
    table = Table(title="One step of one simulated rank (medians)")
    for heading in ("ranks", "parameters", "seconds", "CPU seconds", "MiB added"):
        table.add_column(heading, justify="right")
    for r in results:
        table.add_row(
            str(r.ranks),
            f"{r.num_parameters:,}",
            f"{r.seconds:.2f}",
            f"{r.cpu_seconds:.2f}",
            f"{r.added_mib:.1f}",
        )
    Console().print(table)
    if as_json:
        typer.echo(json.dumps({"ranks": {str(r.ranks): _without_ranks(r) for r in results}}))


@bench_app.command()
def soak(
    runs: Annotated[int, typer.Option(min=MIN_RUNS, help="Runs altogether.")] = 1000,
    kills: Annotated[
        bool, typer.Option(help="Kill the warm parent, a supervisor and the server in its midst.")
    ] = True,
    as_json: _AsJson = False,
) -> None:
    """Many runs of a real server that is struck in their midst: none fails, nothing is left."""
    console = Console(stderr=True)
    try:
        with console.status("warming up") as status:
            result = measure_soak(runs, kills=kills, tell=status.update)
    except (EngineError, OSError) as error:
        console.print(str(error))
        raise typer.Exit(3) from None
    _print_soak(result)
    if as_json:
        found = {k: v for k, v in dataclasses.asdict(result).items() if k != "problems"}
        typer.echo(json.dumps(found))
    raise typer.Exit(int(bool(result.failed or result.leaks or result.lost)))


@bench_app.command()
def queue(
    learners: Annotated[int, typer.Option(min=3, max=150, help="Who presses Run at once.")] = 60,
    as_json: _AsJson = False,
) -> None:
    """A class presses Run at once: in which order it is served, and how fast pages stay."""
    console = Console(stderr=True)
    try:
        with console.status("warming up") as status:
            result = measure_queue(learners, status.update)
    except (EngineError, OSError) as error:
        console.print(str(error))
        raise typer.Exit(3) from None
    _print_queue(result)
    if as_json:
        typer.echo(json.dumps(dataclasses.asdict(result)))


def _rank_counts(text: str, most: int) -> list[int]:
    """Numbers of ranks written with commas. Raises: typer.BadParameter."""
    try:
        counts = [int(part) for part in text.split(",")]
    except ValueError:
        raise typer.BadParameter("write numbers with commas, like 1,2,4") from None
    if not all(1 <= count <= most for count in counts):
        raise typer.BadParameter(f"each number of ranks must be from 1 to {most}")
    return counts


def _without_ranks(result: StartResult | SimulateResult) -> dict[str, float]:
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


def _print_soak(result: SoakResult) -> None:
    table = Table(title="Soak (times of a two-rank run, from request to outcome)")
    for heading in ("runs", "failed", "left over", "lost", "kills", "median ms", "95 % ms"):
        table.add_column(heading, justify="right")
    table.add_row(
        *(str(n) for n in (result.runs, result.failed, result.leaks, result.lost, result.kills)),
        f"{result.p50_ms:.0f}",
        f"{result.p95_ms:.0f}",
    )
    Console().print(table)
    for problem in result.problems:
        Console().print(f"- {problem}", markup=False)


def _print_queue(result: QueueResult) -> None:
    table = Table(title="A class presses Run at once")
    for heading in (
        "learners",
        "served",
        "longest wait s",
        "times longer beside a greedy one",
        "page 95 % ms",
        "idle page 95 % ms",
    ):
        table.add_column(heading, justify="right")
    table.add_row(
        str(result.learners),
        str(result.served),
        f"{result.longest_wait_s:.1f}",
        f"{result.max_wait_ratio:.2f}",
        f"{result.other_page_p95_ms:.0f}",
        f"{result.idle_page_p95_ms:.0f}",
    )
    Console().print(table)
