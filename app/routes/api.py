"""The JSON API: start a program, look at it, follow its events, stop it."""

from collections.abc import AsyncIterator
from typing import Annotated, Literal, Self

from fastapi import APIRouter, Header, Response, status
from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator
from sse_starlette import EventSourceResponse, ServerSentEvent

from app.routes.api_schema import Problem
from app.routes.site import ApiOwnerOf, SiteOf
from app.routes.stream import SEND_DEADLINE_S, position_of
from app.runs import NewRun, Snapshot
from engine.events import Status
from engine.program import MAX_RANKS, MAX_SIMULATED_RANKS, MAX_SOURCE_BYTES, Detail, Program

router = APIRouter(prefix="/api/runs", tags=["runs"])

EXAMPLE = "import torch.distributed as dist\ndist.init_process_group()\nprint(dist.get_rank())\n"


class RunRequest(BaseModel):
    """A torchrun program to run."""

    model_config = ConfigDict(extra="forbid", strict=True)

    source: str = Field(
        description=f"Python source, at most {MAX_SOURCE_BYTES} bytes.", examples=[EXAMPLE]
    )
    ranks: int = Field(ge=1, le=MAX_RANKS, description="World size.", examples=[4])
    device: Literal["auto", "cpu", "cuda"] = Field(
        default="auto",
        description="What the ranks run on: cuda needs a GPU for each rank, auto takes GPUs where "
        "there are enough and CPU elsewhere.",
    )

    detail: Detail = Field(
        default="summary",
        description="What is traced: nothing, memory at boundaries and peaks, or every allocation.",
    )
    simulated_ranks: int | None = Field(
        default=None,
        ge=1,
        le=MAX_SIMULATED_RANKS,
        description="Simulate so many ranks with one process (ranks 1), whose tensors hold no "
        "data: what a rank holds and sends is measured, every event has `simulated: true`.",
        examples=[None],
    )

    @field_validator("source")
    @classmethod
    def _fits(cls, value: str) -> str:
        if len(value.encode()) > MAX_SOURCE_BYTES:
            raise ValueError(f"must have at most {MAX_SOURCE_BYTES} bytes")
        if "\0" in value:
            raise ValueError("must not contain a NUL character")
        return value

    @model_validator(mode="after")
    def _is_one_process(self) -> Self:
        if self.simulated_ranks is not None and self.ranks != 1:
            raise ValueError("ranks must be 1 with simulated_ranks")
        if self.simulated_ranks is not None and self.device == "cuda":
            raise ValueError("device must not be cuda with simulated_ranks")
        return self


class RunCreated(BaseModel):
    """The new run's id."""

    id: str = Field(examples=["0f2c6c1d5b0e4f0f8a7d6c5b4a392817"])


class RunState(BaseModel):
    """A run at this moment."""

    id: str
    state: Literal["queued", "starting", "running", "ended"]
    status: Status | None = Field(description="How it ended; null until then.")
    position: int | None = Field(description="Runs ahead in the queue; null unless queued.")
    ranks: int
    device: str
    simulated_ranks: int | None = Field(
        default=None, description="Ranks that the one process stands for; null for real ranks."
    )
    elapsed_s: float = Field(description="Since the ranks started, in seconds.")
    num_events: int = Field(description="Events so far: the id of the newest one.")


def _problem(description: str) -> dict[str, object]:
    return {
        "description": description,
        "content": {Problem.MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}},
    }


NOT_FOUND: dict[int | str, dict[str, object]] = {404: _problem("No such run, or not yours.")}


@router.post(
    "",
    status_code=status.HTTP_201_CREATED,
    summary="Start a run",
    responses={
        403: _problem("The request came from a page of another site."),
        413: _problem("The request is larger than 1 MiB."),
        422: _problem("No such program can be run here."),
        429: _problem("As many runs as allowed are still going."),
        503: _problem("Runs cannot start at the moment."),
    },
)
async def start_run(site: SiteOf, owner: ApiOwnerOf, body: RunRequest) -> RunCreated:
    """Start a program. With the site's cookie the run belongs to that learner; without one,
    whoever knows its id may read and stop it."""
    program = Program(
        source=body.source,
        world_size=body.ranks,
        device="cpu" if body.simulated_ranks is not None else body.device,
        simulated_ranks=body.simulated_ranks,
        detail=body.detail,
    )
    return RunCreated(id=await site.runs.start(owner, NewRun(program=program)))


@router.get("/{run_id}", summary="Look at a run", responses=NOT_FOUND)
async def get_run(site: SiteOf, owner: ApiOwnerOf, run_id: str) -> RunState:
    """How far a run is."""
    return _state(await site.runs.get(run_id, owner.learner_id))


@router.get(
    "/{run_id}/events",
    summary="Follow a run's events",
    response_class=EventSourceResponse,
    responses={
        200: {
            "description": "Server-sent events: one JSON event of the run per message, its id "
            "the number of events so far. The last one has kind `outcome`.",
            "content": {"text/event-stream": {"schema": {"type": "string"}}},
        },
        **NOT_FOUND,
    },
)
async def follow_run(
    site: SiteOf,
    owner: ApiOwnerOf,
    run_id: str,
    last_event_id: Annotated[
        str | None, Header(description="Go on after the event with this id.")
    ] = None,
) -> EventSourceResponse:
    """All events of a run from its start or from Last-Event-ID on, live until its outcome."""
    lines = await site.runs.lines(run_id, owner.learner_id, position_of(last_event_id))
    return EventSourceResponse(_messages(lines), send_timeout=SEND_DEADLINE_S)


@router.delete(
    "/{run_id}",
    status_code=status.HTTP_204_NO_CONTENT,
    summary="Stop a run",
    responses={403: _problem("The request came from a page of another site."), **NOT_FOUND},
)
async def cancel_run(site: SiteOf, owner: ApiOwnerOf, run_id: str) -> Response:
    """Stop a run that is still going; one that has ended stays as it is."""
    await site.runs.cancel(run_id, owner.learner_id)
    return Response(status_code=status.HTTP_204_NO_CONTENT)


async def _messages(lines: AsyncIterator[tuple[int, str]]) -> AsyncIterator[ServerSentEvent]:
    async for position, line in lines:
        yield ServerSentEvent(data=line, id=str(position), sep="\n")


def _state(snapshot: Snapshot) -> RunState:
    record, outcome = snapshot.record, snapshot.trace.outcome
    started = snapshot.trace.started
    return RunState(
        id=record.run_id,
        state=record.state,
        status=outcome.status if outcome else None,
        position=record.position,
        ranks=record.world_size,
        device=record.device,
        simulated_ranks=started.simulated_ranks if started else None,
        elapsed_s=record.elapsed_s,
        num_events=snapshot.num_events,
    )
