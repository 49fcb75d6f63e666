"""Compares the logits of two checkpoint folders bit by bit, in transformers' AutoModelForCausalLM.

Usage: same_scores.py SOURCE EXTRACTED
"""

import sys

import torch
from transformers import AutoModelForCausalLM


def logits(folder):
    model, info = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32, output_loading_info=True)
    for what in ("missing_keys", "unexpected_keys", "mismatched_keys"):
        if info[what]:
            sys.exit(f"{folder}: {what}: {sorted(info[what])[:5]}")
    tokens = torch.arange(24).reshape(1, 24) * 7 % model.config.get_text_config().vocab_size
    with torch.no_grad():
        return model(tokens).logits


def main():
    torch.set_num_threads(1)
    source, extracted = (logits(folder) for folder in sys.argv[1:3])
    if not torch.equal(source, extracted):
        sys.exit(f"logits differ by up to {(source - extracted).abs().max()}")
    if not source.abs().max() > 0:
        sys.exit("all logits are zero")
    print("equal:", tuple(source.shape))


main()
