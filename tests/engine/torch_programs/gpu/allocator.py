# ruff: noqa: F821, SIM115 - begin.py comes before it
# Sizes that are no multiples of 512 bytes, and no op whose library takes memory for itself.


class Scale(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(size))
        self.register_buffer("offset", torch.zeros(size))

    def forward(self, x):
        return torch.tanh(x * self.weight + self.offset)


model = nn.Sequential(*(Scale(1001) for _ in range(3))).to(device)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
for _ in range(3):
    optimizer.zero_grad()
    loss = model(torch.ones(7, 1001, device=device)).sum()
    loss.backward()
    optimizer.step()
torch.cuda.synchronize()
told(allocated=torch.cuda.memory_allocated(), host_kib=os.sysconf("SC_PAGE_SIZE") // 1024)
for line in open("/proc/self/status"):
    if line.startswith(("VmData", "RssAnon", "RssShmem", "Threads")) and rank == 0:
        print(line.strip())
dist.destroy_process_group()
