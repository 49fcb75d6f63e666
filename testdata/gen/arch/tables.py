"""Writes arch/testdata/tables/*.json: the configuration of tiny models, and the name, type and shape of every tensor.

NAME.json is what transformers 5.23 saves. NAME-published.json is the same model as its family publishes it: keys and
names of transformers 4, towers, and further heads. NAME-mlx.json is what mlx-lm 0.32 writes. Also writes
arch/testdata/gathered_rows.json: which rows of Qwen3-Next's joined projections belong to which part.
"""
import contextlib
import copy
import json
import os
import pathlib
import re
import sys
import tempfile

os.environ["TRANSFORMERS_OFFLINE"] = "1"

import torch
import transformers as tf
from safetensors import safe_open
from transformers.utils import logging

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "models"))
import dense
import gemma3n
import gpt
import latent
import moe
import qwen4
import recurrent
import remotes
from checkpoint import four, rename

REPO = pathlib.Path(__file__).resolve().parents[3]
OUT = REPO / "arch" / "testdata" / "tables"
logging.set_verbosity_error()
logging.disable_progress_bar()


def saved(model):
    """Returns the configuration and tensors of a model as transformers saves it in bf16."""
    with tempfile.TemporaryDirectory() as folder:
        model.to(torch.bfloat16).save_pretrained(folder)
        with open(f"{folder}/config.json") as f:
            config = json.load(f)
        with safe_open(f"{folder}/model.safetensors", "pt") as f:
            tensors = {k: [f.get_slice(k).get_dtype(), *f.get_slice(k).get_shape()] for k in f.keys()}
    return config, tensors


def write(name, config, tensors):
    lines = ",\n".join(f"{json.dumps(k)}: {json.dumps(' '.join(map(str, v)))}" for k, v in sorted(tensors.items()))
    text = '{"config": ' + json.dumps(config, sort_keys=True) + ',\n"tensors": {\n' + lines + "\n}}\n"
    (OUT / f"{name}.json").write_text(text)
    print(f"{name}: {len(tensors)} tensors")


def pick(config, *keys):
    return {k: config[k] for k in keys}


def fuse(tensors, base=r"mlp\.experts"):
    """Fuses separate experts into one gate_up_proj and one down_proj."""
    out, banks = {}, {}
    for name, spec in tensors.items():
        m = re.fullmatch(rf"(.*{base})\.(\d+)\.(\w+)\.weight", name)
        if m is None:
            out[name] = spec
            continue
        banks.setdefault((m[1], m[3]), []).append(spec)
    for (base, projection), specs in banks.items():
        dtype, rows, cols = specs[0]
        if projection == "gate_proj":
            out[base + ".gate_up_proj"] = [dtype, len(specs), 2 * rows, cols]
        elif projection == "down_proj":
            out[base + ".down_proj"] = [dtype, len(specs), rows, cols]
    return out


