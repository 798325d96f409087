"""One training step of a transformer with 1 B parameters under fully_shard, with AdamW."""

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.distributed.fsdp import fully_shard

NUM_LAYERS = 18
WIDTH = 2048
NUM_HEADS = 16
VOCABULARY = 32_000
BATCH, LENGTH = 1, 512


class Block(nn.Module):
    """Attention and a feed-forward part, each with its norm before it."""

    def __init__(self) -> None:
        super().__init__()
        self.attention_norm = nn.LayerNorm(WIDTH)
        self.qkv = nn.Linear(WIDTH, 3 * WIDTH)
        self.out = nn.Linear(WIDTH, WIDTH)
        self.feed_forward_norm = nn.LayerNorm(WIDTH)
        self.up = nn.Linear(WIDTH, 4 * WIDTH)
        self.down = nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x: Tensor) -> Tensor:  # x: [batch, length, width]
        batch, length, width = x.shape
        heads = self.qkv(self.attention_norm(x)).view(batch, length, 3, NUM_HEADS, -1)
        q, k, v = heads.permute(2, 0, 3, 1, 4)
        attended = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(attended.transpose(1, 2).reshape(batch, length, width))
        out: Tensor = self.down(nn.functional.gelu(self.up(self.feed_forward_norm(x))))
        return x + out


class Transformer(nn.Module):
    """A decoder without frills."""

    def __init__(self) -> None:
        super().__init__()
        self.tokens = nn.Embedding(VOCABULARY, WIDTH)
        self.positions = nn.Embedding(LENGTH, WIDTH)
        self.blocks = nn.ModuleList(Block() for _ in range(NUM_LAYERS))
        self.norm = nn.LayerNorm(WIDTH)
        self.head = nn.Linear(WIDTH, VOCABULARY, bias=False)

    def forward(self, tokens: Tensor) -> Tensor:  # tokens: [batch, length]
        x = self.tokens(tokens) + self.positions(torch.arange(tokens.size(1)))
        for block in self.blocks:
            x = block(x)
        logits: Tensor = self.head(self.norm(x))
        return logits


dist.init_process_group()
with torch.device("meta"):  # no rank could hold the whole model
    model = Transformer()
num_parameters = sum(parameter.numel() for parameter in model.parameters())
for block in model.blocks:
    fully_shard(block)
fully_shard(model)
model.to_empty(device="cpu")  # each rank allocates its shards only
for module in model.modules():
    if isinstance(module, (nn.Linear, nn.Embedding, nn.LayerNorm)):
        module.reset_parameters()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
tokens = torch.randint(VOCABULARY, (BATCH, LENGTH + 1))
inputs, targets = tokens[:, :-1], tokens[:, 1:]
loss = nn.functional.cross_entropy(model(inputs).flatten(0, 1), targets.flatten())
loss.backward()  # type: ignore[no-untyped-call]
optimizer.step()
print(f"{num_parameters} parameters, {dist.get_world_size()} ranks", flush=True)
dist.destroy_process_group()
