"""English sentences of the diagnoses of collectives: hangs, mismatches, ranks that left.

Standard library only. Part of `engine.messages`, which says what the templates are for. `where`,
`calls`, `missing`, `who` and `waiting` are made of the phrases listed there.
"""

from collections.abc import Mapping
from types import MappingProxyType

COLLECTIVES: Mapping[str, str] = MappingProxyType(
    {
        "left-early": (
            "Rank {rank} waits in {op} on line {line}, but {missing} ended without joining it. "
            "Every rank of a group must make the same collective calls, in the same order. At "
            "that moment: {where}."
        ),
        "deadlock": (
            "Rank {rank} waits in {op} on line {line}, but {missing} never joined it. At that "
            "moment: {where}. Every rank of a group must make the same collective calls, in the "
            "same order."
        ),
        "branch-not-entered": (
            "Rank {rank} waits in {op} on line {line}, but {missing} never joined it: that call "
            "lies in the branch `{text}` of line {at}, which not every rank enters. A collective "
            "needs every rank of its group, so take it out of the branch, or let all ranks make "
            "it. At that moment: {where}."
        ),
        "guard-not-passed": (
            "Rank {rank} waits in {op} on line {line}, but {missing} never joined it: `{text}` on "
            "line {at} sends some ranks away before that call. A collective needs every rank of "
            "its group, so make it before the ranks part. At that moment: {where}."
        ),
        "uneven-loop": (
            "Rank {rank} waits in {op} on line {line}, in a round of the loop of line {at} that "
            "{missing} did not make: the ranks run it a different number of times (calls on that "
            "line so far: {count} against {fewer}). Give every rank the same number of batches "
            "(`DistributedSampler`, `drop_last=True`), or, with DDP, wrap the loop in `Join`. At "
            "that moment: {where}."
        ),
        "uneven-loop-jump": (
            "Rank {rank} waits in {op} on line {line}, in a round of the loop of line {at} that "
            "{missing} did not make: fewer rounds reach that line there (calls so far: {count} "
            "against {fewer}). Either a rank has fewer batches (`DistributedSampler`, "
            "`drop_last=True`, with DDP also `Join`), or the `{keyword}` of line {jump} lets it "
            "skip a step on its own: let all ranks decide together, for example by an all_reduce "
            "of a flag. At that moment: {where}."
        ),
        "uneven-while": (
            "Rank {rank} waits in {op} on line {line}, in a round of the loop of line {at} that "
            "{missing} did not make: each rank decides for itself when `{text}` ends (calls on "
            "that line so far: {count} against {fewer}). Let all ranks decide together: reduce "
            "what the condition depends on, for example by an all_reduce with ReduceOp.MAX, "
            "before every round. At that moment: {where}."
        ),
        "groups-out-of-order": (
            "The ranks use their groups in a different order, and wait for each other in a ring: "
            "rank {rank} waits in {op} on line {line} (group of {who}) for {missing}, which waits "
            "on line {at} (group of {waiting}) for a call that others make only later. Make the "
            "calls of all groups in the same order on every rank. At that moment: {where}."
        ),
        "busy-elsewhere": (
            "Rank {rank} waits in {op} on line {line}, but {missing} never joined it: rank {peer} "
            "was still busy on line {at} (`{text}`), outside of any collective. Either it waits "
            "there for something that never comes (a file, a lock, another rank), or its loop "
            "does not end, or that work is too long for one rank while the others wait. At that "
            "moment: {where}."
        ),
        "waits-after-exception": (
            "Rank {rank} waits in {op} on line {line}, but {missing} has left that code, most "
            "likely by an exception, and communicates in the `{keyword}` of line {at}. While it "
            "waits there, its exception stays hidden. Leave collectives out of `except` and "
            "`finally`: let the exception end the rank, or print it first. At that moment: {where}."
        ),
        "splits-differ": (
            "The ranks' split sizes do not fit together in {op} on line {line}: what rank i sends "
            "to rank j (`input_split_sizes`) must be what rank j has room for from rank i "
            "(`output_split_sizes`). Exchange the numbers first, by an `all_to_all_single` of the "
            "counts, and allocate the output for what arrives. At that moment: {where}."
        ),
        "gradients-not-ready": (
            "Rank {rank} waits in the {op} by which DDP averages gradients, in the backward on "
            "line {line}, but {missing} went past that backward without it: DDP reduces a bucket "
            "only when each of its parameters has a gradient. On {missing} some parameters were "
            "not used in the loss, or the backward ran under `no_sync()`. Let every rank use the "
            "same parameters (`+ 0 * unused_output.sum()`), or construct DDP with "
            "`find_unused_parameters=True`. At that moment: {where}."
        ),
        "layer-not-run": (
            "Layer {module} communicates in its forward: rank {rank} waits in its {op} on line "
            "{line}, but {missing} never joined it. Every rank must run every synchronised or "
            "sharded layer, equally often and in the same mode: skipping it, or `eval()` on one "
            "rank only, leaves the others waiting. At that moment: {where}."
        ),
        "came-too-late": (
            "Rank {rank} waited in {op} on line {line} for its timeout of {limit_ms} ms, but "
            "{missing} came to it only after {late_ms} ms, on line {at}. Give the group a longer "
            "timeout, or let the ranks do their slow work together. At that moment: {where}."
        ),
        "calls-differ": (
            "The ranks make different calls where they must make the same one: {calls}. "
            "Collectives pair up in the order of the calls, so a mismatch ends in a hang, a crash "
            "or wrong values. Let every rank make the same calls in the same order. At that "
            "moment: {where}."
        ),
        "sizes-differ": (
            "The ranks bring tensors of different sizes to {op} on line {line}: {calls}. The "
            "backend does not check this mismatch: it ends in wrong values, a crash or a hang. "
            "Bring the same shape on every rank: pad to the largest, or agree on the shape first."
        ),
        "dtypes-differ": (
            "The ranks bring tensors of different dtypes to {op} on line {line}: {calls}. The "
            "backend only moves bytes and does not check this mismatch: values become garbage, or "
            "the program crashes. Convert to one dtype on every rank before the call."
        ),
        "roots-differ": (
            "The ranks do not name the same root (src or dst) in {op} on line {line}: {calls}. "
            "Exactly one rank of the group must be the root, and all ranks must name the same "
            "one."
        ),
        "layers-mixed": (
            "Calls of different layers met in {op}: {calls}. The sizes happen to agree, so nothing "
            "fails, but every rank gets the other layer's values. Ranks must run their "
            "synchronised or sharded layers in the same order."
        ),
        "layer-skipped": (
            "Calls of different layers met in {op}: {calls}. One rank skipped a layer or ran its "
            "layers in another order, and from there on the calls no longer fit. Every rank must "
            "run every synchronised or sharded layer, in the same order. At that moment: {where}."
        ),
        "order-differs": (
            "Different calls met in {op} because the ranks make them in a different order: "
            "{calls}. The sizes happen to agree, so nothing fails, but values of one call end in "
            "the other. Let every rank make the same calls in the same order."
        ),
        "group-by-some": (
            "Rank {rank} waits in {op} on line {line}, but not all ranks take part in making that "
            "group. Every rank of the program must call `new_group`, in the same order, also for "
            "groups that it is no member of. At that moment: {where}."
        ),
        "group-in-branch": (
            "Rank {rank} waits in {op} on line {line}, but not all ranks take part in making that "
            "group: the call lies in the branch `{text}` of line {at}. Every rank of the program "
            "must call `new_group`, in the same order, also for groups that it is no member of: "
            "make the groups before the branch. At that moment: {where}."
        ),
        "init-by-some": (
            "On line {line}, {who} waited in init_process_group, but {missing} never called it. "
            "Every rank must call `init_process_group` once, before anything else of "
            "torch.distributed. At that moment: {where}."
        ),
        "init-overridden": (
            "All ranks wait in init_process_group on line {line} and never find each other: the "
            "program sets `{suggestion}` itself. All ranks must agree on the address, the port and "
            "the world size ({world_size} here), and each must give its own rank. torchrun has put "
            "all four into the environment, so `init_process_group` needs none of them. At that "
            "moment: {where}."
        ),
        "init-never-meets": (
            "All ranks wait in init_process_group on line {line} and never find each other. They "
            "must agree on the address, the port and the world size ({world_size} here), and each "
            "must give its own rank, as torchrun sets them in the environment. At that moment: "
            "{where}."
        ),
        "all-send-first": (
            "Every rank sends first: rank {rank} waits in send on line {line} for {missing} to "
            "receive, which waits in a send of its own on line {peer_line}. `send` may block until "
            "its peer calls `recv`, so let one side receive first, or use `batch_isend_irecv`. At "
            "that moment: {where}."
        ),
        "all-receive-first": (
            "Every rank receives first: rank {rank} waits in recv on line {line} for {missing} to "
            "send, which waits in a recv of its own on line {peer_line}. Let one side send first, "
            "or use `batch_isend_irecv`. At that moment: {where}."
        ),
        "tags-differ": (
            "Rank {rank} waits in {op} on line {line}, and {missing} waits for it on line "
            "{peer_line}, but the two do not match: their `tag` or their group differs. A send and "
            "its recv must name the same tag and the same group. At that moment: {where}."
        ),
        "wrong-peer": (
            "Rank {rank} waits in {op} on line {line} for {missing}, but {missing} waits for "
            "another rank on line {peer_line}. The `dst` of a send and the `src` of its recv must "
            "name each other. At that moment: {where}."
        ),
        "send-without-recv": (
            "Rank {rank} waits in send on line {line}, but {missing} never calls the recv that "
            "belongs to it. Every send needs one recv on its peer, in the same order. At that "
            "moment: {where}."
        ),
        "recv-without-send": (
            "Rank {rank} waits in recv on line {line}, but {missing} never sends to it. Every recv "
            "needs one send on its peer, in the same order. At that moment: {where}."
        ),
        "message-differs": (
            "Rank {rank} sends {sent_bytes} bytes of {sent_dtype} on line {line}, but rank {peer} "
            "receives into {room_bytes} bytes of {room_dtype} on line {peer_line}. A send and its "
            "recv must have tensors of the same shape and dtype: the backend does not check it."
        ),
        "peer-not-there": (
            "Rank {rank} names a peer in {op} on line {line} that its group of {count} ranks does "
            "not have. Ranks count from 0 to {count} - 1: take the peer modulo the world size for "
            "a ring, or leave the call out on the last rank."
        ),
        "local-rank-argument": (
            "Rank {rank} ended with exit code 2: its argument parser asks for `--local_rank`, "
            'which torchrun does not pass any more. Read `int(os.environ["LOCAL_RANK"])` instead.'
        ),
        "peers-left-behind": (
            "Rank {rank} raised {type} on line {line}: {detail} The other ranks failed only "
            "because it was gone: {where}. Look at rank {rank} first."
        ),
        "rank-exited-alone": (
            "Rank {rank} ended with exit code {exit} and left its partners behind: {where}. Every "
            "rank must take part in every collective of its groups, so end all ranks together."
        ),
        "rank-killed-alone": (
            "Rank {rank} was killed by signal {signal} and left its partners behind: {where}."
        ),
        "rank-aborted": (
            "Rank {rank} was aborted (signal {signal}) inside of torch, most likely in {op} on "
            "line {line}. gloo aborts when the ranks' calls do not fit together. At that moment: "
            "{where}."
        ),
    }
)
