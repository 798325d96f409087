"""Traffic, wire, sharding and activation formulas against published figures."""

from collections.abc import Callable
from fractions import Fraction

import pytest

from engine.costs.activations import transformer_layer_bytes
from engine.costs.batch_norm import ddp_buffers, sync_batch_norm
from engine.costs.flows import Flow, elements, volume
from engine.costs.ring import sent_bytes
from engine.costs.sharding import buckets, flat_numel, row_shard, whole_tensor_partition
from engine.costs.traffic import ddp, hybrid, sharded, zero1

PSI, ROOT, N = 33_280, 4_160, 4


def full_shard(num_root_parameters: int = 0) -> tuple[Flow, ...]:
    return sharded(
        num_parameters=PSI, num_ranks=N, resharded=True, num_root_parameters=num_root_parameters
    )


@pytest.mark.parametrize(
    ("flows", "all_reduce", "all_gather", "reduce_scatter", "broadcast"),
    [
        (ddp(num_parameters=PSI, num_ranks=N), PSI, 0, 0, 0),
        (zero1(num_parameters=PSI, num_ranks=N), PSI, 0, 0, PSI),
        (sharded(num_parameters=PSI, num_ranks=N, resharded=False), 0, PSI, PSI, 0),
        (full_shard(), 0, 2 * PSI, PSI, 0),
        (full_shard(ROOT), 0, 2 * PSI - ROOT, PSI, 0),
        (full_shard(PSI), 0, PSI, PSI, 0),
        (
            hybrid(num_parameters=PSI, num_shard_ranks=2, num_replicas=2, resharded=True),
            PSI // 2,
            2 * PSI,
            PSI,
            0,
        ),
    ],
    ids=["ddp", "zero1", "shard-grad-op", "full-shard", "with root", "root only", "hybrid"],
)
def test_elements_of_one_step(
    flows: tuple[Flow, ...], all_reduce: int, all_gather: int, reduce_scatter: int, broadcast: int
) -> None:
    assert elements(flows, "all_reduce") == all_reduce
    assert elements(flows, "all_gather") == all_gather
    assert elements(flows, "reduce_scatter") == reduce_scatter
    assert elements(flows, "broadcast") == broadcast


@pytest.mark.parametrize(
    ("flows", "multiple"),
    [
        (ddp(num_parameters=PSI, num_ranks=N), 2),
        (zero1(num_parameters=PSI, num_ranks=N), 3),
        (sharded(num_parameters=PSI, num_ranks=N, resharded=False), 2),
        (full_shard(), 3),
    ],
    ids=["ddp", "zero1", "stage 2", "stage 3"],
)
def test_volume_is_the_papers_multiple_of_psi(flows: tuple[Flow, ...], multiple: int) -> None:
    assert volume(flows) == multiple * PSI


def test_resharding_to_a_number_gathers_again_in_small_groups() -> None:
    _, again, _ = sharded(num_parameters=PSI, num_ranks=N, resharded=True, post_forward_ranks=2)
    assert (again.phase, again.num_elements, again.group_size) == ("backward", PSI, 2)


def test_bytes_follow_the_width_of_an_element() -> None:
    (flow,) = ddp(num_parameters=PSI, num_ranks=N, element_bytes=2)
    assert flow.num_bytes == 2 * PSI
    assert flow.sent_bytes == 3 * PSI


@pytest.mark.parametrize(
    ("op", "factor"),
    [
        ("all_reduce", Fraction(14, 8)),
        ("all_gather", Fraction(7, 8)),
        ("reduce_scatter", Fraction(7, 8)),
        ("all_to_all", Fraction(7, 8)),
        ("broadcast", Fraction(1)),
        ("reduce", Fraction(1)),
    ],
)
def test_ring_of_8_sends_its_published_share(op: str, factor: Fraction) -> None:
    assert sent_bytes(op=op, num_bytes=1000, num_ranks=8) == 1000 * factor  # type: ignore[arg-type]
    assert sent_bytes(op=op, num_bytes=1000, num_ranks=1) == 0  # type: ignore[arg-type]


def test_sync_batch_norm_of_6_channels_on_4_ranks() -> None:
    gather, reduce = sync_batch_norm(num_channels=6, num_ranks=4)
    assert (gather.op, gather.num_elements, gather.num_bytes) == ("all_gather", 4 * 13, 208)
    assert (reduce.op, reduce.num_elements) == ("all_reduce", 12)
    assert sync_batch_norm(num_channels=6, num_ranks=4, input_needs_gradient=False) == (gather,)
    buffers = ddp_buffers(num_channels=6, num_ranks=4)
    assert (elements(buffers, "broadcast"), sum(f.num_bytes for f in buffers)) == (13, 56)


