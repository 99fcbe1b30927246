"""Bits per byte of held-out lines under a trained model."""

import math

import torch

from batches import micro_batches
from loss import classifier_loss


def num_bytes(lines):
    """The bytes of the lines and one for the end of each: EOS here, a newline in the byte model."""
    return sum(len(line.encode("utf-8")) + 1 for line in lines)


def total_bits(model, sequences):
    """-log2 p of all the tokens after BOS, EOS among them."""
    nats = 0.0
    with torch.no_grad():
        for inputs, targets in micro_batches(sequences):
            nats += classifier_loss(model.hidden(inputs), model.classifier, targets).item()
    return nats / math.log(2)
