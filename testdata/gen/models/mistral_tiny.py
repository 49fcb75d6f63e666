"""Writes the tiny checkpoints testdata/models/llama-mistral*, Llama with a window in every layer, and their goldens."""

import reference  # first: keeps transformers offline

from transformers import MistralConfig, MistralForCausalLM

import checkpoint
import tiny
from tiny import VOCAB, Variant, change

BASE = dict(
    vocab_size=VOCAB, hidden_size=64, intermediate_size=128, num_hidden_layers=3, num_attention_heads=4,
    num_key_value_heads=2, max_position_embeddings=128, sliding_window=8, rms_norm_eps=1e-5, bos_token_id=1, eos_token_id=2,
    rope_parameters={"rope_type": "default", "rope_theta": 10000.0},
)


def published(config, tensors):
    config = checkpoint.four(config)
    config.pop("head_dim")
    del config["rope_scaling"]
    return config, tensors


def variant(style=None, matters=(), **more):
    return Variant(lambda: MistralForCausalLM(MistralConfig(**{**BASE, **more})), *([style] if style else []),
                   matters=list(matters))


VARIANTS = {
    "llama-mistral": variant(published, [change("sliding_window", to=12), change("rope_theta", to=100.0)]),
    "llama-mistral-saved": variant(None, [change("sliding_window", to=9)], head_dim=24, num_key_value_heads=1,
                                   sliding_window=10),
    # Later releases have no window.
    "llama-mistral-full": variant(published, [change("sliding_window", to=8)], sliding_window=None, tie_word_embeddings=True),
}

if __name__ == "__main__":
    tiny.main(VARIANTS)
