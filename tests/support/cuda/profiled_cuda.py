"""Programs that profile their launches on the fake CUDA, each in its own process."""

from typing import Any

from support.programs.children import answer_of

PROGRAM = """
    import json, warnings
    from support.cuda import fake_cuda
    cuda = fake_cuda.load(major=MAJOR, device=0)
    from pytest_opprof import ProfilerActivity, profile, record_function, schedule, supported_activities
    CPU, CUDA = ProfilerActivity.CPU, ProfilerActivity.CUDA

    def step():
        with record_function("outer"):
            cuda.launch("_Z4gemmPfi", ns=20_000, grid=(8, 1, 1), block=(128, 1, 1), registers=40, dynamic_shared=512)
            with record_function("inner"):
                cuda.memcpy(fake_cuda.DTOH, 4096, ns=1000)
            cuda.graph("node", nodes=3, ns=1000)
        cuda.synchronize()

    def said(**what):
        print(json.dumps(what))
"""


def answer(program: str, *, major: int = 12) -> dict[str, Any]:
    said = answer_of(PROGRAM.replace("MAJOR", str(major)) + program)
    assert isinstance(said, dict)
    return said
