"""Tables of a grammar are kept beside the byte code, and made anew where they do not fit."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
from lark import Token, Transformer, UnexpectedInput

from deltalog.language.grammars import load_grammar


class _Words(Transformer[Token, list[str]]):
    def statement(self, words: list[Token]) -> list[str]:
        return [str(word) for word in words]


def _parse_words(folder: Path, text: str) -> Any:
    return load_grammar(folder, _Words()).parse(text)


def _write_grammar(folder: Path, word: str) -> None:
    folder.joinpath("grammar.lark").write_text(f'statement: WORD+\nWORD: "{word}"\n', "utf-8")


@pytest.fixture(autouse=True)
def _with_byte_code(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    monkeypatch.setattr(sys, "pycache_prefix", None)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "__pycache__").mkdir()
    return tmp_path


def _kept_tables(folder: Path) -> list[Path]:
    return list(folder.glob("__pycache__/*.lark"))


def test_tables_are_kept_and_read_again(folder: Path) -> None:
    _write_grammar(folder, "a")
    assert _parse_words(folder, "aa") == ["a", "a"]
    (kept,) = _kept_tables(folder)
    made = kept.stat().st_mtime_ns
    assert _parse_words(folder, "aaa") == ["a"] * 3
    assert kept.stat().st_mtime_ns == made


def test_tables_of_another_grammar_are_made_anew(folder: Path) -> None:
    _write_grammar(folder, "a")
    _parse_words(folder, "a")
    _write_grammar(folder, "b")
    assert _parse_words(folder, "bb") == ["b", "b"]
    with pytest.raises(UnexpectedInput):
        _parse_words(folder, "a")


@pytest.mark.parametrize("damage", [b"", b"damaged", None])
def test_damaged_tables_are_made_anew(folder: Path, damage: bytes | None) -> None:
    _write_grammar(folder, "a")
    _parse_words(folder, "a")
    (kept,) = _kept_tables(folder)
    kept.write_bytes(kept.read_bytes()[:200] if damage is None else damage)
    assert _parse_words(folder, "aa") == ["a", "a"]


def test_without_byte_code_nothing_is_written(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    _write_grammar(folder, "a")
    assert _parse_words(folder, "a") == ["a"]
    assert not _kept_tables(folder)


def test_where_nothing_can_be_written_it_is_parsed_all_the_same(tmp_path: Path) -> None:
    _write_grammar(tmp_path, "a")
    assert _parse_words(tmp_path, "a") == ["a"]
    assert not _kept_tables(tmp_path)
