# kind: C
# ranks: 2
# outcome: error
# diagnosis: (?=.*microbatch)(?=.*divide)
# why: a pipeline's batch of six in four microbatches; torchtitan
import torch
import torch.nn as nn
import torch.distributed as dist
from torch.distributed.pipelining import PipelineStage, ScheduleGPipe

dist.init_process_group("gloo")
rank, world = dist.get_rank(), dist.get_world_size()
torch.manual_seed(0)
stage = PipelineStage(nn.Linear(4, 4), rank, 2, torch.device("cpu"))
sched = ScheduleGPipe(stage, n_microbatches=4, loss_fn=nn.functional.mse_loss)
x = torch.randn(6, 4)
if rank == 0:
    sched.step(x)
else:
    sched.step(target=x, losses=[])
dist.destroy_process_group()
