"""Checkpoint files of llama2.c, version 0, and a forward pass on what such a file holds that shares
nothing with the model that was trained."""

import struct

import numpy as np

from model import NORM_EPS, ROPE_THETA, Config

HEADER = struct.Struct("<7i")


def rope_tables(config):
    """cos and sin, (seq_len, head_dim / 2); llama2.c skips them, but the layout has them."""
    pairs = np.arange(0, config.head_dim, 2) / config.head_dim
    angles = np.outer(np.arange(config.seq_len), ROPE_THETA**-pairs)
    return np.cos(angles), np.sin(angles)


def save_checkpoint(model, path):
    config = model.config
    blocks = model.blocks
    tensors = [model.classifier.weight]
    tensors += [block.attention_norm.weight for block in blocks]
    for name in ("wq", "wk", "wv", "wo"):
        tensors += [getattr(block.attention, name).weight for block in blocks]
    tensors += [block.ffn_norm.weight for block in blocks]
    for name in ("w1", "w2", "w3"):
        tensors += [getattr(block.ffn, name).weight for block in blocks]
    tensors.append(model.final_norm.weight)
    arrays = [tensor.detach().numpy() for tensor in tensors] + list(rope_tables(config))
    with open(path, "wb") as file:
        # A positive vocabulary size says that the classifier is the embedding.
        file.write(
            HEADER.pack(
                config.dim,
                config.hidden_dim,
                config.n_layers,
                config.n_heads,
                config.n_kv_heads,
                config.vocab_size,
                config.seq_len,
            )
        )
        for array in arrays:
            file.write(np.ascontiguousarray(array, "<f4").tobytes())


class Checkpoint:
    """The weights of a file as arrays, each with the layer as its first dimension."""

    def __init__(self, path):
        with open(path, "rb") as file:
            data = file.read()
        self.config = c = Config(*HEADER.unpack_from(data))
        values = np.frombuffer(data, "<f4", offset=HEADER.size)
        kv_dim = c.n_kv_heads * c.head_dim
        offset = 0

        def take(*shape):
            nonlocal offset
            size = int(np.prod(shape))
            array = values[offset : offset + size].reshape(shape)
            offset += size
            return array

        self.embedding = take(c.vocab_size, c.dim)
        self.attention_norm = take(c.n_layers, c.dim)
        self.wq = take(c.n_layers, c.dim, c.dim)
        self.wk = take(c.n_layers, kv_dim, c.dim)
        self.wv = take(c.n_layers, kv_dim, c.dim)
        self.wo = take(c.n_layers, c.dim, c.dim)
        self.ffn_norm = take(c.n_layers, c.dim)
        self.w1 = take(c.n_layers, c.hidden_dim, c.dim)
        self.w2 = take(c.n_layers, c.dim, c.hidden_dim)
        self.w3 = take(c.n_layers, c.hidden_dim, c.dim)
        self.final_norm = take(c.dim)
        take(2, c.seq_len, c.head_dim // 2)
        if offset != len(values):
            raise ValueError(f"{path}: {len(values)} values where the header makes {offset}")

    def start(self):
        """The empty key/value cache to begin a sequence with."""
        return [([], []) for _ in range(self.config.n_layers)]

    def step(self, token, cache):
        """Logits after one more token; appends to the cache."""
        c = self.config
        position = len(cache[0][0])
        x = self.embedding[token]
        for layer, (keys, values) in enumerate(cache):
            h = self._norm(x, self.attention_norm[layer])
            q = self._rope((self.wq[layer] @ h).reshape(-1, c.head_dim), position)
            keys.append(self._rope((self.wk[layer] @ h).reshape(-1, c.head_dim), position))
            values.append((self.wv[layer] @ h).reshape(-1, c.head_dim))
            heads = []
            for head in range(c.n_heads):
                kv_head = head * c.n_kv_heads // c.n_heads
                scores = np.array([q[head] @ k[kv_head] for k in keys]) / np.sqrt(c.head_dim)
                weights = np.exp(scores - scores.max())
                weights /= weights.sum()
                heads.append(sum(w * v[kv_head] for w, v in zip(weights, values)))
            x = x + self.wo[layer] @ np.concatenate(heads)
            h = self._norm(x, self.ffn_norm[layer])
            gate = self.w1[layer] @ h
            x = x + self.w2[layer] @ (gate / (1 + np.exp(-gate)) * (self.w3[layer] @ h))
        return self.embedding @ self._norm(x, self.final_norm)

    @staticmethod
    def _norm(x, weight):
        return x / np.sqrt(np.mean(x * x) + NORM_EPS) * weight

    @staticmethod
    def _rope(heads, position):
        head_dim = heads.shape[1]
        angles = position * ROPE_THETA ** -(np.arange(0, head_dim, 2) / head_dim)
        even, odd = heads[:, 0::2], heads[:, 1::2]
        rotated = np.empty_like(heads)
        rotated[:, 0::2] = even * np.cos(angles) - odd * np.sin(angles)
        rotated[:, 1::2] = even * np.sin(angles) + odd * np.cos(angles)
        return rotated


def largest_difference(model, path, sequences):
    """Largest difference between the logits of the file and those of a float32 model."""
    import torch

    checkpoint = Checkpoint(path)
    worst = 0.0
    for tokens in sequences:
        with torch.no_grad():
            expected = model(torch.tensor([tokens]))[0].numpy()
        cache = checkpoint.start()
        for position, token in enumerate(tokens):
            difference = np.abs(checkpoint.step(token, cache) - expected[position]).max()
            worst = max(worst, float(difference))
    return worst
