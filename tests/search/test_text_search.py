"""Searches of texts beside a plain BM25 over all rows of the table."""

from __future__ import annotations

import math
import random
import re
import shutil
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest

import pennon
from pennon.errors import IndexFilesMissing, LeafMissing, SearchOptionRefused, UnknownColumn
from pennon.namespace import PartitionedNamespace
from pennon.search import text as text_search
from pennon.search.search_plan import split_words

WORDS = ["sky", "sea", "Blue", "red", "fox", "über", "naïve", "日本", "4k", "lance"]
SCHEMA = pa.schema(
    {
        "id": pa.int64(),
        "tenant": pa.string(),
        "body": pa.string(),
        "v": pa.list_(pa.float32(), 2),
    }
)
Row = dict[str, Any]


def rows(count: int, seed: int = 3) -> list[Row]:
    """Texts of very different lengths by tenant, NULL, empty and without a word among them."""
    drawn = random.Random(seed)  # noqa: S311

    def body(tenant: str) -> str | None:
        odd = drawn.random()
        if odd < 0.1:
            return drawn.choice([None, "", " -- !"])
        most = {"a": 3, "b": 12, "c": 40}[tenant]
        between = drawn.choice([" ", ", ", " - ", "\n"])
        return between.join(drawn.choices(WORDS, range(1, 11), k=drawn.randint(1, most)))

    tenants = [drawn.choice("abc") for _ in range(count)]
    return [
        {"id": at, "tenant": tenant, "body": body(tenant), "v": [at % 7, at % 5]}
        for at, tenant in enumerate(tenants)
    ]


def split(text: object) -> list[str]:
    return re.findall(r"[^\W_]+", text.lower()) if isinstance(text, str) else []


def bm25(
    live: Iterable[Row],
    matching: Callable[[list[str]], Iterable[str]],
    passes: Callable[[Row], bool] = lambda _: True,
) -> dict[object, float]:
    """Scores of rows by the words that count in each; by all rows, one after the other."""
    texts = {row["id"]: split(row["body"]) for row in live}
    docs = [words for words in texts.values() if words]
    having = Counter(word for words in docs for word in set(words))
    mean = sum(map(len, docs)) / len(docs)
    scores = {}
    for row in live:
        words = texts[row["id"]]
        scored = [word for word in matching(words) if word in words]
        if not scored or not passes(row):
            continue
        total = 0.0
        for word in scored:
            idf = math.log(1 + (len(docs) - having[word] + 0.5) / (having[word] + 0.5))
            times = words.count(word)
            total += idf * times * 2.2 / (times + 1.2 * (0.25 + 0.75 * len(words) / mean))
        scores[row["id"]] = total
    return scores


def check(found: pa.Table, expected: dict[object, float], k: int) -> None:
    best = sorted(expected.values(), reverse=True)[:k]
    assert found["_score"].to_pylist() == pytest.approx(best, rel=1e-5)
    ids = found["id"].to_pylist()
    assert found["_score"].to_pylist() == pytest.approx([expected[i] for i in ids], rel=1e-5)
    assert len(set(ids)) == len(ids)


def phrase(*wanted: str) -> Callable[[list[str]], bool]:
    return lambda words: any(
        tuple(words[at : at + len(wanted)]) == wanted for at in range(len(words))
    )


def made(path: Path, layout: str) -> PartitionedNamespace:
    """A table with several fragments in each leaf, deleted rows, and an index of some rows."""
    by = [] if layout == "none" else ["tenant"]
    # A compaction behind these commits would index the rows that are to be in no index.
    mode = {"transaction": "weak" if layout == "weak" else "strong"}
    properties = {**mode, "write.compaction.enabled": "false"}
    table = pennon.create(path / "t", SCHEMA, partition_by=by, properties=properties)
    given = rows(300)
    table.append(pa.Table.from_pylist(given[:150], SCHEMA))
    table.create_index("body", "INVERTED")
    table.append(pa.Table.from_pylist(given[150:], SCHEMA))
    table.delete("id % 7 = 3")
    return table


