// The op table of a test: each op once, with base, head and change of each metric.

const ALWAYS = ["count", "self_cpu_time_total", "cpu_time_total"];

function opSamples(op, metric, steps) {
  return op ? samplesOf(op[metric] ?? (ALWAYS.includes(metric) ? 0 : undefined), steps) : null;
}

function keyOf({ name, op = name, kind, background = false }) {
  return JSON.stringify([op, kind, background]);
}

/** The ops of both sides, joined; an op's values by metric, and its verdicts. */
function joinedOps(test) {
  const rows = new Map();
  for (const side of ["base", "head"]) {
    for (const op of test[side]?.ops ?? []) {
      const key = keyOf(op);
      rows.set(key, { name: op.name, kind: op.kind, background: Boolean(op.background), ...rows.get(key), [side]: op });
    }
  }
  const verdicts = verdictsByOp(test.changes);
  const places = new Map(test.changes.map((change, at) => [keyOf(change), at]).reverse());
  for (const [key, row] of rows) {
    row.verdict = verdicts.get(key) ?? null;
    row.values = new Map();
    for (const [metric, { family }] of Object.entries(index.op_metrics)) {
      const base = opSamples(row.base, metric, test.base?.steps);
      const head = opSamples(row.head, metric, test.head?.steps);
      if (base || head) {
        row.values.set(metric, { base, head, rise: riseOf(base, head, family === "time") });
      }
    }
    const isPair = test.base && test.head;
    row.isChanged = isPair && [...row.values].some(([metric, { rise }]) => rise && index.op_metrics[metric].family !== "time");
    row.place = places.get(key) ?? (row.isChanged ? test.changes.length : Infinity);
  }
  // What changed first, the worst of it on top; the rest in the order of the document.
  return [...rows.values()].sort((a, b) => (a.place === b.place ? 0 : a.place - b.place));
}

/** The first verdict on each op: changes stand with the worst first. */
function verdictsByOp(changes) {
  const verdicts = new Map();
  for (const change of changes) {
    if (change.op !== null && change.verdict && !verdicts.has(keyOf(change))) {
      verdicts.set(keyOf(change), change.verdict);
    }
  }
  return verdicts;
}

function metricsOf(rows) {
  return Object.keys(index.op_metrics).filter((metric) =>
    ALWAYS.includes(metric) || rows.some((row) => row.values.has(metric)));
}

function shownValue(samples, metric) {
  const { unit, family } = index.op_metrics[metric];
  if (!samples) {
    return "";
  }
  return family === "time" ? quantity(samples.low, unit) : rangeText(samples, unit);
}

/** Whether a value went the wrong way, for its colour; times inform only, and are not coloured. */
function toneOfRise(rise, { family, worse }) {
  if (!rise || family === "time") {
    return "";
  }
  return (rise > 0) === (worse === "higher") ? "worse" : "better";
}

function opColumns(rows, test) {
  const sides = ["base", "head"].filter((side) => test[side]);
  const columns = [
    { title: "op", isName: true, cell: (row) => row.name, value: (row) => row.name },
    ...(rows.some((row) => row.verdict)
      ? [{ title: "verdict", cell: (row) => (row.verdict ? badge(row.verdict) : ""), value: (row) => row.verdict }] : []),
    { title: "kind", cell: (row) => row.kind + (row.background ? ", background" : ""), value: (row) => row.kind },
  ];
  for (const metric of metricsOf(rows)) {
    const about = index.op_metrics[metric];
    for (const side of sides) {
      columns.push({
        title: side, group: labelOf(about), isNumber: true, isFirst: side === sides[0],
        cell: (row) => shownValue(row.values.get(metric)?.[side], metric),
        value: (row) => {
          const samples = row.values.get(metric)?.[side];
          return samples ? (about.family === "time" ? samples.low : samples.mean) : null;
        },
      });
    }
    if (sides.length === 2) {
      columns.push({
        title: "change", group: labelOf(about), isNumber: true,
        cell: (row) => changeCell(row.values.get(metric)?.rise, about),
        value: (row) => row.values.get(metric)?.rise ?? null,
      });
    }
  }
  return columns;
}

function changeCell(rise, about) {
  return rise ? make("span", { class: toneOfRise(rise, about) }, difference(rise, about.unit)) : "";
}

/** What a row opens: the steps of its metrics, who called it, from where. */
function opDetail(row, test, find) {
  const charts = metricsOf([row]).filter((metric) => row.values.has(metric)).map((metric) => {
    const { label, unit } = index.op_metrics[metric];
    const { base, head } = row.values.get(metric);
    return make("div", {}, make("dt", {}, label), make("dd", {}, stepChart(base, head, unit)));
  });
  const told = ["base", "head"].flatMap((side) => {
    const op = row[side];
    const places = op?.places ?? (op?.source ? [{ source: op.source }] : []);
    return [
      op?.parent_op ? make("div", {}, make("dt", {}, `${side}: called by`), make("dd", { class: "code" }, op.parent_op)) : null,
      places.length ? make("div", {}, make("dt", {}, `${side}: from`), make("dd", { class: "code" }, make("ul", {},
        places.map(({ source, count }) => make("li", {}, source + (count === undefined ? "" : ` (${count} calls)`)))))) : null,
    ];
  });
  return make("div", { class: "opdetail" }, make("dl", {}, charts, told),
    find ? make("button", { type: "button", click: () => find(row.name) }, "Find in the flame graph") : null);
}

function opSection(test, find) {
  const rows = joinedOps(test);
  if (!rows.length) {
    return null;
  }
  const table = new DataTable({ label: "Ops", columns: opColumns(rows, test), rows, most: 40,
    detail: (row) => opDetail(row, test, find) });
  const count = make("span", { role: "status" });
  const wanted = { text: "", changed: false };
  const apply = () => {
    const text = wanted.text.toLowerCase();
    table.filter((row) => (!wanted.changed || row.isChanged) && row.name.toLowerCase().includes(text));
    count.textContent = `${table.count} of ${rows.length} ops`;
  };
  const field = searchField("Filter ops", (text) => { wanted.text = text; apply(); });
  const changed = make("label", {}, make("input", { type: "checkbox",
    change: (event) => { wanted.changed = event.target.checked; apply(); } }), "only what changed in counts or bytes");
  apply();
  const omitted = ["base", "head"].filter((side) => test[side]?.ops_omitted)
    .map((side) => `${test[side].ops_omitted} more ops of the ${side} are not in the file. `).join("");
  return section("Ops", make("div", { class: "controls" }, field.element, test.base && test.head ? changed : null, count),
    table.element, make("p", { class: "legend" }, `Counts of one step; times of the fastest step. ${omitted}`));
}
