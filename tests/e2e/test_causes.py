"""The first row of a failure is its cause: user code that runs more often, or runs instead."""

import re

import pytest
from e2e.conftest import MakeProject
from e2e.project import Session

pytestmark = pytest.mark.slow

TESTS = """\
    import pytest
    import torch
    import torch.nn.functional as F
    from torch.nn.attention import SDPBackend, sdpa_kernel

    pytestmark = pytest.mark.profile(warmup=2, active=2)
    FAST = True
    X, V, Q = torch.ones(4, 16), torch.ones(4), torch.ones(1, 2, 8, 16)
    IMAGE, WEIGHT = torch.ones(2, 16, 32, 32), torch.ones(32, 16, 3, 3)
    NET = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.Tanh(), torch.nn.Linear(8, 1))

    def test_sort(): X.topk(3) if FAST else X.sort()

    def test_attention():
        with sdpa_kernel(SDPBackend.FLASH_ATTENTION if FAST else SDPBackend.MATH):
            F.scaled_dot_product_attention(Q, Q, Q)

    @pytest.mark.filterwarnings("ignore")
    def test_convolution():
        weight = WEIGHT.clone().requires_grad_()
        with torch.backends.mkldnn.flags(enabled=FAST):
            F.conv2d(IMAGE, weight).sum().backward()

    def test_einsum(): F.linear(X, X) if FAST else torch.einsum("bi,oi,o,o->bo", X, X, V, V)

    def test_one_hot():
        index, table = torch.arange(4), torch.ones(8, 3)
        F.embedding(index, table) if FAST else F.one_hot(index, 8).float() @ table

    def test_penalty():
        NET.zero_grad()
        x = torch.ones(4, 8, requires_grad=True)
        loss = NET(x).sum()
        if not FAST:
            (grad,) = torch.autograd.grad(loss, x, create_graph=True)
            loss = loss + grad.pow(2).sum()
        loss.backward()
"""
# The replaced or new op, and a row that only follows from it.
CAUSES = {
    "test_sort": ("aten::topk -> aten::sort", "aten::empty"),
    "test_attention": ("aten::_scaled_dot_product_attention_math", "aten::_to_copy"),
    "test_convolution": ("aten::thnn_conv2d", "aten::empty"),
    "test_einsum": ("aten::linear -> aten::einsum", "all ops"),
    "test_one_hot": ("aten::one_hot", "aten::_local_scalar_dense"),
    "test_penalty": ("aten::pow", "aten::ones_like"),
}


@pytest.fixture(scope="module")
def compared(make_project: MakeProject, torch_installed: None) -> Session:
    project = make_project("causes")
    project.write("test_it.py", TESTS)
    project.pytest("--opprof-save=main")
    project.replace("test_it.py", "FAST = True", "FAST = False")
    return project.pytest("--opprof-baseline=main", env={"COLUMNS": "300"})


@pytest.mark.parametrize(("name", "rows"), CAUSES.items(), ids=CAUSES)
def test_the_cause_stands_first(compared: Session, name: str, rows: tuple[str, str]) -> None:
    cause, follows = rows
    first, *others = (
        line for line in compared.failures[name].splitlines() if re.search(r" -> .* [+-]", line)
    )
    assert cause in first
    assert any(line.lstrip().startswith(follows) for line in others)


MODEL = """\
    import torch

    class Scaled(torch.autograd.Function):
        @staticmethod
        def forward(context, x): return x * 2

        @staticmethod
        def backward(context, gradient):
            return gradient * 2

    def evaluated(x):
        x = torch.relu(x)
        return (x + 1).exp()

    def trained(x):
        loss = evaluated(Scaled.apply(x)).sum()
        loss.backward()
        return loss
"""
# The edited text, its replacement, and the line to be named first.
EDITED = {
    "called once more": ("    loss.backward()", "    evaluated(x)\n    loss.backward()", "evaluated(x)"),
    "a custom backward": (
        "return gradient * 2",
        "return (gradient * 2).clone()",
        "return (gradient * 2).clone()",
    ),
}


@pytest.mark.parametrize(("old", "new", "line"), EDITED.values(), ids=EDITED)
def test_edited_line_leading_to_the_ops_is_named(
    make_project: MakeProject, torch_installed: None, old: str, new: str, line: str
) -> None:
    project = make_project("edited")
    project.git("init", "-q")
    project.write("model.py", MODEL)
    project.write(
        "test_it.py",
        """\
        import pytest, torch
        from model import trained

        @pytest.mark.profile
        def test_it(): trained(torch.ones(4, requires_grad=True))
        """,
    )
    project.commit()
    project.pytest("--opprof-save=main")
    project.replace("model.py", old, new)
    failure = project.pytest("--opprof-baseline=main").failures["test_it"].splitlines()
    where = next(at for at, text in enumerate(failure) if text.startswith("model.py:"))
    assert failure[where].endswith("changed in this branch")
    assert failure[where + 1].strip() == line
    assert not any(text.startswith("model.py:") for text in failure[where + 1 :]), "all of it is one block"
