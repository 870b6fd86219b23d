"""Numbers that an option cannot have: one sentence, before the command does anything."""

import pytest

from pytest_opprof.cli.main import main


@pytest.mark.parametrize(
    ("typed", "told"),
    [
        ("fleet ingest . --job a --workers -1", "--workers=-1: it must be a number from 1 to 1000"),
        ("fleet ingest . --job a --workers 0", "--workers=0: it must be a number from 1 to 1000"),
        ("view trace.json --port 99999", "--port=99999: it must be a number from 0 to 65535"),
        ("view trace.json --port -1", "--port=-1: it must be a number from 0 to 65535"),
    ],
)
def test_number_out_of_range_is_one_sentence(
    typed: str, told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(typed.split()) == 2
    assert capsys.readouterr().err == f"opprof: {told}\n"
