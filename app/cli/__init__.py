"""The `academy` command. Each subcommand imports what it needs when it runs.

`academy run` must start fast: nothing of the web or the database is imported for it.
"""

import sys
from pathlib import Path
from typing import Annotated, Literal

import typer

from engine.sandbox.choice import Demand

app = typer.Typer(
    name="academy",
    help="Learn distributed deep learning by running it.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
lessons_app = typer.Typer(help="Work on lesson files.", no_args_is_help=True)
app.add_typer(lessons_app, name="lessons")

DETAIL_HELP = "What is traced: nothing, memory at boundaries and peaks, or every allocation."
TIER_HELP = "Isolate by this tier and no other, or refuse; auto takes the strongest."
UNSANDBOXED_HELP = "Run programs without isolation where this machine offers none. Dangerous."


@app.command()
def run(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A torchrun program.")],
    ranks: Annotated[int, typer.Option(help="Number of ranks, 1 to 8.")] = 1,
    device: Annotated[
        Literal["auto", "cpu", "cuda"],
        typer.Option(help="What the ranks run on; cuda needs a GPU for each rank."),
    ] = "auto",
    timeout: Annotated[
        float | None, typer.Option(metavar="S", help="Wall-clock limit in seconds.")
    ] = None,
    memory: Annotated[
        int | None, typer.Option(metavar="MIB", help="Memory limit of all ranks together.")
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one event per line; the last is the outcome.")
    ] = False,
    trace: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write the events to FILE as well.")
    ] = None,
    detail: Annotated[Literal["off", "summary", "allocations"], typer.Option(help=DETAIL_HELP)] = (
        "summary"
    ),
    tier: Annotated[Demand, typer.Option(envvar="ACADEMY_TIER", help=TIER_HELP)] = "auto",
    allow_unsandboxed: Annotated[
        bool, typer.Option("--allow-unsandboxed", help=UNSANDBOXED_HELP)
    ] = False,
) -> None:
    """Run one program as the site would.

    Exit code 0: ok; 1: the program failed; 2: bad arguments; 3: the engine could not run it.
    """
    from app.cli.run import Request, carry_out

    request = Request(
        file=file,
        ranks=ranks,
        device=device,
        timeout_s=timeout,
        memory_mib=memory,
        as_json=as_json,
        trace=trace,
        detail=detail,
        tier=tier,
        allow_unsandboxed=allow_unsandboxed,
    )
    raise typer.Exit(carry_out(request))


@app.command()
def simulate(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A torchrun program.")],
    ranks: Annotated[int, typer.Option(help="Number of ranks to simulate, at most 4096.")],
    timeout: Annotated[
        float | None, typer.Option(metavar="S", help="Wall-clock limit in seconds.")
    ] = None,
    memory: Annotated[
        int | None, typer.Option(metavar="MIB", help="Memory limit of the one real process.")
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one event per line; the last is the outcome.")
    ] = False,
    trace: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write the events to FILE as well.")
    ] = None,
    tier: Annotated[Demand, typer.Option(envvar="ACADEMY_TIER", help=TIER_HELP)] = "auto",
    allow_unsandboxed: Annotated[
        bool, typer.Option("--allow-unsandboxed", help=UNSANDBOXED_HELP)
    ] = False,
) -> None:
    """Simulate one rank of many: what it would hold and send, in one process without data.

    Exit code 0: ok; 1: the program failed; 2: bad arguments; 3: the engine could not run it.
    """
    from app.cli.run import Request
    from app.cli.simulate import carry_out_simulation

    request = Request(
        file=file,
        ranks=1,
        device="cpu",
        timeout_s=timeout,
        memory_mib=memory,
        as_json=as_json,
        trace=trace,
        tier=tier,
        allow_unsandboxed=allow_unsandboxed,
        simulated_ranks=ranks,
    )
    raise typer.Exit(carry_out_simulation(request))


