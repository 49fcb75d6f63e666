"""Writes the tiny checkpoints testdata/models/gemma4_assistant-*, which draft for those of gemma4_tiny.py, and their
goldens.

    gemma4_assistant_tiny.py [--check] [NAME...]

testdata/reference/NAME.safetensors names the target in its metadata. It has:

  tokens         int32 [T], the text
  next           int32 [1], the target's greedy token after it
  target_hidden  float32 [1, width], the target's hidden state after its last norm, the input of the first step
  logits         float32 [3, V] of three draft steps after next
  hidden         float32 [3, width of the target] of these steps
  drafts         int32 [3], their greedy tokens

All steps are at position T, as in transformers' own generator, and attend the keys of T positions. In a sliding layer
these are the last window-1 keys, which the target's next token sees. transformers lets a draft see one or two more.
"""

import contextlib
import copy
import shutil
import sys
import tempfile
from pathlib import Path

import reference  # first: keeps transformers offline

import numpy as np
import torch
import transformers
from safetensors.numpy import load_file, save_file
from transformers import (Gemma4AssistantConfig, Gemma4AssistantForCausalLM, Gemma4TextConfig, Gemma4UnifiedAssistantConfig,
                          Gemma4UnifiedAssistantForCausalLM, Gemma4UnifiedTextConfig)

import checkpoint
import gemma4_tiny
import tiny
from gemma4_tiny import FULL, SLIDING
from tiny import MODELS, VOCAB, Variant, change

STEPS = 3
TEXT = dict(
    vocab_size=VOCAB, hidden_size=32, intermediate_size=64, num_attention_heads=4, head_dim=16, global_head_dim=32,
    num_hidden_layers=3, num_kv_shared_layers=3, layer_types=[SLIDING, SLIDING, FULL], max_position_embeddings=128,
    sliding_window=8, bos_token_id=2, eos_token_id=1, pad_token_id=0,
)
# Here the embedding is used as output head only.
RULES = ((r"embed_tokens\.weight$", lambda normal: 0.15 * normal), *gemma4_tiny.RULES)


@contextlib.contextmanager
def sharing():
    """Lets transformers 5.23 run the pair.

    It rejects an assistant whose layers all attend the target's keys, and a target without shared layers returns no
    keys.
    """

    def modes(own):
        def value(self):
            if self.num_kv_shared_layers == self.num_hidden_layers:
                return ["reuse"] * self.num_hidden_layers
            if self.num_kv_shared_layers > 0:
                return own.fget(self)
            last = [self.num_hidden_layers - 1 - self.layer_types[::-1].index(kind) for kind in (SLIDING, FULL)]
            return ["store" if i in last else None for i in range(self.num_hidden_layers)]

        return property(value)

    kinds = {kind: kind.kv_sharing_modes for kind in (Gemma4TextConfig, Gemma4UnifiedTextConfig)}
    for kind, own in kinds.items():
        kind.kv_sharing_modes = modes(own)
    yield
    for kind, own in kinds.items():
        kind.kv_sharing_modes = own


def make(outer, kind, **more):
    text = {**TEXT, **more.pop("text", {})}
    if outer is Gemma4AssistantConfig:
        text |= {"hidden_size_per_layer_input": 0, "vocab_size_per_layer_input": 0}
    return kind(outer(text_config=text, backbone_hidden_size=64, **more))


def load(folder):
    kind = getattr(transformers, reference.config_of(folder)["architectures"][0])
    model, info = kind.from_pretrained(folder, dtype=torch.float32, attn_implementation="eager", output_loading_info=True)
    wrong = [*info["missing_keys"], *info["mismatched_keys"], *info["unexpected_keys"]]
    assert not wrong, f"{folder.name}: absent, of another shape, or not known: {wrong}"
    return model.eval()


@torch.no_grad()
def draft(model, target, tokens):
    ids = torch.tensor(tokens[None].astype(np.int64))
    out = target(ids, use_cache=False, output_hidden_states=True, return_shared_kv_states=True)
    window = target.config.get_text_config().sliding_window
    keys = {kind: (k[:, :, -(window - 1):], v[:, :, -(window - 1):]) if kind == SLIDING else (k, v)
            for kind, (k, v) in out.shared_kv_states.items()}
    hidden = out.hidden_states[-1][:, -1:]
    token = out.logits[:, -1:].argmax(-1)
    golden = {"tokens": tokens, "next": token[0].numpy().astype(np.int32), "target_hidden": hidden[0].numpy().copy()}
    logits, states = [], []
    for _ in range(STEPS):
        step = model(inputs_embeds=torch.cat([target.get_input_embeddings()(token), hidden], dim=-1),
                     position_ids=torch.tensor([[len(tokens)]]), shared_kv_states=keys, use_cache=False)
        hidden, token = step.last_hidden_state, step.logits.argmax(-1)
        logits.append(step.logits[0, 0].numpy().copy())
        states.append(hidden[0, 0].numpy().copy())
    drafts = np.array([row.argmax() for row in logits], np.int32)
    return {**golden, "logits": np.stack(logits), "hidden": np.stack(states), "drafts": drafts}


def compute(folder, target):
    return draft(load(folder), reference.load(MODELS / target), reference.tokens_for(folder))


def judge(golden):
    logits, std = golden["logits"], float(golden["logits"].std())
    closest = min(reference.margin(row) for row in logits)
    if closest < reference.MARGIN * std:
        raise reference.Unsuitable(f"a drafted token is ahead by only {closest / std:.1e} deviations")
    said = [int(golden["next"][0]), *golden["drafts"].tolist()]
    if len(set(said)) < len(said):
        raise reference.Unsuitable(f"it drafts {said}")


