"""The fake CUDA as programs of tests use it, from Python."""

import pytest
from support.programs.children import answer_of

pytestmark = pytest.mark.usefixtures("fake_cuda")

# A CUPTI client in Python, which knows only where a record holds its kind.
CLIENT = """
    import ctypes, json, threading
    from support.cuda import fake_cuda

    cuda = fake_cuda.load(major=MAJOR)
    libc = ctypes.CDLL(None)
    libc.calloc.restype = ctypes.c_void_p
    kinds = []

    @ctypes.CFUNCTYPE(None, ctypes.POINTER(ctypes.c_void_p), *[ctypes.POINTER(ctypes.c_size_t)] * 2)
    def give(data, size, most):
        data[0], size[0], most[0] = libc.calloc(1, 65536), 65536, 0

    @ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_uint32, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_size_t)
    def take(context, stream, data, size, valid):
        record = ctypes.c_void_p()
        while cuda.cupti.cuptiActivityGetNextRecord(
            ctypes.c_void_p(data), ctypes.c_size_t(valid), ctypes.byref(record)
        ) == 0:
            kinds.append(ctypes.c_uint32.from_address(record.value).value)

    def start():
        assert cuda.cupti.cuptiActivityRegisterCallbacks(give, take) == 0
        for kind in (1, 2, 5, 10, 38):
            assert cuda.cupti.cuptiActivityEnable(kind) == 0

    def said(**more):
        assert cuda.cupti.cuptiActivityFlushAll(1) == 0
        print(json.dumps({"kinds": sorted(kinds), **more}))
"""
RUNTIME, KERNEL, SYNC, MEMCPY, MEMSET = 5, 10, 38, 1, 2


def answer(program: str, *, major: int = 12) -> dict[str, object]:
    said = answer_of(CLIENT.replace("MAJOR", str(major)) + program)
    assert isinstance(said, dict)
    return said


@pytest.mark.parametrize("major", [12, 13])
def test_activities_become_records(major: int) -> None:
    said = answer(
        """
    start()
    cuda.launch("gemm", grid=(8, 1, 1))
    cuda.graph("step", nodes=3)
    cuda.memcpy(fake_cuda.DTOH, 4096, api="none")
    cuda.memset(64, api="none")
    cuda.synchronize()
    said(calls=cuda.calls("cuptiActivityEnable"), enabled=cuda.is_enabled(10))
    """,
        major=major,
    )
    assert said["kinds"] == [MEMCPY, MEMSET, RUNTIME, RUNTIME, RUNTIME, *[KERNEL] * 4, SYNC]
    assert said["calls"] == 5
    assert said["enabled"] is True


def test_a_script_runs_on_its_threads_with_ranges() -> None:
    said = answer(
        '''
    start()
    told = []
    note = lambda text: told.append((threading.get_native_id() == main, text))
    main = threading.get_native_id()
    cuda.script(
        """
        begin outer        # a range around two launches
        launch name="void f(int, float)" ns=50 grid=1,2,3
        step
        end
        thread 3
        begin other
        memcpy copy_kind=2 bytes=10
        end
        join
        thread 0
        begin after
        """,
        begin=note, end=lambda: note("end"), step=lambda: note("step"),
    )
    said(here=[text for mine, text in told if mine], there=[text for mine, text in told if not mine])
    '''
    )
    assert said["here"] == ["outer", "step", "end", "after"]
    assert said["there"] == ["other", "end"]
    assert said["kinds"] == [MEMCPY, RUNTIME, RUNTIME, KERNEL]


@pytest.mark.parametrize(
    "line",
    ["lunch", "launch ns=x", "launch grid=1,2", "launch nss=5", "begin", "thread 64", "launch flags=late,"],
)
def test_invalid_script_line_is_reported(line: str) -> None:
    said = answer(
        f"""
    start()
    try:
        cuda.script("launch\\n{line}")
    except ValueError as error:
        said(error=str(error))
    """
    )
    assert said["error"] == f"line 2 makes no sense: {line}"
    assert said["kinds"] == []


def test_requested_calls_fail() -> None:
    said = answer(
        """
    start()
    cuda.fail("cuptiActivityEnable", 35, nth=2)
    codes = [cuda.cupti.cuptiActivityEnable(10) for _ in range(3)]
    cuda.fail("cuptiActivityFlushAll", 999)
    codes += [cuda.cupti.cuptiActivityFlushAll(0) for _ in range(2)]
    cuda.fail("cuptiActivityFlushAll", 0)
    said(codes=codes)
    """
    )
    assert said["codes"] == [0, 35, 0, 999, 999]


def test_the_driver_waits_for_its_context() -> None:
    said = answer(
        """
    start()
    cuda.cupti.cuptiActivityEnable(4)
    cuda.launch(ns=2_000_000)
    before = cuda.totals().pending
    assert cuda.driver.cuCtxSynchronize() == 0
    assert cuda.cupti.cuptiActivityFlushAll(0) == 0
    said(before=before, after=cuda.totals().pending, untimed=cuda.totals().untimed)
    """
    )
    assert said["before"] == 1
    assert said["after"] == said["untimed"] == 0
    assert said["kinds"] == [4, RUNTIME, KERNEL, SYNC]
