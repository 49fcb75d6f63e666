"""The MTP head of Qwen 3.5 and Qwen3-Next, which predicts the token after the next. transformers lacks it.

Row t joins the embedding of token t+1 with the hidden state of position t, taken after the last norm. The head's layer
attends the rows before it. The result has a norm of its own. It goes through the model's output head, which returns the
logits of token t+2, and replaces the model's hidden state in a row that the model has not reached.
"""

import re

import numpy as np
import torch
from safetensors import safe_open
from torch import nn

import checkpoint

STEPS = 3
TYPES = ("qwen3_5", "qwen3_next")


class Head(nn.Module):
    """The head. Embedding, rotation and output projection are the model's."""

    def __init__(self, text):
        super().__init__()
        config = text.config
        norm = lambda: type(text.norm)(config.hidden_size, eps=config.rms_norm_eps)
        full = config.layer_types.index("full_attention")
        self.pre_fc_norm_embedding, self.pre_fc_norm_hidden, self.norm = norm(), norm(), norm()
        self.fc = nn.Linear(2 * config.hidden_size, config.hidden_size, bias=False)
        self.layers = nn.ModuleList([type(text.layers[full])(config, full)])
        self.sections = hasattr(text.rotary_emb, "mrope_section")  # positions in time, height and width

    def forward(self, embedded, hidden, rotary):
        x = self.fc(torch.cat([self.pre_fc_norm_embedding(embedded), self.pre_fc_norm_hidden(hidden)], dim=-1))
        rows = x.shape[1]
        mask = torch.full((rows, rows), -torch.inf).triu(1)[None, None]
        at = torch.arange(rows)[None]
        position = rotary(x, at[None] if self.sections else at)
        for layer in self.layers:
            x = layer(x, position_embeddings=position, attention_mask=mask)
        return self.norm(x)


def text_of(model):
    inner = getattr(model, "model", model.base_model)
    return getattr(inner, "language_model", inner)


def load(folder, model):
    """Returns the head in a folder, or None."""
    text, tensors = text_of(model), {}
    if not text.config.model_type.startswith(TYPES):
        return None
    for path in sorted(folder.glob("model*.safetensors")):
        with safe_open(path, framework="pt") as file:
            for name in file.keys():
                if m := re.fullmatch(r"(?:\w+\.)*?mtp\.(.*)", name):
                    tensors[m[1]] = file.get_tensor(name).float()
    if not tensors:
        return None
    head = Head(text)
    head.load_state_dict(checkpoint.fuse(tensors))
    head.eval()
    for module in head.modules():
        if hasattr(module, "config"):
            module.config._attn_implementation = "eager"
    return head


@torch.no_grad()
def compute(folder, model, tokens, greedy):
    """Returns the golden of the head.

    mtp_logits [T, V] and mtp_hidden [T, hidden] are of the text and its first greedy token; mtp_steps [3, V] and
    mtp_drafts [3] are the logits and greedy tokens of three draft steps after it.
    """
    head = load(folder, model)
    if head is None:
        return {}
    text = text_of(model)
    ids = torch.tensor(np.concatenate([tokens, greedy[:1]]).astype(np.int64))[None]
    hidden = text(input_ids=ids[:, :-1], use_cache=False).last_hidden_state
    nexts = ids[:, 1:]
    steps, drafts = [], []
    for step in range(STEPS):
        out = head(text.embed_tokens(nexts), hidden, text.rotary_emb)
        logits = model.lm_head(out)
        if step == 0:
            golden = {"mtp_logits": logits[0].numpy().copy(), "mtp_hidden": out[0].numpy().copy()}
        steps.append(logits[0, -1].numpy())
        drafts.append(int(logits[0, -1].argmax()))
        hidden = torch.cat([hidden, out[:, -1:]], dim=1)
        nexts = torch.cat([nexts, torch.tensor([[drafts[-1]]])], dim=1)
    return {**golden, "mtp_steps": np.stack(steps), "mtp_drafts": np.array(drafts, np.int32)}
