// One test: its verdict, what changed and why, both sides in numbers, and where they come from.

/** What the gates say changed; what another row tells better is shown when asked for. */
function changeSection(test) {
  const telling = test.changes.filter((change) => change.telling);
  const place = make("div");
  const fill = (changes) => place.replaceChildren(plainTable("What changed",
    ["op", "metric", "base", "head", "change", "verdict", "cause"],
    changes.map((change) => ({
      cells: [change.name, change.label, change.base, change.head,
        make("span", { class: change.rise ? toneOfRise(change.rise, change) : "" }, change.change),
        badge(change.verdict, "advisory"), [change.cause, change.reason].filter(Boolean).join("; ")],
      values: [change.name, change.label, change.before, change.now, change.rise, change.verdict, change.cause],
    })), { numbers: ["base", "head", "change"], long: ["cause"] }));
  if (!test.changes.length) {
    return null;
  }
  const hidden = test.changes.length - telling.length;
  const all = make("label", {}, make("input", { type: "checkbox",
    change: (event) => fill(event.target.checked ? test.changes : telling) }),
    `also ${hidden} changes that other rows explain better`);
  fill(telling);
  return section("What changed", place, hidden ? make("div", { class: "controls" }, all) : null);
}

function limitSection({ limits }) {
  return limits.length ? section("Limits", plainTable("Limits", ["limit", "allowed", "measured", "verdict", "reason"],
    limits.map((limit) => ({ cells: [limit.path, limit.limit, limit.measured, badge(limit.verdict), limit.reason],
      values: [limit.path, limit.limit, limit.value, limit.verdict, limit.reason] })), { numbers: ["measured"], long: ["reason"] })) : null;
}

function advisorySection({ advisories }) {
  return advisories.length ? section("For information", make("ul", {}, advisories.map((text) => make("li", {}, text)))) : null;
}

/** The totals of both sides, with each step's value. */
function totalSection(test) {
  const names = Object.keys(index.totals).filter((name) => ["base", "head"].some((side) => name in (test[side]?.totals ?? {})));
  if (!names.length) {
    return null;
  }
  const of = (side, name) => {
    const steps = name === "wall_time" ? test[side]?.timing?.steps : test[side]?.steps;
    return samplesOf(test[side]?.totals[name], steps);
  };
  const rows = names.map((name) => {
    const about = index.totals[name];
    const [base, head] = [of("base", name), of("head", name)];
    const rise = base && head ? riseOf(base, head, about.family === "time") : 0;
    const text = (samples) => (samples ? rangeText(samples, about.unit) : "");
    return { cells: [labelOf(about), text(base), text(head), changeCell(rise, about), stepChart(base, head, about.unit)],
      values: [about.label, base?.mean ?? null, head?.mean ?? null, rise, about.label] };
  });
  const key = make("p", { class: "legend" },
    draw("svg", { class: "key", width: 12, height: 12, "aria-hidden": "true" }, marker("base", 6, 6)), "base ",
    draw("svg", { class: "key", width: 12, height: 12, "aria-hidden": "true" }, marker("head", 6, 6)),
    "head, step by step. The change of a time is that of the fastest step.");
  return section("Totals in a step", plainTable("Totals", ["total", "base", "head", "change", "steps"], rows,
    { numbers: ["base", "head", "change"] }), key);
}

/** An A/B: the fastest step of each process, and the ops that the time went to. */
function timeSection({ times }) {
  if (!times) {
    return null;
  }
  const sides = [["times", ""], ["confirmation", ", confirmation"]].flatMap(([round, words]) =>
    ["base", "head"].filter(() => times[round]).map((side) => ({ side, values: times[round][`${side}_ns`],
      title: `${side}${words}, ${times[round][`${side}_ns`].length} processes` })));
  for (const side of sides) {
    side.quartile = lowerQuartileOf(side.values);
    side.title += `, lower quartile ${preciseTime(side.quartile)}`;
  }
  const noise = times.noise_ppm === null ? "" : `the base differs from itself by ${quantity(times.noise_ppm, "ppm")}`;
  const ops = times.ops.map((op) => ({
    cells: [op.name, preciseTime(op.base_ns), preciseTime(op.head_ns), difference(op.head_ns - op.base_ns, "ns"),
      String(op.base_count), String(op.head_count), op.is_significant ? "yes" : "no"],
    values: [op.name, op.base_ns, op.head_ns, op.head_ns - op.base_ns, op.base_count, op.head_count, String(op.is_significant)],
  }));
  return section("Times, base and head measured in turns",
    make("p", {}, badge(times.verdict, "not run"), ` ${[times.reason, times.cause, noise].filter(Boolean).join("; ")}`),
    sides.length ? dotPlot(sides, sides.map((side) => side.title).join("; ")) : null,
    ops.length ? plainTable("Times of ops", ["op", "base", "head", "change", "calls before", "calls now", "beyond chance"],
      ops, { numbers: ["base", "head", "change", "calls before", "calls now"] }) : null);
}

