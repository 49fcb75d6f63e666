"""Trains testdata/models/gemma4-pair, a small Gemma 4 that tells stories, and gemma4_assistant-pair, which drafts for
it.

    gemma4_pair.py               trains both models and writes the goldens
    gemma4_pair.py --assistant   keeps the target
    gemma4_pair.py --golden      keeps both models and writes the goldens
    gemma4_pair.py --positions   compares drafts at positions t+1 and t; writes nothing

The target is trained on stories, then the assistant on the stored target. Step k of a round at token t reads the
target's embedding of token t+1+k and the hidden state of the step before, at first the target's. It is at position t+1
in every step, attends the target's keys up to t, and learns the target's own distribution. Training runs on the CPU
with fixed seeds; on another processor the weights differ.

The goldens are those of reference.py and gemma4_assistant_tiny.py. The assistant's also has transformers' assisted
generation with the pair: prompts int32 [P, 24], greedy int32 [P, 64], depth int32 [1], and steps int32 [P], the number
of the target's forward passes with the prefill.
"""

import argparse
import time

import reference  # first: keeps transformers offline

import numpy as np
import torch
from safetensors.numpy import save_file
from tokenizers import Tokenizer
from torch.nn.functional import cross_entropy
from transformers import Gemma4AssistantConfig, Gemma4AssistantForCausalLM, Gemma4ForCausalLM, Gemma4TextConfig

import checkpoint
import gemma4_assistant_tiny as assistants
import story
import tiny
import train_demo
from gemma4_tiny import FULL, SLIDING

TARGET, ASSISTANT = tiny.MODELS / "gemma4-pair", tiny.MODELS / "gemma4_assistant-pair"
VOCAB, HIDDEN, WINDOW = 512, 128, 32
BOTH = dict(
    vocab_size=VOCAB, num_attention_heads=4, num_key_value_heads=2, head_dim=32, global_head_dim=64, sliding_window=WINDOW,
    max_position_embeddings=512, bos_token_id=VOCAB - 2, eos_token_id=VOCAB - 1, pad_token_id=0,
    hidden_size_per_layer_input=0,
)
STORIES, ROWS, LENGTH = 5500, 8, 128
TARGET_STEPS, ASSISTANT_STEPS = 1500, 800
DEPTH = 4  # drafts per round, in training and in the golden
PROMPTS, PROMPT, SAID = 8, 24, 64


def make_target():
    layers = [SLIDING, SLIDING, FULL]
    return Gemma4ForCausalLM(Gemma4TextConfig(
        **BOTH, hidden_size=HIDDEN, intermediate_size=256, num_hidden_layers=len(layers), layer_types=layers,
        num_kv_shared_layers=0, final_logit_softcapping=30.0, vocab_size_per_layer_input=VOCAB))


def make_assistant():
    layers = [SLIDING, SLIDING, FULL]
    text = dict(**BOTH, hidden_size=64, intermediate_size=128, num_hidden_layers=len(layers), layer_types=layers,
                num_kv_shared_layers=len(layers), vocab_size_per_layer_input=0)
    return Gemma4AssistantForCausalLM(Gemma4AssistantConfig(text_config=text, backbone_hidden_size=HIDDEN))


def fit(model, batches, total, loss_of):
    matrices = [p for p in model.parameters() if p.dim() > 1]
    vectors = [p for p in model.parameters() if p.dim() == 1]
    optim = torch.optim.AdamW([{"params": matrices, "weight_decay": 0.1}, {"params": vectors, "weight_decay": 0.0}],
                              betas=(0.9, 0.95))
    print(f"{model.num_parameters():,} parameters")
    start, mean = time.time(), None
    for step, batch in enumerate(batches):
        for group in optim.param_groups:
            group["lr"] = train_demo.learning_rate(step, total)
        loss = loss_of(batch)
        optim.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optim.step()
        mean = loss.item() if mean is None else 0.95 * mean + 0.05 * loss.item()
        if step % 50 == 0 or step == total - 1:
            print(f"step {step:4d}/{total} loss {mean:.3f} {time.time() - start:.0f} s", flush=True)
    return model.eval()


def store(folder, model, more):
    config, tensors = tiny.saved(model, more)
    tiny.write(folder, config, tensors)


