"""Collectives and statistics of real ranks, as engine.tracers reports them."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from engine.reports import CollectiveReport, EndReport, StatisticReport
from tests.engine.torch_programs.client import Rank, Ranks

PROGRAMS = Path(__file__).parent / "torch_programs"


@pytest.fixture(scope="module")
def ranks(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ranks]:
    ranks = Ranks(tmp_path_factory.mktemp("ranks"))
    yield ranks
    ranks.close()


@pytest.fixture(scope="module")
def traced(ranks: Ranks) -> list[Rank]:
    ended = ranks.run("collectives.py", 3)
    assert [rank.exit for rank in ended] == [0, 0, 0], ended[0].output
    return ended


@pytest.fixture(scope="module")
def measured(ranks: Ranks) -> list[Rank]:
    ended = ranks.run("batch_norm_statistics.py", 2)
    assert [rank.exit for rank in ended] == [0, 0], ended[0].output
    return ended


def line_of(program: str, mark: str) -> int:
    lines = (PROGRAMS / program).read_text().splitlines()
    (line,) = [i for i, text in enumerate(lines, 1) if text.endswith(f"  # {mark}")]
    return line


def calls(rank: Rank, mark: str, program: str = "collectives.py") -> list[CollectiveReport]:
    line = line_of(program, mark)
    return [r for r in rank.reports if isinstance(r, CollectiveReport) and r.line == line]


def seen(rank: Rank, mark: str) -> list[tuple[str, int, int]]:
    return [(c.op, c.input_bytes, c.output_bytes) for c in calls(rank, mark)]


@pytest.mark.parametrize(
    ("mark", "others", "on_rank_1"),
    [
        ("all_reduce", ("all_reduce", 16, 16), None),
        ("all_gather", ("all_gather", 52, 156), None),
        ("all_gather into", ("all_gather", 16, 48), None),
        ("reduce_scatter", ("reduce_scatter", 48, 16), None),
        ("reduce_scatter list", ("reduce_scatter", 24, 8), None),
        ("broadcast", ("broadcast", 0, 16), ("broadcast", 16, 16)),
        ("reduce", ("reduce", 16, 0), ("reduce", 16, 16)),
        ("gather", ("gather", 16, 0), ("gather", 16, 48)),
        ("scatter", ("scatter", 0, 16), ("scatter", 48, 16)),
        ("all_to_all", ("all_to_all", 24, 24), None),
        ("barrier", ("barrier", 0, 0), None),
        ("monitored_barrier", ("monitored_barrier", 0, 0), None),
        ("inference", ("all_reduce", 8, 8), None),
        ("async", ("all_reduce", 16, 16), None),
        ("functional", ("reduce_scatter", 24, 8), None),
        ("dtensor", ("all_gather", 8, 24), None),
    ],
)
def test_collective_has_its_op_and_this_ranks_bytes(
    traced: list[Rank],
    mark: str,
    others: tuple[str, int, int],
    on_rank_1: tuple[str, int, int] | None,
) -> None:
    assert [seen(rank, mark) for rank in traced] == [[others], [on_rank_1 or others], [others]]


def test_dtype_is_that_of_the_data(traced: list[Rank]) -> None:
    assert [calls(traced[0], mark)[0].dtype for mark in ("all_reduce", "inference", "barrier")] == [
        "float32",
        "bfloat16",
        None,
    ]


def test_object_collective_shows_its_two_all_gathers(traced: list[Rank]) -> None:
    assert [(c.op, c.dtype) for c in calls(traced[0], "object")] == [
        ("all_gather", "int64"),
        ("all_gather", "uint8"),
    ]


def test_send_and_recv_name_the_global_rank_of_their_peer(traced: list[Rank]) -> None:
    (send,), (recv,) = calls(traced[0], "send"), calls(traced[2], "recv")
    assert (send.op, send.peer, send.input_bytes, send.output_bytes) == ("send", 2, 16, 0)
    assert (recv.op, recv.peer, recv.input_bytes, recv.output_bytes) == ("recv", 0, 0, 16)
    (send,), (recv,) = calls(traced[1], "send in pair"), calls(traced[2], "recv any")
    assert (send.peer, send.group_ranks, recv.peer) == (2, (1, 2), None)


def test_subset_group_has_its_members_and_its_own_numbers(traced: list[Rank]) -> None:
    assert calls(traced[0], "subset") == []
    one, two = (calls(traced[rank], "subset")[0] for rank in (1, 2))
    assert one.group == two.group != calls(traced[1], "all_reduce")[0].group
    assert one.group_ranks == two.group_ranks == (1, 2)
    assert one.group_seq == two.group_seq == 0


def test_group_numbers_agree_between_ranks(traced: list[Rank]) -> None:
    for mark in ("all_reduce", "barrier", "after step", "after failures", "dtensor"):
        assert len({calls(rank, mark)[0].group_seq for rank in traced}) == 1, mark


def test_call_that_torch_refuses_takes_no_number(traced: list[Rank]) -> None:
    for rank in traced:
        (refused,), (after,) = calls(rank, "refused"), calls(rank, "after refused")
        assert after.group_seq == refused.group_seq


def test_every_call_that_ended_has_one_end_after_it(traced: list[Rank]) -> None:
    for rank in traced:
        begun = {r.call: r.at_ns for r in rank.reports if isinstance(r, CollectiveReport)}
        ended = [(r.call, r.at_ns) for r in rank.reports if isinstance(r, EndReport)]
        assert sorted(call for call, _ in ended) == sorted(begun) == list(range(len(begun)))
        assert all(at_ns >= begun[call] for call, at_ns in ended)


def test_syncbn_gathers_2c_plus_1_values_forward_and_reduces_2c_backward(
    traced: list[Rank],
) -> None:
    for rank in traced:
        everything = [r for r in rank.reports if isinstance(r, CollectiveReport)]
        of_layer = [r for r in everything if r.module == "inner.1" and r.op != "broadcast"]
        assert [(c.op, c.input_bytes, c.output_bytes, c.phase) for c in of_layer[:2]] == [
            ("all_gather", 9 * 4, 3 * 9 * 4, "forward"),
            ("all_reduce", 8 * 4, 8 * 4, "backward"),
        ]
        assert of_layer[1].line == line_of("collectives.py", "ddp backward")


def test_ddp_reduces_all_gradients_in_backward(traced: list[Rank]) -> None:
    num_parameters = (6 * 4 + 4) + (4 + 4) + (4 * 2 + 2)
    *_, bucket = calls(traced[0], "ddp backward")
    assert (bucket.op, bucket.input_bytes) == ("all_reduce", 4 * num_parameters)
    assert (bucket.phase, bucket.module) == ("backward", "inner.0")


def test_ddp_sends_buffers_in_its_own_forward(traced: list[Rank]) -> None:
    for call in calls(traced[0], "ddp forward"):
        assert (call.op, call.phase) == ("broadcast", "forward")
        assert call.module == "DistributedDataParallel"


def test_recomputed_layer_keeps_its_name_in_backward(traced: list[Rank]) -> None:
    backward = calls(traced[0], "checkpointed backward")
    assert [(c.op, c.phase, c.module) for c in backward] == [
        ("all_gather", "backward", "inner.1"),
        ("all_reduce", "backward", "inner.1"),
    ]


def test_phase_is_step_inside_an_optimizer_and_none_after_it(traced: list[Rank]) -> None:
    reports = [r for r in traced[0].reports if isinstance(r, CollectiveReport)]
    in_step = [r for r in reports if r.op == "barrier" and r.phase == "step"]
    assert len(in_step) == 1
    assert [(c.phase, c.module) for c in calls(traced[0], "after step")] == [(None, None)]


def test_phase_is_none_after_a_step_and_a_forward_that_raised(traced: list[Rank]) -> None:
    assert [(c.phase, c.module) for c in calls(traced[0], "after failures")] == [(None, None)]


def test_fsdp2_gathers_forward_and_scatters_backward(traced: list[Rank]) -> None:
    root, inner = 3 * 6 * 4, 3 * 3 * 4
    assert [(c.op, c.input_bytes, c.output_bytes, c.phase) for c in calls(traced[0], "fsdp2")] == [
        ("all_gather", root // 3, root, "forward"),
        ("all_gather", inner // 3, inner, "forward"),
        ("all_gather", inner // 3, inner, "backward"),
        ("reduce_scatter", inner, inner // 3, "backward"),
        ("reduce_scatter", root, root // 3, "backward"),
    ]


def test_call_that_hangs_has_no_end(ranks: Ranks) -> None:
    ended = ranks.run("hang.py", 3, deadline_s=3)
    assert [rank.exit for rank in ended] == [None, None, None]
    for rank, mark in ((0, "hangs"), (2, "hangs too")):
        (hung,) = calls(ended[rank], mark, "hang.py")
        ends = [r.call for r in ended[rank].reports if isinstance(r, EndReport)]
        assert ends == [calls(ended[rank], "ends", "hang.py")[0].call] != [hung.call]


def test_fake_process_group_works_and_is_traced(ranks: Ranks) -> None:
    program = """
