"""Writes the tiny checkpoints testdata/models/gemma3n-* with random weights, and their goldens: the text of a multimodal
checkpoint, as published, and a text model as transformers 5 saves it.
"""

import copy

import reference  # first: keeps transformers offline

from transformers import Gemma3nForCausalLM, Gemma3nTextConfig

import checkpoint
import tiny
from tiny import VOCAB, Variant, change

S, F = "sliding_attention", "full_attention"
LIMIT = 640 * 1024
BASE = dict(
    vocab_size=VOCAB, vocab_size_per_layer_input=VOCAB - 40, hidden_size=64, num_attention_heads=4, num_key_value_heads=2,
    head_dim=16, max_position_embeddings=128, sliding_window=8, final_logit_softcapping=4.0, hidden_size_per_layer_input=8,
    laurel_rank=8, bos_token_id=2, eos_token_id=1, pad_token_id=0,
)
RULES = (
    (r"^model\.norm\.weight$", lambda normal: 2.2 + 0.2 * normal),
    # Attention scores are not divided by the root of the head's width.
    (r"[qk]_norm\.weight$", lambda normal: 0.6 + 0.1 * normal),
    (r"embed_tokens\.weight$", lambda normal: 0.05 * normal),
    (r"embed_tokens_per_layer\.weight$", lambda normal: 0.35 * normal),
    # The routers' input is divided by its width. Their outputs, and what follows from them, are about 0.5.
    (r"modality_router\.weight$", lambda normal: 5 * normal),
    (r"prediction_coefs\.weight$", lambda normal: 0.3 * normal),
    (r"correction_coefs\.weight$", lambda normal: 0.4 * normal),
    (r"correct_output_scale$", lambda normal: 1 + 0.3 * normal),
)


def make(**more):
    values = {**BASE, **more}
    return lambda: Gemma3nForCausalLM(Gemma3nTextConfig(**values, num_hidden_layers=len(values["layer_types"])))


def published(config, tensors):
    """Nests the text model, with the keys of transformers 4, and adds the unused keys and values of layers that share them."""
    config, tensors = copy.deepcopy(config), dict(tensors)
    ropes = config.pop("rope_parameters")
    config.update(rope_theta=ropes[F]["rope_theta"], rope_local_base_freq=ropes[S]["rope_theta"], rope_scaling=None,
                  query_pre_attn_scalar=256)
    first = config["num_hidden_layers"] - config["num_kv_shared_layers"]
    for i in range(first, config["num_hidden_layers"]):
        donor = max(j for j in range(first) if config["layer_types"][j] == config["layer_types"][i])
        for piece in ("k_proj.weight", "v_proj.weight", "k_norm.weight"):
            tensors[f"model.layers.{i}.self_attn.{piece}"] = -tensors[f"model.layers.{donor}.self_attn.{piece}"]
    return checkpoint.nested(config, tensors, "Gemma3nForConditionalGeneration", "gemma3n")


def text(*path, to):
    return change("text_config", *path, to=to)


VARIANTS = {
    "gemma3n-published": Variant(
        make(layer_types=[S, S, F, S, F], intermediate_size=64, num_kv_shared_layers=2,
             activation_sparsity_pattern=[0.9, 0.6, 0.0, 0.0, 0.0]),
        published, rules=RULES, limit=LIMIT, matters=[
            text("sliding_window", to=12), text("final_logit_softcapping", to=8.0), text("rope_theta", to=100.0),
            text("rope_local_base_freq", to=100.0), text("activation_sparsity_pattern", to=[0.9, 0.3, 0.0, 0.0, 0.0]),
            text("altup_correct_scale", to=False)]),
    "gemma3n-saved": Variant(
        make(layer_types=[S, F, S, F], hidden_size=32, head_dim=8, num_key_value_heads=1, intermediate_size=[48, 32, 64, 32],
             num_kv_shared_layers=1, activation_sparsity_pattern=[0.0, 0.8, 0.0, 0.4], altup_num_inputs=3, altup_active_idx=1,
             altup_correct_scale=True, laurel_rank=5, attention_bias=True, tie_word_embeddings=False,
             vocab_size_per_layer_input=VOCAB),
        rules=RULES, limit=LIMIT, matters=[change("sliding_window", to=12), change("altup_active_idx", to=0)]),
}

if __name__ == "__main__":
    tiny.main(VARIANTS)
