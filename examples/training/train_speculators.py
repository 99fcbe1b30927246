#!/usr/bin/env python3
"""Trains what drafts from inside the shipped target: Medusa heads and an EAGLE feature drafter.

The target is frozen. Both learn its distributions at the positions they draft for, on the lines
that the target itself was trained on; the figures are from the held-out lines.
"""

import argparse
import copy
import json
import time
from pathlib import Path

import torch
import torch.nn.functional as F

import data
from batches import NO_TARGET, Epochs, encode_lines, micro_batches
from bpe import BOS, Tokenizer
from speculators import FeatureDrafter, Heads, load_target, save_feature_drafter, save_heads
from train import BETAS, CLIP_NORM, HERE, keep_freed_memory, learning_rate_factor, say

NUM_PICKS = 10  # of a head, counted from its most probable
DRAFT_STEPS = 4  # of the feature drafter, in the figures
DECAY_SHARE = 0.6

EXPECTATION_LINE = "lighthouse: a tower with a light that gives warning of"


def parse_arguments():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.ArgumentDefaultsHelpFormatter
    )
    add = parser.add_argument
    add("--wordnet", default="/usr/share/wordnet", help="directory of data.noun, data.verb, ...")
    add("--models", type=Path, default=HERE.parent / "models", help="target in, files out")
    add("--work", type=Path, default=HERE / "run", help="where the report goes")
    add("--heads", type=int, default=4, help="heads: the last drafts the token after so many")
    add("--blocks", type=int, default=2, help="residual blocks of a head")
    add("--head-steps", type=int, default=900, help="optimizer steps of the heads")
    add("--feature-steps", type=int, default=850, help="optimizer steps of the feature drafter")
    add("--seed", type=int, default=1, help="seed of initial weights and batches")
    add("--threads", type=int, default=1, help="threads torch may use")
    add(
        "--matmul",
        choices=["bfloat16", "float32"],
        default="float32",
        help="precision of matrix products in training; figures and files are float32",
    )
    add("--log-every", type=int, default=50, help="steps from progress line to progress line")
    add("--only", choices=["heads", "features"], help="train one of the two")
    add("--quick", action="store_true", help="smoke run: 20 steps, all files go to WORK/quick")
    arguments = parser.parse_args()
    if arguments.quick:
        arguments.head_steps = arguments.feature_steps = 20
        arguments.log_every = 5
    return arguments


class DistilledLoss(torch.autograd.Function):
    """Summed cross-entropy of softmax(features @ weight^T) with given probabilities, in nats.

    The classifier is frozen, so all that backward needs is the gradient of the features, which are
    smaller than the logits by far: it is made at once.
    """

    @staticmethod
    def forward(ctx, features, weight, probabilities, dtype):
        weight = weight.to(dtype)
        q = (features.to(dtype) @ weight.t()).float()
        q -= q.amax(-1, keepdim=True)
        agreement = (q * probabilities).sum()
        q.exp_()
        sums = q.sum(-1, keepdim=True)
        mass = probabilities.sum(-1, keepdim=True)  # 0 where nothing is to be predicted
        q *= mass / sums
        q -= probabilities
        ctx.save_for_backward((q.to(dtype) @ weight).float())
        return (sums.log() * mass).sum() - agreement

    @staticmethod
    def backward(ctx, scale):
        (gradient,) = ctx.saved_tensors
        return gradient * scale, None, None, None


def distilled_loss(features, classifier, probabilities):
    return DistilledLoss.apply(
        features.flatten(0, 1), classifier.weight, probabilities.flatten(0, 1), classifier.dtype
    )


def read_target(target, inputs, targets):
    """Features, and the target's probabilities of the next token, 0 beyond a line's end."""
    with torch.no_grad():
        features = target.hidden(inputs)
        probabilities = torch.softmax(target.classifier(features), -1)
        probabilities *= (targets != NO_TARGET)[..., None]
    return features, probabilities


def heads_loss(heads, target, inputs, targets):
    features, probabilities = read_target(target, inputs, targets)
    losses = []
    for head in range(len(heads.blocks)):
        ahead = head + 1
        if inputs.shape[1] > ahead:
            drafted = heads(features[:, :-ahead], head)
            losses.append(distilled_loss(drafted, target.classifier, probabilities[:, ahead:]))
    return torch.stack(losses).sum() / len(heads.blocks)


def draft_features(drafter, target, inputs, features):
    """The features of all positions but the first, from those before and their tokens."""
    embeddings = F.embedding(inputs[:, 1:], target.classifier.weight)
    return drafter(embeddings, features)


