"""Trains testdata/models/demo, a small Llama that tells stories, and its tokenizer; nothing is downloaded.

    train_demo.py             trains, writes the checkpoint, and prints samples
    train_demo.py --samples   prints samples of the committed checkpoint

Training runs on the CPU with two threads and fixed seeds. On one machine the result is always the same; on another
kind of processor the weights differ.
"""

import argparse
import json
import math
import time
from pathlib import Path

import torch
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers, processors, trainers
from transformers import LlamaConfig, LlamaForCausalLM

import checkpoint
import story

OUT = Path(__file__).resolve().parents[2] / "models" / "demo"

BOS, EOS = "<|begin_of_text|>", "<|end_of_text|>"
VOCAB = 1024
# Llama 3's split: contractions, words with a leading character, up to three digits, punctuation, line ends, spaces.
SPLIT = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*"
    r"|\s*[\r\n]+|\s+(?!\S)|\s+"
)

CONTEXT = 512
CONFIG = dict(
    vocab_size=VOCAB, hidden_size=192, intermediate_size=384, num_hidden_layers=5, num_attention_heads=6,
    num_key_value_heads=2, head_dim=32, max_position_embeddings=CONTEXT, rms_norm_eps=1e-5, tie_word_embeddings=True,
    bos_token_id=VOCAB - 2, eos_token_id=VOCAB - 1, rope_parameters={"rope_type": "default", "rope_theta": 10000.0},
)

# (steps, rows, row length): first short rows, then rows as long as the context.
PHASES = [(1000, 8, 256), (60, 8, 512)]
STORIES = 11000
PEAK, WARMUP = 3e-3, 60


def train_tokenizer(texts, vocab=VOCAB):
    """Trains a byte-level BPE like Llama 3's. The two special tokens are the last."""
    tok = Tokenizer(models.BPE(ignore_merges=True))
    tok.pre_tokenizer = pre_tokenizers.Sequence([
        pre_tokenizers.Split(Regex(SPLIT), behavior="isolated"),
        pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
    ])
    tok.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocab - 2, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False)
    tok.train_from_iterator(texts, trainer)
    if tok.get_vocab_size() != vocab - 2:
        raise SystemExit(f"tokenizer: {tok.get_vocab_size()} entries, want {vocab - 2}: more text is needed")
    tok.add_special_tokens([AddedToken(BOS, special=True), AddedToken(EOS, special=True)])
    tok.post_processor = processors.Sequence([
        processors.ByteLevel(trim_offsets=True),
        processors.TemplateProcessing(single=f"{BOS} $A", pair=f"{BOS} $A {BOS}:1 $B:1",
                                      special_tokens=[(BOS, vocab - 2)]),
    ])
    return tok


def tokenizer_config(vocab, context):
    """Returns tokenizer_config.json as published checkpoints have it."""
    return {
        "added_tokens_decoder": {
            str(vocab - 2 + i): {"content": t, "lstrip": False, "normalized": False, "rstrip": False,
                                 "single_word": False, "special": True}
            for i, t in enumerate((BOS, EOS))
        },
        "bos_token": BOS,
        "clean_up_tokenization_spaces": False,
        "eos_token": EOS,
        "model_input_names": ["input_ids", "attention_mask"],
        "model_max_length": context,
        "tokenizer_class": "PreTrainedTokenizerFast",
    }


def rows(encoded, phases):
    """Yields batches of token rows, cut from the concatenated stories."""
    stream = torch.tensor([i for ids in encoded for i in ids])
    at = 0
    for steps, count, length in phases:
        for _ in range(steps):
            yield torch.stack([stream[at + i * length : at + (i + 1) * length + 1] for i in range(count)])
            at += count * length


def learning_rate(step, total):
    if step < WARMUP:
        return PEAK * (step + 1) / WARMUP
    return PEAK * (0.02 + 0.98 * 0.5 * (1 + math.cos(math.pi * (step - WARMUP) / (total - WARMUP))))


def loss_of(model, batch):
    logits = model(batch[:, :-1]).logits
    return torch.nn.functional.cross_entropy(logits.reshape(-1, VOCAB), batch[:, 1:].reshape(-1))


