"""Cross-entropy of a classifier, computed together with its gradients."""

import torch

from batches import NO_TARGET


class ClassifierLoss(torch.autograd.Function):
    """Summed -ln p of the targets for logits hidden @ weight^T.

    The logits of a large vocabulary are the largest tensor of a small model. This writes softmax
    and gradient over them in place instead of keeping a copy for every stage.
    """

    @staticmethod
    def forward(ctx, hidden, weight, targets, dtype):
        hidden, weight = hidden.to(dtype), weight.to(dtype)
        probabilities = (hidden @ weight.t()).float()
        probabilities -= probabilities.amax(-1, keepdim=True)
        at_targets = targets.clamp(min=0)[:, None]
        logits = probabilities.gather(-1, at_targets)
        probabilities.exp_()
        sums = probabilities.sum(-1, keepdim=True)
        wanted = (targets != NO_TARGET).float()[:, None]
        loss = ((sums.log() - logits) * wanted).sum()

        probabilities *= wanted / sums
        gradient = probabilities.scatter_add_(-1, at_targets, -wanted).to(dtype)
        ctx.save_for_backward(gradient, hidden, weight)
        return loss

    @staticmethod
    def backward(ctx, scale):
        gradient, hidden, weight = ctx.saved_tensors
        grad_hidden = (gradient @ weight).float() * scale
        grad_weight = (gradient.t() @ hidden).float() * scale
        return grad_hidden, grad_weight, None, None


def classifier_loss(hidden, classifier, targets):
    """Summed loss in nats; hidden (batch, time, dim), targets (batch, time)."""
    return ClassifierLoss.apply(
        hidden.flatten(0, 1), classifier.weight, targets.flatten(), classifier.dtype
    )