def train_target(tok, encoded):
    torch.manual_seed(1)
    model = make_target()

    def loss_of(batch):
        logits = model(batch[:, :-1], use_cache=False).logits
        return cross_entropy(logits.reshape(-1, VOCAB), batch[:, 1:].reshape(-1))

    fit(model, train_demo.rows(encoded, [(TARGET_STEPS, ROWS, LENGTH)]), TARGET_STEPS, loss_of)
    store(TARGET, model, tiny.Variant(make_target))
    tok.save(str(TARGET / "tokenizer.json"))
    checkpoint.write_json(TARGET / "tokenizer_config.json", train_demo.tokenizer_config(VOCAB, BOTH["max_position_embeddings"]))


@torch.no_grad()
def read(target, ids):
    """Returns of tokens [B, L] the hidden states, the keys and values by layer type, and the greedy next tokens."""
    out = target(ids, use_cache=False, output_hidden_states=True, return_shared_kv_states=True)
    keys = {kind: out.shared_kv_states[kind] for kind in (SLIDING, FULL)}
    return out.hidden_states[-1], keys, out.logits.argmax(-1)


def step_of(model, target, tokens, hidden, positions, keys, masks):
    """Runs one draft step of all rows and returns hidden states and logits."""
    x = model.pre_projection(torch.cat([target.get_input_embeddings()(tokens), hidden], dim=-1))
    out = model.model(inputs_embeds=x, attention_mask=masks, position_ids=positions, shared_kv_states=keys, use_cache=False,
                      output_hidden_states=True)  # otherwise a model that has only shared keys accepts one row only
    return model.post_projection(out.last_hidden_state), model.lm_head(out.last_hidden_state)


def train_assistant(target, encoded, anchor=1):
    torch.manual_seed(2)
    model = make_assistant()
    target.requires_grad_(False)
    n = LENGTH + 1 - DEPTH
    query, key = torch.arange(n)[:, None], torch.arange(LENGTH + 1)[None]
    seen = {FULL: key <= query, SLIDING: (key <= query) & (key > query + 1 - WINDOW)}
    masks = {kind: torch.zeros(s.shape).masked_fill(~s, torch.finfo(torch.float32).min)[None, None] for kind, s in seen.items()}
    positions = torch.arange(n)[None] + anchor

    def loss_of(batch):
        hidden, keys, said = read(target, batch)
        hidden, loss = hidden[:, :n], 0
        for k in range(DEPTH):
            hidden, scores = step_of(model, target, batch[:, 1 + k : 1 + k + n], hidden, positions, keys, masks)
            loss = loss + cross_entropy(scores.reshape(-1, VOCAB), said[:, 1 + k : 1 + k + n].reshape(-1))
        return loss / DEPTH

    return fit(model, train_demo.rows(encoded, [(ASSISTANT_STEPS, ROWS, LENGTH)]), ASSISTANT_STEPS, loss_of)


@torch.no_grad()
def said_by(target, prompt):
    """Returns the target's greedy continuation of a prompt, and the margin of each token."""
    ids, ahead = list(prompt), []
    for _ in range(SAID):
        row = reference.logits_of(target, ids)[-1]
        ahead.append(float(reference.margin(row)))
        ids.append(int(row.argmax()))
    return ids[len(prompt) :], min(ahead)


def prompts_for(tok, target):
    """Returns beginnings of held-out stories whose continuation has no token with a small margin."""
    chosen = []
    for text in story.stories(seed=4, n=200):
        prompt = tok.encode(text).ids[:PROMPT]
        if prompt in [p for p, _ in chosen]:
            continue
        said, ahead = said_by(target, prompt)
        if ahead < 0.02 or BOTH["eos_token_id"] in said:
            continue
        assert len(set(said)) > SAID // 3, f"{tok.decode(prompt)}: says {tok.decode(said)}"
        chosen.append((prompt, said))
        if len(chosen) == PROMPTS:
            return chosen
    raise SystemExit(f"only {len(chosen)} prompts will do")


def assisted(target, model, prompt):
    """Returns the text of transformers' assisted generation, and the number of the target's forward passes."""
    count = 0

    def counted(*_):
        nonlocal count
        count += 1

    hook = target.register_forward_pre_hook(counted)
    model.generation_config.num_assistant_tokens = DEPTH
    model.generation_config.num_assistant_tokens_schedule = "constant"
    target.generation_config.eos_token_id = None
    ids = torch.tensor([prompt])
    out = target.generate(ids, attention_mask=torch.ones_like(ids), assistant_model=model, do_sample=False, max_new_tokens=SAID)
    hook.remove()
    return out[0, len(prompt) :].tolist(), count


