"""Real embeddings for tests: unit vectors, held-out queries, payloads, and exact answers.

Two places have the same layout: `tests/data` (the first 12,000 rows, in the repository) and the
folder that FLATWATER_DATA_DIR names (the full set, where there is one).

A row is stored as int8. To keep the data off an 8-bit grid, a fixed dither in [-0.5, 0.5) is added
to every value before the row is scaled to length 1. The dither of value j of row i comes from the
splitmix64 hash of its place i * dim + j: the top 24 bits of the hash, as a fraction, minus one half.
"""

import gzip
import json
import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np

NAME = "wordnet-minilm-384"
IN_REPOSITORY = Path(__file__).resolve().parent / "data" / NAME


@dataclass(frozen=True)
class Vectors:
    """A data set in memory."""

    label: str
    rows: np.ndarray
    queries: np.ndarray
    payloads: list


def full_folder():
    """Folder of the full set, or None if FLATWATER_DATA_DIR is not set; a wrong one is an error."""
    root = os.environ.get("FLATWATER_DATA_DIR")
    if not root:
        return None
    folder = Path(root) / NAME
    if not (folder / "base.i8.npy").is_file():
        raise FileNotFoundError(f"FLATWATER_DATA_DIR={root} holds no {NAME}/base.i8.npy")
    return folder


def load(folder=IN_REPOSITORY, limit=None):
    """The first `limit` rows of a folder (all of them if None), its queries and its payloads."""
    stored = np.load(folder / "base.i8.npy", mmap_mode="r")[:limit]
    count, dim = stored.shape
    rows = np.empty((count, dim), np.float32)
    for begin in range(0, count, 4096):
        end = min(begin + 4096, count)
        rows[begin:end] = stored[begin:end] + dither(begin, end, dim)
    queries = np.load(folder / "query.f16.npy").astype(np.float32)
    return Vectors(f"{folder.name}, {count:,} rows", unit(rows), unit(queries), _payloads(folder, count))


def _payloads(folder, count):
    packed = folder / "payload.jsonl.gz"
    if not packed.is_file():
        return []
    with gzip.open(packed, "rt", encoding="ascii") as lines:
        return [json.loads(line) for _, line in zip(range(count), lines)]


def dither(begin, end, dim):
    """The dither of rows begin..end."""
    place = np.arange(begin * dim, end * dim, dtype=np.uint64).reshape(end - begin, dim)
    return (_splitmix64(place) >> np.uint64(40)).astype(np.float32) / 2**24 - 0.5


def _splitmix64(state):
    """One output of the splitmix64 generator for each state (arithmetic modulo 2^64)."""
    with np.errstate(over="ignore"):
        mixed = state + np.uint64(0x9E3779B97F4A7C15)
        mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return mixed ^ (mixed >> np.uint64(31))


def unit(vectors):
    """Rows scaled to length 1; a zero row stays zero."""
    return vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)


def scores(rows, query, metric="Cosine"):
    """What a user sees for every row, computed in float64: a similarity or a distance."""
    rows, query = rows.astype(np.float64), np.asarray(query, np.float64)
    if metric == "Cosine":
        return unit(rows) @ unit(query[None])[0]
    if metric == "Dot":
        return rows @ query
    if metric == "Euclid":
        return np.sqrt(((rows - query) ** 2).sum(axis=1))
    if metric == "Manhattan":
        return np.abs(rows - query).sum(axis=1)
    raise ValueError(metric)


def exact(rows, queries, k, keep=None):
    """Row numbers of the exact top k by dot product, best first, ties by row number.

    `keep` is a mask of the rows that count. If fewer than k do, the answer is shorter.
    """
    candidates = np.arange(len(rows)) if keep is None else np.flatnonzero(keep)
    k = min(k, len(candidates))
    chosen = rows[candidates]
    found = np.empty((len(queries), k), np.int64)
    for begin in range(0, len(queries), 64):
        score = queries[begin : begin + 64] @ chosen.T
        top = np.argpartition(-score, k - 1, axis=1)[:, :k] if k < len(candidates) else (
            np.broadcast_to(np.arange(k), score.shape).copy()
        )
        order = np.lexsort((top, -np.take_along_axis(score, top, 1)), axis=1)
        found[begin : begin + 64] = candidates[np.take_along_axis(top, order, 1)]
    return found
