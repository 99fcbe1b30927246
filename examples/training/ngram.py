"""A byte model of order 5 to compare with: each byte is predicted from the 5 bytes before it, with
interpolated modified Kneser-Ney smoothing down to the uniform distribution over 256 bytes.

A line is its bytes and a newline; the context before its first byte is padded with newlines, so
nothing is carried over from the line before.
"""

import numpy as np

CONTEXT = 5
NEWLINE = 10


def ngram_keys(lines):
    """For every byte of every line and its newline: the 5 bytes before it and itself, packed into
    an integer whose lowest byte is the byte itself."""
    padding = b"\n" * CONTEXT
    joined = b"".join(padding + line.encode("utf-8") + b"\n" for line in lines)
    text = np.frombuffer(joined, np.uint8)
    predicted = np.ones(len(text), bool)
    start = 0
    for line in lines:
        predicted[start : start + CONTEXT] = False
        start += CONTEXT + len(line.encode("utf-8")) + 1
    keys = np.zeros(len(text), np.int64)
    for back in range(CONTEXT + 1):
        keys[back:] |= text[: len(text) - back].astype(np.int64) << (8 * back)
    return keys[predicted]


def last_bytes(keys, n):
    return keys & ((1 << (8 * n)) - 1)


def lookup(sorted_keys, queries):
    """Index of each query, and whether it is there at all."""
    at = np.minimum(np.searchsorted(sorted_keys, queries), len(sorted_keys) - 1)
    return at, sorted_keys[at] == queries


class Order:
    """The counts of one length of context and what modified Kneser-Ney discounts from them."""

    def __init__(self, grams, counts):
        self.grams = grams
        ones, twos, threes, fours = (float(np.sum(counts == n)) for n in (1, 2, 3, 4))
        y = ones / (ones + 2 * twos) if ones else 0.0
        discounts = [
            0.0,
            1 - 2 * y * twos / ones if ones else 0.0,
            2 - 3 * y * threes / twos if twos else 0.0,
            3 - 4 * y * fours / threes if threes else 0.0,
        ]
        discounts = np.clip(discounts, 0.0, [0.0, 1.0, 2.0, 3.0])
        discount = discounts[np.minimum(counts, 3)]
        self.discounted = counts - discount
        self.contexts, context_of = np.unique(grams >> 8, return_inverse=True)
        self.totals = np.bincount(context_of, counts)
        self.backed_off = np.bincount(context_of, discount)


class KneserNey:
    def __init__(self, lines):
        grams, counts = np.unique(ngram_keys(lines), return_counts=True)
        self.orders = [Order(grams, counts)]
        for length in range(CONTEXT, 0, -1):
            # Below the top order an n-gram counts as often as there are different bytes before it.
            grams, counts = np.unique(last_bytes(grams, length), return_counts=True)
            self.orders.append(Order(grams, counts))
        self.orders.reverse()  # shortest context first

    def probabilities(self, keys):
        p = np.full(len(keys), 1 / 256)
        for context_length, order in enumerate(self.orders):
            grams = last_bytes(keys, context_length + 1)
            context_at, context_seen = lookup(order.contexts, grams >> 8)
            gram_at, gram_seen = lookup(order.grams, grams)
            mass = np.where(gram_seen, order.discounted[gram_at], 0.0)
            mass += order.backed_off[context_at] * p
            p = np.where(context_seen, mass / order.totals[context_at], p)
        return p

    def bits(self, lines):
        """Total -log2 p of the lines, each with its newline."""
        return float(-np.log2(self.probabilities(ngram_keys(lines))).sum())
