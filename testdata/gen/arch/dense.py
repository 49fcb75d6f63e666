"""The tables of plain decoders, for tables.py: as transformers saves them, and with the keys of transformers 4."""

import transformers as tf

from checkpoint import four

KEYS = {"vocab_size": 64, "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 4,
        "num_key_value_heads": 2, "max_position_embeddings": 128}
# The prefix of the classes, further keys, and keys that publishers leave out.
TYPES = {
    "qwen2": ("Qwen2", dict(use_sliding_window=True, sliding_window=8, max_window_layers=1), ["layer_types"]),
    "phi3": ("Phi3", dict(sliding_window=8, pad_token_id=0), []),
    "gemma": ("Gemma", dict(head_dim=16), []),
    "gemma2": ("Gemma2", dict(head_dim=16, sliding_window=8), ["layer_types"]),
    "granite": ("Granite", dict(embedding_multiplier=12.0, attention_bias=True, mlp_bias=True), []),
    "olmo2": ("Olmo2", dict(attention_bias=True), []),
    "olmo3": ("Olmo3", dict(sliding_window=8, num_hidden_layers=4), None),
    "smollm3": ("SmolLM3", dict(num_hidden_layers=4, pad_token_id=0), ["no_rope_layers", "layer_types"]),
}


def tables(saved, write):
    for name, (prefix, more, left_out) in TYPES.items():
        config = getattr(tf, prefix + "Config")(**{**KEYS, **more})
        config, tensors = saved(getattr(tf, prefix + "ForCausalLM")(config))
        write(name, config, tensors)
        if left_out is None:
            ropes = config.pop("rope_parameters")
            config["rope_parameters"] = ropes["full_attention"]
            left_out = ["layer_types"]
        old = four(config)
        write(name + "-published", {k: v for k, v in old.items() if k not in left_out}, tensors)
