// A job of many ranks: how late each came in each step, and where its time went. Or two jobs, op by op.

const MOST_ROWS = 20;
const TALLEST = 4096;

const time = (value) => quantity(value, "ns");

/** Colours from early over on time to late. */
function heat(late, most) {
  if (late === null) {
    return "rgb(128 128 128 / 25%)";
  }
  const share = Math.sqrt(Math.min(1, Math.abs(late) / most)); // one straggler must not hide what others differ by
  return late > 0 ? `rgb(178 24 43 / ${0.06 + 0.94 * share})` : `rgb(33 102 172 / ${0.06 + 0.6 * share})`;
}

/** A canvas with a row for each rank and a column for each step; it says what is under the pointer. */
function heatMap(ranks, lateness, steps) {
  const height = Math.max(1, Math.min(12, Math.floor(900 / ranks.length)));
  const width = Math.max(2, Math.min(60, Math.floor(900 / steps.length)));
  const most = lateness.flat().reduce((most, late) => Math.max(most, Math.abs(late ?? 0)), 1);
  const canvas = make("canvas", {
    width: steps.length * width, height: Math.min(TALLEST, ranks.length * height), role: "img",
    "aria-label": `Lateness of ${ranks.length} ranks in ${steps.length} steps; the table below has the numbers`,
  });
  const status = make("p", { role: "status", class: "quiet" }, `blue: early · red: late, up to ${time(most)}`);
  const pen = canvas.getContext("2d");
  lateness.forEach((row, at) => row.forEach((late, step) => {
    pen.fillStyle = heat(late, most);
    pen.fillRect(step * width, at * height, width, height);
  }));
  canvas.addEventListener("mousemove", (event) => {
    const at = Math.floor(event.offsetY / height), step = Math.floor(event.offsetX / width);
    const late = lateness[at]?.[step];
    if (late !== undefined) {
      const told = late === null ? "not known" : `${time(Math.abs(late))} ${late < 0 ? "early" : "late"}`;
      status.textContent = `rank ${ranks[at]}, step ${steps[step]}: ${told}`;
    }
  });
  return [status, make("div", { class: "scroll" }, canvas)];
}

/** A table whose rows past the first twenty come when they are asked for. */
function longTable(titles, rows) {
  const body = make("tbody");
  const add = (some) => body.append(...some.map((cells) => make("tr", {},
    ...cells.map((cell, at) => (at ? make("td", { class: "number" }, cell) : make("th", { scope: "row", class: "code" }, cell))))));
  add(rows.slice(0, MOST_ROWS));
  const more = rows.length > MOST_ROWS
    ? make("button", { type: "button", click: () => { add(rows.slice(MOST_ROWS)); more.remove(); } }, `Show all ${rows.length}`)
    : null;
  const head = make("thead", {}, make("tr", {}, ...titles.map((title) => make("th", { scope: "col" }, title))));
  return [make("div", { class: "scroll", role: "region", "aria-label": titles[0], tabindex: "0" }, make("table", {}, head, body)), more];
}

/** Null without a known value. */
function middle(values) {
  const known = values.filter((value) => value !== null).sort((a, b) => a - b);
  return known.length ? known[Math.floor(known.length / 2)] : null;
}

function showSummary(summary) {
  const of = summary.ranks.columns;
  const late = of.lateness_ns.map(middle);
  const isKnown = late.some((value) => value !== null);
  const order = of.rank.map((_, at) => at).sort((a, b) => late[b] - late[a]);
  // As in the text, what is 0 on every rank has no place.
  const columns = [
    ["late", late], ["clock", of.clock_offset_ns], ["step", of.step_ns], ["computing", of.compute_ns],
    ["exposed", of.exposed_communication_ns], ["launch-bound", of.launch_bound_ns], ["host", of.host_ns],
    ["synchronizing", of.synchronize_ns], ["queued", of.queued_ns],
    ["peak", of.peak_bytes, (bytes) => (bytes ? quantity(bytes, "bytes") : "")],
  ].filter(([, values]) => values.some((value) => value));
  const rows = order.map((at) => [
    String(of.rank[at]), ...columns.map(([, values, told = time]) => (values[at] === null ? "" : told(values[at]))),
  ]);
  return [
    section(`Ranks${isKnown ? ", the latest first" : ""}; means of a step`, ...longTable(["rank", ...columns.map(([title]) => title)], rows)),
    isKnown
      ? section("Lateness: a row for each rank, a column for each step", ...heatMap(of.rank, of.lateness_ns, summary.steps))
      : null,
  ];
}

function showDifference(found) {
  const range = ([low, high]) => (low === high ? String(low) : `${low} to ${high}`);
  const spread = (of) => `${time(of.p10)} · ${time(of.p50)} · ${time(of.p90)}`;
  const rows = found.ops.map((op) => [
    op.on_device ? `${op.name} (device)` : op.name, op.reason, range(op.base), range(op.head), op.ranks ? String(op.ranks) : "",
    spread(op.base_ns), spread(op.head_ns),
  ]);
  const titles = ["op", "why it fails", `calls, ${found.base}`, `calls, ${found.head}`, "ranks with more",
    `p10 · median · p90, ${found.base}`, `p10 · median · p90, ${found.head}`];
  return [section("Ops that changed; self time in a step, over the ranks", ...longTable(titles, rows))];
}

const told = JSON.parse(document.getElementById("index").textContent);
const shownParts = told.summary ? showSummary(told.summary) : showDifference(told.difference);
document.getElementById("fleet").append(...shownParts.filter((part) => part));
