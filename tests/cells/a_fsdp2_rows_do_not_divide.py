# kind: A
# ranks: 3
# outcome: ok
# says: shard rows of the 7-row weight: \[3, 3, 1\]; of the 2-row bias: \[1, 1, 0\]
# says: weights and gradient norm equal the single run
# no-diagnosis
# why: FSDP2 with parameters that do not divide by the ranks (some ranks hold nothing), gradient clipping included; torchtune#2169
import torch
import torch.nn as nn
import torch.distributed as dist
from torch.distributed.fsdp import fully_shard


def tagger():
    torch.manual_seed(2)
    return nn.Sequential(nn.Embedding(11, 5), nn.Linear(5, 7), nn.Tanh(), nn.Linear(7, 2))


def train(model, tokens, share=slice(None)):
    opt = torch.optim.AdamW(model.parameters(), lr=0.03)
    norms = []
    for batch in tokens:
        model(batch[share]).square().mean().backward()
        norm = nn.utils.clip_grad_norm_(model.parameters(), max_norm=0.05)
        norms.append(norm.full_tensor() if hasattr(norm, "full_tensor") else norm)
        opt.step()
        opt.zero_grad()
    return torch.stack(norms)


dist.init_process_group("gloo")
rank, world = dist.get_rank(), dist.get_world_size()
torch.manual_seed(0)
tokens = torch.randint(0, 11, (4, 6, 8))
alone = tagger()
want = train(alone, tokens)
model = tagger()
for layer in (model[0], model[1], model[3]):
    fully_shard(layer)
fully_shard(model)
rows = [None] * world
dist.all_gather_object(rows, [p.to_local().shape[0] for p in (model[1].weight, model[3].bias)])
got = train(model, tokens, slice(rank * 2, rank * 2 + 2))
torch.testing.assert_close(got, want, rtol=1e-4, atol=1e-6)
for p, q in zip(model.parameters(), alone.parameters()):
    torch.testing.assert_close(p.full_tensor(), q.data, rtol=1e-4, atol=1e-5)
print(
    "shard rows of the 7-row weight: %s; of the 2-row bias: %s" % tuple(list(r) for r in zip(*rows))
)
print("weights and gradient norm equal the single run")
dist.destroy_process_group()
