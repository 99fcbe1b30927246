#!/usr/bin/env python3
"""Trains the model pair of examples/models: tokenizer, draft and target, from WordNet's glosses.

One run does everything: data, tokenizer, byte model to compare with, both trainings, export, a
check of the exported files and held-out bits per byte. Interrupted, it resumes from its last
checkpoint.
"""

import argparse
import ctypes
import json
import math
import time
from pathlib import Path

import torch

import bpe
import data
from batches import NO_TARGET, Epochs, encode_lines
from evaluate import num_bytes, total_bits
from export import largest_difference, save_checkpoint
from loss import classifier_loss
from model import Config, Llama
from ngram import KneserNey

HERE = Path(__file__).resolve().parent

SHAPES = {
    "draft": dict(dim=40, hidden_dim=104, n_layers=2, n_heads=5, n_kv_heads=1),
    "target": dict(dim=128, hidden_dim=264, n_layers=5, n_heads=8, n_kv_heads=4),
}
PEAK_LEARNING_RATE = {"draft": 1e-2, "target": 3e-3}
WEIGHT_DECAY = {"draft": 0.0, "target": 0.05}
BETAS = (0.9, 0.98)
WARMUP_STEPS = 120
# The share of the steps over which the learning rate falls. Before that a run does not depend on
# its length, so a long one may still be shortened or prolonged.
DECAY_SHARE = {"draft": 1.0, "target": 0.2}
CLIP_NORM = 1.0
LARGEST_LOGIT_DIFFERENCE = 1e-4


def keep_freed_memory():
    """Lets glibc keep freed memory for the next tensors; getting the pages anew from the system for
    every large tensor costs a good part of the time. A no-op elsewhere."""
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        m_trim_threshold, m_mmap_threshold = -1, -3
        mallopt(m_mmap_threshold, 1 << 30)
        mallopt(m_trim_threshold, 1 << 30)


def say(message):
    print(message, flush=True)


def parse_arguments():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.ArgumentDefaultsHelpFormatter
    )
    add = parser.add_argument
    add("--wordnet", default="/usr/share/wordnet", help="directory of data.noun, data.verb, ...")
    add("--output", type=Path, default=HERE.parent / "models", help="where the model files go")
    add("--work", type=Path, default=HERE / "run", help="where checkpoints and the report go")
    add("--vocab-size", type=int, default=2048, help="pieces of the tokenizer, bytes included")
    add("--target-steps", type=int, default=2500, help="optimizer steps of the target")
    add("--draft-steps", type=int, default=6000, help="optimizer steps of the draft")
    add("--micro-batches", type=int, default=2, help="micro-batches of 1,536 tokens in a step")
    add("--seed", type=int, default=1, help="seed of initial weights and batches")
    add("--threads", type=int, default=1, help="threads torch may use")
    add(
        "--matmul",
        choices=["bfloat16", "float32"],
        default="bfloat16",
        help="precision of matrix products in training; final evaluation and files are float32",
    )
    add("--checkpoint-every", type=int, default=1000, help="steps from checkpoint to checkpoint")
    add("--log-every", type=int, default=100, help="steps from progress line to progress line")
    add(
        "--quick",
        action="store_true",
        help="smoke run of under a minute on a part of the data; all its files go to WORK/quick",
    )
    arguments = parser.parse_args()
    if arguments.quick:
        arguments.work = arguments.output = arguments.work / "quick"
        arguments.vocab_size = 512
        arguments.target_steps = arguments.draft_steps = 30
        arguments.micro_batches = 1
        arguments.checkpoint_every = arguments.log_every = 10
    return arguments


