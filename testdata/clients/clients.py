"""What the tests of clients share: where the server is and what it has, as TestClients in cmd/clients_test.go says."""

import json
import os
import time
import urllib.request
from pathlib import Path

URL = os.environ["INGOT_URL"]  # http://host:port
MODEL = os.environ["INGOT_MODEL"]  # writes stories, trained; no chat template
CHAT_MODEL = os.environ["INGOT_CHAT_MODEL"]  # the same, with a template for system texts, tools and thinking, and the parser qwen3
CALL_MODEL = os.environ["INGOT_CALL_MODEL"]  # the same, with the parser llama3: an answer that is the JSON of a call is one
VISION_MODEL = os.environ["INGOT_VISION_MODEL"]  # sees; its weights are random
REGISTRY = os.environ["INGOT_REGISTRY"]  # host:port of an empty registry; requests may ask it with insecure
CHECKPOINT = Path(os.environ["INGOT_CHECKPOINT"])  # the folder that MODEL was made from
PICTURES = Path(os.environ["INGOT_PICTURES"])  # a folder of pictures
PDF = Path(os.environ["INGOT_PDF"])  # a file with text

STORY = "Once upon a time"


def get(path):
    """The JSON that a GET of the server answers with."""
    with urllib.request.urlopen(URL + path) as answer:
        return json.load(answer)


def wait(true, seconds=10):
    """Waits until a function says true, and tells whether it did."""
    deadline = time.monotonic() + seconds
    while not true():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True


def idle():
    """Tells whether no request uses a model."""
    return all(m["requests"] == 0 for m in get("/api/ps")["models"])
