import re
import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from goalmode.context import closing, phrases
from goalmode.context.phrases import claims_completion, completion_phrases, sentences, withhold
from tests.moments import a_moment

CLOSING = """
All done!|all tasks are done|All of the tasks have been completed.|Task complete.|task completed|Everything's done
The task is now complete|Everything is finished|everything has been delivered|Final delivery|mission accomplished
Goal achieved.|Nothing left to do.|nothing remains|No further action is required.|I'm done.|We are all done here
wrapping up|This concludes our work|Ready for delivery.|Done.|✅ Done!|**All** tasks are **complete**
All 12 requirements are met|I have completed all the tasks|The work is complete.|fully complete|all set|ALL\tDONE
all\u200b done|完成。|全部完成|任务完成|任务已圆满完成|最终交付|收口|已全部交付|大功告成|圆满结束|所有任务均已完成
所有功能都已经实现|任務已經完成|一切就绪|无需进一步操作|没有剩余任务|到此为止|工作已全部完成！|目标达成|项目收官
已经完成了所有工作|１００％完成
"""
OPEN = """
incomplete|done.txt|write all done.txt|the file is done.md|Chapter 3 is done|not all done yet|the task is not complete
The tasks aren't all done|all tests pass|run complete(status) to claim|subtask completed|42 rows completed|Not done.
call complete with evidence|completely|Todo: the abandoned work|status: done|3 of 10 steps completed|alldone
git diff shows a.py and nothing else|complete_task is a function|任务未完成|尚未全部完成|任务完成度 30%
任务完成情况待核对|全部完成后再提交|是否全部完成|已完成第3章|测试全部通过|子任务完成|目标未达成|没有全部完成
"""


def _cells(table: str) -> list[str]:
    return [cell for row in table.strip().split("\n") for cell in row.split("|")]


@pytest.mark.parametrize("text", _cells(CLOSING))
def test_closing_phrases_are_found(text: str) -> None:
    """A phrase that closes the whole is counted once, in either language and whatever its case and marks."""
    assert completion_phrases(text) == 1


@pytest.mark.parametrize("text", _cells(OPEN))
def test_facts_and_denials_are_no_closing_phrases(text: str) -> None:
    """Words that only look alike, facts about a part, denials and conditions are left alone."""
    assert completion_phrases(text) == 0


def test_phrases_are_counted_one_by_one() -> None:
    """The count is of phrases, not of texts."""
    assert completion_phrases("All done. Final delivery was made; 任务完成，已收口。\nDone.") == 5
    assert completion_phrases("all\ntasks are done") == 1


def test_withholding_keeps_the_sentences_beside() -> None:
    """Only the sentence with the phrase is replaced, and the number of them is told (facts beside it survive)."""
    shown = withhold(
        "Units: metres. All done, final delivery! Station: Cuxhaven.\n任务完成。单位是米。", "[mark]"
    )

    assert shown == ("Units: metres. [mark] Station: Cuxhaven.\n[mark]单位是米。", 2)
    assert withhold("Units: metres.", "[mark]") == ("Units: metres.", 0)


def test_a_phrase_across_sentences_takes_the_text_with_it() -> None:
    """A phrase that is broken over lines is not let through."""
    assert withhold("a fact\nall\ntasks are done", "[mark]") == ("[mark]", 1)


@given(st.text(st.sampled_from("ab .!?\n。；all done"), max_size=60))
def test_sentences_are_the_text(text: str) -> None:
    """Cutting into sentences loses nothing, and what is withheld leaves no claim behind."""
    assert "".join(sentences(text)) == text
    assert not claims_completion(withhold(text, "[mark]")[0])


_EITHER = (*((phrase, closing.ANCHORS) for phrase in (*closing.ENGLISH, *closing.CHINESE)),)
_ALONE = (*((phrase, closing.ALONE_ANCHORS) for phrase in closing.ALONE),)


@settings(max_examples=10)
@pytest.mark.parametrize(("phrase", "anchors"), [*_EITHER, *_ALONE])
@given(st.data())
def test_every_phrase_holds_a_word_that_texts_are_searched_for_first(
    phrase: str, anchors: tuple[str, ...], data: st.DataObject
) -> None:
    """Whatever a phrase matches holds an anchor, and begins as the search expects: a new phrase brings its own."""
    found = data.draw(st.from_regex(re.compile(phrase), fullmatch=True))

    assert any(anchor in found for anchor in anchors)
    assert found[0] == "1" or found[0].isascii() == (phrase in (*closing.ENGLISH, closing.ALONE[0]))


def _searched(text: str) -> int:
    """What `completion_phrases` says, found without looking for anchors and without what is known of ASCII."""

    def plain(text: str) -> str:
        narrow = unicodedata.normalize("NFKC", phrases._DROPPED.sub("", text)).lower().replace("’", "'")
        return " ".join(narrow.translate(closing.SIMPLIFIED).split())

    alone = sum(1 for sentence in sentences(text) if phrases._ALONE.fullmatch(plain(sentence)))
    return alone + len(phrases._PHRASE.findall(plain(text)))


_ODD = [
    "done",
    "finished",
    "the end",
    "完成",
    "未",
    "not ",
    "all ",
    "任務",
    "１００ ％",
    "Σ",
    "İ",
    "K",
    "ſ",
    "ﬁnished",
]
_MARKS = [*" !。…；*’`_", "\n", "\t", ". ", "\u200b", "\u0301", "\u3000", "\x1c", "\u2028"]
_PIECES = st.sampled_from([*_cells(CLOSING), *_cells(OPEN)]) | st.sampled_from([*_ODD, *_MARKS])


@given(st.lists(_PIECES | st.text(max_size=3), max_size=8).map("".join))
def test_what_is_looked_for_first_changes_no_count(text: str) -> None:
    """The short way finds what the long way finds, in ASCII and in any other text."""
    assert completion_phrases(text) == _searched(text)
    assert claims_completion(text) == (_searched(text) > 0)


def test_what_is_remembered_of_texts_is_bounded() -> None:
    """Short texts are remembered, so many of them; long ones are not."""
    for number in range(1_100):
        assert not claims_completion(f"row {number}")
    kept = phrases._short_claims.cache_info()
    assert claims_completion("all done" + " " * 400)

    assert kept.currsize == kept.maxsize == 1_024
    assert phrases._short_claims.cache_info() == kept


@pytest.mark.parametrize(
    "unit",
    [
        "all ",
        "now all ",
        "all of the my ",
        "nothing else more ",
        "全部",
        "全部都",
        "全都已",
        "没有其他",
        "所有任务已",
    ],
)
def test_a_model_that_stammers_costs_no_more_than_its_length(unit: str) -> None:
    """The same words thousands of times are searched in a moment: no phrase is longer than anybody would say it."""
    with a_moment():
        completion_phrases(unit * 10_000 + " nothing 无")
