# kind: A
# ranks: 2
# outcome: ok
# says: 7 option sets agree with the global batch
# no-diagnosis
# why: momentum=None, affine=False, bias=False, no running stats, eps, channels_last and transposed (non-contiguous) float32 input; pytorch#64039
import torch
import torch.nn as nn
import torch.distributed as dist


def check(options, layout="plain"):
    torch.manual_seed(11)
    images = torch.randn(5, 4, 3, 6) * 0.5 + torch.arange(4.0).view(1, 4, 1, 1)
    share = slice(0, 2) if dist.get_rank() == 0 else slice(2, 5)
    reference, synced = nn.BatchNorm2d(4, **options), nn.SyncBatchNorm(4, **options)
    if layout == "channels_last":
        images = images.to(memory_format=torch.channels_last)
    if layout == "transposed":
        images = images.transpose(2, 3)
    for _ in range(3):
        whole, part = images.clone().requires_grad_(), images[share].detach().requires_grad_()
        out_ref, out = reference(whole), synced(part)
        out_ref.pow(3).sum().backward()
        out.pow(3).sum().backward()
        torch.testing.assert_close(out, out_ref[share], rtol=1e-4, atol=1e-5)
        torch.testing.assert_close(part.grad, whole.grad[share], rtol=1e-3, atol=1e-4)
    for name, buffer in reference.named_buffers():
        torch.testing.assert_close(synced.get_buffer(name), buffer, rtol=1e-4, atol=1e-6)
    for name, weight in reference.named_parameters():
        grad = synced.get_parameter(name).grad
        dist.all_reduce(grad)
        torch.testing.assert_close(grad, weight.grad, rtol=1e-4, atol=1e-3)


dist.init_process_group("gloo")
cases = [
    dict(momentum=None),
    dict(affine=False),
    dict(track_running_stats=False),
    dict(eps=0.1, momentum=0.7),
    dict(bias=False),
]
for options in cases:
    check(options)
check({}, "channels_last")
check({}, "transposed")
print(len(cases) + 2, "option sets agree with the global batch")
dist.destroy_process_group()
