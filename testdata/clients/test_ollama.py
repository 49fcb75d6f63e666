"""Ollama's own Python package against `ingot serve`."""

import asyncio
import json
import unittest
from unittest import mock

import ollama
from clients import CALL_MODEL, CHAT_MODEL, CHECKPOINT, MODEL, PICTURES, REGISTRY, STORY, URL, VISION_MODEL, get, idle, wait
from pydantic import BaseModel

GREEDY = {"temperature": 0, "num_predict": 12}


def user(text, **more):
    return [{"role": "user", "content": text, **more}]


class Case(unittest.TestCase):
    def setUp(self):
        self.client = ollama.Client(host=URL)
        self.addCleanup(self.client.close)

    def refused(self, status, words, do, *args, **more):
        """Checks that a call is refused with a status and words."""
        with self.assertRaises(ollama.ResponseError) as caught:
            out = do(*args, **more)
            for _ in out if more.get("stream") else []:
                pass
        self.assertEqual(caught.exception.status_code, status, caught.exception.error)
        self.assertIn(words, caught.exception.error)


class Answers(Case):
    def test_generate(self):
        whole = self.client.generate(MODEL, STORY, options={**GREEDY, "num_gpu": 99, "mirostat": 1})
        self.assertIn("there was", whole.response)
        self.assertEqual((whole.model, whole.done, whole.done_reason), (MODEL, True, "length"))
        self.assertEqual(whole.eval_count, 12)
        self.assertGreater(whole.prompt_eval_count, 3)
        for duration in (whole.total_duration, whole.load_duration, whole.prompt_eval_duration, whole.eval_duration):
            self.assertGreater(duration, 0)
        self.assertGreaterEqual(whole.total_duration, whole.eval_duration)
        self.assertEqual(len(whole.context), whole.prompt_eval_count + whole.eval_count)

        parts = list(self.client.generate(MODEL, STORY, options=GREEDY, stream=True))
        self.assertEqual("".join(p.response for p in parts), whole.response)
        self.assertEqual([p.done for p in parts], [False] * (len(parts) - 1) + [True])
        self.assertGreater(len(parts), 3)
        self.assertEqual(parts[-1].context, whole.context)

        longer = self.client.generate(MODEL, " and", context=whole.context, options=GREEDY)
        self.assertGreater(longer.prompt_eval_count, len(whole.context))
        raw = self.client.generate(CHAT_MODEL, STORY, raw=True, options=GREEDY)
        self.assertEqual(raw.response, whole.response)

    def test_options(self):
        once = self.client.generate(MODEL, STORY, options={"seed": 7, "num_predict": 8, "temperature": 1.5})
        again = self.client.generate(MODEL, STORY, options=ollama.Options(seed=7, num_predict=8, temperature=1.5))
        self.assertEqual(once.response, again.response)
        whole = self.client.generate(MODEL, STORY, options=GREEDY).response
        stop = whole.split()[2]
        more = {"typical_p": 0.7, "num_keep": 5, "draft_num_predict": 4, "min_p": 0.1, "numa": False, "penalize_newline": True}
        self.assertEqual(self.client.generate(MODEL, STORY, options={**GREEDY, **more}).response, whole)
        cut = self.client.generate(MODEL, STORY, options={**GREEDY, "stop": [stop]})
        self.assertEqual((cut.response, cut.done_reason), (whole.split(stop)[0], "stop"))

    def test_chat(self):
        messages = [{"role": "system", "content": "Be kind."}, *user(STORY)]
        whole = self.client.chat(CHAT_MODEL, messages, options=GREEDY)
        self.assertEqual((whole.message.role, whole.done_reason, whole.eval_count), ("assistant", "length", 12))
        self.assertTrue(whole.message.content)
        parts = list(self.client.chat(CHAT_MODEL, messages, options=GREEDY, stream=True))
        self.assertEqual("".join(p.message.content for p in parts), whole.message.content)
        self.assertTrue(parts[-1].done)
        messages += [whole.message, *user("And then?")]
        self.assertGreater(self.client.chat(CHAT_MODEL, messages, options=GREEDY).prompt_eval_count, whole.prompt_eval_count + 5)

    def test_async(self):
        async def several():
            client = ollama.AsyncClient(host=URL)

            async def one():
                text = ""
                async for part in await client.chat(MODEL, user(STORY), options=GREEDY, stream=True):
                    text += part.message.content
                return text

            return await asyncio.gather(*(one() for _ in range(4)))

        texts = asyncio.run(several())
        self.assertEqual(len(texts), 4)
        self.assertEqual(len(set(texts)), 1)
        self.assertTrue(texts[0])

    def test_format(self):
        class Pet(BaseModel):
            name: str
            kind: str
            age: int

        answer = self.client.chat(CHAT_MODEL, user("A pet, please."), format=Pet.model_json_schema(), options={"temperature": 0, "num_predict": 100})
        Pet.model_validate_json(answer.message.content)
        answer = self.client.generate(MODEL, STORY, format="json", options={"temperature": 0, "num_predict": 60})
        self.assertIsInstance(json.loads(answer.response), dict)

    def test_shift(self):
        options = {**GREEDY, "num_ctx": 24, "num_predict": 60}
        self.assertEqual(self.client.generate(MODEL, STORY, options=options).eval_count, 60)
        parts = list(self.client.chat(CHAT_MODEL, user(STORY), options=options, stream=True))
        self.assertEqual((parts[-1].eval_count, parts[-1].done_reason), (60, "length"))
        self.assertLess(self.client.chat(CHAT_MODEL, user(STORY), format="json", options=options).eval_count, 24)

    def test_tools(self):
        def add(a: int, b: int) -> int:
            """
            Add two numbers.

            Args:
              a: The first number
              b: The second number

            Returns:
              int: The sum
            """
            return a + b

        number = {"type": "integer", "minimum": 0, "maximum": 9}
        call = {  # a model this small calls nothing by itself
            "type": "object",
            "properties": {
                "name": {"const": "add"},
                "parameters": {"type": "object", "properties": {"a": number, "b": number}, "required": ["a", "b"], "additionalProperties": False},
            },
            "required": ["name", "parameters"],
            "additionalProperties": False,
        }
        for stream in (False, True):
            messages = user("What is 2 and 3?")
            answer = self.client.chat(CALL_MODEL, messages, tools=[add], format=call, options={"temperature": 0, "num_predict": 80}, stream=stream)
            calls = [c for part in (answer if stream else [answer]) for c in part.message.tool_calls or []]
            self.assertEqual([c.function.name for c in calls], ["add"])
            result = add(**calls[0].function.arguments)
            messages += [{"role": "assistant", "tool_calls": calls}, {"role": "tool", "tool_name": "add", "content": str(result)}]
            self.assertTrue(self.client.chat(CALL_MODEL, messages, tools=[add], options=GREEDY).done)
        without = self.client.chat(CHAT_MODEL, user(STORY), options=GREEDY)
        self.assertGreater(self.client.chat(CHAT_MODEL, user(STORY), tools=[add], options=GREEDY).prompt_eval_count, without.prompt_eval_count)

    def test_thinking(self):
        for think in (True, "high"):
            answer = self.client.chat(CHAT_MODEL, user(STORY), think=think, options=GREEDY)
            self.assertTrue(answer.message.thinking, answer)
        answer = self.client.chat(CHAT_MODEL, user(STORY), think=False, options=GREEDY)
        self.assertFalse(answer.message.thinking, answer)

    def test_logprobs(self):
        answer = self.client.generate(MODEL, STORY, options=GREEDY, logprobs=True, top_logprobs=2)
        self.assertEqual(len(answer.logprobs), 12)
        self.assertEqual("".join(p.token for p in answer.logprobs), answer.response)
        for place in answer.logprobs:
            self.assertLessEqual(place.logprob, 0)
            self.assertEqual(len(place.top_logprobs), 2)

    def test_images(self):
        picture = PICTURES / "shapes.png"
        options = {"temperature": 0, "num_predict": 4}
        without = self.client.generate(VISION_MODEL, "What is this?", options=options)
        seen = self.client.generate(VISION_MODEL, "What is this?", images=[picture.read_bytes()], options=options)
        self.assertGreater(seen.prompt_eval_count, without.prompt_eval_count)
        chat = self.client.chat(VISION_MODEL, user("What is this?", images=[str(picture)]), options=options)
        self.assertEqual(chat.prompt_eval_count, seen.prompt_eval_count)
        self.refused(400, "vision", self.client.generate, MODEL, "What is this?", images=[picture.read_bytes()])

    def test_errors(self):
        c = self.client
        self.refused(404, "not found", c.generate, "nothing", STORY)
        self.refused(404, "not found", c.chat, "nothing", user(STORY), stream=True)
        self.refused(404, "not found", c.show, "nothing")
        self.refused(400, "insert", c.generate, MODEL, STORY, suffix="the end")
        self.assertLess(c.generate(MODEL, "word " * 600, options=GREEDY).prompt_eval_count, 512)
        self.refused(400, "", c.generate, MODEL, STORY, options={"temperature": "hot"})
        self.refused(400, "format", c.chat, CHAT_MODEL, user(STORY), format={"type": "nothing"})
        self.refused(400, "tools", c.chat, MODEL, user(STORY), tools=[{"type": "function", "function": {"name": "f"}}])
        self.refused(400, "model name", c.generate, "../../etc/passwd", STORY)
        with self.assertRaises(ConnectionError):
            ollama.Client(host="http://127.0.0.1:1").list()

    def test_cancel(self):
        stream = self.client.generate(MODEL, STORY, options={"num_predict": 400, "ignore_eos": True}, stream=True)
        next(stream)
        stream.close()
        self.assertTrue(wait(idle), get("/api/ps"))


