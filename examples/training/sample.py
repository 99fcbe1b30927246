#!/usr/bin/env python3
"""Prints definitions sampled from an exported model, by the reference forward pass of export.py."""

import argparse
from pathlib import Path

import numpy as np

from bpe import BOS, EOS, Tokenizer
from export import Checkpoint

MODELS = Path(__file__).resolve().parent.parent / "models"


def sample_token(logits, temperature, top_p, random):
    if temperature == 0:
        return int(np.argmax(logits))
    scaled = (logits - logits.max()).astype(np.float64) / temperature
    p = np.exp(scaled)
    p /= p.sum()
    # The nucleus: the most probable tokens, up to and with the one that reaches top_p.
    order = np.argsort(-p, kind="stable")
    size = int(np.searchsorted(np.cumsum(p[order]), top_p)) + 1
    nucleus = order[:size]
    return int(random.choice(nucleus, p=p[nucleus] / p[nucleus].sum()))


def generate(checkpoint, tokenizer, prompt, temperature, top_p, random):
    """The text from the prompt to EOS, or to the end of the context."""
    tokens = [BOS, *tokenizer.encode(prompt)]
    cache = checkpoint.start()
    for token in tokens:
        logits = checkpoint.step(token, cache)
    while True:
        token = sample_token(logits, temperature, top_p, random)
        if token == EOS:
            break
        tokens.append(token)
        if len(tokens) > checkpoint.config.seq_len:
            break  # the last token has no position left
        logits = checkpoint.step(token, cache)
    return tokenizer.decode(tokens)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.ArgumentDefaultsHelpFormatter
    )
    add = parser.add_argument
    add("prompts", nargs="+", help='words to define, each with its colon: "harbour:"')
    add("--model", default=MODELS / "target.bin", help="checkpoint file")
    add("--tokenizer", default=MODELS / "tokenizer.bin", help="tokenizer file")
    add("--temperature", type=float, default=0.8, help="0 takes the most probable token")
    add("--top-p", type=float, default=0.95, help="probability mass of the tokens to choose from")
    add("--seed", type=int, default=1, help="seed, set anew for every prompt")
    arguments = parser.parse_args()
    checkpoint = Checkpoint(arguments.model)
    tokenizer = Tokenizer.load(arguments.tokenizer)
    for prompt in arguments.prompts:
        random = np.random.default_rng(arguments.seed)
        settings = (arguments.temperature, arguments.top_p, random)
        print(generate(checkpoint, tokenizer, prompt, *settings))


if __name__ == "__main__":
    main()
