"""Trains tokenizers of published families, all byte-level BPE, and writes what the reference returns for texts.

    trained.py                          tokenizer/testdata/NAME: tokenizer.json, tokenizer_config.json and golden.json
    trained.py sample NAME COUNT SEED   prints COUNT random texts for NAME with the reference's ids, one JSON object a
                                        line, for go test ./tokenizer -run TestSamples -samples FILE
"""

import argparse
import json
import random

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

from material import FIXED, MALFORMED, corpus, decoded, encoded, random_bytes
from store import DATA, write

LLAMA3 = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
QWEN2 = LLAMA3.replace("{1,3}", "")
QWEN35 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*"
          r"|\s*[\r\n]+|\s+(?!\S)|\s+")
O200K = (r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
         r"|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
         r"|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+")
DEEPSEEK = ["\\p{N}{1,3}", "[一-龥぀-ゟ゠-ヿ]+",
            "[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|[^\r\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+| ?[\\p{P}\\p{S}]+[\r\n]*|\\s*[\r\n]+|\\s+(?!\\S)|\\s+"]
GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"


def split(pattern):
    return pre_tokenizers.Split(Regex(pattern), "isolated")


def byte_level(**options):
    return pre_tokenizers.ByteLevel(**{"add_prefix_space": False, "use_regex": False, **options})


def train(pre, size, specials=(), normalizer=None):
    t = Tokenizer(models.BPE())
    if normalizer:
        t.normalizer = normalizer
    t.pre_tokenizer = pre
    t.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(vocab_size=size, special_tokens=list(specials), show_progress=False,
                                  initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()))
    t.train_from_iterator(corpus(), trainer)
    return t


def bos_template(t, bos, eos=None):
    special = [(s, t.token_to_id(s)) for s in (bos, eos) if s]
    single = " ".join([bos, "$A"] + ([eos] if eos else []))
    return processors.TemplateProcessing(single=single, pair=single + " $B:1", special_tokens=special)


def make_gpt2():
    t = train(byte_level(use_regex=True), 480)
    t.add_special_tokens(["<|endoftext|>"])
    t.post_processor = processors.ByteLevel(trim_offsets=False)
    # As in the published file: no type, merges as "a b", empty strings for absent values.
    def edit(j):
        m = j["model"]
        m.update(unk_token="", continuing_subword_prefix="", end_of_word_suffix="", merges=[" ".join(x) for x in m["merges"]])
        for key in ("type", "byte_fallback", "ignore_merges"):
            del m[key]
    return t, {"model_max_length": 1024, "bos_token": "<|endoftext|>", "eos_token": "<|endoftext|>", "unk_token": "<|endoftext|>"}, edit


def make_starcoder():
    pre = pre_tokenizers.Sequence([pre_tokenizers.Digits(individual_digits=True), byte_level(use_regex=True, add_prefix_space=True)])
    t = train(pre, 400, ["<|endoftext|>", "<fim_prefix>"])
    return t, {"bos_token": "<|endoftext|>", "eos_token": {"__type": "AddedToken", "content": "<|endoftext|>", "lstrip": False, "normalized": False,
                                                          "rstrip": False, "single_word": False}, "add_prefix_space": True}, None


def make_llama3():
    t = train(pre_tokenizers.Sequence([split(LLAMA3), byte_level()]), 512)
    t.add_special_tokens(["<|begin_of_text|>", "<|end_of_text|>", "<|reserved_special_token_0|>", "<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>"])
    # Beyond the published file: each property of an added token.
    t.add_tokens([AddedToken("<left>", lstrip=True, normalized=False), AddedToken("<right>", rstrip=True, normalized=False),
                  AddedToken("<both>", lstrip=True, rstrip=True), AddedToken("word", single_word=True), AddedToken("<eot"), AddedToken("  ", normalized=False),
                  AddedToken("<|eot_id|><|eot_id|>", normalized=False)])
    t.post_processor = processors.Sequence([processors.ByteLevel(trim_offsets=False), bos_template(t, "<|begin_of_text|>")])
    def edit(j):
        j["model"]["ignore_merges"] = True
        # Only ignore_merges reaches these; the ids have gaps.
        j["model"]["vocab"].update({"Ġzzz": 512 - 256 + 1000, "zzz": 2000})
    return t, {"bos_token": "<|begin_of_text|>", "eos_token": "<|eot_id|>", "clean_up_tokenization_spaces": True, "add_bos_token": False}, edit


