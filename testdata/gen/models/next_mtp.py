"""The MTP head of models other than Qwen 3.5, which predicts the token after the next.

Row t joins the embedding of token t+1 with the hidden state of position t, taken after the last norm. transformers'
MtpModel computes the heads that are the layer after the last. It lacks the others, which have a layer without experts;
vLLM and SGLang show how their inputs are joined.
"""

import copy
import re

import numpy as np
import torch
from safetensors import safe_open
from torch import nn
from transformers.modeling_layers import MtpModel

STEPS = 3
# Of other types with such a layer, transformers does not know how to load it.
LAYERS = ("deepseek_v3", "glm4_moe")
# Names of the parts of other heads: the norms of both inputs, what joins them, the layer, and the last norm.
PARTS = {
    "exaone_moe": {"vector": "mtp.pre_fc_norm_embedding.", "state": "mtp.pre_fc_norm_hidden.", "join": "mtp.fc.",
                   "layer": "mtp.layers.0.", "norm": "mtp.norm."},
    "mimo_v2_flash": {"vector": "model.mtp.layers.0.enorm.", "state": "model.mtp.layers.0.hnorm.",
                      "join": "model.mtp.layers.0.eh_proj.", "norm": "model.mtp.layers.0.final_layernorm.",
                      "layer": "model.mtp.layers.0."},
    "longcat_flash": {"vector": "model.mtp.layers.0.enorm.m.", "state": "model.mtp.layers.0.hnorm.m.",
                      "join": "model.mtp.layers.0.eh_proj.", "norm": "model.mtp.norm.", "layer": "model.mtp.layers.0."},
}
RENAMED = {"pre_mlp_layernorm": "post_attention_layernorm", "attention_sink_bias": "sinks", "transformer_layer.mlp": "mlp"}
SLIDING = "sliding_attention"


class Head(nn.Module):
    """A head with a layer without experts, which slides if the model does. Embedding, rotation and output projection are
    the model's."""

    def __init__(self, model):
        super().__init__()
        config = copy.deepcopy(model.config)
        config._attn_implementation = "eager"
        halves = config.model_type == "longcat_flash"
        if not halves:
            config.layer_types, config.mlp_layer_types, config.num_hidden_layers = [SLIDING], ["dense"], 1
        norm = lambda: type(model.model.norm)(config.hidden_size, eps=config.rms_norm_eps)
        self.vector, self.state, self.norm = norm(), norm(), norm()
        self.join = nn.Linear(2 * config.hidden_size, config.hidden_size, bias=False)
        self.layer = Half(model, config) if halves else type(model.model.layers[0])(config, 0)
        self.window = config.max_position_embeddings if halves else config.sliding_window
        self.by_kind = isinstance(model.config.rope_parameters.get(SLIDING), dict)

    def forward(self, embedded, hidden, rotary):
        x = self.join(torch.cat([self.vector(embedded), self.state(hidden)], dim=-1))
        at = torch.arange(x.shape[1])
        seen = (at[None] <= at[:, None]) & (at[None] > at[:, None] - self.window)
        mask = torch.zeros(seen.shape).masked_fill(~seen, -torch.inf)[None, None]
        position = rotary(x, at[None], *([SLIDING] if self.by_kind else []))
        return self.norm(self.layer(x, position_embeddings=position, attention_mask=mask))


class Half(nn.Module):
    """A layer of LongCat Flash with one attention and no experts."""

    def __init__(self, model, config):
        super().__init__()
        like = model.model.layers[0]
        self.self_attn, self.mlp = type(like.self_attn[0])(config, 0), type(like.mlps[0])(config)
        norm = lambda: type(model.model.norm)(config.hidden_size, eps=config.rms_norm_eps)
        self.input_layernorm, self.post_attention_layernorm = norm(), norm()

    def forward(self, x, position_embeddings, attention_mask):
        x = x + self.self_attn(self.input_layernorm(x), position_embeddings, attention_mask)[0]
        return x + self.mlp(self.post_attention_layernorm(x))


def tensors(folder, parts):
    """Returns the state of a Head in a folder; it is empty if there is none."""
    found = {}
    for path in sorted(folder.glob("model*.safetensors")):
        with safe_open(path, framework="pt") as file:
            for name in file.keys():
                # The layer's prefix may be one of the others', hence the longest.
                part = max((p for p in parts if name.startswith(parts[p])), key=lambda p: len(parts[p]), default=None)
                if part is not None:
                    end = name.removeprefix(parts[part])
                    for old, new in RENAMED.items():
                        end = end.replace(old, new)
                    found[f"{part}.{end}"] = file.get_tensor(name).float()
    return found


def load(folder, model):
    """Returns a function of nexts and hidden states that computes the head's, or None if there is no head."""
    config = model.config
    if config.model_type in LAYERS and config.num_mtp_layers and any(re.search(
            rf"layers\.{config.num_hidden_layers}\.eh_proj", n) for n in names(folder)):
        # transformers knows the layer by its number in the published model.
        model._keys_to_ignore_on_load_unexpected = [rf"model\.layers\.{config.num_hidden_layers}\."]
        head = MtpModel.from_pretrained(model).float().eval()
        return lambda nexts, hidden: head.forward_layer(
            0, hidden, torch.arange(1, nexts.shape[1] + 1)[None], None, input_ids=nexts)
    state = tensors(folder, PARTS[config.model_type]) if config.model_type in PARTS else {}
    if not state:
        return None
    head = Head(model).eval()
    head.load_state_dict(state)
    return lambda nexts, hidden: head(model.model.embed_tokens(nexts), hidden, model.model.rotary_emb)


def names(folder):
    for path in folder.glob("model*.safetensors"):
        with safe_open(path, framework="pt") as file:
            yield from file.keys()


@torch.no_grad()
def compute(folder, model, tokens, greedy):
    """Returns the golden of the head, as qwen3_5_mtp.compute does."""
    head = load(folder, model)
    if head is None:
        return {}
    ids = torch.tensor(np.concatenate([tokens, greedy[:1]]).astype(np.int64))[None]
    hidden = model.model(input_ids=ids[:, :-1], use_cache=False).last_hidden_state
    nexts = ids[:, 1:]
    steps, drafts = [], []
    for step in range(STEPS):
        out = head(nexts, hidden)
        logits = model.lm_head(out)
        if step == 0:
            golden = {"mtp_logits": logits[0].numpy().copy(), "mtp_hidden": out[0].numpy().copy()}
        steps.append(logits[0, -1].numpy())
        drafts.append(int(logits[0, -1].argmax()))
        hidden = torch.cat([hidden, out[:, -1:]], dim=1)
        nexts = torch.cat([nexts, torch.tensor([[drafts[-1]]])], dim=1)
    return {**golden, "mtp_steps": np.stack(steps), "mtp_drafts": np.array(drafts, np.int32)}
