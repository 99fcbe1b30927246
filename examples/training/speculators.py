"""What drafts from inside the target: heads for later tokens, and a drafter of features.

Both read the target's features (its last hidden states after the final norm) and both use its
classifier, so that their files hold little. Their file formats are described in
../models/README.md.
"""

import struct

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from export import Checkpoint
from model import Block, Linear, Llama, RMSNorm, rope_rotations

HEADS_HEADER = struct.Struct("<4s5i")
HEADS_MAGIC = b"dchd"
FEATURES_HEADER = struct.Struct("<4s7i")
FEATURES_MAGIC = b"dcfd"
FORMAT_VERSION = 1


def load_target(path, dtype):
    """The model of a checkpoint file, frozen."""
    checkpoint = Checkpoint(path)
    model = Llama(checkpoint.config, dtype)
    weights = {
        "classifier.weight": checkpoint.embedding,
        "final_norm.weight": checkpoint.final_norm,
    }
    for layer in range(checkpoint.config.n_layers):
        prefix = f"blocks.{layer}."
        weights[prefix + "attention_norm.weight"] = checkpoint.attention_norm[layer]
        weights[prefix + "ffn_norm.weight"] = checkpoint.ffn_norm[layer]
        for name in ("wq", "wk", "wv", "wo"):
            weights[f"{prefix}attention.{name}.weight"] = getattr(checkpoint, name)[layer]
        for name in ("w1", "w2", "w3"):
            weights[f"{prefix}ffn.{name}.weight"] = getattr(checkpoint, name)[layer]
    model.load_state_dict({name: torch.from_numpy(array.copy()) for name, array in weights.items()})
    return model.requires_grad_(False)


class Heads(nn.Module):
    """Medusa heads: head k turns the feature at t into one of the token at t + 1 + k, by residual
    blocks x + SiLU(W x). With W = 0 a head says what the target says of the token at t + 1."""

    def __init__(self, config, num_heads, num_blocks, dtype):
        super().__init__()
        self.config = config
        self.blocks = nn.ModuleList(
            nn.ModuleList(Linear(config.dim, config.dim, 0.0, dtype) for _ in range(num_blocks))
            for _ in range(num_heads)
        )
        # Blocks at zero are the identity, but would stay alike, as their gradients are: a little
        # noise tells them apart.
        for linear in self.modules():
            if isinstance(linear, Linear):
                nn.init.normal_(linear.weight, std=0.02)

    def forward(self, features, head):
        for linear in self.blocks[head]:
            features = features + F.silu(linear(features))
        return features


class FeatureDrafter(nn.Module):
    """EAGLE's drafter: the feature at t + 1 from the feature at t and the embedding of the token at
    t + 1, through one decoder layer that sees the earlier ones."""

    def __init__(self, target, dtype):
        super().__init__()
        self.config = config = target.config
        self.fusion = Linear(2 * config.dim, config.dim, 0.0, dtype)
        self.block = Block(config, dtype)
        self.final_norm = RMSNorm(config.dim)
        self.register_buffer("rotations", rope_rotations(config), persistent=False)
        self.register_buffer("mask", target.mask, persistent=False)
        with torch.no_grad():
            # At first the feature passes; embeddings are small, so their weights are large.
            scale = target.classifier.weight.square().mean().sqrt()
            self.fusion.weight[:, : config.dim].normal_(std=0.5 / (scale * config.dim**0.5))
            self.fusion.weight[:, config.dim :] = torch.eye(config.dim)
            self.final_norm.weight.copy_(target.final_norm.weight)

    def forward(self, embeddings, features):
        time = embeddings.shape[1]
        x = self.fusion(torch.cat([embeddings, features], -1))
        return self.final_norm(self.block(x, self.rotations, self.mask[:time, :time]))


def write_arrays(file, tensors):
    for tensor in tensors:
        file.write(np.ascontiguousarray(tensor.detach().numpy(), "<f4").tobytes())


def save_heads(heads, shares, path):
    """shares: (heads, picks), how often the i-th pick of a head is the target's choice."""
    config = heads.config
    with open(path, "wb") as file:
        file.write(
            HEADS_HEADER.pack(
                HEADS_MAGIC,
                FORMAT_VERSION,
                config.dim,
                len(heads.blocks),
                len(heads.blocks[0]),
                shares.shape[1],
            )
        )
        write_arrays(file, [shares])
        write_arrays(file, [linear.weight for blocks in heads.blocks for linear in blocks])


def save_feature_drafter(drafter, path):
    config, block = drafter.config, drafter.block
    attention, ffn = block.attention, block.ffn
    with open(path, "wb") as file:
        file.write(
            FEATURES_HEADER.pack(
                FEATURES_MAGIC,
                FORMAT_VERSION,
                config.dim,
                config.hidden_dim,
                config.n_heads,
                config.n_kv_heads,
                config.seq_len,
                config.vocab_size,
            )
        )
        write_arrays(
            file,
            [
                drafter.fusion.weight,
                block.attention_norm.weight,
                attention.wq.weight,
                attention.wk.weight,
                attention.wv.weight,
                attention.wo.weight,
                block.ffn_norm.weight,
                ffn.w1.weight,
                ffn.w2.weight,
                ffn.w3.weight,
                drafter.final_norm.weight,
            ],
        )