@app.command()
def grade(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A torchrun program.")],
    check: Annotated[Path, typer.Option(metavar="CHECK", help="The check that judges it.")],
    export: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="A variable that the check looks at; repeat for more."),
    ] = None,
    ranks: Annotated[int, typer.Option(help="Number of ranks, 1 to 8.")] = 1,
    timeout: Annotated[
        float | None, typer.Option(metavar="S", help="Wall-clock limit of the program in seconds.")
    ] = None,
    memory: Annotated[
        int | None, typer.Option(metavar="MIB", help="Memory limit of all ranks together.")
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one event per line; the last is the outcome.")
    ] = False,
    tier: Annotated[Demand, typer.Option(envvar="ACADEMY_TIER", help=TIER_HELP)] = "auto",
    allow_unsandboxed: Annotated[
        bool, typer.Option("--allow-unsandboxed", help=UNSANDBOXED_HELP)
    ] = False,
) -> None:
    """Run one program and judge it with a check, as the site would (docs/grading.md).

    Exit code 0: passed; 1: not passed; 2: bad arguments; 3: the engine could not run it.
    """
    from app.cli.grade import carry_out_grading
    from app.cli.run import Request

    request = Request(
        file=file,
        ranks=ranks,
        device="auto",
        timeout_s=timeout,
        memory_mib=memory,
        as_json=as_json,
        trace=None,
        tier=tier,
        allow_unsandboxed=allow_unsandboxed,
        exports=tuple(export or ()),
        check=check,
    )
    raise typer.Exit(carry_out_grading(request))


@app.command()
def serve(
    host: Annotated[str | None, typer.Option(help="Address to listen on.")] = None,
    port: Annotated[int | None, typer.Option(help="Port to listen on.")] = None,
    data_dir: Annotated[
        Path | None, typer.Option(help="Folder of the database and the secret key.")
    ] = None,
    lessons: Annotated[
        Path | None, typer.Option(help="Folder of courses and lessons to serve.")
    ] = None,
    tier: Annotated[Demand | None, typer.Option(help=TIER_HELP)] = None,
    allow_unsandboxed: Annotated[
        bool, typer.Option("--allow-unsandboxed", help=UNSANDBOXED_HELP)
    ] = False,
) -> None:
    """Serve the site."""
    from app.cli.first_process import as_first_process
    from app.cli.serve import Choice, serve_site

    choice = Choice(
        host=host,
        port=port,
        data_dir=data_dir,
        lessons_dir=lessons,
        tier=tier,
        allow_unsandboxed=allow_unsandboxed or None,
    )
    raise typer.Exit(as_first_process(lambda: serve_site(choice)))


@app.command("admin-link")
def admin_link(
    data_dir: Annotated[
        Path | None, typer.Option(help="Folder of the database and the secret key.")
    ] = None,
    site: Annotated[
        str | None, typer.Option(metavar="URL", help="Address of the site, where it is another.")
    ] = None,
    language: Annotated[Literal["ja", "en"], typer.Option(help="Language of the page.")] = "en",
) -> None:
    """Print a link that opens the administrator's page, for an hour."""
    from app.cli.admin import print_link

    raise typer.Exit(print_link(data_dir, site, language))


@app.command()
def doctor(
    as_json: Annotated[bool, typer.Option("--json", help="Print the report as JSON.")] = False,
    tier: Annotated[Demand, typer.Option(envvar="ACADEMY_TIER", help=TIER_HELP)] = "auto",
) -> None:
    """Say how well this machine isolates programs, and what to change.

    Exit code 0: programs can run; 3: they are refused.
    """
    from app.cli.doctor import carry_out

    raise typer.Exit(carry_out(as_json=as_json, demand=tier))


@lessons_app.command("check")
def check_lessons(
    folder: Annotated[Path | None, typer.Argument(help="Folder with courses and lessons.")] = None,
) -> None:
    """Check lesson files; prints file:line:column of every mistake, exit code 1 if any."""
    from app.cli.lessons import check

    raise typer.Exit(check(folder))


@lessons_app.command("schema")
def print_schema() -> None:
    """Print the JSON schema of lesson files, for editors."""
    from app.cli.lessons import schema

    raise typer.Exit(schema())


def main() -> None:
    """Entry point of the `academy` script."""
    if sys.platform == "linux":  # as the engine that the benchmarks measure
        from app.bench import bench_app

        app.add_typer(bench_app, name="bench")
    app()
