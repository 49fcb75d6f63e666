"""Short stories about the foundry town of Emberford, from a hand-written grammar.

stories(seed, n) returns n stories; the same seed gives the same stories. The text is the project's own, so models
trained on it may be published. `python story.py 5` prints five of them.
"""

import random
import sys

import story_words as w
from story_plots import PLOTS


class Person:
    """A name with its pronouns. In a template {a} is the name and {a.he} the pronoun."""

    def __init__(self, name, female, noun):
        self.name, self.noun = name, noun
        self.he, self.him, self.his = ("she", "her", "her") if female else ("he", "him", "his")
        self.He, self.His = self.he.capitalize(), self.his.capitalize()

    def __str__(self):
        return self.name


class Story:
    """A story in progress: its sentences, and the people and words that templates refer to."""

    def __init__(self, rng):
        self.rng, self.lines, self.words = rng, [], {}
        female = rng.random() < 0.5
        name = rng.choice(w.GIRLS if female else w.BOYS)
        self.set(a=Person(name, female, "girl" if female else "boy"))
        other = rng.random() < 0.5
        self.set(b=Person(rng.choice([n for n in (w.GIRLS if other else w.BOYS) if n != name]), other,
                          "girl" if other else "boy"))
        self.set(trait=rng.choice(w.TRAITS), home=rng.choice(w.HOMES))
        self.trade(rng.choice(w.TRADES)[0])
        self.season(rng.choice(sorted(w.SEASONS)))

    def set(self, **words):
        self.words.update(words)

    def season(self, season):
        """Sets the season and its weather."""
        moods, signs = w.SEASONS[season]
        self.set(season=season, mood=self.rng.choice(moods), sign=self.rng.choice(signs), time=self.rng.choice(w.TIMES))

    def trade(self, trade):
        """Sets the adult {c}, who has this trade."""
        female = self.rng.random() < 0.5
        self.set(c=Person(self.rng.choice(w.WOMEN if female else w.MEN), female, "woman" if female else "man"),
                 trade=trade, at=dict(w.TRADES)[trade])

    def say(self, *alternatives):
        """Adds one of the alternatives. An empty one adds nothing."""
        text = self.rng.choice(alternatives).format(**self.words)
        if text:
            self.lines.append(text[0].upper() + text[1:])

    def open(self):
        """Adds the first sentences: who, where and when."""
        if self.rng.random() < 0.35:
            self.say("Once upon a time there was a {trait} {a.noun} called {a}, who lived {home}.",
                     "{a} was a {trait} {a.noun} who lived {home}.",
                     "In the town of Emberford, {home}, there lived a {trait} {a.noun} called {a}.")
            self.say("One {mood} {time} in {season}, {sign}.",
                     "It was {season}, and {sign}.",
                     "One {time} in {season}, when {sign}, something happened.")
        else:
            self.say("It was a {mood} {time} in {season}, and {sign}.",
                     "One {mood} {time} in {season}, {sign}.",
                     "On a {mood} {time} in {season}, when {sign}, {a} came out of the house.",
                     "The {time} was {mood}, and {sign}.")
            self.say("", "", "{a} lived {home}.", "{a}, a {trait} {a.noun}, was full of plans.",
                     "In the town of Emberford everyone was busy.")

    def text(self):
        return " ".join(self.lines)


def story(rng):
    """Returns a story of eight to fourteen sentences."""
    s = Story(rng)
    rng.choice(PLOTS)(s)
    return s.text()


def stories(seed, n):
    """Returns n stories; the same seed gives the same stories."""
    rng = random.Random(seed)
    return [story(rng) for _ in range(n)]


if __name__ == "__main__":
    for text in stories(0, int(sys.argv[1]) if len(sys.argv) > 1 else 3):
        print(text, end="\n\n")
