"""The progress line of an experiment."""

import pytest

from pytest_opprof.experiment.progress import Progress, bar


def test_everything_that_is_known_stands_in_the_line() -> None:
    progress = Progress(done=11, total=24, elapsed_s=41.2, left_s=48.4, noise_ppm=21_000)
    assert progress.text == "11/24 processes · 00:41 elapsed · 00:48 left · noise floor so far 2.1 %"
    assert bar(progress.done, progress.total) == "[##########............]"


def test_nothing_is_guessed_before_the_first_process() -> None:
    progress = Progress(round="confirmation", done=0, total=16, elapsed_s=0)
    assert progress.text == "confirmation: 0/16 processes · 00:00 elapsed"
    assert bar(progress.done, progress.total) == f"[{'.' * 22}]"


@pytest.mark.parametrize(
    ("seconds", "text"), [(59.6, "01:00"), (3_599, "59:59"), (3_600, "1:00:00"), (7_265, "2:01:05")]
)
def test_hours_are_shown_when_there_are_some(seconds: float, text: str) -> None:
    assert f"{text} elapsed" in Progress(done=1, total=2, elapsed_s=seconds).text