import torch, torch.distributed as dist
from torch.testing._internal.distributed.fake_pg import FakeStore
dist.init_process_group("fake", store=FakeStore(), rank=5, world_size=64)
dist.all_reduce(torch.ones(3, device="meta"))
"""
    (ended,) = ranks.run(program, 1)
    assert ended.exit == 0, ended.output
    call, end = ended.reports
    assert isinstance(call, CollectiveReport)
    assert (call.op, call.input_bytes, len(call.group_ranks)) == ("all_reduce", 12, 64)
    assert isinstance(end, EndReport)


def test_compiled_model_runs_and_its_collectives_are_traced(ranks: Ranks) -> None:
    program = """
import torch, torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
dist.init_process_group("gloo")
torch.compile(nn.BatchNorm1d(4), backend="eager", fullgraph=True)(torch.randn(3, 4))
net = nn.SyncBatchNorm.convert_sync_batchnorm(nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4)))
torch.compile(DDP(net), backend="eager")(torch.randn(3, 4)).sum().backward()
"""
    ended = ranks.run(program, 2)
    assert [rank.exit for rank in ended] == [0, 0], ended[0].output
    assert "hooks" not in ended[0].output  # torch would warn of ours
    calls = [r for r in ended[0].reports if isinstance(r, CollectiveReport) and r.phase]
    assert ("all_gather", 9 * 4) in [(c.op, c.input_bytes) for c in calls]
    assert ("all_reduce", 8 * 4) in [(c.op, c.input_bytes) for c in calls]


# ------------------------------------------------------------------ statistics
def statistics(rank: Rank, mark: str) -> dict[tuple[str, str], tuple[float, ...]]:
    line = line_of("batch_norm_statistics.py", mark)
    of_line = [r for r in rank.reports if isinstance(r, StatisticReport) and r.line == line]
    assert len({(r.name, r.scope) for r in of_line}) == len(of_line)
    return {(r.name, r.scope): r.values for r in of_line}


def test_syncbn_reports_its_own_and_the_synchronised_statistics(measured: list[Rank]) -> None:
    for rank, ended in enumerate(measured):
        expected = json.loads(ended.output)
        reported = statistics(ended, "synced")
        assert reported.keys() == {
            *((name, "local") for name in ("mean", "var", "count", "running_mean", "running_var")),
            ("mean", "global"),
            ("var", "global"),
        }
        for scope in ("local", "global"):
            for name in ("mean", "var"):
                assert reported[name, scope] == pytest.approx(expected[scope][name], rel=1e-12)
        assert reported["count", "local"] == ((3 + rank) * 5,)
        assert reported["running_var", "local"] == pytest.approx(expected["running_var"])


def test_layer_is_named_within_the_called_model_in_forward(measured: list[Rank]) -> None:
    line = line_of("batch_norm_statistics.py", "synced")
    reports = [r for r in measured[0].reports if isinstance(r, StatisticReport)]
    assert {(r.module, r.phase) for r in reports if r.line == line} == {("1", "forward")}
    line = line_of("batch_norm_statistics.py", "plain")
    assert {r.module for r in reports if r.line == line} == {"BatchNorm1d"}


def test_empty_rank_has_count_0_and_the_others_statistics(measured: list[Rank]) -> None:
    full, empty = (statistics(rank, "one empty") for rank in measured)
    assert empty["count", "local"] == (0,)
    assert empty["mean", "local"] == empty["var", "local"] == (0.0,) * 4
    assert empty["mean", "global"] == full["mean", "global"] == full["mean", "local"]


def test_plain_batch_norm_has_no_synchronised_statistics(measured: list[Rank]) -> None:
    reported = statistics(measured[0], "plain")
    assert {scope for _, scope in reported} == {"local"}
    expected = json.loads(measured[0].output)["local"]
    assert reported["var", "local"] == pytest.approx(expected["var"], rel=1e-12)


def test_long_vectors_are_cut_to_64_channels(measured: list[Rank]) -> None:
    reported = statistics(measured[0], "wide")
    assert {name: len(values) for (name, _), values in reported.items()} == {
        "mean": 64,
        "var": 64,
        "count": 1,
        "running_mean": 64,
        "running_var": 64,
    }


def test_layer_without_running_statistics_reports_none(measured: list[Rank]) -> None:
    assert {name for name, _ in statistics(measured[0], "no running")} == {"mean", "var", "count"}


@pytest.mark.parametrize("mark", ["eval", "instance", "vmap"])
def test_nothing_is_reported_for(measured: list[Rank], mark: str) -> None:
    assert statistics(measured[0], mark) == {}


def test_learners_program_notices_nothing(measured: list[Rank]) -> None:
    noticed = json.loads(measured[0].output)
    assert noticed["rng"] is True
    assert noticed["freed"] is True
    traced, untraced = noticed["ops"]
    assert traced == untraced
    assert "aten.native_batch_norm" in untraced