/** What is judged: between two values by linear interpolation. */
function lowerQuartileOf(values) {
  const sorted = [...values].sort((a, b) => a - b);
  const at = (sorted.length - 1) / 4;
  const below = sorted[Math.floor(at)];
  return below + (sorted[Math.ceil(at)] - below) * (at % 1);
}

function trendSection({ trends }) {
  const charts = trends.map((trend) => {
    const rows = trend.points.map((point) => ({ cells: [point.title,
      point.value === null ? "?" : quantity(point.value, trend.unit), point.is_change ? "changed" : "", point.because],
      values: [point.title, point.value, String(point.is_change), point.because] })).reverse();
    return make("div", {}, make("h4", {}, trend.label), trendChart(trend),
      trend.note ? make("p", { class: "legend" }, trend.note) : null,
      make("details", {}, make("summary", {}, `${rows.length} runs, newest first`),
        plainTable(`Runs of ${trend.label}`, ["run", "value", "", "because"].map((title) => title || "change"), rows,
          { numbers: ["value"], long: ["because"] })));
  });
  return section("History", ...charts);
}

/** How it was measured, and what of that differs between the sides. */
function measurementSection(test) {
  const words = (side) => {
    const { steps, processes, sources, capture, activities, outcome, measurement } = side;
    return { outcome, measurement: [measurement.status, measurement.reason].filter(Boolean).join(": "),
      steps: String(steps), processes: String(processes), activities: activities.join(", "), sources: sources.join(", "),
      events: String(capture.events), dropped: String(capture.dropped), lacking: side.lacking.join("; "), ...side.settings };
  };
  const sides = ["base", "head"].filter((side) => test[side]);
  const facts = Object.fromEntries(sides.map((side) => [side, words(test[side])]));
  const names = [...new Set(sides.flatMap((side) => Object.keys(facts[side])))].filter((name) =>
    sides.some((side) => facts[side][name]));
  const rows = names.map((name) => {
    const cells = [name, ...sides.map((side) => facts[side][name] ?? "")];
    return { cells: sides.length === 2 ? [...cells, cells[1] === cells[2] ? "" : "differs"] : cells };
  });
  return sides.length ? section("How it was measured",
    plainTable("Measurement", ["", ...sides, ...(sides.length === 2 ? ["difference"] : [])].map((title) => title || "what"), rows))
    : null;
}

function flameSection(graph) {
  return graph ? section("Call tree", graph.element) : null;
}

/** Everything about one test, under its heading. */
function testView(test) {
  const hasTree = ["base", "head"].some((side) => test[side]?.tree.length);
  const graph = hasTree ? new FlameGraph(test) : null;
  const show = graph ? (row) => graph.show(row) : null;
  const find = graph ? (name) => { graph.search(name); graph.element.scrollIntoView(); graph.field.input.focus(); } : null;
  return make("article", { "aria-labelledby": "opened" },
    make("h2", { id: "opened", tabindex: "-1" }, badge(test.verdict, test.otherwise), " ", make("span", { class: "code" }, test.node_id)),
    test.reason ? make("p", { class: "reason" }, test.reason) : null,
    timeSection(test), causeSection(test, show), commandSection(test), changeSection(test), limitSection(test), totalSection(test), flameSection(graph),
    opSection(test, find), trendSection(test),
    advisorySection(test), measurementSection(test));
}
