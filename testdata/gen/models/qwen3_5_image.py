"""Writes testdata/models/qwen3_5-vision, a tiny Qwen 3.5 with a vision tower, and testdata/pictures.

It also writes goldens of prompts with pictures, testdata/reference/qwen3_5-vision-CASE.safetensors: tokens (image
tokens expanded), logits and greedy as in other goldens, features float32 [image tokens, hidden] (the tower's output),
positions int32 [3, T], and shift int32 [1], which text after the prompt adds to its position.

  fits      a picture that needs no resizing
  resized   a picture beyond the limits of preprocessor_config.json
  photo     a resized JPEG; decoders differ by one or two in a few pixels
  several   three pictures, the first and the last equal
"""

import reference  # first: keeps transformers offline

import numpy as np
import torch
from PIL import Image
from safetensors.numpy import save_file
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import Qwen3_5Config, Qwen3_5ForConditionalGeneration
from transformers.models.qwen2_vl.image_processing_pil_qwen2_vl import Qwen2VLImageProcessorPil

import checkpoint
import story
import tiny
import train_demo
from qwen3_5_tiny import BASE, LOUD, RULES
from tiny import VOCAB, Variant, change

NAME = "qwen3_5-vision"
PICTURES = reference.TESTDATA / "pictures"
SPECIAL = ["<|endoftext|>", "<|im_start|>", "<|im_end|>", "<|vision_start|>", "<|vision_end|>", "<|image_pad|>", "<|video_pad|>"]
ID = {t: VOCAB - len(SPECIAL) + i for i, t in enumerate(SPECIAL)}
TEXT = {**BASE, "max_position_embeddings": 256, "eos_token_id": ID["<|im_end|>"],
        "rope_parameters": {"rope_type": "default", "rope_theta": 100000.0, "partial_rotary_factor": 0.5,
                            "mrope_section": [3, 3, 2], "mrope_interleaved": True}}
VISION = dict(depth=2, hidden_size=32, intermediate_size=48, num_heads=2, patch_size=16, temporal_patch_size=2,
              spatial_merge_size=2, out_hidden_size=64, num_position_embeddings=25)
TOWER = (
    (r"patch_embed\.proj\.weight$", lambda normal: 1.2 / np.sqrt(3 * 2 * 16 * 16) * normal),
    (r"visual\..*norm\d?\.weight$", lambda normal: 0.9 + 0.15 * normal),
    (r"pos_embed\.weight$", lambda normal: 0.5 * normal),
)
PROCESSOR = {
    "size": {"shortest_edge": 1024, "longest_edge": 8192}, "patch_size": 16, "temporal_patch_size": 2, "merge_size": 2,
    "image_mean": [0.5, 0.5, 0.5], "image_std": [0.5, 0.5, 0.5], "processor_class": "Qwen3VLProcessor",
    "image_processor_type": "Qwen2VLImageProcessorFast",
}
TEMPLATE = """\
{%- for message in messages %}
    {{- '<|im_start|>' + message.role + '\\n' }}
    {%- if message.content is string %}
        {{- message.content }}
    {%- else %}
        {%- for item in message.content %}
            {%- if item.type == 'image' or 'image' in item %}
                {{- '<|vision_start|><|image_pad|><|vision_end|>' }}
            {%- elif item.type == 'video' or 'video' in item %}
                {{- '<|vision_start|><|video_pad|><|vision_end|>' }}
            {%- elif 'text' in item %}
                {{- item.text }}
            {%- endif %}
        {%- endfor %}
    {%- endif %}
    {{- '<|im_end|>\\n' }}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|im_start|>assistant\\n' }}
{%- endif %}
"""


def tokenizer():
    tok = Tokenizer(models.BPE())
    tok.pre_tokenizer = pre_tokenizers.Sequence([
        pre_tokenizers.Split(Regex(train_demo.SPLIT), behavior="isolated"),
        pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
    ])
    tok.decoder = decoders.ByteLevel()
    tok.train_from_iterator(story.stories(seed=1, n=500), trainers.BpeTrainer(
        vocab_size=VOCAB - len(SPECIAL), initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False))
    tok.add_special_tokens([AddedToken(t, special=True) for t in SPECIAL])
    assert tok.get_vocab_size() == VOCAB and tok.token_to_id("<|image_pad|>") == ID["<|image_pad|>"]
    return tok


def write_files(folder):
    tokenizer().save(str(folder / "tokenizer.json"))
    checkpoint.write_json(folder / "tokenizer_config.json", {
        "added_tokens_decoder": {str(i): {"content": t, "lstrip": False, "normalized": False, "rstrip": False,
                                          "single_word": False, "special": True} for t, i in ID.items()},
        "bos_token": None, "eos_token": "<|im_end|>", "model_max_length": 256, "tokenizer_class": "PreTrainedTokenizerFast"})
    checkpoint.write_json(folder / "preprocessor_config.json", PROCESSOR)
    (folder / "chat_template.jinja").write_text(TEMPLATE, encoding="utf-8")


