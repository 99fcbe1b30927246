"""Byte-pair encoding in the tokenizer.bin layout of llama2.c: training, encoding and the file.

Ids: 0 <unk>, 1 BOS, 2 EOS, 3..258 the byte pieces "<0x00>".."<0xFF>", then the merged pieces in the
order they were learnt, then the single characters of the training text. A piece from 259 on has the
score -rank, rank 1 being the first merge; the score of a single character is never consulted, since
no merge can produce it.

Encoding starts from one piece a character (a character that is no piece becomes its UTF-8 bytes)
and merges, as long as there is any, the adjacent pair whose concatenation is the piece of the
highest score, the leftmost first. There is no dummy leading space.
"""

import re
import struct
from collections import Counter, defaultdict

UNK, BOS, EOS = 0, 1, 2
FIRST_BYTE = 3
FIRST_MERGE = FIRST_BYTE + 256
SPECIAL_PIECES = [b"<unk>", b"\n<s>\n", b"\n</s>\n"] + [b"<0x%02X>" % byte for byte in range(256)]

# Merges stay inside a chunk: a run of letters, of digits or of other characters, with at most one
# space in front. No piece thus mixes the kinds or has a space inside, and encoding a text chunk by
# chunk gives the same ids as encoding it whole.
CHUNK = re.compile(r" ?[^\W\d_]+| ?\d+| ?[^ \n\w]+| ?_+|[ \n]")


def apply_merge(pieces, merged):
    """Joins, from the left, every adjacent pair whose concatenation is `merged`."""
    result = []
    i = 0
    while i < len(pieces):
        if i + 1 < len(pieces) and pieces[i] + pieces[i + 1] == merged:
            result.append(merged)
            i += 2
        else:
            result.append(pieces[i])
            i += 1
    return result


def train_merges(lines, num_merges):
    """The merges in the order learnt. Pairs are counted by their concatenation, because that is
    what the encoder goes by: "a" + "bc" and "ab" + "c" are the same merge."""
    chunk_counts = Counter()
    for line in lines:
        chunk_counts.update(CHUNK.findall(line))
    chunks = [list(chunk) for chunk in chunk_counts]
    weights = list(chunk_counts.values())

    pair_counts = Counter()
    chunks_with = defaultdict(set)  # may name chunks that have the pair no more; never misses one

    def count_pairs(index, sign):
        pieces = chunks[index]
        for left, right in zip(pieces, pieces[1:]):
            pair_counts[left + right] += sign * weights[index]
            if sign > 0:
                chunks_with[left + right].add(index)

    for index in range(len(chunks)):
        count_pairs(index, +1)

    merges = []
    while len(merges) < num_merges:
        # The string breaks ties, so that the result does not depend on the order of the counts.
        best = max(pair_counts, key=lambda pair: (pair_counts[pair], pair))
        if pair_counts[best] <= 0:
            break
        merges.append(best)
        for index in chunks_with.pop(best):
            count_pairs(index, -1)
            chunks[index] = apply_merge(chunks[index], best)
            count_pairs(index, +1)
        del pair_counts[best]
    return merges


class Tokenizer:
    def __init__(self, pieces, scores):
        self.pieces = pieces
        self.scores = scores
        self.id_of = {piece: i for i, piece in enumerate(pieces)}
        self._cache = {}

    def __len__(self):
        return len(self.pieces)

    def _encode_chunk(self, chunk):
        ids = []
        for character in chunk:
            encoded = character.encode("utf-8")
            if encoded in self.id_of:
                ids.append(self.id_of[encoded])
            else:
                ids.extend(FIRST_BYTE + byte for byte in encoded)
        while True:
            best_score, best_at, best_id = float("-inf"), None, None
            for i in range(len(ids) - 1):
                merged = self.id_of.get(self.pieces[ids[i]] + self.pieces[ids[i + 1]])
                if merged is not None and self.scores[merged] > best_score:
                    best_score, best_at, best_id = self.scores[merged], i, merged
            if best_at is None:
                return ids
            ids[best_at : best_at + 2] = [best_id]

    def encode(self, text):
        """Token ids of the text alone, without BOS and EOS."""
        ids = []
        for chunk in CHUNK.findall(text):
            if chunk not in self._cache:
                self._cache[chunk] = self._encode_chunk(chunk)
            ids.extend(self._cache[chunk])
        return ids

    def encode_whole(self, text):
        """The same without the cut into chunks, as other implementations do it; slow."""
        return self._encode_chunk(text)

    def piece_bytes(self, token):
        """What the token stands for in a text."""
        if FIRST_BYTE <= token < FIRST_MERGE:
            return bytes([token - FIRST_BYTE])
        return b"" if token < FIRST_BYTE else self.pieces[token]

    def decode(self, ids):
        return b"".join(self.piece_bytes(token) for token in ids).decode("utf-8", "replace")

    def save(self, path):
        with open(path, "wb") as file:
            file.write(struct.pack("<i", max(len(piece) for piece in self.pieces)))
            for piece, score in zip(self.pieces, self.scores):
                file.write(struct.pack("<fi", score, len(piece)) + piece)

    @staticmethod
    def load(path):
        with open(path, "rb") as file:
            data = file.read()
        pieces, scores = [], []
        offset = 4  # after max_token_length
        while offset < len(data):
            score, length = struct.unpack_from("<fi", data, offset)
            pieces.append(data[offset + 8 : offset + 8 + length])
            scores.append(score)
            offset += 8 + length
        return Tokenizer(pieces, scores)


def train_tokenizer(lines, vocab_size):
    characters = Counter()
    for line in lines:
        characters.update(line)
    characters = [c for c, _ in sorted(characters.items(), key=lambda item: (-item[1], item[0]))]
    merges = train_merges(lines, vocab_size - FIRST_MERGE - len(characters))
    learnt = [piece.encode("utf-8") for piece in merges + characters]
    scores = [0.0] * FIRST_MERGE + [-float(rank) for rank in range(1, len(learnt) + 1)]
    return Tokenizer(SPECIAL_PIECES + learnt, scores)
