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
    "ministral": ("Ministral", dict(sliding_window=8, head_dim=8), ["layer_types"]),
    "ministral3": ("Ministral3", dict(head_dim=8), []),
    "glm": ("Glm", dict(head_dim=8, pad_token_id=0), ["partial_rotary_factor"]),
    "glm4": ("Glm4", dict(head_dim=8, pad_token_id=0), ["partial_rotary_factor"]),
    "cohere": ("Cohere", dict(use_qk_norm=True, pad_token_id=0), []),
    "cohere2": ("Cohere2", dict(attention_bias=True, sliding_window=8, num_hidden_layers=4), ["layer_types"]),
    "exaone4": ("Exaone4", dict(sliding_window=8, num_hidden_layers=4), ["layer_types"]),
    "seed_oss": ("SeedOss", dict(head_dim=8, attention_out_bias=True, mlp_bias=True), []),
    "ernie4_5": ("Ernie4_5", dict(head_dim=8, use_bias=True), []),
    "hunyuan_v1_dense": ("HunYuanDenseV1", dict(head_dim=8), []),
    "arcee": ("Arcee", dict(mlp_bias=True), []),
    "apertus": ("Apertus", dict(attention_bias=True), []),
    "starcoder2": ("Starcoder2", dict(sliding_window=8), []),
    "stablelm": ("StableLm", dict(qk_layernorm=True, use_qkv_bias=True), ["partial_rotary_factor"]),
    "nemotron": ("Nemotron", dict(attention_bias=True, mlp_bias=True), ["partial_rotary_factor"]),
    "helium": ("Helium", dict(head_dim=8, attention_bias=True, mlp_bias=True), []),
    "nanochat": ("NanoChat", dict(attention_bias=True), []),
    "olmo": ("Olmo", dict(attention_bias=True, clip_qkv=4.0), []),
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
    mistral3(saved, write)


def mistral3(saved, write):
    """Writes the table of a multimodal checkpoint, whose text model is a mistral."""
    vision = {"model_type": "pixtral", "hidden_size": 16, "intermediate_size": 16, "num_hidden_layers": 1, "image_size": 16,
              "num_attention_heads": 2, "patch_size": 8, "head_dim": 8}
    config = tf.Mistral3Config(text_config={**KEYS, "model_type": "mistral", "sliding_window": None}, vision_config=vision,
                               tie_word_embeddings=False)
    write("ministral3-mistral3", *saved(tf.Mistral3ForConditionalGeneration(config)))
