"""Writes a task of 200 multiple-choice questions for lm-evaluation-harness, which has none that needs no network.

Usage: questions.py FOLDER. The folder gets questions.jsonl and the task `common` as common.yaml.
"""

import json
import pathlib
import random
import sys

CAPITALS = dict(France="Paris", Germany="Berlin", Spain="Madrid", Italy="Rome", Japan="Tokyo", China="Beijing", Russia="Moscow", Egypt="Cairo",
                Kenya="Nairobi", Peru="Lima", Chile="Santiago", Cuba="Havana", Norway="Oslo", Sweden="Stockholm", Finland="Helsinki", Poland="Warsaw",
                Greece="Athens", Turkey="Ankara", Iran="Tehran", Iraq="Baghdad", India="New Delhi", Thailand="Bangkok", Vietnam="Hanoi", Canada="Ottawa",
                Australia="Canberra", Portugal="Lisbon", Austria="Vienna", Hungary="Budapest", Ireland="Dublin", Denmark="Copenhagen")
CONTINENTS = dict(Kenya="Africa", Brazil="South America", Japan="Asia", Norway="Europe", Nigeria="Africa", Peru="South America", Vietnam="Asia", Spain="Europe",
                  Canada="North America", Ghana="Africa", Chile="South America", India="Asia", Poland="Europe", Mexico="North America", Ethiopia="Africa")
ELEMENTS = dict(hydrogen="H", oxygen="O", carbon="C", iron="Fe", gold="Au", silver="Ag", sodium="Na", potassium="K", copper="Cu", lead="Pb", tin="Sn",
                helium="He", nitrogen="N", calcium="Ca", zinc="Zn")
OPPOSITES = dict(hot="cold", big="small", up="down", early="late", open="closed", full="empty", heavy="light", fast="slow", wet="dry", rich="poor",
                 young="old", strong="weak", deep="shallow", wide="narrow", bright="dark", true="false", hard="soft", loud="quiet", first="last",
                 cheap="expensive")
YOUNG = dict(dog="puppy", cat="kitten", cow="calf", sheep="lamb", horse="foal", goat="kid", duck="duckling", goose="gosling", bear="cub", deer="fawn",
             frog="tadpole", swan="cygnet")
PAST = dict(go="went", see="saw", take="took", write="wrote", eat="ate", speak="spoke", run="ran", fly="flew", buy="bought", think="thought", bring="brought",
            swim="swam", begin="began", choose="chose", drive="drove")
LANGUAGES = dict(Brazil="Portuguese", Austria="German", Mexico="Spanish", Egypt="Arabic", Quebec="French", Iran="Persian", Israel="Hebrew", Argentina="Spanish")
CODE = {"len([1, 2, 3])": "3", "2 ** 5": "32", "'ab' * 2": "'abab'", "max(4, 9, 2)": "9", "7 // 2": "3", "7 % 4": "3", "'abc'.upper()": "'ABC'",
        "sum([1, 2, 3])": "6", "list(range(3))": "[0, 1, 2]", "'a,b'.split(',')": "['a', 'b']", "bool('')": "False", "abs(-5)": "5", "'abc'[0]": "'a'",
        "sorted([3, 1, 2])": "[1, 2, 3]", "int('12') + 1": "13"}
FRENCH = dict(chat="cat", chien="dog", maison="house", livre="book", eau="water", été="summer", frère="brother", école="school", forêt="forest", château="castle")
DAYS = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"]
MONTHS = ["January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November", "December"]


def questions(rng):
    def of(table, text):
        others = sorted(set(table.values()))
        for key, right in table.items():
            yield text.format(key), right, rng.sample([o for o in others if o != right], 3)

    yield from of(CAPITALS, "The capital of {} is")
    yield from of(CONTINENTS, "The country {} is in")
    yield from of(ELEMENTS, "The chemical symbol of {} is")
    yield from of(OPPOSITES, "The opposite of {} is")
    yield from of(YOUNG, "A young {} is called a")
    yield from of(PAST, "The past tense of the verb {} is")
    yield from of(LANGUAGES, "Most people in {} speak")
    yield from of(CODE, "In Python, {} is")
    yield from of(FRENCH, "The French word {} means")
    for names, unit in ((DAYS, "day"), (MONTHS, "month")):
        yield from of({a: b for a, b in zip(names, names[1:])}, "The " + unit + " after {} is")
    for _ in range(43):
        a, b = rng.randrange(2, 60), rng.randrange(2, 40)
        wrong = rng.sample([d for d in range(-12, 13) if d], 3)
        yield f"{a} + {b} =", str(a + b), [str(max(a + b + d, 0)) for d in wrong]


TASK = """task: common
dataset_path: json
dataset_kwargs:
  data_files:
    test: {questions}
output_type: multiple_choice
test_split: test
doc_to_text: "Question: complete the sentence.\\nAnswer: {{{{text}}}}"
doc_to_choice: choices
doc_to_target: answer
metric_list:
  - metric: acc
  - metric: acc_norm
metadata:
  version: 1.0
"""


def main():
    folder = pathlib.Path(sys.argv[1]).resolve()
    folder.mkdir(parents=True, exist_ok=True)
    rng = random.Random(7)
    lines = []
    for text, right, wrong in questions(rng):
        choices = [right] + wrong
        rng.shuffle(choices)
        lines.append({"text": text, "choices": choices, "answer": choices.index(right)})
    assert len(lines) == 200, len(lines)
    (folder / "questions.jsonl").write_text("".join(json.dumps(q, ensure_ascii=False) + "\n" for q in lines), encoding="utf-8")
    (folder / "common.yaml").write_text(TASK.format(questions=folder / "questions.jsonl"), encoding="utf-8")


main()