@pytest.mark.parametrize("layout", ["tenant", "none", "weak"])
def test_rows_are_found_and_scored_as_in_one_list_of_all_rows(tmp_path: Path, layout: str) -> None:
    table = made(tmp_path, layout)
    live = table.scan().to_arrow().to_pylist()

    def both(words: list[str]) -> list[str]:
        return ["sky", "fox"] if {"sky", "fox"} <= set(words) else []

    for k in (1, 7, 500):
        found = table.search_text("SKY fox!", "body", k).to_arrow()
        check(found, bm25(live, lambda _: ["sky", "fox"]), k)
        found = table.search_text("sky fox", "body", k, operator="and").to_arrow()
        check(found, bm25(live, both), k)
        conditions: dict[str, Callable[[Row], bool]] = {
            "tenant = 'a'": lambda row: row["tenant"] == "a",
            "id > 100 AND tenant <> 'b'": lambda row: row["id"] > 100 and row["tenant"] != "b",
            "CASE WHEN tenant = 'a' THEN id ELSE 1 END > 50": lambda row: (
                (row["id"] if row["tenant"] == "a" else 1) > 50
            ),
        }
        for where, passes in conditions.items():
            found = table.search_text("naïve 日本 über", "body", k, where).to_arrow()
            check(found, bm25(live, lambda _: ["naïve", "日本", "über"], passes), k)
    # What was kept of the first version is not taken for that of the next.
    table.append([{"id": 1000, "tenant": "a", "body": "sky new", "v": [0, 0]}])
    live = table.scan().to_arrow().to_pylist()
    check(table.search_text("new sky").to_arrow(), bm25(live, lambda _: ["new", "sky"]), 10)


def test_phrases_required_and_forbidden_words(tmp_path: Path) -> None:
    table = made(tmp_path, "tenant")
    live = table.scan().to_arrow().to_pylist()
    is_phrase, is_long = phrase("fox", "4k"), phrase("lance", "lance", "日本")
    queries: dict[str, Callable[[list[str]], list[str]]] = {
        '"Fox 4K"': lambda words: ["fox", "4k"] if is_phrase(words) else [],
        '"lance, lance 日本" sea': lambda words: [
            *(["lance", "lance", "日本"] if is_long(words) else []),
            "sea",
        ],
        "+red sky": lambda words: ["red", "sky"] if "red" in words else [],
        "blue -lance": lambda words: [] if "lance" in words else ["blue"],
        'blue -"fox 4k"': lambda words: [] if is_phrase(words) else ["blue"],
        "+fox-4k red": lambda words: ["fox", "4k", "red"] if is_phrase(words) else [],
        "blue-red": lambda _: ["blue", "red"],
        "red red": lambda _: ["red", "red"],
        "nowhere": lambda _: [],
    }
    for query, matching in queries.items():
        check(table.search_text(query, k=500).to_arrow(), bm25(live, matching), 500)


def test_words_that_are_a_few_edits_away(tmp_path: Path) -> None:
    table = made(tmp_path, "tenant")
    live = table.scan().to_arrow().to_pylist()
    near = {("lanse", 1): ["lance"], ("uber", 1): ["über"], ("seye", 2): ["sea", "sky"]}
    for (word, edits), words in near.items():
        expected = bm25(live, partial(lambda words, _: words, words))
        check(table.search_text(word, k=500, fuzziness=edits).to_arrow(), expected, 500)
    assert table.search_text("seye", fuzziness=1).to_arrow().num_rows == 0
    assert table.search_text('"lanse lance"', fuzziness=1).to_arrow().num_rows == 0


