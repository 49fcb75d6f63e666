"""Ids of every kind of pre-tokenizer of GGUF files, from llama.cpp.

Writes convert/gguf/vocab/testdata/kinds.json: a vocabulary of bytes with merges across everything that a
pre-tokenizer splits, so that the ids show the words; texts; and for each kind the ids of each text, equal lists once.

Needs llama-cpp-python of llama.cpp v0.5.0 or later, gguf and tokenizers.
"""

import json
import os
import sys
import tempfile

import gguf
import llama_cpp
from tokenizers import Tokenizer, models, pre_tokenizers, trainers

TEXTS = [
    "Hello world, it's the capital of France: Paris.",
    "I'LL DON'T we've They'RE 's",
    "naïve café Größe ÄÖÜß Ωμέγα Привет, как дела?",
    "1 22 333 4444 55555 666666 7777777 x12345y 3.14159 -1e10",
    "def f(x):\n    return x**2\n\n\n  y = [i for i in range(10)]\n",
    '{"name": "get_weather", "arguments": {"city": "Paris"}}',
    "你好，世界！中文English混合123文本。漢字かな交じり文 カタカナ",
    "한국어 문장입니다. ㅋㅋㅋ 123",
    "السلام عليكم ورحمة الله",
    "שלום עולם",
    "ภาษาไทย สวัสดี",
    "😀 🇩🇪 emoji👍",
    "  leading and trailing  ",
    "\t\ttabs\t x",
    "\n\n\n",
    "a\r\nb\r\n\r\nc",
    "        ",
    "word\n\nword  \n  word",
    "CamelCaseHTTPServer snake_case kebab-case",
    "http://example.com/a?b=c&d=e#f //// \\\\ || && == != <b>html</b>",
    "$100 €5 £3 `code` ~tilde^ a+b<c>d=e",
    "(((nested [brackets] {here}))) ...!?",
    "“quoted” ‘text’ — dash… …；：、",
    "<sentinel:12> IMGIMGABZ",
    "x\u3000y\u00a0z",
]


def main(out):
    vocabulary = train()
    merges = [" ".join(m) for m in vocabulary["model"]["merges"]]
    tokens = [t for t, _ in sorted(vocabulary["model"]["vocab"].items(), key=lambda item: item[1])]
    llama_cpp.llama_backend_init()
    results, kinds = [], {}
    for kind in sys.argv[1:] or names(out):
        ids = encode(kind, tokens, merges)
        if ids not in results:
            results.append(ids)
        kinds[kind] = results.index(ids)
    data = {"tokens": tokens, "merges": merges, "texts": TEXTS, "kinds": kinds, "ids": results}
    os.makedirs(os.path.dirname(out), exist_ok=True)
    with open(out, "w", encoding="utf-8") as f:
        f.write("{\n" + ",\n".join(f'"{k}": ' + lines(v) for k, v in data.items()) + "\n}\n")


def lines(v):
    if isinstance(v, list) and v and isinstance(v[0], list):
        return "[\n" + ",\n".join(json.dumps(x, separators=(",", ":")) for x in v) + "\n]"
    return json.dumps(v, ensure_ascii=False)


def names(out):
    """The kinds of the table in pre.go, by its golden."""
    with open(out, encoding="utf-8") as f:
        return sorted(json.load(f)["kinds"])


def train():
    t = Tokenizer(models.BPE())
    t.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    trainer = trainers.BpeTrainer(vocab_size=1100, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
                                  show_progress=False, min_frequency=1)
    t.train_from_iterator(TEXTS, trainer)
    return json.loads(t.to_str())


def encode(kind, tokens, merges):
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "x.gguf")
        w = gguf.GGUFWriter(path, "llama")
        w.add_tokenizer_model("gpt2")
        w.add_tokenizer_pre(kind)
        w.add_token_list(tokens)
        w.add_token_types([1] * len(tokens))
        w.add_token_merges(merges)
        w.write_header_to_file()
        w.write_kv_data_to_file()
        w.close()
        params = llama_cpp.llama_model_default_params()
        params.vocab_only = True
        model = llama_cpp.llama_model_load_from_file(path.encode(), params)
        if not model:
            sys.exit(f"llama.cpp does not know {kind}")
        vocab = llama_cpp.llama_model_get_vocab(model)
        return [tokenize(vocab, text.encode()) for text in TEXTS]


def tokenize(vocab, text):
    ids = (llama_cpp.llama_token * (len(text) + 8))()
    n = llama_cpp.llama_tokenize(vocab, text, len(text), ids, len(ids), False, False)
    assert n >= 0
    return list(ids[:n])


if __name__ == "__main__":
    main(os.path.join(os.path.dirname(__file__), "../../../convert/gguf/vocab/testdata/kinds.json"))
