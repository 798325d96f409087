"""Statistics, collectives and output: what the panels say of what the ranks reported."""

import json

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from app.panels.output import MAX_BYTES_PER_RANK, is_truncated, output_chunks
from app.panels.statistics import layer_panels
from app.panels.timeline import MAX_CALLS, timeline_panel, trace_json
from engine.events import Scope, StatisticName
from engine.trace import fold
from tests.app import panel_events as made


# ------------------------------------------------------------------ statistics
def test_plain_batch_norm_shows_a_different_mean_on_every_rank() -> None:
    mean, var = layer_panels(made.batch_norm_trace(synced=False))
    assert (mean.statistic, var.statistic) == ("mean", "var")
    assert not mean.agree
    assert not mean.is_synced
    assert mean.num_different == 4
    assert [point.value for point in mean.rows[0].points] == [1.0, 2.0, 4.0, 5.0]
    assert mean.rows[0].batch_value == 3.0
    assert mean.rows[0].spread == 4.0


def test_equal_local_variances_still_disagree_with_the_global_batch() -> None:
    _, var = layer_panels(made.batch_norm_trace(synced=False))
    assert var.num_different == 1
    assert not var.agree


def test_sync_batch_norm_puts_every_dot_on_the_line_of_the_global_batch() -> None:
    for panel in layer_panels(made.batch_norm_trace(synced=True)):
        assert panel.agree
        assert panel.is_synced
        assert panel.num_different == 1
        for row in panel.rows:
            assert {point.x for point in row.points} == {row.batch_x}
            assert len({point.y for point in row.points}) == 4


def test_agreement_compares_with_the_batch_of_all_ranks_not_with_one_rank() -> None:
    events = [e for rank in range(4) for e in made.forward(rank, synced=True)]
    wrong = [
        made.statistic(e.rank, "mean", "global", (3.1, -0.5))
        if e.name == "mean" and e.scope == "global"
        else e
        for e in events
    ]
    mean, _ = layer_panels(fold([made.started(), *wrong]))
    assert mean.num_different == 1
    assert not mean.agree


def test_uneven_batches_weigh_by_their_counts() -> None:
    events = [
        made.statistic(0, "mean", "local", (0.0,)),
        made.statistic(0, "var", "local", (1.0,)),
        made.statistic(0, "count", "local", (30.0,)),
        made.statistic(1, "mean", "local", (4.0,)),
        made.statistic(1, "var", "local", (1.0,)),
        made.statistic(1, "count", "local", (10.0,)),
    ]
    mean, _ = layer_panels(fold([made.started(2), *events]))
    assert mean.rows[0].batch_value == pytest.approx(1.0)
    assert mean.counts == ((0, 30), (1, 10))


def test_a_forward_that_only_some_ranks_reached_waits_for_the_others() -> None:
    trace = made.batch_norm_trace(synced=True)
    for event in made.forward(0, synced=True):
        trace.add(event)
    mean, _ = layer_panels(trace)
    assert (mean.step, mean.num_steps) == (0, 2)
    assert len(mean.rows[0].points) == 4


@pytest.mark.parametrize("value", [float("nan"), float("inf"), 1e308])
def test_values_without_a_place_on_an_axis_are_never_drawn(value: float) -> None:
    events = [
        made.statistic(rank, name, "local", (value if rank == 0 and name == "mean" else 1.0,))
        for rank in range(4)
        for name in ("mean", "var", "count")
    ]
    for panel in layer_panels(fold([made.started(), *events])):
        if panel.statistic == "mean":
            assert not panel.agree
            assert panel.rows[0].points[0].x is None
        assert all(40 <= point.x <= 360 for point in panel.rows[0].points[1:] if point.x)