def make_qwen():
    t = train(pre_tokenizers.Sequence([split(QWEN2), byte_level()]), 450, normalizer=normalizers.NFC())
    t.add_special_tokens(["<|endoftext|>", "<|im_start|>", "<|im_end|>"])
    t.add_tokens([AddedToken("<think>", normalized=False), AddedToken("</think>", normalized=False), AddedToken("caf\u00e9", normalized=True)])
    t.post_processor = processors.ByteLevel(trim_offsets=False)
    return t, {"bos_token": None, "eos_token": "<|im_end|>", "pad_token": "<|endoftext|>", "add_bos_token": True, "split_special_tokens": False,
               "additional_special_tokens": ["<|im_start|>", "<|im_end|>"]}, None


def make_qwen35():
    t = train(pre_tokenizers.Sequence([split(QWEN35), byte_level()]), 400, normalizer=normalizers.NFC())
    t.add_special_tokens(["<|im_end|>"])
    return t, {"bos_token": None, "eos_token": "<|im_end|>"}, None


def make_o200k():
    t = train(pre_tokenizers.Sequence([split(O200K), byte_level()]), 450)
    t.add_special_tokens(["<|startoftext|>", "<|endoftext|>"])
    t.post_processor = bos_template(t, "<|startoftext|>", "<|endoftext|>")
    return t, {"bos_token": "<|startoftext|>", "eos_token": "<|endoftext|>"}, None


def make_deepseek():
    t = train(pre_tokenizers.Sequence([split(p) for p in DEEPSEEK] + [byte_level()]), 400)
    t.add_special_tokens(["<｜begin▁of▁sentence｜>", "<｜end▁of▁sentence｜>"])
    t.post_processor = bos_template(t, "<｜begin▁of▁sentence｜>")
    return t, {"bos_token": "<｜begin▁of▁sentence｜>", "eos_token": "<｜end▁of▁sentence｜>"}, None


TRAINED = {"gpt2": make_gpt2, "starcoder": make_starcoder, "llama3": make_llama3, "qwen": make_qwen, "qwen35": make_qwen35,
           "o200k": make_o200k, "deepseek": make_deepseek}


def specials_of(t):
    return [a.content for a in t.get_added_tokens_decoder().values()]


def golden(t, seed, count):
    rng = random.Random(seed)
    specials = specials_of(t)
    data = [x.encode() for x in FIXED] + MALFORMED
    data += ["{0}{0}x {0} y\n{0}".format(s).encode() for s in specials] + [" ".join(specials).encode()]
    data += [random_bytes(rng, specials) for _ in range(count)]
    cases = [encoded(t, d) for d in data]
    size = t.get_vocab_size() + 8
    ids = [c.get("special", c["ids"]) for c in cases if len(c["ids"]) < 60][::3]
    ids += [[rng.randrange(size) for _ in range(rng.randint(0, 20))] for _ in range(40)]
    return {"encode": cases, "decode": [decoded(t, x) for x in ids]}


def write_all():
    for seed, (name, make) in enumerate(TRAINED.items()):
        t, config, edit = make()
        j = json.loads(t.to_str())
        if edit:
            edit(j)
        t = Tokenizer.from_str(json.dumps(j))
        write(DATA / name / "tokenizer.json", j)
        write(DATA / name / "tokenizer_config.json", config)
        write(DATA / name / "golden.json", golden(t, 100 + seed, 60))


def sample(name, count, seed):
    t = Tokenizer.from_file(str(DATA / name / "tokenizer.json"))
    rng = random.Random(seed)
    specials = specials_of(t)
    size = t.get_vocab_size() + 8
    for _ in range(count):
        data = random_bytes(rng, specials)
        text = data.decode("utf-8", "replace")
        ids = t.encode(text, add_special_tokens=False).ids
        noise = [rng.randrange(size) for _ in range(rng.randint(0, 12))]
        print(json.dumps({"hex": data.hex(), "ids": ids, "special": t.encode(text).ids, "decode": [decoded(t, ids), decoded(t, noise)]}))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    command = parser.add_subparsers(dest="command").add_parser("sample")
    command.add_argument("name", choices=sorted(TRAINED))
    command.add_argument("count", type=int)
    command.add_argument("seed", type=int)
    args = parser.parse_args()
    if args.command == "sample":
        sample(args.name, args.count, args.seed)
    else:
        write_all()


if __name__ == "__main__":
    main()
