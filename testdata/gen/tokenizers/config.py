"""Writes tokenizer/testdata/config.json: how transformers reads tokenizer_config.json."""

import json
import pathlib
import shutil
import tempfile

from transformers import PreTrainedTokenizerFast

from build import ALPHABET, BYTES, added, model, template, tokenizer
from store import DATA, write


def main():
    base = tokenizer(model(ALPHABET + ["Ġa", "ab", "<s>", "</s>"], [("Ġ", "a"), ("a", "b")]), pre_tokenizer=BYTES, decoder=BYTES,
                     added_tokens=[added(258, "<s>", special=True), added(259, "</s>", special=True)])
    posts = {"none": None, "bos": template("<s>", "$A", special=[("<s>", [258])]),
             "both": template("<s>", "$A", "</s>", special=[("<s>", [258]), ("</s>", [259])]), "ByteLevel": BYTES}
    flags = {"lstrip": False, "normalized": False, "rstrip": False, "single_word": False}
    configs = [{}, {"bos_token": "<s>", "eos_token": "</s>"}]
    configs += [{"bos_token": bos, "eos_token": "</s>", "add_bos_token": b, "add_eos_token": e} for bos in ("<s>", None) for b in (True, False) for e in (True, False)]
    configs += [
        {"bos_token": "<bos>"}, {"bos_token": "ab"}, {"bos_token": ""}, {"eos_token": "</s>", "pad_token": "<pad>", "unk_token": "<unk>"},
        {"bos_token": {"__type": "AddedToken", "content": "<s>", **flags, "lstrip": True}},
        {"bos_token": {"__type": "AddedToken", "content": "<bos>", **flags, "lstrip": True}},
        {"added_tokens_decoder": {"258": {"content": "<s>", **flags, "lstrip": True, "special": True}}},
        {"added_tokens_decoder": {"500": {"content": "<x>", **flags, "special": False}}},
        {"added_tokens_decoder": {"500": {"content": "<x>", **flags, "special": False}}, "eos_token": "<x>"},
        {"added_tokens_decoder": {"9": {"content": "<y>"}, "10": {"content": "<x>"}}},
        {"image_token": "<x>"}, {"additional_special_tokens": ["<x>", "ab"]}, {"extra_special_tokens": ["<y>", "<x>"]}, {"extra_special_tokens": {"video_token": "<x>"}},
        {"extra_special_tokens": [{"__type": "AddedToken", "content": "<x>", **flags, "lstrip": True}]},
        {"split_special_tokens": True}, {"add_prefix_space": True}, {"clean_up_tokenization_spaces": True}, {"model_max_length": 2},
    ]
    texts = ["ab a", "a <s> b </s>", "<x> <y><bos>", "a . b !"]
    cases = []
    folder = pathlib.Path(tempfile.mkdtemp())
    for post, processor in posts.items():
        for c in configs if post in ("none", "bos") else configs[:10]:
            (folder / "tokenizer.json").write_text(json.dumps({**base, "post_processor": processor}))
            (folder / "tokenizer_config.json").write_text(json.dumps({**c, "tokenizer_class": "PreTrainedTokenizerFast"}))
            t = PreTrainedTokenizerFast.from_pretrained(folder)
            runs = []
            for text in texts:
                ids = t.encode(text)
                runs.append({"text": text, "ids": t.encode(text, add_special_tokens=False), "special": ids, "decode": t.decode(ids), "skip": t.decode(ids, skip_special_tokens=True)})
            cases.append({"post": post, "config": c, "bos": t.bos_token_id, "eos": t.eos_token_id, "runs": runs})
    shutil.rmtree(folder)
    for c in ALPHABET:
        del base["model"]["vocab"][c]
    write(DATA / "config.json", {"tokenizer": base, "posts": posts, "cases": cases})


if __name__ == "__main__":
    main()