class Models(Case):
    def names(self):
        return [m.model for m in self.client.list().models]

    def test_list_show_ps(self):
        one = next(m for m in self.client.list().models if m.model == MODEL)
        self.assertEqual((one.details.family, one.details.quantization_level, len(one.digest)), ("llama", "BF16", 64))
        self.assertGreater(one.size, 3_000_000)
        self.assertIsNotNone(one.modified_at)
        shown = self.client.show(CHAT_MODEL)
        self.assertIn("tools", shown.capabilities)
        self.assertIn("messages", shown.template)
        self.assertIn("temperature", shown.parameters)
        self.assertEqual(shown.modelinfo["general.architecture"], "llama")
        self.assertIn("vision", self.client.show(VISION_MODEL).capabilities)

        self.client.generate(MODEL, keep_alive="10m")
        loaded = next(m for m in self.client.ps().models if m.model == MODEL)
        self.assertEqual(loaded.digest, one.digest)
        self.assertGreater(loaded.size, 0)
        self.assertIsNotNone(loaded.expires_at)
        self.assertEqual(self.client.generate(MODEL, keep_alive=0).done_reason, "unload")
        self.assertTrue(wait(lambda: MODEL not in [m.model for m in self.client.ps().models]))

    def test_copy_delete(self):
        self.assertEqual(self.client.copy(MODEL, "twin:v1").status, "success")
        self.assertIn("twin:v1", self.names())
        self.assertEqual(self.client.delete("twin:v1").status, "success")
        self.assertNotIn("twin:v1", self.names())
        self.refused(404, "not found", self.client.delete, "twin:v1")
        self.refused(404, "not found", self.client.copy, "twin:v1", "other")

    def test_create_from_files(self):
        files = {p.name: self.client.create_blob(p) for p in sorted(CHECKPOINT.iterdir()) if p.suffix in (".json", ".safetensors")}
        steps = list(self.client.create("made", files=files, stream=True))
        self.assertEqual(steps[-1].status, "success")
        self.assertIn("converting model", [s.status for s in steps])
        text = self.client.generate(MODEL, STORY, options=GREEDY).response
        self.assertEqual(self.client.generate("made", STORY, options=GREEDY).response, text)
        self.assertEqual(self.client.create("made:int8", files=files, quantize="int8").status, "success")
        self.assertEqual(self.client.show("made:int8").details.quantization_level, "int8")
        for name in ("made", "made:int8"):
            self.client.delete(name)

        gone = "sha256:" + "0" * 64
        self.refused(400, gone, self.client.create, "bad", files={"config.json": gone})
        self.refused(400, "config.json", self.client.create, "bad", files={"model.safetensors": files["model.safetensors"]})
        for name in ("../config.json", "/etc/passwd", "a/config.json", "..", "nul"):
            self.refused(400, "use a plain name", self.client.create, "bad", files={**files, name: files["config.json"]})
        with mock.patch("ollama._client.sha256") as wrong:
            wrong.return_value.hexdigest.return_value = "0" * 64
            self.refused(400, "digest", self.client.create_blob, CHECKPOINT / "config.json")
        self.assertNotIn("bad:latest", self.names())

    def test_create_from_model(self):
        answer = self.client.create(
            "dressed",
            from_=MODEL,
            system="Be brief.",
            template="{% for m in messages %}{{ m.content }} {% endfor %}",
            license=["Anyone may.", "Anything."],
            parameters={"temperature": 0, "num_predict": 5, "stop": ["THE END", "."]},
            messages=[{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello"}],
        )
        self.assertEqual(answer.status, "success")
        shown = self.client.show("dressed")
        self.assertIn("Anything.", shown.license)
        self.assertIn("SYSTEM Be brief.", shown.modelfile)
        self.assertIn("num_predict 5", shown.parameters)
        self.assertLessEqual(self.client.chat("dressed", user(STORY)).eval_count, 5)
        self.client.delete("dressed")
        self.refused(404, "not found", self.client.create, "bad", from_="nothing")
        self.refused(400, "model name", self.client.create, "bad", from_=str(CHECKPOINT))
        self.refused(400, "adapter", self.client.create, "bad", from_=MODEL, adapters={"a.safetensors": "sha256:" + "0" * 64})
        self.refused(400, "q4_K_M", self.client.create, "bad", from_=MODEL, quantize="q4_K_M")

    def test_push_pull(self):
        name = f"{REGISTRY}/team/story:v1"
        self.client.copy(MODEL, name)
        steps = list(self.client.push(name, stream=True))
        self.assertEqual(steps[-1].status, "success")
        self.assertTrue(any(s.digest and s.total and s.completed == s.total for s in steps))
        self.client.delete(name)
        steps = list(self.client.pull(name, stream=True))
        self.assertEqual((steps[0].status, steps[-1].status), ("pulling manifest", "success"))
        self.assertIn(name, self.names())
        self.assertEqual(self.client.pull(name, insecure=True).status, "success")
        self.assertEqual(self.client.push(name, insecure=True).status, "success")
        other = f"localhost:{REGISTRY.split(':')[1]}/team/story:v1"  # a name that the operator did not allow
        self.refused(403, "--insecure-registry", self.client.pull, other, insecure=True)
        self.client.delete(name)
        self.refused(404, "", self.client.pull, f"{REGISTRY}/team/nothing")
        self.refused(404, "not found", self.client.push, f"{REGISTRY}/team/nothing", stream=True)
        self.refused(400, "registry", self.client.pull, "nothing")


class Embeddings(Case):
    TEXTS = (STORY, "A lamp stood by the river.")

    def near(self, a, b):
        """Checks that vectors of length 1 point the same way."""
        self.assertEqual(len(a), len(b))
        self.assertGreater(sum(x * y for x, y in zip(a, b)), 0.999)

    def test_embed(self):
        size = self.client.show(MODEL).modelinfo["llama.embedding_length"]
        both = self.client.embed(MODEL, self.TEXTS)
        self.assertEqual([len(v) for v in both.embeddings], [size, size])
        self.assertEqual(both.model, MODEL)
        self.assertGreater(both.prompt_eval_count, 8)
        self.assertGreater(both.total_duration, 0)
        for text, vector in zip(self.TEXTS, both.embeddings):
            self.near(vector, vector)
            self.near(vector, self.client.embed(MODEL, text).embeddings[0])
            self.near(vector, self.client.embeddings(MODEL, text).embedding)
        self.assertLess(sum(x * y for x, y in zip(*both.embeddings)), 0.99)
        cut = self.client.embed(MODEL, STORY, dimensions=16, keep_alive="1m", options={"num_gpu": 9}).embeddings[0]
        length = sum(x * x for x in both.embeddings[0][:16]) ** 0.5
        self.near(cut, [x / length for x in both.embeddings[0][:16]])
        self.assertEqual(len(self.client.embed(MODEL, [])["embeddings"]), 0)

    def test_refused(self):
        long = "lamp " * 700
        self.refused(400, "at most 512", self.client.embed, MODEL, [STORY, long], truncate=False)
        for truncate in (None, True):
            self.assertEqual(len(self.client.embed(MODEL, long, truncate=truncate).embeddings), 1)
        whole = self.client.embed(MODEL, STORY).embeddings[0]
        self.assertEqual(len(self.client.embed(MODEL, STORY, dimensions=1 << 20).embeddings[0]), len(whole))
        self.refused(404, "try pulling it first", self.client.embed, "nothing", STORY)


if __name__ == "__main__":
    unittest.main()