@given(
    st.lists(
        st.tuples(
            st.integers(0, 3),
            st.sampled_from(["mean", "var", "count"]),
            st.sampled_from(["local", "global"]),
            st.lists(st.floats(), min_size=1, max_size=3),
        ),
        max_size=12,
    )
)
@example([(0, "mean", "local", [0.0]), (1, "mean", "local", [5e-323])])
def test_whatever_a_rank_claims_the_page_is_drawn(
    claims: list[tuple[int, StatisticName, Scope, list[float]]],
) -> None:
    forged = [made.statistic(*claim) for claim in claims]
    honest = [e for rank in (0, 1) for e in made.forward(rank, synced=False)]
    for events in (forged, [*honest, *forged], [*forged, *honest]):
        layer_panels(fold([made.started(), *events]))


# ------------------------------------------------------------------ collectives
def test_calls_of_one_place_are_one_row_counted_per_rank() -> None:
    calls = [made.gathered(rank, seq=seq) for seq in range(3) for rank in range(4)]
    panel = timeline_panel(fold([made.started(), *calls]), 4)
    (row,) = panel.rows
    assert (row.op, row.num_calls, row.ranks, row.line) == ("all_gather", 3, (0, 1, 2, 3), 17)
    assert row.num_values == 13
    assert row.median_us == 40.0
    assert panel.num_calls == 12
    assert panel.total_input_bytes_per_rank == (156, 156, 156, 156)


def test_a_call_that_never_ended_is_counted_and_drawn_open() -> None:
    trace = fold([made.started(), made.gathered(0), made.gathered(1, duration_ns=None)])
    panel = timeline_panel(trace, 4)
    assert panel.rows[0].num_unfinished == 1
    assert [call[2] for call in json.loads(panel.json)["calls"]] == [40, -1]


def test_frames_of_the_timeline_join_to_the_whole() -> None:
    trace = fold([made.started(), *(made.gathered(r, at_ns=r * 1000) for r in range(4))])
    whole = json.loads(trace_json(trace, 0))
    first = whole["calls"][:3]
    rest = json.loads(trace_json(trace, 3))["calls"]
    assert first + rest == whole["calls"]
    assert whole["ops"] == ["all_gather"]
    assert whole["calls"][3] == [3, 3, 40, 0, 4, 52, 208, 1, 0, 17]


def test_the_canvas_gets_the_newest_calls_only() -> None:
    calls = [made.gathered(0, seq=n, at_ns=n * 1000) for n in range(MAX_CALLS + 10)]
    encoded = json.loads(trace_json(fold([made.started(), *calls]), 0))["calls"]
    assert len(encoded) == MAX_CALLS
    assert encoded[-1][1] == MAX_CALLS + 9


# ------------------------------------------------------------------ output
def test_output_of_a_rank_is_joined_across_other_ranks_and_split_by_stream() -> None:
    trace = fold(
        [
            made.output(0, "a\n"),
            made.output(1, "x\n"),
            made.output(0, "b\n"),
            made.output(0, "oops\n", "stderr"),
        ]
    )
    assert [(c.rank, c.stream, c.text) for c in output_chunks(trace)] == [
        (0, "stdout", "a\nb\n"),
        (1, "stdout", "x\n"),
        (0, "stderr", "oops\n"),
    ]


def test_a_frame_holds_new_output_and_says_when_it_continues_a_line() -> None:
    trace = fold([made.output(0, "step 1 "), made.output(1, "y\n"), made.output(0, "done\n")])
    (chunk,) = output_chunks(trace, 2)
    assert (chunk.text, chunk.continues_line) == ("done\n", True)
    assert not output_chunks(trace, 0)[0].continues_line


def test_output_past_the_limit_of_a_rank_is_left_out_and_said() -> None:
    line = "あ" * 1000 + "\n"
    trace = fold([made.output(rank, line) for _ in range(100) for rank in (0, 1)])
    shown = {c.rank: len(c.text.encode()) for c in output_chunks(trace)}
    assert is_truncated(trace)
    assert all(MAX_BYTES_PER_RANK <= size < MAX_BYTES_PER_RANK + 4000 for size in shown.values())
    assert not is_truncated(fold([made.output(0, line)]))
