"""Patterns mean what fnmatch takes them to mean."""

import fnmatch

from hypothesis import example, given
from hypothesis import strategies as st

from pytest_opprof.metrics.paths import is_pattern, matches

PATTERNS = st.text(alphabet="ab*?[]!-^\\\n", max_size=12)
NAMES = st.text(alphabet="ab[]!-^\\\n*", max_size=12)


@given(PATTERNS, NAMES)
@example("[!]", "[!]")
@example("[]a]*[b", "]x[b")
@example("a*a", "a")
@example("*a*ab*", "aab")
@example("?*[!a]", "ab")
@example("[b-a]*", "b")
@example("**", "")
def test_a_name_matches_as_fnmatch_says(pattern: str, name: str) -> None:
    expected = fnmatch.fnmatchcase(name, pattern) if is_pattern(pattern) else name == pattern
    assert matches(pattern, name) == (expected or name == pattern)