def learning_rate_factor(step, steps, decay_share):
    """Linear warm-up, the peak, then a half cosine down to zero."""
    warmup = min(WARMUP_STEPS, steps // 2)
    if step < warmup:
        return (step + 1) / warmup
    decay_start = max(warmup, round((1 - decay_share) * steps))
    angle = math.pi * max(0, step - decay_start) / (steps - decay_start)
    return 0.5 * (1 + math.cos(angle))


def make_optimizer(model, name):
    # Norm weights are one-dimensional; pulling them to zero would serve nothing.
    matrices = [p for p in model.parameters() if p.dim() > 1]
    norms = [p for p in model.parameters() if p.dim() == 1]
    groups = [
        {"params": matrices, "weight_decay": WEIGHT_DECAY[name]},
        {"params": norms, "weight_decay": 0.0},
    ]
    return torch.optim.AdamW(groups, lr=PEAK_LEARNING_RATE[name], betas=BETAS)


def train_step(model, optimizer, batch):
    """One optimizer step; returns the mean loss of a token."""
    num_targets = sum(int((targets != NO_TARGET).sum()) for _, targets in batch)
    optimizer.zero_grad(set_to_none=True)
    total = 0.0
    for inputs, targets in batch:
        loss = classifier_loss(model.hidden(inputs), model.classifier, targets)
        (loss / num_targets).backward()
        total += loss.item()
    torch.nn.utils.clip_grad_norm_(model.parameters(), CLIP_NORM)
    optimizer.step()
    return total / num_targets


def train_model(name, config, steps, train, held_out, held_out_bytes, arguments):
    """Trains to the end, from the last checkpoint if there is one; returns the float32 model and
    the seconds of training in all."""
    torch.manual_seed(arguments.seed)
    model = Llama(config, getattr(torch, arguments.matmul))
    optimizer = make_optimizer(model, name)
    epochs = Epochs(train, arguments.micro_batches, arguments.seed)
    checkpoint_path = arguments.work / f"{name}.pt"
    first_step, seconds_before = 0, 0.0
    if checkpoint_path.exists():
        saved = torch.load(checkpoint_path)
        model.load_state_dict(saved["model"])
        optimizer.load_state_dict(saved["optimizer"])
        first_step, seconds_before = saved["step"], saved["seconds"]
    say(
        f"{name}: {model.num_parameters():,} parameters, {steps} steps from step {first_step},"
        f" {steps / epochs.steps_per_epoch:.1f} epochs"
    )

    started = time.monotonic()
    loss_sum, loss_steps = 0.0, 0
    for step in range(first_step, steps):
        for group in optimizer.param_groups:
            factor = learning_rate_factor(step, steps, DECAY_SHARE[name])
            group["lr"] = PEAK_LEARNING_RATE[name] * factor
        loss_sum += train_step(model, optimizer, epochs.batch(step))
        loss_steps += 1
        done = step + 1
        elapsed = time.monotonic() - started
        if done % arguments.log_every == 0 or done == steps:
            eta = elapsed / (done - first_step) * (steps - done)
            say(
                f"{name} {done}/{steps}: loss {loss_sum / loss_steps:.4f} nats a token,"
                f" {elapsed / 60:.1f} min, ETA {eta / 60:.1f} min"
            )
            loss_sum, loss_steps = 0.0, 0
        if done % arguments.checkpoint_every == 0 or done == steps:
            saved = {
                "model": model.state_dict(),
                "optimizer": optimizer.state_dict(),
                "step": done,
                "seconds": seconds_before + elapsed,
            }
            # Written beside and renamed: an interruption never leaves half a checkpoint.
            torch.save(saved, checkpoint_path.with_suffix(".tmp"))
            checkpoint_path.with_suffix(".tmp").replace(checkpoint_path)
            bits = total_bits(model, held_out) / held_out_bytes
            say(f"{name} {done}/{steps}: held out {bits:.4f} bits per byte")

    exact = Llama(config)
    exact.load_state_dict(model.state_dict())
    return exact, torch.load(checkpoint_path)["seconds"]


def load_or_train_tokenizer(lines, arguments):
    path = arguments.output / "tokenizer.bin"
    learnt = arguments.work / "tokenizer.bin"
    if not learnt.exists():
        started = time.monotonic()
        bpe.train_tokenizer(lines, arguments.vocab_size).save(learnt)
        say(f"tokenizer: trained in {time.monotonic() - started:.0f} s")
    path.write_bytes(learnt.read_bytes())
    return bpe.Tokenizer.load(path)


def check_tokenizer(tokenizer, lines):
    """Encoding by chunks must give what an encoder without chunks gives, and decoding the line."""
    for line in lines:
        tokens = tokenizer.encode(line)
        if tokens != tokenizer.encode_whole(line) or tokenizer.decode(tokens) != line:
            raise SystemExit(f"tokenizer: wrong for {line!r}")


def export_and_evaluate(name, model, held_out, held_out_bytes, arguments):
    """Writes the model file, checks it against the model and returns the report on both."""
    path = arguments.output / f"{name}.bin"
    save_checkpoint(model, path)
    difference = largest_difference(model, path, [s[:-1].tolist() for s in held_out[:8]])
    if difference > LARGEST_LOGIT_DIFFERENCE:
        raise SystemExit(f"{path}: the logits of the file differ by {difference:.2g}")
    bits = total_bits(model, held_out) / held_out_bytes
    say(f"{name}: held out {bits:.4f} bits per byte; logits of the file within {difference:.1e}")
    return {
        "bits_per_byte": bits,
        "parameters": model.num_parameters(),
        "file_bytes": path.stat().st_size,
        "largest_logit_difference": difference,
    }


def main():
    arguments = parse_arguments()
    keep_freed_memory()
    torch.set_num_threads(arguments.threads)
    arguments.work.mkdir(parents=True, exist_ok=True)
    arguments.output.mkdir(parents=True, exist_ok=True)

    split = data.load_split(arguments.wordnet)
    if arguments.quick:
        split.train, split.held_out = split.train[::40], split.held_out[::20]
    held_out_bytes = num_bytes(split.held_out)
    say(f"data: {len(split.train):,} training lines, {len(split.held_out):,} held-out lines")

    byte_model_bits = KneserNey(split.train).bits(split.held_out) / held_out_bytes
    say(f"order-5 byte model: held out {byte_model_bits:.4f} bits per byte")

    tokenizer = load_or_train_tokenizer(split.train, arguments)
    check_tokenizer(tokenizer, split.held_out[:200])
    train = encode_lines(tokenizer, split.train)
    held_out = encode_lines(tokenizer, split.held_out)

    report = {
        "data": {
            "train_synsets": split.num_train_synsets,
            "train_lines": len(split.train),
            "train_bytes": num_bytes(split.train),
            "train_tokens": sum(len(sequence) - 1 for sequence in train),
            "held_out_synsets": split.num_held_out_synsets,
            "held_out_left_out_as_repeated": split.num_repeated,
            "held_out_lines": len(split.held_out),
            "held_out_bytes": held_out_bytes,
            "held_out_tokens": sum(len(sequence) - 1 for sequence in held_out),
        },
        "order_5_byte_model": {"bits_per_byte": byte_model_bits},
    }
    for name, steps in (("draft", arguments.draft_steps), ("target", arguments.target_steps)):
        config = Config(vocab_size=len(tokenizer), **SHAPES[name])
        model, seconds = train_model(
            name, config, steps, train, held_out, held_out_bytes, arguments
        )
        report[name] = export_and_evaluate(name, model, held_out, held_out_bytes, arguments)
        report[name].update(steps=steps, training_seconds=round(seconds))

    text = json.dumps(report, indent=2)
    (arguments.work / "report.json").write_text(text + "\n")
    say(text)


if __name__ == "__main__":
    main()
