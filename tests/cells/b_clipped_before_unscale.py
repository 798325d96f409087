# kind: B
# ranks: 2
# outcome: ok
# says: norm before clipping [0-9]{4,}
# diagnosis: (?=.*clip)(?=.*(unscale|scaler|scaled))
# why: the gradients still carry the loss scale when they are clipped, so 1.0 means 1/65536; pytorch/examples#1196, Pytorch-UNet#468
import torch
import torch.nn as nn
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP

def main():
    dist.init_process_group("gloo")
    torch.manual_seed(0)
    unet = DDP(nn.Sequential(nn.Conv1d(2, 4, 3), nn.ReLU(), nn.Conv1d(4, 1, 3)))
    optimizer = torch.optim.RMSprop(unet.parameters(), lr=1e-3)
    grad_scaler = torch.amp.GradScaler("cpu", init_scale=65536.0)
    torch.manual_seed(dist.get_rank())
    for _ in range(3):
        images = torch.randn(3, 2, 16)
        with torch.autocast("cpu", dtype=torch.bfloat16):
            loss = (unet(images).float() - 1).pow(2).mean()
        optimizer.zero_grad(set_to_none=True)
        grad_scaler.scale(loss).backward()
        norm = torch.nn.utils.clip_grad_norm_(unet.parameters(), 1.0)
        grad_scaler.step(optimizer)
        grad_scaler.update()
    print(f"norm before clipping {norm.item():.0f}")
    dist.destroy_process_group()

main()
