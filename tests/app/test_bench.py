"""Each benchmark runs once at its smallest size: that it works, not how fast."""

import json

from typer.testing import CliRunner

from app.bench import bench_app


def test_start_prints_a_table_and_one_json_object_as_last_line() -> None:
    result = CliRunner().invoke(
        bench_app, ["start", "--ranks", "2", "--repeats", "1", "--json"], catch_exceptions=False
    )
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout.splitlines()[-1])
    assert set(found["ranks"]) == {"2"}
    row = found["ranks"]["2"]
    assert set(row) == {
        "wall_ms",
        "torchrun_wall_ms",
        "wall_ratio",
        "cpu_ratio",
        "first_output_ms",
        "private_mib",
    }
    assert all(value > 0 for value in row.values())
    assert row["first_output_ms"] < row["wall_ms"]


def test_impossible_number_of_ranks_is_refused() -> None:
    result = CliRunner().invoke(bench_app, ["start", "--ranks", "9"])
    assert result.exit_code == 2
    assert "from 1 to 8" in result.output


def test_trace_compares_a_traced_step_with_an_untraced_one() -> None:
    arguments = ["trace", "--steps", "1", "--repeats", "1", "--width", "64", "--json"]
    result = CliRunner().invoke(bench_app, arguments, catch_exceptions=False)
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout.splitlines()[-1])
    ratio = found["traced_step_ms"] / found["untraced_step_ms"]
    assert abs(found["overhead_ratio"] - ratio) < 0.01 * ratio
    assert found["events_per_step"] > 0


def test_soak_strikes_a_server_three_times_and_nothing_fails_is_lost_or_left() -> None:
    result = CliRunner().invoke(
        bench_app, ["soak", "--runs", "20", "--json"], catch_exceptions=False
    )
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout.splitlines()[-1])
    counts = {name: found[name] for name in ("runs", "failed", "leaks", "lost", "kills")}
    expected = {"runs": 20, "failed": 0, "leaks": 0, "lost": 0, "kills": 3}
    assert counts == expected, result.output
    assert 0 < found["p50_ms"] <= found["p95_ms"]


def test_queue_serves_every_learner_and_no_greedy_one_out_of_turn() -> None:
    result = CliRunner().invoke(
        bench_app, ["queue", "--learners", "3", "--json"], catch_exceptions=False
    )
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout.splitlines()[-1])
    assert (found["learners"], found["served"]) == (3, 3)
    assert found["overtaken"] < 20
    assert found["pages"] > 0
    assert found["max_wait_ratio"] > 0
