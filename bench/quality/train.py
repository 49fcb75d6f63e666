"""Trains the second model of `make bench-quality`: train.py DIR. Needs the environment of testdata/gen.

A Llama of 3.7 million parameters, all of whose widths are multiples of 256, the size of a super-block of llama.cpp's
K-quants. It learns the calibration text of `ingot calibrate`, which is prose and code, and the stories of
testdata/gen/models/story.py; it never sees the text of the benchmark. One thread and a fixed seed: on one machine the
result is always the same.
"""

import math
import sys
import time
from pathlib import Path

import torch
from transformers import LlamaConfig, LlamaForCausalLM

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "testdata" / "gen" / "models"))

import checkpoint  # noqa: E402
import story  # noqa: E402
import train_demo  # noqa: E402

VOCAB, CONTEXT, SEED = 1024, 512, 7
CONFIG = dict(
    vocab_size=VOCAB, hidden_size=256, intermediate_size=768, num_hidden_layers=4, num_attention_heads=4,
    num_key_value_heads=4, head_dim=64, max_position_embeddings=CONTEXT, rms_norm_eps=1e-5, tie_word_embeddings=True,
    bos_token_id=VOCAB - 2, eos_token_id=VOCAB - 1, rope_parameters={"rope_type": "default", "rope_theta": 10000.0},
)
STEPS, ROWS, LENGTH = 300, 4, 256
STORIES = 300
PEAK, WARMUP = 3e-3, 40


def texts():
    folder = ROOT / "runtime" / "calibrate" / "text"
    return [t for name in ("prose.txt", "code.txt") for t in (folder / name).read_text().split("\n=====\n")]


def learning_rate(step):
    if step < WARMUP:
        return PEAK * (step + 1) / WARMUP
    return PEAK * (0.02 + 0.98 * 0.5 * (1 + math.cos(math.pi * (step - WARMUP) / (STEPS - WARMUP))))


def main(folder):
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)
    torch.manual_seed(SEED)
    documents = texts() + story.stories(seed=SEED, n=STORIES)
    tok = train_demo.train_tokenizer(documents, VOCAB)
    stream = torch.tensor([i for e in tok.encode_batch(documents) for i in e.ids + [CONFIG["eos_token_id"]]])
    model = LlamaForCausalLM(LlamaConfig(**CONFIG))
    print(f"{model.num_parameters():,} parameters, {len(stream):,} tokens", flush=True)
    matrices = [p for p in model.parameters() if p.dim() > 1]
    vectors = [p for p in model.parameters() if p.dim() == 1]
    optim = torch.optim.AdamW([{"params": matrices, "weight_decay": 0.1}, {"params": vectors, "weight_decay": 0.0}],
                              lr=PEAK, betas=(0.9, 0.95))
    begun, mean = time.time(), None
    for step in range(STEPS):
        for group in optim.param_groups:
            group["lr"] = learning_rate(step)
        at = torch.randint(len(stream) - LENGTH - 1, (ROWS,))
        batch = torch.stack([stream[a : a + LENGTH + 1] for a in at.tolist()])
        loss = train_demo.loss_of(model, batch)
        optim.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optim.step()
        mean = loss.item() if mean is None else 0.95 * mean + 0.05 * loss.item()
        if step % 20 == 0 or step == STEPS - 1:
            print(f"step {step}/{STEPS} loss {mean:.3f} {time.time() - begun:.0f} s", flush=True)
    out = Path(folder)
    out.mkdir(parents=True, exist_ok=True)
    checkpoint.save(out, checkpoint.published(CONFIG, "bfloat16"), model.state_dict(), torch.bfloat16)
    tok.save(str(out / "tokenizer.json"))
    checkpoint.write_json(out / "tokenizer_config.json", train_demo.tokenizer_config(VOCAB, CONTEXT))


if __name__ == "__main__":
    main(sys.argv[1])
