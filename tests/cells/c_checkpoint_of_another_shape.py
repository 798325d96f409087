# kind: C
# ranks: 2
# outcome: error
# diagnosis: (?=.*line 14)(?=.*checkpoint)(?=.*shape|size)
# why: a distributed checkpoint is loaded into a wider layer; pytorch#152310
import torch
import torch.nn as nn
import torch.distributed as dist
import torch.distributed.checkpoint as dcp

dist.init_process_group("gloo")
dcp.save({"head": torch.zeros(4, 3)}, checkpoint_id="epoch-1")
state = {"head": torch.zeros(6, 3)}
dcp.load(state, checkpoint_id="epoch-1")
dist.destroy_process_group()