def train(encoded):
    torch.manual_seed(1)
    model = LlamaForCausalLM(LlamaConfig(**CONFIG))
    print(f"{model.num_parameters():,} parameters")
    total = sum(p[0] for p in PHASES)
    decay = [p for p in model.parameters() if p.dim() > 1]
    plain = [p for p in model.parameters() if p.dim() == 1]
    optim = torch.optim.AdamW([{"params": decay, "weight_decay": 0.1}, {"params": plain, "weight_decay": 0.0}],
                              lr=PEAK, betas=(0.9, 0.95))
    start, mean = time.time(), None
    for step, batch in enumerate(rows(encoded, PHASES)):
        for group in optim.param_groups:
            group["lr"] = learning_rate(step, total)
        loss = loss_of(model, batch)
        optim.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optim.step()
        mean = loss.item() if mean is None else 0.95 * mean + 0.05 * loss.item()
        if step % 20 == 0 or step == total - 1:
            print(f"step {step:4d}/{total} loss {mean:.3f} {time.time() - start:.0f} s", flush=True)
    return model


@torch.no_grad()
def sample(model, tok, prompt, temperature, seed, limit=300):
    """Returns the prompt with its continuation up to the end token. Temperature 0 is greedy."""
    gen = torch.Generator().manual_seed(seed)
    ids = tok.encode(prompt).ids
    while len(ids) < limit:
        logits = model(torch.tensor([ids])).logits[0, -1].float()
        if temperature == 0:
            ids.append(int(logits.argmax()))
        else:
            ids.append(int(torch.multinomial(torch.softmax(logits / temperature, -1), 1, generator=gen)))
        if ids[-1] == CONFIG["eos_token_id"]:
            break
    ended = "" if ids[-1] == CONFIG["eos_token_id"] else " [no end]"
    return tok.decode(ids) + ended


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--samples", action="store_true", help="only read samples of the model that is there")
    args = parser.parse_args()
    torch.set_num_threads(2)
    torch.use_deterministic_algorithms(True)

    if args.samples:
        tok, model = Tokenizer.from_file(str(OUT / "tokenizer.json")), LlamaForCausalLM.from_pretrained(OUT)
    else:
        texts = story.stories(seed=1, n=STORIES)
        print(f"{len(texts)} stories, {sum(map(len, texts)) / 1e6:.1f} M characters")
        tok = train_tokenizer(texts[:4000])
        bos, eos = CONFIG["bos_token_id"], CONFIG["eos_token_id"]
        encoded = [e.ids + [eos] for e in tok.encode_batch(texts)]
        assert all(e[0] == bos for e in encoded)
        print(f"{sum(map(len, encoded)) / 1e6:.2f} M tokens, longest story {max(map(len, encoded))}")
        model = train(encoded)

        OUT.mkdir(parents=True, exist_ok=True)
        checkpoint.save(OUT, checkpoint.published(CONFIG, "bfloat16"), model.state_dict(), torch.bfloat16)
        tok.save(str(OUT / "tokenizer.json"))
        checkpoint.write_json(OUT / "tokenizer_config.json", tokenizer_config(VOCAB, CONTEXT))
        checkpoint.write_json(OUT / "generation_config.json", {
            "bos_token_id": bos, "do_sample": True, "eos_token_id": eos, "temperature": 0.7, "top_p": 0.9})
        model = LlamaForCausalLM.from_pretrained(OUT)

    model = model.float().eval()
    held = [e.ids + [CONFIG["eos_token_id"]] for e in tok.encode_batch(story.stories(seed=2, n=100))]
    with torch.no_grad():
        losses = [loss_of(model, batch).item() for batch in rows(held, [(10, 8, 256)])]
    print(f"loss on stories that were not trained on: {sum(losses) / len(losses):.3f}")
    for i, prompt in enumerate(["Once upon a time", "It was a cold morning", '"Where is the bell?" asked', "The river"]):
        print(f"\n[greedy] {sample(model, tok, prompt, 0, 0)}")
        print(f"\n[temperature 0.7] {sample(model, tok, prompt, 0.7, i)}")


if __name__ == "__main__":
    main()
