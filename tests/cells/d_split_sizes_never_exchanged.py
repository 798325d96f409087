# kind: D
# ranks: 2
# outcome: deadlock|error|ok
# diagnosis: (?=.*all_to_all)(?=.*split)(?=.*rank[^.;]{0,16}?(?<!\d)0(?!\d))(?=.*rank[^.;]{0,16}?(?<!\d)1(?!\d))
# why: MoE dispatch assumes that every rank receives what it sends, but routing differs between ranks; pytorch#106164
import torch
import torch.distributed as dist

dist.init_process_group("gloo")
rank = dist.get_rank()
tokens = torch.arange(6.0).reshape(6, 1) + 10 * rank
to_expert = [2, 4] if rank == 0 else [5, 1]
received = torch.empty(6, 1)
dist.all_to_all_single(received, tokens, output_split_sizes=to_expert, input_split_sizes=to_expert)
print("rank", rank, "holds", received.flatten().tolist())
dist.destroy_process_group()