@torch.no_grad()
def rounds(target, model, prompt, said, anchor):
    """Returns the number of the target's forward passes, and how many tokens each draft step drafted and had accepted.

    No draft sees a rejected token. The counts are [DEPTH] each.
    """
    text = torch.tensor([list(prompt) + said])
    hidden, keys, _ = read(target, text)
    at, steps, drafted, accepted = len(prompt), 1, np.zeros(DEPTH, int), np.zeros(DEPTH, int)
    while at < text.shape[1] - 1:  # this token was sampled and is not in the cache
        kept = {FULL: tuple(x[:, :, :at] for x in keys[FULL]),
                SLIDING: tuple(x[:, :, max(0, at + 1 - WINDOW) : at] for x in keys[SLIDING])}
        masks = {kind: None for kind in kept}
        token, h, right = text[:, at : at + 1], hidden[:, at - 1 : at], 0
        for k in range(min(DEPTH, text.shape[1] - at - 2)):
            h, scores = step_of(model, target, token, h, torch.tensor([[at - 1 + anchor]]), kept, masks)
            token = scores.argmax(-1)
            drafted[k] += 1
            if right == k and token.item() == text[0, at + 1 + k]:
                right += 1
                accepted[k] += 1
        at, steps = at + right + 1, steps + 1
    return steps, drafted, accepted


def acceptance(tok, target, model, chosen, anchor):
    found = [rounds(target, model, prompt, said, anchor) for prompt, said in chosen]
    drafted, accepted = (np.sum([f[i] for f in found], axis=0) for i in (1, 2))
    print(f"drafts at t{anchor:+d}: target steps {[f[0] for f in found]}, {accepted.sum()} of {drafted.sum()} drafts accepted, "
          f"by place in a round {np.round(accepted / drafted, 3).tolist()}")
    return [f[0] for f in found]


def goldens(tok):
    target_golden = reference.write(TARGET)
    target, model = reference.load(TARGET), assistants.load(ASSISTANT)
    golden = assistants.draft(model, target, target_golden["tokens"])
    chosen = prompts_for(tok, target)
    steps = []
    for prompt, said in chosen:
        text, count = assisted(target, model, prompt)
        print(f"{count} steps: {tok.decode(prompt)} | {tok.decode(said)}")
        if text != said:
            raise SystemExit("with the assistant transformers says something else than without")
        steps.append(count)
    acceptance(tok, target, model, chosen, 1)
    if sum(steps) > 0.6 * SAID * PROMPTS:
        raise SystemExit(f"{sum(steps)} target steps for {SAID * PROMPTS} tokens: little is accepted")
    golden |= {"prompts": np.array([p for p, _ in chosen], np.int32), "greedy": np.array([s for _, s in chosen], np.int32),
               "depth": np.array([DEPTH], np.int32), "steps": np.array(steps, np.int32)}
    save_file(golden, reference.path_of(ASSISTANT), metadata={"target": TARGET.name})
    reference.path_of(ASSISTANT).chmod(0o644)


def positions(tok, encoded):
    target = reference.load(TARGET)
    chosen = prompts_for(tok, target)
    there = assistants.load(ASSISTANT)
    other = train_assistant(target, encoded, anchor=0)
    for name, model in (("trained at t+1", there), ("trained at t", other)):
        print(name)
        for anchor in (1, 0):
            acceptance(tok, target, model, chosen, anchor)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--assistant", action="store_true", help="keep the target")
    parser.add_argument("--golden", action="store_true", help="keep both models")
    parser.add_argument("--positions", action="store_true", help="compare positions of drafts, write nothing")
    args = parser.parse_args()
    reference.setup()
    fresh = not (args.assistant or args.golden or args.positions)

    texts = [] if args.golden else story.stories(seed=1, n=STORIES)
    tok = train_demo.train_tokenizer(texts[:4000], VOCAB) if fresh else Tokenizer.from_file(str(TARGET / "tokenizer.json"))
    encoded = [e.ids + [BOTH["eos_token_id"]] for e in tok.encode_batch(texts)]
    print(f"{sum(map(len, encoded)) / 1e6:.2f} M tokens")
    with assistants.sharing():
        if fresh:
            train_target(tok, encoded)
        if args.positions:
            positions(tok, encoded)
            return
        if not args.golden:
            store(ASSISTANT, train_assistant(reference.load(TARGET), encoded), tiny.Variant(make_assistant))
        goldens(tok)


if __name__ == "__main__":
    main()
