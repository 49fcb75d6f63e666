"""What all programs of the quality benchmark share: the windows of the text, and how distributions are compared.

The windows are those of `ingot verify --against` (runtime/verify): 512 tokens, or the model's context if that is
shorter; they overlap by half, each begins with the begin-of-text token if the tokenizer puts one before a text, and each
token is scored once, in the window that gives it the most context.
"""

import numpy as np

WINDOW = 512


def windows(begin, tokens, context):
    """Yields (input, scored): the last `scored` tokens of an input are predicted."""
    window = min(WINDOW, context) - len(begin)
    at, first = 0, 1 - len(begin)
    while first < len(tokens):
        end = min(at + window, len(tokens))
        yield begin + tokens[at:end], end - first
        first, at = end, at + window // 2


class Scores:
    """Compares the logits of a model with those of its base, position by position."""

    def __init__(self):
        self.kl, self.nll, self.same = [], [], []

    def add(self, base, other, following):
        """base and other are float32 [n, vocabulary]; following are the n next tokens."""
        for p, q, token in zip(base.astype(np.float64), other.astype(np.float64), following):
            p -= p.max()
            q -= q.max()
            weights = np.exp(p)
            total = weights.sum()
            rest = np.log(np.exp(q).sum())
            self.kl.append(max(0.0, float(weights @ (p - q) / total - np.log(total) + rest)))
            self.nll.append(float(rest - q[token]))
            self.same.append(int(p.argmax() == q.argmax()))

    def summary(self):
        return {"tokens": len(self.kl), "kl": float(np.mean(self.kl)), "kl_error": float(np.std(self.kl, ddof=1) / len(self.kl) ** 0.5),
                "ppl": float(np.exp(np.mean(self.nll))), "top1": float(np.mean(self.same))}


class Judge:
    """Runs a model over the text and compares it with the base, whose logits are kept in a file."""

    def __init__(self, text, path):
        self.pieces = list(windows(text["begin"], text["tokens"], text["context"]))
        self.path = path

    def base(self, logits_of):
        """Writes the logits of the base; logits_of(input, n) gives those of the last n positions but the last."""
        with open(self.path + ".part", "wb") as f:
            for tokens, n in self.pieces:
                f.write(np.ascontiguousarray(logits_of(tokens[:-1], n), np.float32).tobytes())

    def compare(self, logits_of):
        scores, at = Scores(), 0
        data = np.memmap(self.path, np.float32, "r")
        count = sum(n for _, n in self.pieces)
        data = data.reshape(count, -1)
        for tokens, n in self.pieces:
            scores.add(data[at : at + n], logits_of(tokens[:-1], n), tokens[-n:])
            at += n
        return scores.summary()
