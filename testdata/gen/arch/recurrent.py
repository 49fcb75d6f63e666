"""The tables of models with recurrent layers, for tables.py: as transformers saves them, and with the keys of transformers 4."""

import transformers as tf

from checkpoint import four

KEYS = {"vocab_size": 64, "hidden_size": 32, "num_hidden_layers": 2}
# The prefix of the classes, further keys, and keys that publishers leave out.
TYPES = {
    "mamba2": ("Mamba2", dict(num_heads=4, head_dim=16, state_size=8, n_groups=2, use_bias=True), []),
}


def tables(saved, write):
    for name, (prefix, more, left_out) in TYPES.items():
        config = getattr(tf, prefix + "Config")(**{**KEYS, **more})
        config, tensors = saved(getattr(tf, prefix + "ForCausalLM")(config))
        write(name, config, tensors)
        write(name + "-published", {k: v for k, v in four(config).items() if k not in left_out}, tensors)