def layer(recompute: str = "none", tensor_parallel: int = 1, sequence: bool = False) -> Fraction:
    return transformer_layer_bytes(
        sequence_length=2048,
        batch_size=1,
        hidden_size=12288,
        num_heads=96,
        recompute=recompute,  # type: ignore[arg-type]
        tensor_parallel=tensor_parallel,
        sequence_parallel=sequence,
    )


def test_activations_of_a_gpt3_layer() -> None:
    # arXiv 2205.05198, section 5: 5 a s / h is 80 for GPT-3.
    sbh = 2048 * 12288
    assert layer() == sbh * (34 + 80)
    assert layer("selective") == sbh * 34
    assert layer("full") == sbh * 2
    assert layer(tensor_parallel=8) == sbh * (10 + Fraction(24 + 80, 8))
    assert layer(tensor_parallel=8, sequence=True) == sbh * Fraction(34 + 80, 8)


@pytest.mark.parametrize(
    ("use_orig_params", "num_ranks", "numel"),
    [(False, 4, 56), (False, 5, 60), (True, 4, 60), (True, 8, 64)],
)
def test_flat_parameter_of_49_and_7_is_padded(
    use_orig_params: bool, num_ranks: int, numel: int
) -> None:
    assert flat_numel((49, 7), num_ranks=num_ranks, use_orig_params=use_orig_params) == numel


def test_seven_rows_on_four_ranks_leave_one_row_for_the_last() -> None:
    shards = [row_shard((7, 3), num_ranks=4, rank=rank) for rank in range(4)]
    assert [shard.numel for shard in shards] == [6, 6, 6, 3]
    assert {shard.padded_numel for shard in shards} == {6}
    assert [row_shard((5, 1), num_ranks=4, rank=rank).numel for rank in range(4)] == [2, 2, 1, 0]


def test_whole_tensors_go_to_the_rank_that_has_least() -> None:
    assert whole_tensor_partition((10, 40, 20, 30), num_ranks=2) == ((1, 0), (3, 2))


def test_buckets_close_when_their_cap_is_reached() -> None:
    layer_numels = (49, 7) * 4
    assert buckets(layer_numels) == (224,)
    assert buckets(layer_numels, bucket_cap_bytes=315) == (112, 112)
    # The first bucket takes 1 MiB, that is the last two of these, and the second the rest.
    assert buckets((200_000, 200_000, 200_000)) == (400_000, 200_000)


def bad_layer() -> Fraction:
    return transformer_layer_bytes(sequence_length=1, batch_size=1, hidden_size=0, num_heads=1)


@pytest.mark.parametrize(
    ("argument", "call"),
    [
        ("num_parameters", lambda: ddp(num_parameters=-1, num_ranks=1)),
        ("num_ranks", lambda: zero1(num_parameters=1, num_ranks=0)),
        ("element_bytes", lambda: ddp(num_parameters=1, num_ranks=1, element_bytes=0)),
        (
            "num_root_parameters",
            lambda: sharded(num_parameters=1, num_ranks=1, resharded=True, num_root_parameters=2),
        ),
        (
            "post_forward_ranks",
            lambda: sharded(num_parameters=1, num_ranks=4, resharded=True, post_forward_ranks=3),
        ),
        (
            "num_replicas",
            lambda: hybrid(num_parameters=1, num_shard_ranks=1, num_replicas=0, resharded=True),
        ),
        ("op", lambda: sent_bytes(op="barrier", num_bytes=1, num_ranks=1)),  # type: ignore[arg-type]
        ("num_bytes", lambda: sent_bytes(op="reduce", num_bytes=-1, num_ranks=1)),
        ("num_channels", lambda: sync_batch_norm(num_channels=0, num_ranks=1)),
        ("num_channels", lambda: ddp_buffers(num_channels=0, num_ranks=1)),
        ("hidden_size", bad_layer),
        ("recompute", lambda: layer("some")),
        ("tensor_parallel", lambda: layer(tensor_parallel=0)),
        ("numels", lambda: flat_numel((-1,), num_ranks=1)),
        ("shape", lambda: row_shard((), num_ranks=1)),
        ("rank", lambda: row_shard((4,), num_ranks=2, rank=2)),
        ("num_ranks", lambda: whole_tensor_partition((1,), num_ranks=0)),
        ("bucket_cap_bytes", lambda: buckets((1,), bucket_cap_bytes=0)),
    ],
)
def test_bad_argument_is_named(argument: str, call: Callable[[], object]) -> None:
    with pytest.raises(ValueError, match=f"^{argument} "):
        call()
