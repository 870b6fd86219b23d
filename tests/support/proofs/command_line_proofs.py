"""Proofs that each argument of each ``opprof`` command has an effect: command lines, or a test's name."""

# A command line without the argument and one with it: their output must differ.
Typed = tuple[str, str]
PROOFS: dict[str, Typed] = {
    "show run": ("show base.json", "show head.json"),
    "show --test": ("show two.json", "show two.json --test=test_y"),
    "show --sort": ("show base.json --sort=name", "show base.json --sort=count"),
    "show --rows": ("show base.json", "show base.json --rows=1"),
    "show --columns": ("show base.json", "show base.json --columns=Self&CPU"),
    "show --store": ("show main", "show main --store=dir:other"),
    "compare base": ("compare base.json base.json", "compare head.json base.json"),
    "compare head": ("compare base.json base.json", "compare base.json head.json"),
    "compare --output": ("compare base.json head.json", "compare base.json head.json -o written.json"),
    "compare --fail-on": ("compare base.json head.json", "compare base.json head.json --fail-on=none"),
    "compare --gate": ("compare base.json head.json", "compare base.json head.json --gate=ops.count=off"),
    "compare --rename": (
        "compare base.json two.json",
        "compare base.json two.json --rename=tests/test_a.py::test_x->tests/test_a.py::test_y",
    ),
    "compare --store": ("compare main head.json", "compare main head.json --store=dir:other"),
    "compare --verbose": ("compare base.json base.json", "compare base.json base.json -v"),
    "compare --quiet": ("compare base.json head.json", "compare base.json head.json -q"),
    "comment comparison": ("comment other.json --dry-run", "comment .opprof/.state/last.json --dry-run"),
    "comment --base": (
        "comment --dry-run --head=head.json",
        "comment --dry-run --base=base.json --head=head.json",
    ),
    "comment --head": (
        "comment --dry-run --base=base.json --head=base.json",
        "comment --dry-run --base=base.json --head=head.json",
    ),
    "comment --gate": (
        "comment --dry-run --base=base.json --head=head.json",
        "comment --dry-run --base=base.json --head=head.json --gate=ops.count=off",
    ),
    "comment --store": ("comment --dry-run --head=main", "comment --dry-run --head=main --store=dir:other"),
    "comment --configuration": (
        "comment other.json --dry-run",
        "comment other.json --dry-run --configuration=cuda",
    ),
    "report comparison": ("report other.json", "report .opprof/.state/last.json"),
    "report --base": ("report --head=head.json", "report --base=base.json --head=head.json"),
    "report --head": (
        "report --base=base.json --head=base.json",
        "report --base=base.json --head=head.json",
    ),
    "report --gate": (
        "report --base=base.json --head=head.json",
        "report --base=base.json --head=head.json --gate=ops.count=off",
    ),
    "report --format": ("report other.json", "report other.json --format=annotations"),
    "report --output": ("report other.json", "report other.json -o written.md"),
    "report --history": ("report other.json --format=html", "report other.json --format=html --history"),
    "report --store": ("report --head=main", "report --head=main --store=dir:other"),
    "accept test": ("accept t.py::test_x --reason=so", "accept t.py::test_y --reason=so"),
    "accept metric": ("accept t.py::test_x --reason=so", "accept t.py::test_x ops.count --reason=so"),
    "accept --reason": ("accept t.py::test_x --reason=so", "accept t.py::test_x --reason=&"),
    "accept --comparison": (
        "accept t.py::test_x --reason=so",
        "accept t.py::test_x --reason=so --comparison=other.json",
    ),
    "baseline list name": ("baseline list", "baseline list main"),
    "baseline list --json": ("baseline list", "baseline list --json"),
    "baseline list --store": ("baseline list", "baseline list --store=dir:other"),
    "baseline show run": ("baseline show main", "baseline show rich"),
    "baseline show --test": ("baseline show rich", "baseline show rich --test=test_y"),
    "baseline show --sort": ("baseline show rich --sort=name", "baseline show rich --sort=count"),
    "baseline show --rows": ("baseline show rich", "baseline show rich --rows=1"),
    "baseline show --columns": ("baseline show rich", "baseline show rich --columns=Self&CPU"),
    "baseline show --store": ("baseline show main", "baseline show main --store=dir:other"),
    "baseline save name": ("baseline save main base.json", "baseline save topic base.json"),
    "baseline save run": ("baseline save main base.json", "baseline save main two.json"),
    "baseline save --whole": ("baseline save main two.json", "baseline save main two.json --whole"),
    "baseline save --store": (
        "baseline save main base.json",
        "baseline save main base.json --store=dir:third",
    ),
    "baseline remove run": ("baseline remove nothing", "baseline remove main"),
    "baseline remove --store": ("baseline remove main", "baseline remove main --store=dir:other"),
    "baseline prune names": ("baseline prune main", "baseline prune nothing"),
    "baseline prune --keep": ("baseline prune", "baseline prune --keep=1"),
    "baseline prune --store": ("baseline prune --keep=1", "baseline prune --keep=1 --store=dir:other"),
    "baseline push names": ("baseline push --to=dir:third main", "baseline push --to=dir:third rich"),
    "baseline push --to": ("baseline push --to=dir:third", "baseline push --to=dir:fourth"),
    "baseline push --remote": (
        "baseline push --store=git:repository",
        "baseline push --store=git:repository --remote=../bare",
    ),
    "baseline push --store": (
        "baseline push --to=dir:third",
        "baseline push --to=dir:third --store=dir:other",
    ),
    "baseline pull names": ("baseline pull --from=dir:other main", "baseline pull --from=dir:other nothing"),
    "baseline pull --from": ("baseline pull --from=dir:other", "baseline pull --from=dir:none"),
    "baseline pull --remote": (
        "baseline pull --store=git:repository",
        "baseline pull --store=git:repository --remote=../bare",
    ),
    "baseline pull --store": (
        "baseline pull --from=dir:other",
        "baseline pull --from=dir:other --store=dir:third",
    ),
    "validate files": ("validate base.json", "validate base.json head.json"),
    "init folder": ("init one", "init another"),
    "init --try": ("init one", "init one --try -p no:randomly"),
    "init --store": ("init one", "init one --store=dir:elsewhere"),
    "doctor --store": ("doctor", "doctor --store=dir:other"),
    "env sources": ("env", "env nvtx"),
    "import-benchmarks file": (
        "import-benchmarks stored.json -o run.json",
        "import-benchmarks slower.json -o run.json",
    ),
    "import-benchmarks --output": (
        "import-benchmarks stored.json -o run.json",
        "import-benchmarks stored.json -o runs.json",
    ),
    "history test": ("history test_x", "history test_y"),
    "history metric": ("history test_x", "history test_x aten::mul.count"),
    "history --name": ("history test_x", "history test_x --name=release"),
    "history --last": ("history test_x", "history test_x --last=1"),
    "history --json": ("history test_x", "history test_x --json"),
    "history --csv": ("history test_x", "history test_x --csv"),
    "history --import": ("history test_x", "history test_x --import two.json"),
    "history --tables": (
        "history test_x --import two.json",
        "history test_x --import two.json --tables=memory://proof",
    ),
    "history --where": (
        "history ops.count --import two.json --tables=memory://proof",
        "history ops.count --import two.json --tables=memory://proof --where=dirty",
    ),
    "history --repo": (
        "history --import two.json --tables=memory://proof",
        "history --import two.json --tables=memory://proof --repo=encoder",
    ),
    "history --compact": ("history test_x", "history test_x --compact"),
    "history --store": ("history test_x", "history test_x --store=dir:other"),
    "merge runs": ("merge base.json -o joined.json", "merge base.json two.json -o joined.json"),
    "merge --output": ("merge base.json -o joined.json", "merge base.json -o joined2.json"),
    "merge --expect": ("merge base.json -o joined.json", "merge base.json -o joined.json --expect=2"),
    "merge --collected": (
        "merge base.json -o joined.json",
        "merge base.json -o joined.json --collected=collected.txt",
    ),
    "trace show file": ("trace show before.json", "trace show after.json"),
    "trace show --sort": ("trace show before.json", "trace show before.json --sort=count"),
    "trace show --rows": ("trace show before.json", "trace show before.json --rows=1"),
    "trace show --steps": ("trace show before.json", "trace show before.json --steps"),
    "trace show --collectives": ("trace show before.json", "trace show before.json --collectives"),
    "trace show --overlap": ("trace show before.json", "trace show before.json --overlap"),
    "trace show --idle": ("trace show before.json", "trace show before.json --idle"),
    "trace diff base": ("trace diff before.json after.json", "trace diff after.json after.json"),
    "trace diff head": ("trace diff before.json before.json", "trace diff before.json after.json"),
    "trace diff --rows": ("trace diff before.json after.json", "trace diff before.json after.json --rows=1"),
    "trace diff --output": (
        "trace diff before.json after.json",
        "trace diff before.json after.json -o both.json",
    ),
    "trace to-run file": ("trace to-run before.json -o run.json", "trace to-run after.json -o run.json"),
    "trace to-run --output": (
        "trace to-run before.json -o run.json",
        "trace to-run before.json -o run2.json",
    ),
    "trace to-run --test": (
        "trace to-run before.json -o run.json",
        "trace to-run before.json -o run.json --test=t.py::test_x",
    ),
}
# `attach`: the text that a trace has only with the argument.
ATTACHED = {
    "attach --shapes": '"Input Dims"',
    "attach --memory": '"[memory]"',
    "attach --stack": '"python_function"',
    "attach --cpp-stack": '"C++ stack"',
    "attach --sampling": '"opprof_sampling": 0.5',
}
OF_ATTACH = {"attach pid", "attach --seconds", "attach --output"}
# Covered by tests/e2e/test_bisect.py, which has commits.
OF_BISECT = {
    *("bisect metric", "bisect test", "bisect --good", "bisect --bad", "bisect --setup", "bisect --resume"),
    *("bisect --store", "bisect --timeout", "bisect --python"),
}
# Covered by tests/e2e/test_deaths.py, which has dying processes.
OF_RECOVER = {"recover folder", "recover --output", "recover --remove", "recover --all"}
# `comment`: the file and test that cover the argument, because only a server sees its effect.
OF_COMMENT = {
    "comment --from-event": (
        "fork_comments/test_comments.py",
        "regression_comment_says_the_pull_request_measured_it",
    ),
    "comment --baseline": (
        "fork_comments/test_comments.py",
        "target_branch_supplies_the_baseline",
    ),
    "comment --output": (
        "fork_comments/test_comments.py",
        "regression_comment_says_the_pull_request_measured_it",
    ),
    "comment --forge": ("test_comment_cli.py", "forge_can_be_named"),
    "comment --when": ("test_comment_cli.py", "good_news_can_be_kept_quiet"),
    "comment --author": ("test_comment_cli.py", "command_line_names_the_author"),
    "comment --dry-run": ("test_comment_cli.py", "dry_run_needs_no_job"),
}
# Covered by the test that builds for another environment's torch.
OF_PREPARE = {"prepare --torch", "prepare --output"}
# `ab`: the file and the test of whole runs that cover the argument.
OF_AB = {
    "ab base": ("verdicts", "a_slower_op_is_found_and_named"),
    "ab --processes": ("verdicts", "a_slower_op_is_found_and_named"),
    "ab --steps": ("verdicts", "a_slower_op_is_found_and_named"),
    "ab --max-time": ("verdicts", "a_slower_op_is_found_and_named"),
    "ab --min-effect": ("resuming", "resume_finds_the_newest_same_plan_from_a_subfolder"),
    "ab --max-noise": ("resuming", "interrupted_measurements_are_kept_and_resumed"),
    "ab --setup": ("environments", "failed_base_build_shows_its_last_lines"),
    "ab --python": ("environments", "each_side_has_an_environment_of_its_own"),
    "ab --seed": ("resuming", "interrupted_measurements_are_kept_and_resumed"),
    "ab --timeout": ("disturbances", "a_process_that_hangs_is_ended_and_run_again"),
    "ab --resume": ("resuming", "interrupted_measurements_are_kept_and_resumed"),
    "ab --output": ("verdicts", "a_slower_op_is_found_and_named"),
    "ab --fail-on": ("resuming", "resume_finds_the_newest_same_plan_from_a_subfolder"),
    "ab --verbose": ("resuming", "interrupted_measurements_are_kept_and_resumed"),
    "ab --quiet": ("resuming", "resume_finds_the_newest_same_plan_from_a_subfolder"),
}
# Covered by the tests of causes.
OF_ACCEPT = {"accept --all", "accept --cause"}
# Covered by the tests of whole runs.
OF_RUN = {
    *("run --shapes", "run --memory", "run --cpp-stack", "run --sampling", "run --stack", "run --sort"),
    *("run --rows", "run --trace", "run --output", "run --compare", "run --store", "run --module"),
    "run program",
}
# An option of `opprof` itself; covered by tests/integration/test_completion.py, because it ends the process.
OF_ALL_COMMANDS = {"--print-completion"}
# `view`: the test that covers the argument by fetching the served trace.
OF_VIEW = {
    "view target": "regressed_test_shows_base_and_head",
    "view --test": "named_trace_is_shown",
    "view --side": "named_trace_is_shown",
    "view --traces": "traces_may_lie_elsewhere",
    "view --no-browser": "perfetto_reads_the_served_trace",
    "view --ui": "perfetto_reads_the_served_trace",
    "view --port": "regressed_test_shows_base_and_head",
}
# Covered by a test that starts a server with both.
OF_MCP = {"mcp folder", "mcp --store"}
# Covered by tests/e2e/test_replay.py.
OF_REPLAY = {"replay --cpu"}
OF_FLEET = {
    *(f"fleet ingest {name}" for name in ("source", "--output", "--job", "--window", "--expect", "--engine")),
    *(f"fleet show {name}" for name in ("job", "--window", "--expect", "--json", "--html", "--tables")),
    *(
        f"fleet diff {name}"
        for name in ("base", "head", "--fail-on", "--rows", "--json", "--html", "--tables")
    ),
    *(f"fleet sql {name}" for name in ("query", "--job", "--tables")),
    "fleet ingest --workers",
}
