"""Each way to communicate is seen once per call, with what this rank gives and is left with."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from engine.reports import CollectiveReport, EndReport
from tests.engine.torch_programs.client import Rank, Ranks

PROGRAM = Path(__file__).parent / "torch_programs" / "more_collectives.py"
Seen = tuple[str, int, int]


@pytest.fixture(scope="module")
def ranks(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ranks]:
    ranks = Ranks(tmp_path_factory.mktemp("ranks"))
    yield ranks
    ranks.close()


@pytest.fixture(scope="module")
def traced(ranks: Ranks) -> list[Rank]:
    ended = ranks.run(PROGRAM.name, 4)
    assert [rank.exit for rank in ended] == [0] * 4, ended[0].output
    return ended


def collectives(rank: Rank) -> list[CollectiveReport]:
    return [r for r in rank.reports if isinstance(r, CollectiveReport)]


def calls(rank: Rank, mark: str) -> list[CollectiveReport]:
    lines = PROGRAM.read_text().splitlines()
    (line,) = [i for i, text in enumerate(lines, 1) if text.endswith(f"  # {mark}")]
    return [c for c in collectives(rank) if c.line == line]


def seen(rank: Rank, mark: str) -> list[Seen]:
    return [(c.op, c.input_bytes, c.output_bytes) for c in calls(rank, mark)]


@pytest.mark.parametrize(
    ("mark", "expected"),
    [
        ("batch", [("send", 8, 0), ("recv", 0, 8)]),
        ("isend", [("send", 16, 0)]),
        ("irecv", [("recv", 0, 16)]),
        ("all_to_all list", [("all_to_all", 32, 32)]),
        ("gather coalesced", [("all_gather", 12, 48)]),
        ("reduce coalesced", [("all_reduce", 20, 20)]),
        ("complex", [("all_reduce", 16, 16)]),
        ("max", [("all_reduce", 8, 8)]),
        ("functional all_reduce", [("all_reduce", 16, 16)]),
        ("functional all_gather", [("all_gather", 16, 64)]),
        ("functional all_to_all", [("all_to_all", 16, 16)]),
        ("functional broadcast", [("broadcast", 16, 16)]),
        ("autograd forward", [("all_reduce", 16, 16)]),
        ("autograd backward", [("all_reduce", 16, 16)]),
        ("fx", [("all_reduce", 16, 16)]),
        ("subgroup", [("all_reduce", 16, 16)]),
        ("mesh", [("all_reduce", 16, 16)]),
        ("mode", [("all_reduce", 16, 16)]),
        ("thread", [("all_reduce", 16, 16)]),
        ("no_sync", []),
        ("hooked", [("all_reduce", 64, 64)]),
        ("zero", [("broadcast", 64, 64), ("broadcast", 0, 64)]),
        ("fsdp1 clip", [("all_reduce", 4, 4)]),
        ("full_tensor", [("all_gather", 32, 64)]),
        ("redistribute", [("all_gather", 32, 128)]),
        ("dtensor sum", [("all_reduce", 4, 4)]),
        ("tensor parallel", [("all_reduce", 32, 32)]),
        ("last", [("barrier", 0, 0)]),
    ],
)
def test_call_is_seen_once_with_this_ranks_bytes(
    traced: list[Rank], mark: str, expected: list[Seen]
) -> None:
    assert seen(traced[0], mark) == expected


def test_object_calls_show_their_sizes_and_then_their_pickles(traced: list[Rank]) -> None:
    (size, pickle) = seen(traced[0], "send object")
    assert size == ("send", 8, 0)
    assert pickle[0] == "send"
    num_bytes = pickle[1]
    assert seen(traced[1], "recv object") == [("recv", 0, 8), ("recv", 0, num_bytes)]
    assert seen(traced[2], "broadcast object") == [
        ("broadcast", 8, 8),
        ("broadcast", num_bytes, num_bytes),
    ]
    assert seen(traced[1], "gather object") == [
        ("all_gather", 8, 32),
        ("gather", num_bytes, 4 * num_bytes),
    ]
    assert [op for op, _, _ in seen(traced[0], "scatter object")] == [
        "broadcast",
        "scatter",
        "scatter",
    ]


def test_groups_of_meshes_and_subgroups_have_their_members(traced: list[Rank]) -> None:
    for mark in ("subgroup", "mesh"):
        assert [calls(rank, mark)[0].group_ranks for rank in traced] == [
            (0, 1),
            (0, 1),
            (2, 3),
            (2, 3),
        ]


def test_unused_parameters_cost_ddp_one_more_all_reduce_of_a_flag_each(traced: list[Rank]) -> None:
    assert [(c.op, c.input_bytes, c.dtype) for c in calls(traced[0], "ddp unused")] == [
        ("all_reduce", 128, "float32"),
        ("all_reduce", 8, "int32"),
    ]


def test_comm_hook_sends_half_the_bytes_in_backward(traced: list[Rank]) -> None:
    (hooked,) = calls(traced[0], "hooked")
    assert (hooked.dtype, hooked.phase) == ("float16", "backward")


def test_join_lets_every_rank_make_the_same_number_of_calls(traced: list[Rank]) -> None:
    numbers = [
        len([c for c in collectives(rank) if c.group_ranks == (0, 1, 2, 3)]) for rank in traced
    ]
    made = [sum(c.op == "send" or c.op == "recv" for c in collectives(rank)) for rank in traced]
    assert len({a - b for a, b in zip(numbers, made, strict=True)}) == 1
    assert len(calls(traced[0], "join")) > len(calls(traced[1], "join"))


def test_fsdp1_calls_carry_the_unit_that_they_serve(traced: list[Rank]) -> None:
    steps = calls(traced[0], "fsdp1 forward") + calls(traced[0], "fsdp1 backward")
    assert [(c.op, c.phase, c.module) for c in steps] == [
        ("all_gather", "forward", "0"),
        ("all_gather", "forward", "1"),
        ("all_gather", "backward", "1"),
        ("all_gather", "backward", "0"),
        ("reduce_scatter", "backward", "1"),
        ("reduce_scatter", "backward", "0"),
    ]
    assert [(c.op, c.phase, c.module) for c in calls(traced[0], "fsdp1 state")] == [
        ("all_gather", None, "0"),
        ("all_gather", None, "1"),
    ]


def test_fsdp2_on_two_dimensions_scatters_in_one_and_reduces_over_the_other(
    traced: list[Rank],
) -> None:
    backward = calls(traced[0], "hsdp backward")
    assert [(c.op, c.input_bytes, c.output_bytes, c.group_ranks, c.module) for c in backward] == [
        ("all_gather", 32, 64, (0, 1), "1"),
        ("all_gather", 32, 64, (0, 1), "0"),
        ("reduce_scatter", 64, 32, (0, 1), "1"),
        ("all_reduce", 32, 32, (0, 2), "1"),
        ("reduce_scatter", 64, 32, (0, 1), "0"),
        ("all_reduce", 32, 32, (0, 2), "0"),
    ]


def test_checkpoint_gathers_its_plan_and_writes_no_tensor_over_the_network(
    traced: list[Rank],
) -> None:
    saved = calls(traced[0], "checkpoint")
    assert {c.dtype for c in saved} == {"int64", "uint8"}
    assert {c.op for c in saved} == {"all_gather", "gather", "broadcast", "scatter"}


def test_every_call_ended_and_numbers_agree_between_ranks(traced: list[Rank]) -> None:
    for rank in traced:
        begun = [c.call for c in collectives(rank)]
        ended = [r.call for r in rank.reports if isinstance(r, EndReport)]
        assert sorted(ended) == begun == list(range(len(begun)))
    assert len({calls(rank, "last")[0].group_seq for rank in traced}) == 1
