"""Writes the tiny checkpoints of models with selective scans, with random weights, and their goldens.

    recurrent_tiny.py [NAME...]
"""

import reference  # first: keeps transformers offline

import tiny
from dense import family, four
from tiny import change

# What starts at zero or one, or in a regular order: random values show that each is used. Steps are about 0.2 and
# decays about 0.8, so that the state matters and lasts.
SCAN = (
    (r"\.A_log$", lambda normal: 0.3 * normal),
    (r"\.dt_bias$", lambda normal: -1 + 0.6 * normal),
    (r"\.D$", lambda normal: 0.8 + 0.4 * normal),
    (r"conv1d\.weight$", lambda normal: 0.5 * normal),
    (r"norm\w*\.weight$", lambda normal: 0.9 + 0.15 * normal),
)
EXACT = (r"\.A_log$", r"\.D$", r"\.dt_bias$")


def scans(name, rules=(), **common):
    """Is dense.family for models with selective scans, which keep some tensors in float32."""

    kind, other = family(name, rules=(*rules, *SCAN), **common)

    def variant(of):
        def make(*matters, **more):
            made = of(*matters, **more)
            made.exact = EXACT
            return made

        return make

    return variant(kind), variant(other)


# Keys of models with attention, which the scripts give to all models.
ATTENTION = ("num_attention_heads", "num_key_value_heads", "max_position_embeddings", "intermediate_size")


def infinite(*drop):
    """Stores a checkpoint with the keys of transformers 4, without some: the largest step is the number Infinity."""

    def style(config, tensors):
        config = {k: v for k, v in four(config, tensors)[0].items() if k not in drop}
        return dict(config, time_step_limit=[0.0, float("inf")]), tensors

    return style


def mamba2():
    embeddings = ((r"embeddings\.weight$", lambda normal: 0.5 * normal),)
    tied = ((r"embeddings\.weight$", lambda normal: 0.12 * normal),)
    published, _ = scans("Mamba2", embeddings)
    _, saved = scans("Mamba2", tied)
    return {
        "mamba2-published": published(
            change("layer_norm_epsilon", to=0.5), style=infinite(*ATTENTION), num_heads=4, head_dim=32, expand=2, state_size=16, n_groups=1,
            chunk_size=16),
        "mamba2-saved": saved(
            change("time_step_limit", to=[0.0, 0.15]), num_heads=8, head_dim=8, expand=2, state_size=8,
            n_groups=2, conv_kernel=3, chunk_size=8, use_bias=True, time_step_limit=(0.1, 0.4), tie_word_embeddings=True),
    }


VARIANTS = {**mamba2()}

if __name__ == "__main__":
    tiny.main(VARIANTS)
