"""Texts and numbers near the ends of what is read, rounded or matched, and others beside them."""

from __future__ import annotations

import random
from collections.abc import Sequence
from decimal import Decimal

import numpy as np
import pyarrow as pa

from pennon.predicate.condition import Declined
from pennon.predicate.expressions.parsed_texts import JavaPattern

NUMBERS = ["", " ", "+", "-", "+-1", "1-", "12.5", "12.", ".5", "1e2", "1 2", "12a", "12L", "1_0"]
NUMBERS += ["\u00a012", "\u200112", "१२", "\x0012", "12\x1f", "\x7f12 ", "\x8512", "0x1F", "NaN"]
NUMBERS += [str(sign * 2**bits + at) for bits in (7, 31, 63) for at in (-1, 0) for sign in (1, -1)]
NUMBERS += ["0" * 40 + "5", "9" * 20, "-0", "+007", "1,000", "true", "\uff15"]
DATES = ["", "20200105", "2020/01/05", "2020-001-01", "2020-1-5x", "1-1-1", "202-1-1", "2020-"]
DATES += [
    "2020-1",
    "2020-01T",
    "2020-01 ",
    "2020-01-05T",
    "2020-01-05t",
    "2020-02-30",
    "2021-02-29",
]
DATES += ["2020-13-01", "2020-00-10", "2020-10-00", "-0000-01-01", "+2020-01-01", "+12020-01-01"]
DATES += [
    "0000-02-29",
    "-0004-02-29",
    "-0001-12-31",
    "9999999-1-1",
    "5881580-07-11",
    "00002020-1-1",
]
DATES += ["5881580-07-12", "-5877641-06-23", "-5877641-06-22", "2020-01-05\u00a0", "\t2020-01-05\n"]
DATES += [
    "today",
    "epoch",
    "2020-01-05 \n \x7f",
    "\uff12\uff10\uff12\uff10-01-05",
    "2020-01--5",
    "--2020-01-05",
]
DATES += ["+-2020-01-05", "12345-01-01", "-12345-01-01", "+012020-01-01", "2020-01-05T25:61"]


FRACTIONS = [
    "",
    ".",
    "+.5",
    "1.",
    "-1.5e3",
    "1e400",
    "-1e-400",
    "4.9e-324",
    "2.4e-324",
    "1e",
    "1e+",
]
FRACTIONS += ["1.7976931348623157e308", "1.7976931348623159e308", "9007199254740993", "0.1f", "1D"]
FRACTIONS += [
    "0x1p3",
    "-0x.8P-1f",
    "0x1.fffffffffffff8p1023",
    "0x1p1024",
    "0x1p-1075",
    "0x1",
    "0xp1",
]
FRACTIONS += ["NaN", "+NaN", "-NaN", "nan", "-nan", "inf", "+INF", "-Infinity", "infinityx", "i nf"]
FRACTIONS += [
    " 1.5\t",
    "\x001.5\x1f",
    "1.5\x7f",
    "\u00a01.5",
    "१.५",
    "\uff11",
    "1_0",
    "1,5",
    "1e5d ",
]
FRACTIONS += [
    "-0",
    "00012.50",
    "1" * 400,
    "0." + "0" * 400 + "1",
    "1e99999999999",
    "123456789.12345678",
]
FRACTIONS += [
    "1e-99999999999",
    "0e99999999999",
    "5e",
    "1.5ff",
    "--1",
    "0x1p99999999999",
    "1.e2",
    ".e2",
]

