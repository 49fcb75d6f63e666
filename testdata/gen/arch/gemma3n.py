"""The tables of Gemma 3n, for tables.py: the text model as transformers saves it, and the published multimodal one."""

import transformers as tf

from checkpoint import rename


def tables(saved, write, common, with_shared):
    kinds = ["sliding_attention", "full_attention"]
    text = {**common, "head_dim": 16, "num_hidden_layers": 4, "layer_types": kinds * 2, "sliding_window": 8, "laurel_rank": 4,
            "num_kv_shared_layers": 2}
    config, tensors = saved(tf.Gemma3nForCausalLM(tf.Gemma3nTextConfig(**text)))
    write("gemma3n_text", config, tensors)
    inner = {k: v for k, v in config.items() if k not in ("architectures", "transformers_version", "dtype", "rope_parameters")}
    inner.update(rope_theta=1e6, rope_local_base_freq=1e4, rope_scaling=None)
    old = {"architectures": ["Gemma3nForConditionalGeneration"], "model_type": "gemma3n", "text_config": inner,
           "eos_token_id": [1, 106], "torch_dtype": "bfloat16"}
    tensors = rename(with_shared(tensors, inner, "model."), (r"^model\.", "model.language_model."))
    # Some names of the towers, which transformers builds with a further package.
    for name in ("vision_tower.timm_model.conv_stem.conv.weight", "audio_tower.conformer.0.norm.weight",
                 "embed_vision.embedding.weight", "embed_audio.embedding_projection.weight"):
        tensors["model." + name] = ["BF16", 8, 32]
    write("gemma3n-published", old, tensors)
