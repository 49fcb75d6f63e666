"""The MTP head that some models have as the layer after the last, computed by transformers' MtpModel.

Row t joins the embedding of token t+1 with the hidden state of position t, taken after the last norm.
"""

import numpy as np
import torch
from transformers.modeling_layers import MtpModel

STEPS = 3
# Of other types with such a layer, transformers does not know how to load it.
TYPES = ("deepseek_v3",)


def load(model):
    """Returns the head of a model that was loaded from a folder, or None if there is none."""
    config = model.config
    if config.model_type not in TYPES or not config.num_mtp_layers:
        return None
    # transformers knows the layer by its number in the published model.
    model._keys_to_ignore_on_load_unexpected = [rf"model\.layers\.{config.num_hidden_layers}\."]
    return MtpModel.from_pretrained(model).float().eval()


@torch.no_grad()
def compute(model, tokens, greedy):
    """Returns the golden of the head, as qwen3_5_mtp.compute does."""
    head = load(model)
    if head is None:
        return {}
    ids = torch.tensor(np.concatenate([tokens, greedy[:1]]).astype(np.int64))[None]
    hidden = model.model(input_ids=ids[:, :-1], use_cache=False).last_hidden_state
    nexts = ids[:, 1:]
    steps, drafts = [], []
    for step in range(STEPS):
        positions = torch.arange(1, nexts.shape[1] + 1)[None]
        out = head.forward_layer(0, hidden, positions, None, input_ids=nexts)
        logits = model.lm_head(out)
        if step == 0:
            golden = {"mtp_logits": logits[0].numpy().copy(), "mtp_hidden": out[0].numpy().copy()}
        steps.append(logits[0, -1].numpy())
        drafts.append(int(logits[0, -1].argmax()))
        hidden = torch.cat([hidden, out[:, -1:]], dim=1)
        nexts = torch.cat([nexts, torch.tensor([[drafts[-1]]])], dim=1)
    return {**golden, "mtp_steps": np.stack(steps), "mtp_drafts": np.array(drafts, np.int32)}