@pytest.mark.parametrize("few", [0, 1 << 19])
def test_words_of_an_index_are_read_and_not_split_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, few: int
) -> None:
    monkeypatch.setattr(text_search, "_FEW_PLACES", few)
    monkeypatch.setattr(text_search, "_STORED_BYTES", 2_000)  # several files for each leaf
    split: list[int] = []

    def counted(texts: pa.Array, *, ascii_folding: bool) -> pa.Array:
        split.append(len(texts))
        return split_words(texts, ascii_folding=ascii_folding)

    table = made(tmp_path, "tenant")
    files = list(tmp_path.glob("t/*/_indices/*/words_1_*"))
    assert len(files) >= 9
    monkeypatch.setattr(text_search, "split_words", counted)
    is_phrase = phrase("fox", "4k")

    def check_all(rows_split: int) -> None:
        live = table.scan().to_arrow().to_pylist()
        split.clear()
        check(
            table.search_text("sky über", "body", 500).to_arrow(),
            bm25(live, lambda _: ["sky", "über"]),
            500,
        )
        assert sum(split) == rows_split
        found = table.search_text('"fox 4k" naïve -red', "body", 500).to_arrow()
        expected = bm25(
            live,
            lambda words: (
                [] if "red" in words else [*(["fox", "4k"] if is_phrase(words) else []), "naïve"]
            ),
        )
        check(found, expected, 500)
        found = table.search_text("lanse", "body", 500, fuzziness=1).to_arrow()
        check(found, bm25(live, lambda _: ["lance"]), 500)
        assert sum(split) == rows_split  # what was read is kept

    in_no_index = table.scan("id >= 150").count_rows()
    check_all(in_no_index)
    table.refresh_indexes()
    check_all(0)
    table.delete("id % 5 = 1")
    check_all(0)
    table.maintenance.compact()
    check_all(0)
    for file in tmp_path.glob("t/*/_indices/*/words_1_*"):
        file.unlink()  # as another client of Lance makes an index
    table.append([{"id": 1000, "tenant": "a", "body": "sky new", "v": [0, 0]}])
    text_search._KEPT.forget(lambda _: True)
    check_all(table.scan().count_rows())


def test_an_index_without_its_files_of_words_fails_the_search(tmp_path: Path) -> None:
    table = made(tmp_path, "tenant")
    for file in tmp_path.glob("t/*/_indices/*/words_1_*_docs.lance"):
        file.unlink()
    with pytest.raises(IndexFilesMissing, match="CALL refresh_indexes with the name of the index"):
        table.search_text("sky", "body").to_arrow()
    assert "files of its index body_idx are gone" in str(table.maintenance.check().violations)
    found = table.search_text("sky", "body", ascii_folding=True).to_arrow()
    table.refresh_indexes("body_idx")
    assert table.search_text("sky", "body").to_arrow() == found


def test_scores_of_a_partition_are_those_of_a_dataset_of_its_own(tmp_path: Path) -> None:
    table = made(tmp_path, "tenant")
    live = table.scan().to_arrow().to_pylist()
    expected: dict[object, float] = {}
    for tenant in "abc":
        own = [row for row in live if row["tenant"] == tenant]
        expected |= bm25(own, lambda _: ["sky", "red"])
    check(table.search_text("sky red", k=40, scope="partition").to_arrow(), expected, 40)


def test_scores_are_those_of_lance_over_one_dataset(tmp_path: Path) -> None:
    table = made(tmp_path, "tenant")
    whole = lance.write_dataset(table.scan().to_arrow(), str(tmp_path / "whole"))
    whole.create_scalar_index("body", "INVERTED", stem=False, remove_stop_words=False)
    for query in ("sky", "sea fox", "4k lance sky"):
        theirs = whole.scanner(["id"], full_text_query=query, limit=300).to_table().to_pylist()
        check(
            table.search_text(query, k=300).to_arrow(),
            {row["id"]: row["_score"] for row in theirs},
            300,
        )


def test_accents_are_left_out_on_request(tmp_path: Path) -> None:
    table = pennon.create(tmp_path / "t", SCHEMA)
    texts = ["café", unicodedata.normalize("NFD", "Café"), "cafe", "हिन्दी भाषा"]
    table.append([{"id": at, "tenant": "a", "body": text} for at, text in enumerate(texts)])

    def found(query: str, *, ascii_folding: bool = False) -> set[int]:
        rows = table.search_text(query, "body", ascii_folding=ascii_folding).to_arrow()
        return set(rows["id"].to_pylist())

    assert found("CAFÉ") == {0, 1}
    assert found("café", ascii_folding=True) == found("cafe", ascii_folding=True) == {0, 1, 2}
    assert found("हिन्दी") == {3}


