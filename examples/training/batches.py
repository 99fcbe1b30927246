"""Batches of token sequences, each line by itself: BOS, the line, EOS."""

import numpy as np
import torch

from bpe import BOS, EOS

# Positions in one micro-batch, padding included: small enough for the activations to stay in cache.
MICRO_BATCH_POSITIONS = 1536

# Widths are rounded up to a multiple: the matrix kernels are compiled anew for every shape, so
# there had better be few.
WIDTH_MULTIPLE = 4

# A target that is no token: nothing is to be predicted there.
NO_TARGET = -1


def encode_lines(tokenizer, lines):
    return [np.array([BOS, *tokenizer.encode(line), EOS], np.int16) for line in lines]


def round_up(n):
    return -(-n // WIDTH_MULTIPLE) * WIDTH_MULTIPLE


def micro_batches(sequences):
    """(inputs, targets) in turn, with sequences of about the same length together, so that there is
    little padding. Sequences of one length stay in the order given."""
    sequences = sorted(sequences, key=len)
    start = 0
    while start < len(sequences):
        width = round_up(len(sequences[start]) - 1)
        while True:
            rows = max(1, MICRO_BATCH_POSITIONS // width)
            chosen = sequences[start : start + rows]
            if len(chosen[-1]) - 1 <= width:
                break
            width += WIDTH_MULTIPLE
        inputs = torch.zeros(rows, width, dtype=torch.long)
        targets = torch.full_like(inputs, NO_TARGET)
        for row, sequence in enumerate(chosen):
            tokens = torch.from_numpy(sequence.astype(np.int64))
            inputs[row, : len(tokens) - 1] = tokens[:-1]
            targets[row, : len(tokens) - 1] = tokens[1:]
        yield inputs, targets
        start += rows


class Epochs:
    """Endless batches of a few micro-batches each; an epoch has every sequence once. The batch of a
    step follows from the seed and the step alone, so a resumed run sees the same ones."""

    def __init__(self, sequences, micro_batches_per_step, seed):
        self.sequences = sequences
        self.micro_batches_per_step = micro_batches_per_step
        self.seed = seed
        self._start_epoch(0)
        self.steps_per_epoch = len(self._batches) // micro_batches_per_step

    def _start_epoch(self, epoch):
        random = np.random.default_rng([self.seed, epoch])
        shuffled = [self.sequences[i] for i in random.permutation(len(self.sequences))]
        batches = list(micro_batches(shuffled))
        self._epoch = epoch
        self._batches = [batches[i] for i in random.permutation(len(batches))]

    def batch(self, step):
        # The number of micro-batches depends on the lengths alone and is thus that of every epoch.
        epoch, within = divmod(step, self.steps_per_epoch)
        if epoch != self._epoch:
            self._start_epoch(epoch)
        start = within * self.micro_batches_per_step
        return self._batches[start : start + self.micro_batches_per_step]
