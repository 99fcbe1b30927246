"""Dictionary lines `word: definition` from the WordNet database files, split by headword.

WordNet groups words of one meaning into a synset with one gloss. Every word (lemma) of a synset
gives one line; all lines of a synset are on the same side of the split.
"""

import hashlib
import re
from dataclasses import dataclass
from pathlib import Path

PARTS_OF_SPEECH = ("noun", "verb", "adj", "adv")

# A line of n bytes has at most n tokens, so with BOS it always fits a context of 256 positions,
# whatever the tokenizer.
MAX_LINE_BYTES = 255

# Share of the words, in thousandths, that is held out. A synset is held out when any of its words
# is, so about 1.2 % of the words take about 2 % of the synsets.
HELD_OUT_PER_MILLE = 12

# Adjectives carry a syntactic marker such as "galore(ip)"; it is not part of the word.
SYNTACTIC_MARKER = re.compile(r"\((a|p|ip)\)$")

# The examples come last in a gloss; a quotation within the definition follows a word instead.
EXAMPLES = re.compile(r'[;:,]\s*".*')


@dataclass
class Synset:
    words: list
    definition: str


@dataclass
class Split:
    train: list  # lines, no newline at the end
    held_out: list
    num_train_synsets: int
    num_held_out_synsets: int
    num_repeated: int  # held-out synsets left out because a training synset has the same definition


def definition_of(gloss):
    """The definition without the quoted example sentences, or "" if there is none to be had."""
    definition = " ".join(EXAMPLES.sub("", gloss).split()).strip(" ;:,")
    # A few glosses have a stray quotation mark; what is example and what is not cannot be told.
    return "" if definition.count('"') % 2 else definition


def word_of(lemma):
    return SYNTACTIC_MARKER.sub("", lemma).replace("_", " ")


def read_synsets(wordnet_dir):
    for part in PARTS_OF_SPEECH:
        with open(Path(wordnet_dir) / f"data.{part}", encoding="utf-8") as file:
            for record in file:
                if record.startswith(" "):
                    continue  # the licence at the head of the file
                fields, gloss = record.split(" | ", 1)
                fields = fields.split()
                num_words = int(fields[3], 16)
                lemmas = fields[4 : 4 + 2 * num_words : 2]
                definition = definition_of(gloss)
                if definition:
                    yield Synset([word_of(lemma) for lemma in lemmas], definition)


def is_held_out_word(word):
    """Decided by the word alone (a hash of it), so that the split never depends on file order."""
    digest = hashlib.sha256(word.casefold().encode("utf-8")).digest()
    return int.from_bytes(digest[:4], "little") % 1000 < HELD_OUT_PER_MILLE


def line_of(word, definition):
    return f"{word}: {definition}"


def fits(line):
    return len(line.encode("utf-8")) <= MAX_LINE_BYTES


def load_split(wordnet_dir):
    """No held-out word is a headword of a training line, and neither is any word of its synsets
    with that definition."""
    train_synsets, held_out_synsets = [], []
    for synset in read_synsets(wordnet_dir):
        held_out = any(is_held_out_word(word) for word in synset.words)
        (held_out_synsets if held_out else train_synsets).append(synset)

    seen_definitions = {synset.definition for synset in train_synsets}
    unseen = [synset for synset in held_out_synsets if synset.definition not in seen_definitions]

    train = [line_of(word, synset.definition) for synset in train_synsets for word in synset.words]
    # One line a synset, under its first held-out word: its other words may well be headwords of
    # training lines in another meaning.
    held_out = [
        line_of(next(word for word in synset.words if is_held_out_word(word)), synset.definition)
        for synset in unseen
    ]
    # dict.fromkeys drops repeated lines and keeps the order.
    return Split(
        train=[line for line in dict.fromkeys(train) if fits(line)],
        held_out=[line for line in dict.fromkeys(held_out) if fits(line)],
        num_train_synsets=len(train_synsets),
        num_held_out_synsets=len(held_out_synsets),
        num_repeated=len(held_out_synsets) - len(unseen),
    )
