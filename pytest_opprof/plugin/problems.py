"""What cannot be captured, as the session tells it."""

from __future__ import annotations

from collections.abc import Mapping

from pytest_opprof.capture.cuda import CUDA


def problem_sentences(problems: Mapping[str, str]) -> list[str]:
    """The collector's problems, each a sentence."""
    return [problem_sentence(source, reason) for source, reason in problems.items()]


def problem_sentence(source: str, reason: str) -> str:
    """Why a source is not captured, and what that means for gates of its own."""
    return f"no CUDA capture ({reason}): CUDA gates are inconclusive" if source == CUDA else reason