def stack(tensors, experts=r"mlp\.experts", to="mlp.switch_mlp"):
    """Splits fused experts into one tensor per projection, as mlx-lm writes them."""
    out = {}
    for name, spec in tensors.items():
        if m := re.fullmatch(rf"(.*){experts}\.gate_up_proj", name):
            dtype, count, rows, cols = spec
            for projection in ("gate_proj", "up_proj"):
                out[f"{m[1]}{to}.{projection}.weight"] = [dtype, count, rows // 2, cols]
        elif m := re.fullmatch(rf"(.*){experts}\.down_proj", name):
            out[f"{m[1]}{to}.down_proj.weight"] = spec
        else:
            out[name] = spec
    return out


TINY = {"vocab_size": 64, "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 4,
        "num_key_value_heads": 2, "max_position_embeddings": 128}


def llama_and_qwen3():
    config, tensors = saved(tf.LlamaForCausalLM(tf.LlamaConfig(**TINY, tie_word_embeddings=True)))
    write("llama", config, tensors)
    config, tensors = saved(tf.Qwen3ForCausalLM(tf.Qwen3Config(**TINY, head_dim=16, use_sliding_window=True, sliding_window=8,
                                                              max_window_layers=1)))
    write("qwen3", config, tensors)
    config.pop("layer_types")
    write("qwen3-published", four(config), tensors)
    config, tensors = saved(tf.Qwen3ForCausalLM(tf.Qwen3Config(**TINY, head_dim=16, tie_word_embeddings=True)))
    # Embedding models of the family are published without the prefix.
    write("qwen3-embedding-published", four(config), rename(tensors, (r"^model\.", "")))


def qwen3_moe():
    config, tensors = saved(tf.Qwen3MoeForCausalLM(tf.Qwen3MoeConfig(
        **TINY, head_dim=16, num_experts=4, num_experts_per_tok=2, moe_intermediate_size=16, norm_topk_prob=True,
        mlp_only_layers=[0])))
    write("qwen3_moe", config, tensors)
    write("qwen3_moe-published", four(config), tensors)
    write("qwen3_moe-fused", config, fuse(tensors))
    write("qwen3_moe-mlx", four(config), stack(fuse(tensors)))


def gemma3():
    text = {**TINY, "head_dim": 16, "num_hidden_layers": 3, "layer_types": ["sliding_attention"] * 2 + ["full_attention"],
            "sliding_window": 8, "query_pre_attn_scalar": 20}
    config, tensors = saved(tf.Gemma3ForCausalLM(tf.Gemma3TextConfig(**text)))
    write("gemma3_text", config, tensors)
    old = four({k: v for k, v in config.items() if k not in ("layer_types", "rope_parameters")})
    old.update(rope_theta=1e6, rope_local_base_freq=1e4, rope_scaling=None, sliding_window_pattern=3)
    write("gemma3_text-published", old, tensors)

    vision = {"hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 1, "num_attention_heads": 2, "image_size": 32,
              "patch_size": 8}
    whole = tf.Gemma3Config(text_config=text, vision_config=vision, mm_tokens_per_image=4)
    config, tensors = saved(tf.Gemma3ForConditionalGeneration(whole))
    write("gemma3", config, tensors)
    inner = pick(config["text_config"], "hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads",
                 "num_key_value_heads", "head_dim", "sliding_window", "vocab_size", "query_pre_attn_scalar", "max_position_embeddings",
                 "model_type")
    inner.update(rope_scaling={"factor": 8.0, "rope_type": "linear"}, sliding_window_pattern=3)
    old = four(pick(config, "architectures", "model_type", "image_token_index", "boi_token_index", "eoi_token_index"))
    old.update(text_config=inner, vision_config=vision, eos_token_id=[1, 106])
    write("gemma3-published", old, rename(
        tensors, (r"^model\.language_model\.", "language_model.model."), (r"^model\.vision_tower\.", "vision_tower.vision_model."),
        (r"^model\.multi_modal", "multi_modal")))


G4 = {**TINY, "num_hidden_layers": 6, "head_dim": 16, "global_head_dim": 32, "sliding_window": 8, "final_logit_softcapping": 30.0,
      "layer_types": (["sliding_attention"] * 2 + ["full_attention"]) * 2}
PER_LAYER = {"hidden_size_per_layer_input": 8, "vocab_size_per_layer_input": 64}
NO_PER_LAYER = {"hidden_size_per_layer_input": 0, "vocab_size_per_layer_input": 0}
G4_SHAPES = {
    "e2b": {**PER_LAYER, "num_kv_shared_layers": 3, "use_double_wide_mlp": True, "num_key_value_heads": 1},
    "e4b": {**PER_LAYER, "num_kv_shared_layers": 2},
    "31b": {**NO_PER_LAYER, "attention_k_eq_v": True, "num_global_key_value_heads": 1, "use_bidirectional_attention": "vision"},
    "26b-a4b": {**NO_PER_LAYER, "attention_k_eq_v": True, "num_global_key_value_heads": 1, "enable_moe_block": True,
                "num_experts": 4, "top_k_experts": 2, "moe_intermediate_size": 16},
}
G4_VISION = {"hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 1, "num_attention_heads": 2, "num_key_value_heads": 2,
             "head_dim": 16, "position_embedding_size": 16}
G4_AUDIO = {"hidden_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2, "subsampling_conv_channels": [8, 4],
            "output_proj_dims": 32}


def global_keys(text):
    """Writes per_layer_config as the two keys of published Gemma 4 files."""
    text = copy.deepcopy(text)
    layers = text.pop("per_layer_config")
    some = next(iter(layers.values()))
    text["global_head_dim"] = some.get("head_dim", text["head_dim"])
    text["num_global_key_value_heads"] = some.get("num_key_value_heads")
    return text


def with_shared(tensors, text, prefix):
    """Adds the unused K and V projections that published files have for layers with a shared KV cache."""
    out = dict(tensors)
    first = text["num_hidden_layers"] - text["num_kv_shared_layers"]
    for i in range(first, text["num_hidden_layers"]):
        kind = text["layer_types"][i]
        donor = max(j for j in range(first) if text["layer_types"][j] == kind)
        for piece in ("k_proj.weight", "v_proj.weight", "k_norm.weight"):
            out[f"{prefix}layers.{i}.self_attn.{piece}"] = tensors[f"{prefix}layers.{donor}.self_attn.{piece}"]
    return out


def gemma4():
    for name, shape in G4_SHAPES.items():
        text = {**G4, **shape}
        towers = {"vision_config": G4_VISION}
        if name.startswith("e"):
            towers["audio_config"] = G4_AUDIO
        config, tensors = saved(tf.Gemma4ForConditionalGeneration(tf.Gemma4Config(text_config=text, **towers)))
        # Towers have the same names, so one of them lists the audio tower's many buffers.
        if name != "e2b":
            tensors = rename(tensors, (r"audio_tower\..*(_min|_max)$", None))
        write(f"gemma4-{name}", config, tensors)
        old = copy.deepcopy(config)
        old["text_config"] = global_keys(config["text_config"])
        write(f"gemma4-{name}-published", old, with_shared(tensors, old["text_config"], "model.language_model."))
    config, tensors = saved(tf.Gemma4ForCausalLM(tf.Gemma4TextConfig(**{**G4, **G4_SHAPES["e2b"]})))
    write("gemma4_text", config, tensors)
    # mlx-lm drops the towers and has its own names for experts.
    write("gemma4-26b-a4b-mlx", old, stack(rename(
        saved(tf.Gemma4ForConditionalGeneration(tf.Gemma4Config(text_config={**G4, **G4_SHAPES["26b-a4b"]}, vision_config=G4_VISION)))[1],
        (r"^model\.(vision_tower|embed_vision)", None), (r"^model\.language_model\.", "language_model.model.")),
        r"\.experts", ".experts.switch_glu"))

    text = {**G4, "attention_k_eq_v": True, "num_global_key_value_heads": 1}
    config, tensors = saved(tf.Gemma4UnifiedForConditionalGeneration(tf.Gemma4UnifiedConfig(
        text_config=text, vision_config={"mm_embed_dim": 32, "mm_posemb_size": 8, "output_proj_dims": 32, "patch_size": 2},
        audio_config={"audio_embed_dim": 8})))
    write("gemma4-12b", config, tensors)
    old = copy.deepcopy(config)
    old["text_config"] = global_keys(config["text_config"])
    write("gemma4-12b-published", old, tensors)
    config, tensors = saved(tf.Gemma4UnifiedForCausalLM(tf.Gemma4UnifiedTextConfig(**text)))
    write("gemma4_unified_text", config, tensors)


@contextlib.contextmanager
def reusing(kind):
    """Lets transformers 5.23 build an assistant: it rejects a model whose layers all use a shared KV cache."""
    own = kind.kv_sharing_modes
    kind.kv_sharing_modes = property(lambda self: ["reuse"] * self.num_hidden_layers)
    yield
    kind.kv_sharing_modes = own


def assistants():
    text = {**G4, **NO_PER_LAYER, "num_hidden_layers": 4, "num_kv_shared_layers": 4,
            "layer_types": ["sliding_attention"] * 3 + ["full_attention"]}
    text.pop("final_logit_softcapping")
    for name, extra, more in (
        ("gemma4_assistant", {}, {"use_ordered_embeddings": True, "num_centroids": 8, "centroid_intermediate_top_k": 2}),
        ("gemma4_assistant-dense", {"attention_k_eq_v": True, "num_global_key_value_heads": 1}, {}),
    ):
        config = tf.Gemma4AssistantConfig(text_config={**text, **extra}, backbone_hidden_size=48, **more)
        with reusing(tf.Gemma4TextConfig):
            config, tensors = saved(tf.Gemma4AssistantForCausalLM(config))
        write(name, config, tensors)
        config["text_config"] = global_keys(config["text_config"])
        write(name + "-published", config, tensors)
    text = {k: v for k, v in text.items() if k not in NO_PER_LAYER}
    config = tf.Gemma4UnifiedAssistantConfig(text_config={**text, "attention_k_eq_v": True, "num_global_key_value_heads": 1},
                                             backbone_hidden_size=48)
    with reusing(tf.Gemma4UnifiedTextConfig):
        config, tensors = saved(tf.Gemma4UnifiedAssistantForCausalLM(config))
    write("gemma4_unified_assistant", config, tensors)


Q35 = {**TINY, "num_hidden_layers": 4, "head_dim": 16, "linear_num_key_heads": 2, "linear_num_value_heads": 4,
       "linear_key_head_dim": 8, "linear_value_head_dim": 4}
MOE = {"num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 16, "shared_expert_intermediate_size": 24}
Q35_VISION = {"depth": 2, "hidden_size": 32, "intermediate_size": 48, "num_heads": 4, "patch_size": 4, "out_hidden_size": 32,
              "num_position_embeddings": 16}


def mtp(tensors, prefix, layer):
    """Adds the MTP head, which transformers lacks: a layer like the given full one, and a projection that joins."""
    out = dict(tensors)
    hidden = tensors[prefix + "norm.weight"][1]
    for name in ("pre_fc_norm_embedding", "pre_fc_norm_hidden", "norm"):
        out[f"mtp.{name}.weight"] = ["BF16", hidden]
    out["mtp.fc.weight"] = ["BF16", hidden, 2 * hidden]
    for name, spec in tensors.items():
        if name.startswith(f"{prefix}layers.{layer}."):
            out["mtp.layers.0." + name.removeprefix(f"{prefix}layers.{layer}.")] = spec
    return out


def published_qwen35(config):
    """Writes config.json as published: rope parameters in the new style, and further keys."""
    config = copy.deepcopy(config)
    text = config["text_config"]
    text["rope_parameters"].update(mrope_interleaved=True, mrope_section=[11, 11, 10], partial_rotary_factor=0.25)
    text.update(full_attention_interval=4, mtp_num_hidden_layers=1, mtp_use_dedicated_embeddings=False, attn_output_gate=True,
                mamba_ssm_dtype="float32")
    config["vision_config"].update(deepstack_visual_indexes=[])
    return config


def float32(tensors):
    """Stores the decay in float32, as published checkpoints do."""
    return {k: ["F32", *v[1:]] if k.endswith("A_log") else v for k, v in tensors.items()}


def mlx_qwen35(tensors):
    """Renames as mlx-lm does. It drops the tower and the MTP head and transposes the convolution."""
    out = {}
    for name, spec in tensors.items():
        if "visual" in name or name.startswith("mtp."):
            continue
        name = name.replace("model.language_model.", "language_model.model.").replace("lm_head", "language_model.lm_head")
        if name.endswith("conv1d.weight"):
            spec = [spec[0], spec[1], spec[3], spec[2]]
        out[name] = spec
    return out


def qwen3_5():
    config, tensors = saved(tf.Qwen3_5ForConditionalGeneration(tf.Qwen3_5Config(text_config=Q35, vision_config=Q35_VISION)))
    write("qwen3_5", config, tensors)
    old = published_qwen35(config)
    whole = float32(mtp(tensors, "model.language_model.", 3))
    write("qwen3_5-published", old, whole)
    bare = {k: v for k, v in old.items() if k != "vision_config"}
    write("qwen3_5-mlx", bare, mlx_qwen35(whole))
    config, tensors = saved(tf.Qwen3_5ForCausalLM(tf.Qwen3_5TextConfig(**Q35, tie_word_embeddings=True)))
    write("qwen3_5_text", config, tensors)

    text = {k: v for k, v in {**Q35, **MOE}.items() if k != "intermediate_size"}
    config, tensors = saved(tf.Qwen3_5MoeForConditionalGeneration(tf.Qwen3_5MoeConfig(text_config=text, vision_config=Q35_VISION)))
    write("qwen3_5_moe", config, tensors)
    old = published_qwen35(config)
    whole = float32(fuse(mtp(tensors, "model.language_model.", 3)))
    write("qwen3_5_moe-published", old, whole)
    bare = {k: v for k, v in old.items() if k != "vision_config"}
    write("qwen3_5_moe-mlx", bare, stack(mlx_qwen35(whole)))
    config, tensors = saved(tf.Qwen3_5MoeForCausalLM(tf.Qwen3_5MoeTextConfig(**text)))
    write("qwen3_5_moe_text", config, tensors)

    # Other published names of the tower.
    config, tensors = saved(tf.Qwen3_5ForConditionalGeneration(tf.Qwen3_5Config(text_config=Q35, vision_config=Q35_VISION)))
    other = {}
    for name, spec in rename(tensors, (r"^model\.visual\.", "visual.")).items():
        if m := re.fullmatch(r"(visual\.blocks\.\d+\.attn)\.qkv\.(\w+)", name):
            for projection in ("q_proj", "k_proj", "v_proj"):
                other[f"{m[1]}.{projection}.{m[2]}"] = [spec[0], spec[1] // 3, *spec[2:]]
            continue
        if name == "visual.patch_embed.proj.weight":
            spec = [spec[0], spec[1], spec[2] * spec[3] * spec[4] * spec[5]]
        for old_name, new in (("attn.proj", "attn.o_proj"), ("linear_fc", "fc"), ("merger.norm", "merger.ln_q"),
                              ("merger.fc1", "merger.mlp.0"), ("merger.fc2", "merger.mlp.2"), ("pos_embed", "position_embedding")):
            name = name.replace(old_name, new) if name.startswith("visual.") else name
        other[name] = spec
    write("qwen3_5-other-tower", config, other)


def qwen3_next():
    config, tensors = saved(tf.Qwen3NextForCausalLM(tf.Qwen3NextConfig(**Q35, **MOE, mlp_only_layers=[1])))
    write("qwen3_next", config, tensors)
    old = four(config)
    old["partial_rotary_factor"] = 0.25
    old.pop("layer_types")
    old["full_attention_interval"] = 4
    write("qwen3_next-published", old, mtp(tensors, "model.", 3))

    # The rows of the joined projections that are queries, keys, values, gates, beta and alpha.
    delta = next(m for m in tf.Qwen3NextForCausalLM(tf.Qwen3NextConfig(**Q35, **MOE)).modules() if hasattr(m, "fix_query_key_value_ordering"))
    rows = lambda linear: torch.arange(linear.out_features)[None, None]
    q, k, v, z, b, a = delta.fix_query_key_value_ordering(rows(delta.in_proj_qkvz), rows(delta.in_proj_ba))
    flat = lambda *parts: [int(i) for p in parts for i in p.flatten()]
    golden = {"config": config, "in_proj_qkv": flat(q, k, v), "in_proj_z": flat(z), "in_proj_b": flat(b), "in_proj_a": flat(a)}
    (REPO / "arch" / "testdata" / "gathered_rows.json").write_text(json.dumps(golden, sort_keys=True) + "\n")


def glm4_moe_lite():
    config, tensors = saved(tf.Glm4MoeLiteForCausalLM(tf.Glm4MoeLiteConfig(
        **{**TINY, "num_key_value_heads": 4}, q_lora_rank=24, kv_lora_rank=16, qk_rope_head_dim=8,
        qk_nope_head_dim=12, v_head_dim=10, n_routed_experts=4, num_experts_per_tok=2, moe_intermediate_size=16, n_group=2,
        topk_group=1)))
    write("glm4_moe_lite", config, tensors)
    old = four(config)
    old.pop("mlp_layer_types")
    old.update(first_k_dense_replace=1, num_nextn_predict_layers=1, topk_method="noaux_tc", partial_rotary_factor=1.0)
    whole = {k: ["F32", *v[1:]] if k.endswith("e_score_correction_bias") else v for k, v in tensors.items()}
    # The layer after the last is an MTP head: a layer, a projection that joins, an embedding and an output head.
    for name, spec in list(whole.items()):
        if name.startswith("model.layers.1."):
            whole[name.replace("layers.1.", "layers.2.", 1)] = spec
    for name, shape in (("eh_proj.weight", [32, 64]), ("enorm.weight", [32]), ("hnorm.weight", [32]),
                        ("shared_head.norm.weight", [32]), ("shared_head.head.weight", [64, 32]), ("embed_tokens.weight", [64, 32])):
        whole["model.layers.2." + name] = ["BF16", *shape]
    write("glm4_moe_lite-published", old, whole)
    config, tensors = saved(tf.Glm4MoeLiteForCausalLM(tf.Glm4MoeLiteConfig(
        **{**TINY, "num_key_value_heads": 4}, q_lora_rank=None, kv_lora_rank=16, qk_rope_head_dim=8, qk_nope_head_dim=12,
        v_head_dim=10, n_routed_experts=4, num_experts_per_tok=2, moe_intermediate_size=16, attention_bias=True)))
    write("glm4_moe_lite-bias", config, tensors)


if __name__ == "__main__":
    OUT.mkdir(parents=True, exist_ok=True)
    for old in OUT.glob("*.json"):
        old.unlink()
    torch.manual_seed(0)
    llama_and_qwen3()
    qwen3_moe()
    gemma3()
    gemma4()
    gemma3n.tables(saved, write, {**TINY, **PER_LAYER}, with_shared)
    assistants()
    qwen3_5()
    qwen3_next()
    glm4_moe_lite()
    for family in (dense, moe, gpt, latent, recurrent, remotes):
        family.tables(saved, write)
    qwen4.tables(saved, write, fuse)
