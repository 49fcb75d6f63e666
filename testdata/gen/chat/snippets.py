"""Writes chat/jinja/testdata/snippets.json: small templates, one for each feature of the language, and what the
reference renders. Results that show an address in memory are omitted.
"""

import itertools
import json
import pathlib
import re

from reference import render, write
from snippet_lists import EXPRESSIONS, FILTERS, METHODS, OPERATORS, TEMPLATES, TESTS, VALUES, VARS

OUT = pathlib.Path(__file__).resolve().parents[3] / "chat" / "jinja" / "testdata" / "snippets.json"

# Results that no other implementation has: addresses, Python's classes, complex numbers.
SHOWS_PYTHON = re.compile(r" at 0x|<function|<class|<bound|[0-9]j\)")


def templates():
    """Returns the lines of TEMPLATES, and the templates of several lines."""
    blocks, lines = [], TEMPLATES.split("\n")
    multi = [
        "  {% if true %}\n  x\n  {%+ if true %}y{% endif +%}\n  {% endif %}\nend",
        "line\n    {% set x = 1 %}\n    {{ x }}\n  {# c #}\n end",
        "{% for x in l %}\n  {{ x }}\n{% endfor %}\n\ntail\n",
        "{%- for x in l -%}\n    {{- x -}}\n    {%- if not loop.last -%} , {%- endif -%}\n{%- endfor -%}",
        '{{ "a\nb" }}|{{ \'x\' \n~ \'y\' }}', "{% set a = 1 -%}   \n  b", "{% filter indent(2) %}a\nb{% endfilter %}",
        "a\r\nb\rc\n\n", "x\n", "\n{% if true %}\n\n  y{% endif %}\n\n", "{#- x -#}\n\n\n  z", " \t{%- set q=1 +%}\n w",
        "{% raw %}\n a {% endraw %}\n b", "a\n  {% raw -%}  x {%- endraw %}\n", "{{ n }}\n{{ n }}\n", "{{ n -}}\n\n {{- n }}",
    ]
    joined = TEMPLATES
    for m in multi[:7]:
        joined = joined.replace(m.rstrip("\n"), "\0")
    for line in joined.split("\n"):
        if line and line != "\0":
            blocks.append(line)
    return blocks + multi


def main():
    all_templates = list(templates())
    for line in EXPRESSIONS:
        all_templates.append("{{ " + line + " }}")
    for v, op, w in itertools.product(VALUES, OPERATORS, VALUES):
        if op == "**" and w == "big":
            continue  # Python would compute it for hours
        all_templates.append("{{ %s %s %s }}" % (v, op, w))
    for v, t in itertools.product(VALUES, TESTS):
        all_templates.append("{{ %s is %s }}" % (v, t))
    for v, f in itertools.product(VALUES + ["s", "l", "d", "rows", "names", "text", "html", "u"], FILTERS):
        all_templates.append("{{ %s|%s }}" % (v, f))
    for v, m in itertools.product(["s", "u", "''", "'a\\tb\\nc'"], METHODS):
        all_templates.append("{{ %s.%s }}" % (v, m))
    cases = []
    for t in all_templates:
        got = render(t, json.loads(json.dumps(VARS)))
        if SHOWS_PYTHON.search(got.get("ok", "")):
            continue
        cases.append([t, got["ok"]] if "ok" in got else [t])
    write(OUT, {"vars": VARS, "cases": cases})
    print(len(cases), "cases,", sum(len(c) == 1 for c in cases), "of them errors")


main()