@torch.no_grad()
def steady(model, target, golden):
    kept = {n: p.detach().clone() for n, p in model.named_parameters()}
    for seed in range(3):
        rng = torch.Generator().manual_seed(seed)
        for name, p in model.named_parameters():
            p.copy_(kept[name] * (1 + reference.NUDGE * torch.randn(p.shape, generator=rng)))
        moved = draft(model, target, golden["tokens"])["logits"]
        off = float(np.abs(moved - golden["logits"]).max() / golden["logits"].std())
        if off > reference.STEADY:
            raise reference.Unsuitable(f"weights moved by {reference.NUDGE} move the logits by {off:.1e} deviations")


def differs(folder, config, target, golden):
    with tempfile.TemporaryDirectory() as other:
        shutil.copytree(folder, other, dirs_exist_ok=True)
        checkpoint.write_json(Path(other) / "config.json", config)
        moved = draft(load(Path(other)), target, golden["tokens"])["logits"]
    return float(np.abs(moved - golden["logits"]).max() / golden["logits"].std())


def attempt(name, target_name, variant, seed):
    folder = MODELS / name
    shutil.rmtree(folder, ignore_errors=True)
    model = tiny.random_weights(variant.make(), seed, variant)
    if model.masked_embedding is not None:
        ordering = np.random.RandomState(tiny.zlib.crc32(f"{seed}/ordering".encode())).permutation(VOCAB)
        model.masked_embedding.token_ordering.copy_(torch.tensor(ordering))
    stored, tensors = variant.style(*tiny.saved(model, variant))
    tiny.write(folder, stored, tensors)

    target = reference.load(MODELS / target_name)
    loaded = load(folder)
    golden = draft(loaded, target, reference.tokens_for(folder))
    off = float(np.abs(draft(model, target, golden["tokens"])["logits"] - golden["logits"]).max() / golden["logits"].std())
    assert off < reference.AGREEMENT, f"{name}: the stored model is {off:.1e} deviations off the one that was made"
    judge(golden)
    steady(loaded, target, golden)
    for i, altered in enumerate(variant.matters):
        moved = differs(folder, altered(copy.deepcopy(stored)), target, golden)
        assert moved > 0.03, f"{name}: change {i} of config.json moves the logits by only {moved:.1e} deviations"
    save_file(golden, reference.path_of(folder), metadata={"target": target_name})
    reference.path_of(folder).chmod(0o644)
    print(f"{name}: deviation {golden['logits'].std():.2f}, drafts {golden['drafts'].tolist()} after {golden['next'].tolist()}")
    return golden


def published(config, tensors):
    config = copy.deepcopy(config)
    config["text_config"] = gemma4_tiny.global_keys(config["text_config"])
    return config, tensors


def text(*path, to):
    return change("text_config", *path, to=to)


ORDERED = dict(use_ordered_embeddings=True, num_centroids=32, centroid_intermediate_top_k=4)
# name -> (target, variant)
VARIANTS = {
    "gemma4_assistant-ordered": ("gemma4-e2b", Variant(
        lambda: make(Gemma4AssistantConfig, Gemma4AssistantForCausalLM, text=dict(num_key_value_heads=1), **ORDERED),
        published, rules=RULES,
        matters=[change("centroid_intermediate_top_k", to=6), text("rope_parameters", SLIDING, "rope_theta", to=10.0),
                 text("rope_parameters", FULL, "rope_theta", to=10.0)])),
    "gemma4_assistant-ordered-saved": ("gemma4-e4b", Variant(
        lambda: make(Gemma4AssistantConfig, Gemma4AssistantForCausalLM, text=dict(num_key_value_heads=2), **ORDERED),
        rules=RULES)),
    "gemma4_assistant-dense": ("gemma4-12b", Variant(
        lambda: make(Gemma4UnifiedAssistantConfig, Gemma4UnifiedAssistantForCausalLM,
                     text=dict(num_key_value_heads=2, num_global_key_value_heads=1, attention_k_eq_v=True)),
        published, rules=RULES)),
    "gemma4_assistant-dense-saved": ("gemma4-26b-a4b", Variant(
        lambda: make(Gemma4AssistantConfig, Gemma4AssistantForCausalLM,
                     text=dict(num_key_value_heads=2, num_global_key_value_heads=1, attention_k_eq_v=True)),
        rules=RULES)),
}


def check(name):
    """Reports whether the stored golden equals a new one."""
    old, new = load_file(reference.path_of(MODELS / name)), compute(MODELS / name, VARIANTS[name][0])
    off = max(float(np.abs(old[k] - new[k]).max() / new[k].std()) for k in ("logits", "hidden", "target_hidden"))
    same = all(np.array_equal(old[k], new[k]) for k in ("tokens", "next", "drafts"))
    if not same or off > reference.AGREEMENT:
        print(f"{name}: differs: by {off:.1e} deviations, tokens {'equal' if same else 'not equal'}")
    return same and off <= reference.AGREEMENT


def main():
    reference.setup()
    args = sys.argv[1:]
    names = [a for a in args if a != "--check"] or list(VARIANTS)
    with sharing():
        if "--check" in args:
            sys.exit(0 if all([check(n) for n in names]) else 1)
        for name in names:
            target, variant = VARIANTS[name]
            tiny.seeds(name, lambda seed: attempt(name, target, variant, seed))


if __name__ == "__main__":
    main()
