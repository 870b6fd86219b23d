"""The author of a comment."""

from pytest_opprof.forge.conversation import Author


def test_author_is_known_by_number_else_by_name() -> None:
    assert Author(name="old", number=1).is_same(Author(name="new", number=1))
    assert not Author(name="same", number=1).is_same(Author(name="same", number=2))
    assert Author(name="same").is_same(Author(name="same", number=2))
    assert not Author(name="one").is_same(Author(name="two", number=2))
