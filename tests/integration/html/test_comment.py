"""A pull request's comment in a browser, with the dimensions of GitHub's style."""

from pathlib import Path

import pytest
from support.documents.compared import HEAD, MAIN, compared, named
from support.documents.strategies import simple_run
from support.html.rendered import github_html
from support.html.report_tabs import texts, written

from benchmarks.browser import Browser, Tab
from pytest_opprof.compare.comparison import Comparison
from pytest_opprof.report.markdown import markdown_comment

# A comment's margins and font, and tables that scroll if they are wider.
STYLE = """
body { margin: 0; font: 14px/1.5 -apple-system, "Segoe UI", "Noto Sans", Helvetica, Arial, sans-serif; }
.comment { margin: 0 16px 0 72px; padding: 16px; border: 1px solid; }
table { display: block; width: max-content; max-width: 100%; overflow: auto; border-collapse: collapse; }
th, td { padding: 6px 13px; border: 1px solid; }
code { padding: .2em .4em; font: 85% ui-monospace, "DejaVu Sans Mono", Menlo, monospace; white-space: break-spaces; }
"""
ENGINE = "autograd::engine::evaluate_function: NativeLayerNormBackward0"


def risen() -> Comparison:
    """Ops with names as long as torch's, in tests with long names: they fail two tests, and not the third."""
    ops = {ENGINE: 120, "aten::_scaled_dot_product_flash_attention_for_cpu_backward": 4_321}
    tests = [
        f"test_a_training_step_of_the_whole_model[{dtype}-compiled]" for dtype in ("float32", "bfloat16")
    ]
    base = simple_run(*(named(test, ops) for test in tests), name="main", commit=MAIN)
    more = {op: 2 * count for op, count in ops.items()}
    return compared(base, simple_run(*(named(test, more) for test in tests), commit=HEAD))


@pytest.mark.parametrize("width", [820, 1400])
def test_no_column_of_a_comment_is_off_the_screen(browser: Browser, tmp_path: Path, width: int) -> None:
    page = github_html(markdown_comment(risen()))
    tab = Tab(browser, width=width)
    tab.open(
        written(
            tmp_path,
            f"<!doctype html><meta charset=utf-8><style>{STYLE}</style><div class=comment>{page}</div>",
        )
    )
    assert ENGINE in texts(tab, "table code")
    tab.run("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
    wide = "[...document.querySelectorAll('table')].filter((one) => one.scrollWidth > one.clientWidth)"
    assert tab.run(f"{wide}.map((one) => one.textContent.trim().slice(0, 80))") == []
    assert tab.run("document.documentElement.scrollWidth") == width
    tab.close()