def write_pictures():
    """Writes pictures of shapes, and one like a photo: smooth, with a little noise."""
    PICTURES.mkdir(exist_ok=True)
    y, x = np.mgrid[0:64, 0:96]
    shapes = np.stack([x * 2.6, y * 4, 255 - x * 2], -1)
    shapes[(x - 30) ** 2 + (y - 30) ** 2 < 300] = [250, 40, 20]
    shapes[10:40, 60:85] = [20, 200, 60]
    Image.fromarray(shapes.clip(0, 255).astype(np.uint8)).save(PICTURES / "shapes.png", optimize=True)
    y, x = np.mgrid[0:40, 0:300]
    wide = np.stack([x * 0.8, 128 + 100 * np.sin(x / 9), y * 6], -1)
    wide[(x // 20 + y // 10) % 3 == 0] = [240, 240, 10]
    Image.fromarray(wide.clip(0, 255).astype(np.uint8)).save(PICTURES / "wide.png", optimize=True)
    y, x = np.mgrid[0:150, 0:90]
    photo = np.stack([128 + 90 * np.sin(x / 19), 128 + 90 * np.cos(y / 13 + x / 40), 40 + y * 2 + 30 * np.sin(x / 7)], -1)
    photo += np.random.RandomState(7).standard_normal(photo.shape) * 6
    Image.fromarray(photo.clip(0, 255).astype(np.uint8)).save(PICTURES / "photo.jpg", quality=88)


def prompt(pictures, grids, seed):
    """Returns random text around pictures, with image tokens expanded."""
    rng = np.random.RandomState(seed)
    text = lambda n: rng.randint(0, ID["<|endoftext|>"], n).tolist()
    tokens = text(9)
    for grid in grids:
        tokens += [ID["<|vision_start|>"]] + [ID["<|image_pad|>"]] * (int(np.prod(grid)) // 4) + [ID["<|vision_end|>"]]
        tokens += text(8)
    return np.array(tokens + text(max(8, 44 - len(tokens))), np.int32)


@torch.no_grad()
def golden(folder, pictures, seed):
    model = reference.load(folder)
    processor = Qwen2VLImageProcessorPil.from_pretrained(folder)
    prepared = processor(images=[Image.open(PICTURES / p).convert("RGB") for p in pictures], return_tensors="pt")
    pixels, grids = prepared["pixel_values"], prepared["image_grid_thw"]
    tokens = prompt(pictures, grids.numpy(), seed)

    def kinds(ids):
        return (torch.tensor(ids) == ID["<|image_pad|>"]).int()[None]

    def logits_of(ids, values=pixels):
        ids = [int(t) for t in ids]
        return model(input_ids=torch.tensor([ids]), mm_token_type_ids=kinds(ids), pixel_values=values,
                     image_grid_thw=grids, use_cache=False).logits[0].numpy()

    logits = logits_of(tokens)
    std = float(logits.std())
    greedy, closest = list(tokens), np.inf
    for _ in range(reference.GREEDY):
        row = logits_of(greedy)[-1]
        closest = min(closest, reference.margin(row))
        greedy.append(int(row.argmax()))
        if greedy[-1] == ID["<|image_pad|>"]:
            raise reference.Unsuitable("greedy text asks for a picture")
    greedy = np.array(greedy[len(tokens):], np.int32)
    if closest < reference.MARGIN * std:
        raise reference.Unsuitable(f"a greedy token is ahead by only {closest / std:.1e} deviations")
    other = float(np.abs(logits_of(tokens, 0.8 * pixels) - logits).max() / std)
    if other < 0.1:
        raise reference.Unsuitable(f"a paler picture moves the logits by only {other:.1e} deviations")
    ids = [int(t) for t in tokens]
    positions, shift = model.model.get_rope_index(torch.tensor([ids]), kinds(ids), image_grid_thw=grids)
    features = torch.cat(model.model.get_image_features(pixels, grids).pooler_output)
    out = {"tokens": tokens, "logits": logits.astype(np.float32), "greedy": greedy, "features": features.numpy().astype(np.float32),
           "positions": positions[:, 0].numpy().astype(np.int32), "shift": shift[0].numpy().astype(np.int32)}
    tiny.judge({**out, "logits": logits[tokens != ID["<|image_pad|>"]], "tokens": tokens[tokens != ID["<|image_pad|>"]]})
    print(f"{folder.name}: {pictures}: {len(tokens)} tokens, grids {grids.tolist()}, deviation {std:.2f}, "
          f"smallest greedy margin {closest / std:.1e}, a paler picture moves logits by {other:.2f}")
    return out


CASES = {"fits": ["shapes.png"], "resized": ["wide.png"], "photo": ["photo.jpg"],
         "several": ["shapes.png", "wide.png", "shapes.png"]}


def style(config, tensors):
    config["vision_config"].update(deepstack_visual_indexes=[])
    return config, tensors


def main():
    reference.setup()
    write_pictures()
    variant = Variant(
        lambda: Qwen3_5ForConditionalGeneration(Qwen3_5Config(
            text_config=TEXT, vision_config=VISION, image_token_id=ID["<|image_pad|>"], video_token_id=ID["<|video_pad|>"],
            vision_start_token_id=ID["<|vision_start|>"], vision_end_token_id=ID["<|vision_end|>"])),
        style, rules=TOWER + LOUD + RULES, limit=640 * 1024,
        matters=[change("text_config", "rope_parameters", "rope_theta", to=100.0)])
    tiny.make(NAME, variant)
    folder = tiny.MODELS / NAME
    write_files(folder)
    for case, pictures in CASES.items():
        def attempt(seed, case=case, pictures=pictures):
            return golden(folder, pictures, seed=int(seed.rsplit(".", 1)[1]) + 100 * len(case))
        path = reference.TESTDATA / "reference" / f"{NAME}-{case}.safetensors"
        save_file(tiny.seeds(case, attempt), path)
        path.chmod(0o644)


if __name__ == "__main__":
    main()
