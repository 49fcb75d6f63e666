"""Compares the logits of checkpoint folders in transformers' AutoModelForCausalLM, bit by bit: those of each source with
those of a folder with the same weights. The class may leave out tensors that both have, such as a head for drafts, or that
the source has, such as a vision tower. Buffers that the class computes need not be there.

Usage: same_scores.py [--fails TEXT] SOURCE EXTRACTED [[--fails TEXT] SOURCE EXTRACTED]...

With --fails, the comparison of the next pair must fail with an error that contains the text.
"""

import sys

import torch
from transformers import AutoModelForCausalLM


def logits(folder):
    model, info = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32, output_loading_info=True)
    computed = {name for name, _ in model.named_buffers()}
    for what in ("missing_keys", "mismatched_keys"):
        if keys := set(info[what]) - computed:
            raise ValueError(f"{folder}: {what}: {sorted(keys)[:5]}")
    tokens = torch.arange(24).reshape(1, 24) * 7 % model.config.get_text_config().vocab_size
    with torch.no_grad():
        return model(tokens, use_cache=False).logits, set(info["unexpected_keys"])


def compare(pair):
    (source, unread), (extracted, more) = (logits(folder) for folder in pair)
    if more - unread:
        raise ValueError(f"{pair[1]}: unexpected keys: {sorted(more - unread)[:5]}")
    if not torch.equal(source, extracted):
        raise ValueError(f"logits differ by up to {(source - extracted).abs().max()}")
    if not source.abs().max() > 0:
        raise ValueError("all logits are zero")
    return tuple(source.shape)


def main():
    torch.set_num_threads(1)
    failed, rest = False, sys.argv[1:]
    while rest:
        reason, rest = (rest[1], rest[2:]) if rest[0] == "--fails" else (None, rest)
        pair, rest = rest[:2], rest[2:]
        try:
            print(f"{pair[0]}: equal: {compare(pair)}", flush=True)
            failed = failed or reason is not None
        except Exception as e:  # of any kind: a folder that transformers does not load
            failed = failed or reason is None or reason not in str(e)
            print(f"{pair[0]}: {type(e).__name__}: {e}", flush=True)
    sys.exit(failed)


main()
