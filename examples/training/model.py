"""The Llama architecture as llama2.c runs it: RMSNorm, rotary embedding of interleaved pairs,
grouped-query attention, SwiGLU and a classifier that shares the token embedding."""

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import nn

NORM_EPS = 1e-5
ROPE_THETA = 10000.0


@dataclass
class Config:
    dim: int
    hidden_dim: int
    n_layers: int
    n_heads: int
    n_kv_heads: int
    vocab_size: int
    seq_len: int = 256

    @property
    def head_dim(self):
        return self.dim // self.n_heads


class Linear(nn.Module):
    """A matrix product in bfloat16 with float32 weights and results, or all in float32.

    torch without an optimised BLAS multiplies float32 matrices some fifty times slower than
    bfloat16 ones on processors with bfloat16 instructions.
    """

    def __init__(self, in_features, out_features, init_std, dtype):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(out_features, in_features) * init_std)
        self.dtype = dtype

    def forward(self, x):
        return F.linear(x.to(self.dtype), self.weight.to(self.dtype)).float()


class RMSNorm(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(dim))

    def forward(self, x):
        scale = torch.rsqrt((x * x).mean(-1, keepdim=True) + NORM_EPS)
        return x * scale * self.weight


def rope_rotations(config):
    """exp(i * position * frequency) for every position and pair, complex."""
    pairs = torch.arange(0, config.head_dim, 2, dtype=torch.float32)
    frequencies = ROPE_THETA ** (-pairs / config.head_dim)
    angles = torch.outer(torch.arange(config.seq_len, dtype=torch.float32), frequencies)
    return torch.polar(torch.ones_like(angles), angles)


def rotate(x, rotations):
    """x: (batch, time, heads, head_dim), each pair (2i, 2i + 1) being one complex number."""
    pairs = torch.view_as_complex(x.unflatten(-1, (-1, 2)))
    return torch.view_as_real(pairs * rotations[: x.shape[1], None, :]).flatten(-2)


class Attention(nn.Module):
    def __init__(self, config, out_std, dtype):
        super().__init__()
        self.config = config
        self.dtype = dtype
        kv_dim = config.n_kv_heads * config.head_dim
        std = config.dim**-0.5
        self.wq = Linear(config.dim, config.dim, std, dtype)
        self.wk = Linear(config.dim, kv_dim, std, dtype)
        self.wv = Linear(config.dim, kv_dim, std, dtype)
        self.wo = Linear(config.dim, config.dim, out_std, dtype)

    def forward(self, x, rotations, mask):
        batch, time, _ = x.shape
        head_dim = self.config.head_dim
        group = self.config.n_heads // self.config.n_kv_heads
        q = rotate(self.wq(x).view(batch, time, -1, head_dim), rotations)
        k = rotate(self.wk(x).view(batch, time, -1, head_dim), rotations)
        v = self.wv(x).view(batch, time, -1, head_dim)
        # The query heads of a group follow one another and share a key/value head; seen as more
        # query positions of that head they need no copies of the keys and values.
        q = q.view(batch, time, -1, group, head_dim).permute(0, 2, 3, 1, 4)
        q = q.reshape(batch, -1, group * time, head_dim).to(self.dtype)
        k = k.transpose(1, 2).to(self.dtype)
        v = v.transpose(1, 2).to(self.dtype)
        scores = (q @ k.transpose(-1, -2)).float() * head_dim**-0.5
        scores = scores.view(batch, -1, group, time, time) + mask
        weights = torch.softmax(scores, -1).view(batch, -1, group * time, time)
        out = (weights.to(self.dtype) @ v).float()
        out = out.view(batch, -1, group, time, head_dim).permute(0, 3, 1, 2, 4)
        return self.wo(out.reshape(batch, time, -1))


class FeedForward(nn.Module):
    def __init__(self, config, out_std, dtype):
        super().__init__()
        std = config.dim**-0.5
        self.w1 = Linear(config.dim, config.hidden_dim, std, dtype)
        self.w2 = Linear(config.hidden_dim, config.dim, out_std, dtype)
        self.w3 = Linear(config.dim, config.hidden_dim, std, dtype)

    def forward(self, x):
        return self.w2(F.silu(self.w1(x)) * self.w3(x))


class Block(nn.Module):
    def __init__(self, config, dtype):
        super().__init__()
        # The deeper the model, the less each layer adds to the residual stream at first.
        out_std = (2 * config.n_layers * config.dim) ** -0.5
        self.attention_norm = RMSNorm(config.dim)
        self.attention = Attention(config, out_std, dtype)
        self.ffn_norm = RMSNorm(config.dim)
        self.ffn = FeedForward(config, out_std, dtype)

    def forward(self, x, rotations, mask):
        x = x + self.attention(self.attention_norm(x), rotations, mask)
        return x + self.ffn(self.ffn_norm(x))


class Llama(nn.Module):
    def __init__(self, config, dtype=torch.float32):
        super().__init__()
        self.config = config
        # One matrix for embedding and classifier: its scale is that of a classifier, so that the
        # first logits are small.
        self.classifier = Linear(config.dim, config.vocab_size, 0.02, dtype)
        self.blocks = nn.ModuleList(Block(config, dtype) for _ in range(config.n_layers))
        self.final_norm = RMSNorm(config.dim)
        self.register_buffer("rotations", rope_rotations(config), persistent=False)
        later = torch.full((config.seq_len, config.seq_len), float("-inf")).triu(1)
        self.register_buffer("mask", later, persistent=False)

    def hidden(self, tokens):
        """The state of the last layer after the final norm, which the classifier reads."""
        time = tokens.shape[1]
        x = F.embedding(tokens, self.classifier.weight)
        for block in self.blocks:
            x = block(x, self.rotations, self.mask[:time, :time])
        return self.final_norm(x)

    def forward(self, tokens):
        return self.classifier(self.hidden(tokens))

    def num_parameters(self):
        return sum(p.numel() for p in self.parameters())
