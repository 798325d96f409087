# kind: E
# ranks: 2
# outcome: ok
# no-diagnosis
# why: two threads communicate, each in a group of its own; pytorch#106164
import threading, torch, torch.distributed as dist
dist.init_process_group("gloo")
g = dist.new_group([0, 1])
def work(group, n):
    for _ in range(5):
        dist.all_reduce(torch.ones(n), group=group)
t = threading.Thread(target=work, args=(g, 3)); t.start()
work(None, 2)
t.join()
dist.destroy_process_group()
