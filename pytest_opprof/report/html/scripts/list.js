// The list of tests, failures first, with what became of the totals.

/** A test's name with its file before it, which says less and may stand on a line of its own. */
function testLink({ number, node_id: name }) {
  const end = name.includes("::") ? name.indexOf("::") + 2 : 0;
  return make("a", { href: `#test-${number}` }, end ? make("span", { class: "file" }, breakable(name.slice(0, end))) : null, breakable(name.slice(end)));
}

function listColumns() {
  const columns = [
    { title: "verdict", cell: (row) => badge(row.verdict, row.otherwise), value: (row) => row.number },
    { title: "test", isName: true, cell: testLink,
      value: (row) => row.node_id },
    { title: "worst change", isLong: true, cell: (row) => row.worst, value: (row) => row.worst },
  ];
  if (index.has_times) {
    for (const [title, name, write] of [
      ["base", "base_ns", preciseTime], ["head", "head_ns", preciseTime], ["change", "change_ppm", (value) => difference(value, "ppm")],
    ]) {
      columns.push({ title, group: "time", isNumber: true, isFirst: title === "base",
        value: (row) => row.times?.[name] ?? null, cell: (row) => (row.times ? write(row.times[name]) : "") });
    }
  }
  for (const name of index.columns) {
    const about = index.totals[name];
    const samples = (row, side) => samplesOf(row.totals[name]?.[side] ?? null, 0);
    const isTime = about.family === "time";
    const rise = (row) => {
      const [base, head] = [samples(row, 0), samples(row, 1)];
      return base && head ? riseOf(base, head, isTime) : null;
    };
    columns.push({ title: "head", group: labelOf(about), isNumber: true, isFirst: true,
      value: (row) => samples(row, 1)?.low ?? null,
      cell: (row) => {
        const head = samples(row, 1);
        return head ? (isTime ? quantity(head.low, about.unit) : rangeText(head, about.unit)) : "";
      } });
    // What differs in a time of another day says nothing: the test's own page has both.
    if (index.has_base && !isTime && index.tests.some(rise)) {
      columns.push({ title: "change", group: about.label, isNumber: true, value: rise, cell: (row) => changeCell(rise(row), about) });
    }
  }
  return columns;
}

function verdictOf(row) {
  return row.verdict ?? row.otherwise;
}

class TestList {
  constructor() {
    this.rows = index.tests;
    this.text = "";
    this.chosen = new Set();
    this.table = new DataTable({ label: "Tests", columns: listColumns(), rows: this.rows });
    this.count = make("span", { role: "status" });
    this.field = searchField("Filter tests", (text) => { this.text = text.toLowerCase(); this.apply(); });
    this.element = make("div", {}, causeList((cause) => this.ofCause(cause)), make("h2", {}, "Tests"),
      make("div", { class: "controls" }, this.field.element, this.verdicts(), this.count), this.table.element);
    this.apply();
  }

  /** Shows the tests of a cause, of all verdicts. */
  ofCause(cause) {
    this.chosen.clear();
    this.element.querySelectorAll(".chips button").forEach((button) => button.setAttribute("aria-pressed", "false"));
    this.field.fill(`cause ${cause.number}`);
  }

  /** A button for each verdict that there is: pressed, only tests of these are shown. */
  verdicts() {
    const counts = new Map();
    for (const row of this.rows) {
      counts.set(verdictOf(row), (counts.get(verdictOf(row)) ?? 0) + 1);
    }
    return make("div", { class: "chips", role: "group", "aria-label": "Verdicts" }, [...counts].map(([verdict, count]) => {
      const button = make("button", { type: "button", "aria-pressed": "false", click: () => {
        const isChosen = !this.chosen.delete(verdict);
        if (isChosen) {
          this.chosen.add(verdict);
        }
        button.setAttribute("aria-pressed", String(isChosen));
        this.apply();
      } }, `${verdict.toUpperCase()} ${count}`);
      return button;
    }));
  }

  apply() {
    this.table.filter((row) => (!this.chosen.size || this.chosen.has(verdictOf(row))) &&
      (this.text === `cause ${row.cause}` || row.node_id.toLowerCase().includes(this.text) || row.worst.toLowerCase().includes(this.text)));
    this.count.textContent = `${this.table.count} of ${this.rows.length} tests`;
  }
}