def test_ties_are_in_a_fixed_order_and_columns_are_read_of_the_best_alone(tmp_path: Path) -> None:
    table = pennon.create(tmp_path / "t", SCHEMA, partition_by=["tenant"])
    table.append(
        [{"id": at, "tenant": "cab"[at % 3], "body": "same text", "v": [at, 0]} for at in range(60)]
    )
    every = table.search_text("same", "body", 60).to_arrow()["id"].to_pylist()
    for k in (1, 25, 59):
        assert table.search_text("same", "body", k).to_arrow()["id"].to_pylist() == every[:k]
    chosen = table.search_text("same", "body", 3, columns=["v", "id"])
    assert chosen.to_reader().schema.names == ["v", "id", "_score"]
    assert table.search_text("same", "body", 3, columns=[]).to_arrow().num_rows == 3
    assert table.search([1, 2], k=3, columns=[]).to_arrow().num_rows == 3


def test_texts_and_vectors_are_fused_by_their_ranks(tmp_path: Path) -> None:
    table = made(tmp_path, "tenant")
    for where in (None, "tenant <> 'b' AND id > 20"):
        ranked = [
            table.search_text("sky fox", "body", 100, where).to_arrow()["id"].to_pylist(),
            table.search([3, 4], k=100, where=where).to_arrow()["id"].to_pylist(),
        ]
        relevance: Counter[int] = Counter()
        for ids in ranked:
            for rank, one in enumerate(ids):
                relevance[one] += 1 / (60 + rank)  # type: ignore[assignment]
        found = table.search_hybrid("sky fox", [3, 4], text_column="body", k=30, where=where)
        rows = found.to_arrow().to_pylist()
        best = sorted(relevance.values(), reverse=True)[:30]
        assert [row["_relevance_score"] for row in rows] == pytest.approx(best)
        own = [relevance[row["id"]] for row in rows]
        assert [row["_relevance_score"] for row in rows] == pytest.approx(own)


def test_a_leaf_without_its_files_fails_the_search(tmp_path: Path) -> None:
    table = made(tmp_path, "tenant")
    (leaf, *_) = [one for one in (tmp_path / "t").iterdir() if (one / "data").is_dir()]
    shutil.rmtree(leaf / "data")
    with pytest.raises(LeafMissing):
        table.search_text("sky", "body", where="tenant = 'none' OR id > 1").to_arrow()


def test_a_search_that_cannot_be_says_in_one_sentence_why(tmp_path: Path) -> None:
    table = pennon.create(tmp_path / "t", SCHEMA)
    for options, why in (
        ({"query": "a", "column": "id"}, "it is of type int64. Give a column of texts: tenant, b"),
        ({"query": "a"}, "it is not clear which one is searched"),
        ({"query": " ", "column": "body"}, "without a word"),
        ({"query": "-a", "column": "body"}, "without a word"),
        ({"query": "a", "column": "body", "k": 0}, "it is less than 1"),
        ({"query": "a", "column": "body", "operator": "xor"}, "it is none of these. Give or, and"),
        ({"query": "a", "column": "body", "fuzziness": 3}, "it is none of these. Give 0, 1, 2"),
        ({"query": "a", "column": "body", "scope": "leaf"}, "Give global, partition"),
    ):
        with pytest.raises(SearchOptionRefused, match=why):
            table.search_text(**options).to_arrow()
    with pytest.raises(UnknownColumn):
        table.search_text("a", "nothing").to_arrow()
    with pytest.raises(SearchOptionRefused, match="more than one"):
        table.search_hybrid("a", [[1, 2], [3, 4]], text_column="body").to_arrow()