# Which texts are read by a pattern, and what they are made of.
PATTERNS = {
    "yyyy-MM-dd": "{y}-{m}-{d}",
    "yyyyMMdd": "{y}{m}{d}",
    "dd.MM.yyyy": "{d}.{m}.{y}",
    "MM/dd/yyyy": "{m}/{d}/{y}",
    "yyyy-MM": "{y}-{m}",
    "yyyy-MM-dd HH:mm:ss": "{y}-{m}-{d} {h}:{i}:{s}",
    "yyyyMMddHHmmss": "{y}{m}{d}{h}{i}{s}",
    "yyyy-MM-dd'T'HH:mm": "{y}-{m}-{d}T{h}:{i}",
}
_PARTS = {
    "y": [
        *["2020", "2021"] * 5,
        "0000",
        "-0000",
        "-2020",
        "+2020",
        "+12020",
        "12020",
        "99",
        "0004",
    ],
    "m": [*["01", "02", "12"] * 4, "00", "13", "1"],
    "d": [*["01", "28"] * 6, "29", "30", "31", "00", "7"],
    "h": [*["00", "23"] * 3, "24", "12"],
    "i": [*["00", "59"] * 3, "60"],
    "s": [*["00", "59"] * 3, "60", "5"],
}
SIGNS = [
    "a",
    "b",
    "1",
    " ",
    "_",
    "%",
    "\\",
    "\r",
    "\n",
    "\r\n",
    "\u2028",
    "\x85",
    "é",
    "-",
    "😀",
    "٣",
]
ATOMS = ["a", "b", "1", "_", "%", " ", "é", ".", r"\d", r"\w", r"\s", r"\S", r"\D", r"\W", r"\."]
ATOMS += ["[ab]", "[^a]", "[^/b]", "[a-z_]", "[0-9-]", "[%é]", "😀", "-"]
TIMES = ["", "", "", "", "*", "+", "?", "{2}", "{1,2}", "*?", "+?", "??"]


def sequence(rng: random.Random, depth: int) -> str:
    return "".join(atom(rng, depth) + rng.choice(TIMES) for _ in range(rng.choice([1, 2, 2, 3])))


def atom(rng: random.Random, depth: int) -> str:
    if not depth or rng.random() < 0.7:
        return rng.choice(ATOMS)
    inner = "|".join(sequence(rng, depth - 1) for _ in range(rng.choice([1, 1, 2, 3])))
    return f"{rng.choice(['(', '(', '(?:'])}{inner})"


def scrambled(texts: Sequence[str], count: int) -> list[str]:
    """Change a sign of a text, leave one out, or repeat one."""
    rng = random.Random(7)  # noqa: S311 - texts, not secrets
    found = list(texts)
    for _ in range(count):
        text = rng.choice(texts)
        at = rng.randrange(len(text) + 1)
        found.append(text[:at] + rng.choice("0123456789-+ T./\t") + text[at + rng.randrange(2) :])
    return found


def texts_of_patterns(count: int) -> list[str]:
    """Write times by each of the patterns, and change a sign of some."""
    rng = random.Random(7)  # noqa: S311 - texts, not secrets
    texts = [
        form.format(**{name: rng.choice(values) for name, values in _PARTS.items()})
        for form in PATTERNS.values()
        for _ in range(count)
    ]
    return scrambled(texts, len(texts) // 2)


def pattern_calls(rng: random.Random, count: int) -> list[str]:
    """Write calls of those random patterns that are taken."""
    found: list[str] = []
    while len(found) < count:
        body = "|".join(sequence(rng, 2) for _ in range(rng.choice([1, 1, 1, 2])))
        text = f"{rng.choice(['', '', '^'])}{body}{rng.choice(['', '', '$'])}"
        literal = text.replace("\\", "\\\\")
        try:
            pattern = JavaPattern(text)
            found.append(f"s RLIKE '{literal}'")
            for group in range(pattern.groups + 1):
                pattern.extraction(group)
                found.append(f"regexp_extract(s, '{literal}', {group})")
            for replacement in ("<$0>", "$1-"):
                pattern.replacement(replacement)
                found.append(f"regexp_replace(s, '{literal}', '{replacement}')")
        except Declined:
            continue
    return found


def halves(rng: np.random.Generator, digits: int, count: int) -> pa.Array:
    """Give DOUBLEs at a half of the last digit that is kept, next to one, and anywhere."""
    kept = np.floor(10 ** rng.uniform(0, 17, count))
    exact = np.array([float(f"{int(number)}5e-{digits + 1}") for number in kept])
    ends = rng.choice([-np.inf, np.inf], count)
    values = np.where(rng.random(count) < 0.5, exact, np.nextafter(exact, ends))
    anywhere = 10 ** rng.uniform(-digits - 2, 18 - digits, count)
    values = np.where(rng.random(count) < 0.2, anywhere, values)
    return pa.array(values * rng.choice([-1, 1], count))


def decimals(rng: np.random.Generator, precision: int, scale: int, count: int) -> pa.Array:
    texts = [
        "".join(map(str, rng.integers(0, 10, digits)))
        for digits in rng.integers(1, precision + 1, count)
    ]
    return pa.array(
        [Decimal(text).scaleb(-scale) for text in texts], pa.decimal128(precision, scale)
    )
