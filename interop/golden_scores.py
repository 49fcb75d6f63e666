"""Compares the logits that transformers computes from a checkpoint folder with a golden, which has tokens and logits.

Usage: golden_scores.py FOLDER GOLDEN
"""

import sys

import torch
from safetensors.torch import load_file
from transformers import AutoModelForCausalLM

TOLERANCE = 1e-4  # in standard deviations of the logits


def main():
    torch.set_num_threads(1)
    golden = load_file(sys.argv[2])
    model, info = AutoModelForCausalLM.from_pretrained(sys.argv[1], dtype=torch.float32, output_loading_info=True)
    for what in ("missing_keys", "unexpected_keys", "mismatched_keys"):
        if info[what]:
            sys.exit(f"{what}: {sorted(info[what])[:5]}")
    with torch.no_grad():
        logits = model(golden["tokens"].long()[None]).logits[0]
    off = float((logits - golden["logits"]).abs().max() / golden["logits"].std())
    if not off < TOLERANCE:
        sys.exit(f"logits differ by {off:.1e} standard deviations")
    print(f"equal to {off:.1e} standard deviations")


main()
