"""What the skill word_count promises."""

import pytest

from PACKAGE.skills.word_count import WordCountSkill


@pytest.mark.parametrize(
    ("text", "count"),
    [("", 0), (" \t\n", 0), ("one", 1), ("one  two\nthree", 3), ("größer 漢字", 2)],
)
def test_words_are_parted_by_white_space(text: str, count: int) -> None:
    assert WordCountSkill().execute({"text": text}) == {"count": count}


def test_only_a_text_has_words() -> None:
    with pytest.raises(TypeError):
        WordCountSkill().execute({"text": 3})