def features_loss(drafter, target, inputs, targets):
    """Two steps: from the target's features, and from the features of the first step, as the
    drafter will have them when it drafts further."""
    features, probabilities = read_target(target, inputs, targets)
    wanted = (targets != NO_TARGET)[..., None]
    total = 0.0
    drafted = features
    for step in range(2):
        if drafted.shape[1] < 2:
            break
        drafted = draft_features(drafter, target, inputs[:, step:], drafted[:, :-1])
        total = total + distilled_loss(drafted, target.classifier, probabilities[:, step + 1 :])
        off = F.smooth_l1_loss(drafted, features[:, step + 1 :], reduction="none")
        total = total + (off.mean(-1, keepdim=True) * wanted[:, step + 1 :]).sum()
    return total / 2


def train(name, model, loss_of, target, sequences, steps, peak, arguments):
    """Trains `model` in place; returns the seconds it took."""
    matrices = [p for p in model.parameters() if p.dim() > 1]
    norms = [p for p in model.parameters() if p.dim() == 1]
    groups = [{"params": p, "weight_decay": decay} for p, decay in ((matrices, 0.01), (norms, 0.0))]
    optimizer = torch.optim.AdamW([g for g in groups if g["params"]], lr=peak, betas=BETAS)
    epochs = Epochs(sequences, 2, arguments.seed)
    parameters = sum(p.numel() for p in model.parameters())
    say(f"{name}: {parameters:,} parameters, {steps / epochs.steps_per_epoch:.2f} epochs")
    started = time.monotonic()
    loss_sum = 0.0
    for step in range(steps):
        for group in optimizer.param_groups:
            group["lr"] = peak * learning_rate_factor(step, steps, DECAY_SHARE)
        batch = epochs.batch(step)
        num_targets = sum(int((targets != NO_TARGET).sum()) for _, targets in batch)
        optimizer.zero_grad(set_to_none=True)
        for inputs, targets in batch:
            loss = loss_of(model, target, inputs, targets) / num_targets
            loss.backward()
            loss_sum += loss.item()
        torch.nn.utils.clip_grad_norm_(model.parameters(), CLIP_NORM)
        optimizer.step()
        if (step + 1) % arguments.log_every == 0:
            elapsed = time.monotonic() - started
            eta = elapsed / (step + 1) * (steps - step - 1) / 60
            mean = loss_sum / arguments.log_every
            say(f"{name} {step + 1}/{steps}: loss {mean:.4f}, {elapsed:.0f} s, ETA {eta:.1f} min")
            loss_sum = 0.0
    return time.monotonic() - started


class Agreement:
    """How often the i-th pick is the target's most probable token, and the first one the text's."""

    def __init__(self):
        self.picks = torch.zeros(NUM_PICKS, dtype=torch.long)
        self.text = 0
        self.count = 0

    def add(self, logits, wanted, targets):
        valid = targets != NO_TARGET
        picks = logits[valid].topk(NUM_PICKS).indices
        self.picks += (picks == wanted[valid][:, None]).sum(0)
        self.text += int((picks[:, 0] == targets[valid]).sum())
        self.count += int(valid.sum())

    def shares(self):
        return self.picks / max(1, self.count)

    def report(self):
        top = [round(float(share), 4) for share in self.shares()]
        return {"target_picks": top, "text": round(self.text / max(1, self.count), 4)}


@torch.no_grad()
def evaluate_heads(heads, target, held_out):
    agreements = [Agreement() for _ in heads.blocks]
    for inputs, targets in micro_batches(held_out):
        features, probabilities = read_target(target, inputs, targets)
        wanted = probabilities.argmax(-1)
        for head, agreement in enumerate(agreements):
            ahead = head + 1
            if inputs.shape[1] > ahead:
                logits = target.classifier(heads(features[:, :-ahead], head))
                agreement.add(logits, wanted[:, ahead:], targets[:, ahead:])
    return agreements


@torch.no_grad()
def evaluate_features(drafter, target, held_out):
    """Step i drafts from the drafter's own features of i - 1 steps."""
    agreements = [Agreement() for _ in range(DRAFT_STEPS)]
    for inputs, targets in micro_batches(held_out):
        features, probabilities = read_target(target, inputs, targets)
        wanted = probabilities.argmax(-1)
        for step, agreement in enumerate(agreements):
            if features.shape[1] < 2:
                break
            features = draft_features(drafter, target, inputs[:, step:], features[:, :-1])
            logits = target.classifier(features)
            agreement.add(logits, wanted[:, step + 1 :], targets[:, step + 1 :])
    return agreements


