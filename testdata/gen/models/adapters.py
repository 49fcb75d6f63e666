"""Writes testdata/adapters: LoRA adapters of testdata/models/llama-f32 as PEFT saves them.

merged.safetensors has the weights that the adapter changes, as PEFT's merge_and_unload returns them, in float32.
"""

import json
import pathlib
import shutil

import torch
from peft import LoraConfig, get_peft_model
from safetensors.torch import load_file, save_file
from transformers import AutoModelForCausalLM

here = pathlib.Path(__file__).resolve().parents[2]
base = here / "models" / "llama-f32"

KINDS = {
    "linear": dict(r=4, lora_alpha=8, target_modules=["q_proj", "v_proj", "down_proj"]),
    "patterns": dict(
        r=6, lora_alpha=5, use_rslora=True, target_modules="all-linear",
        rank_pattern={"q_proj": 2, r"layers\.1\.mlp\.up_proj": 9}, alpha_pattern={"layers.0.self_attn.o_proj": 3, r".*\.down_proj": 1},
        modules_to_save=["norm"],
    ),
}


def randomize(model, seed):
    """Replaces the zeros of a new adapter by random weights."""
    g = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, p in model.named_parameters():
            if p.requires_grad:
                p.copy_(p + 0.1 * torch.randn(p.shape, generator=g))


def main():
    for seed, (name, options) in enumerate(KINDS.items()):
        out = here / "adapters" / name
        shutil.rmtree(out, ignore_errors=True)
        model = AutoModelForCausalLM.from_pretrained(base, dtype=torch.float32)
        before = {k: v.clone() for k, v in model.state_dict().items()}
        torch.manual_seed(seed)
        tuned = get_peft_model(model, LoraConfig(task_type="CAUSAL_LM", **options))
        randomize(tuned, seed)
        tuned.save_pretrained(out)
        (out / "README.md").unlink()
        config = json.loads((out / "adapter_config.json").read_text())
        config["base_model_name_or_path"] = "llama-f32"
        config["target_modules"] = sorted(config["target_modules"])
        (out / "adapter_config.json").write_text(json.dumps(config, indent=2, sort_keys=True) + "\n")
        merged = tuned.merge_and_unload().state_dict()
        changed = {k: v.contiguous().clone() for k, v in merged.items() if k in before and not torch.equal(v, before[k])}
        save_file(changed, out / "merged.safetensors")
        print(name, len(load_file(out / "adapter_model.safetensors")), "tensors of the adapter,", len(changed), "merged")


main()
