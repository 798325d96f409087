# kind: B
# ranks: 2
# outcome: ok
# says: rank 0 clipped by norm 0\.\d+, rank 1 by 0\.\d+, whole gradient 0\.\d+
# diagnosis: clip_grad_norm_?.*(shard|local|flat|FSDP|model\.)
# why: torch.nn.utils.clip_grad_norm_ on an FSDP1 model sees one shard's norm, so each rank scales differently; pytorch#72548
import torch
import torch.nn as nn
import torch.distributed as dist
from torch.distributed.fsdp import FullyShardedDataParallel as FSDP


def main():
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(0)
    encoder = nn.Sequential(nn.Linear(12, 24), nn.GELU(), nn.Linear(24, 4))
    encoder = FSDP(encoder, device_id=torch.device("cpu"))
    opt = torch.optim.SGD(encoder.parameters(), lr=0.1)
    for step in range(2):
        torch.manual_seed(step * 2 + rank)
        encoder(torch.randn(8, 12)).square().mean().backward()
        norm = nn.utils.clip_grad_norm_(encoder.parameters(), max_norm=0.01)
        opt.step()
        opt.zero_grad()
    norms = [torch.zeros(()) for _ in range(2)]
    dist.all_gather(norms, norm)
    a, b = (n.item() for n in norms)
    assert abs(a - b) > 1e-3
    print(
        f"rank 0 clipped by norm {a:.4f}, rank 1 by {b:.4f}, whole gradient {(a * a + b * b) ** 0.5:.4f}"
    )
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
