"""Renders published chat templates with the reference: the Jinja environment of transformers.

    templates.py           writes testdata/chat/expected.json
    templates.py FOLDER    completes a folder with further templates, for tests with INGOT_CHAT_TEMPLATES=FOLDER

A folder has templates/NAME.txt and, once this script has run, contexts.json and expected.json. contexts.json has the
variables of each context; it is copied from testdata/chat where the folder has none. expected.json maps
"NAME.txt|CONTEXT" to {"ok": text}, or to {"err": name of the exception} where the reference fails.
"""

import argparse
import json
import pathlib

from reference import render

COMMITTED = pathlib.Path(__file__).resolve().parents[2] / "chat"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path, nargs="?", default=COMMITTED)
    folder = parser.parse_args().folder
    contexts = folder / "contexts.json"
    if not contexts.exists():
        contexts.write_bytes((COMMITTED / "contexts.json").read_bytes())
    expected = {}
    files = sorted((folder / "templates").glob("*.txt"))
    if not files:
        raise SystemExit(f"{folder / 'templates'}: no templates: *.txt")
    for file in files:
        template = file.read_bytes().decode("utf-8")
        for name, variables in json.loads(contexts.read_text(encoding="utf-8")).items():
            expected[f"{file.name}|{name}"] = render(template, variables)
    text = json.dumps(expected, ensure_ascii=False, indent=0) + "\n"
    (folder / "expected.json").write_text(text, encoding="utf-8")
    print(len(expected), "renders of", len(files), "templates")


if __name__ == "__main__":
    main()
