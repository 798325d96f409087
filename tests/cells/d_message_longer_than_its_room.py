# kind: D
# ranks: 2
# outcome: error
# diagnosis: (?=.*rank[^.;]{0,16}?(?<!\d)0(?!\d))(?=.*48 bytes)(?=.*line 11)(?=.*rank[^.;]{0,16}?(?<!\d)1(?!\d))(?=.*32 bytes)(?=.*line 14)
# why: the receiver's buffer is smaller than the message: the process aborts; pytorch#106164
import torch
import torch.distributed as dist

dist.init_process_group("gloo")
if dist.get_rank() == 0:
    dist.send(torch.arange(12.0), dst=1)
else:
    room = torch.empty(8)
    dist.recv(room, src=0)
    print(room)
dist.destroy_process_group()