@torch.no_grad()
def evaluate_target(target, held_out):
    agreement = Agreement()
    for inputs, targets in micro_batches(held_out):
        logits = target(inputs)
        agreement.add(logits, logits.argmax(-1), targets)
    return agreement


def top_text(logits):
    values, ids = logits.topk(3)
    return " ".join(f"{i} {v:.5f}" for i, v in zip(ids.tolist(), values.tolist()))


@torch.no_grad()
def heads_expectation(heads, target, tokens):
    feature = target.hidden(torch.tensor([tokens]))[:, -1]
    states = [heads(feature, head) for head in range(len(heads.blocks))]
    return [f"head {top_text(target.classifier(state)[0])}" for state in states]


@torch.no_grad()
def features_expectation(drafter, target, tokens):
    """Greedy drafting, each step by a whole pass over all earlier inputs."""
    inputs = torch.tensor([tokens])
    features = target.hidden(inputs)
    token = target.classifier(features[:, -1]).argmax(-1)
    lines = [f"first {int(token)}"]
    inputs = torch.cat([inputs, token[None]], 1)
    for _ in range(DRAFT_STEPS):
        drafted = draft_features(drafter, target, inputs, features)[:, -1:]
        logits = target.classifier(drafted)[0, 0]
        lines.append(f"draft {top_text(logits)}")
        inputs = torch.cat([inputs, logits.argmax()[None, None]], 1)
        features = torch.cat([features, drafted], 1)
    return lines


def exact(model):
    """The same model with float32 products."""
    model = copy.deepcopy(model)
    for module in model.modules():
        if hasattr(module, "dtype"):
            module.dtype = torch.float32
    return model


def main():
    arguments = parse_arguments()
    keep_freed_memory()
    torch.set_num_threads(arguments.threads)
    output = arguments.work / "quick" if arguments.quick else arguments.models
    output.mkdir(parents=True, exist_ok=True)

    tokenizer = Tokenizer.load(arguments.models / "tokenizer.bin")
    split = data.load_split(arguments.wordnet)
    if arguments.quick:
        split.train, split.held_out = split.train[::40], split.held_out[::20]
    sequences = encode_lines(tokenizer, split.train)
    held_out = encode_lines(tokenizer, split.held_out)
    target = load_target(arguments.models / "target.bin", getattr(torch, arguments.matmul))
    tokens = [BOS, *tokenizer.encode(EXPECTATION_LINE)]
    exact_target = exact(target)
    report = {"target": {"text": evaluate_target(exact_target, held_out).report()["text"]}}
    lines = ["tokens " + " ".join(map(str, tokens))]

    if arguments.only != "features":
        torch.manual_seed(arguments.seed)
        heads = Heads(target.config, arguments.heads, arguments.blocks, target.classifier.dtype)
        seconds = train(
            "heads", heads, heads_loss, target, sequences, arguments.head_steps, 2e-3, arguments
        )
        heads = exact(heads)
        agreements = evaluate_heads(heads, exact_target, held_out)
        save_heads(heads, torch.stack([a.shares() for a in agreements]), output / "heads.bin")
        report["heads"] = [agreement.report() for agreement in agreements]
        report["heads_seconds"] = round(seconds)
        lines += heads_expectation(heads, exact_target, tokens)

    if arguments.only != "heads":
        torch.manual_seed(arguments.seed)
        drafter = FeatureDrafter(target, target.classifier.dtype)
        seconds = train(
            "features",
            drafter,
            features_loss,
            target,
            sequences,
            arguments.feature_steps,
            3e-3,
            arguments,
        )
        drafter = exact(drafter)
        save_feature_drafter(drafter, output / "features.bin")
        agreements = evaluate_features(drafter, exact_target, held_out)
        report["features"] = [agreement.report() for agreement in agreements]
        report["features_seconds"] = round(seconds)
        lines += features_expectation(drafter, exact_target, tokens)

    arguments.work.mkdir(parents=True, exist_ok=True)
    suffix = f"_{arguments.only}" if arguments.only else ""
    text = json.dumps(report, indent=2)
    (arguments.work / f"speculators{suffix}.json").write_text(text + "\n")
    (arguments.work / f"speculators{suffix}.txt").write_text("\n".join(lines) + "\n")
    say(text)
    say("\n".join(lines))


if __name__ == "__main__":
    main()
