// One step of a trace: its threads under each other, what ran in each from left to right.

/** The boxes of a timeline: a thread's own row, and its events by depth below. */
function timelineBoxes({ lanes, names, slices, duration_ns: duration }) {
  const boxes = [];
  let top = 0;
  lanes.forEach((lane, number) => {
    const mine = slices.filter((slice) => slice[0] === number);
    boxes.push({ begin: 0, end: 1, row: top, parent: -1, name: lane, text: lane, tone: "lane",
      words: `${lane}: ${mine.length} events in ${quantity(duration, "ns")}` });
    const thread = boxes.length - 1;
    const open = [];
    let deepest = 0;
    for (const [, depth, name, start, length, kind] of mine) {
      open[depth] = boxes.length;
      deepest = Math.max(deepest, depth + 1);
      boxes.push({
        begin: Math.max(start / duration, 0), end: Math.min((start + length) / duration, 1), row: top + 1 + depth,
        parent: depth ? open[depth - 1] ?? thread : thread, name: names[name], text: names[name].replace(/^aten::(?=.)/, ""),
        tone: `${kind}${shadeOf(names[name])}`,
        words: `${names[name]} · ${quantity(length, "ns")} · begins at ${quantity(start, "ns")}`,
      });
    }
    top += deepest + 1;
  });
  return { boxes, rows: top };
}

function timelineOf(timeline) {
  const { boxes, rows } = timelineBoxes(timeline);
  const chart = new BoxChart({ label: `Timeline of ${timeline.title}: arrows move, Enter zooms, Escape shows all`, boxes, rows });
  const found = make("span", { role: "status" });
  const field = searchField("Find", (text) => {
    const hits = chart.search(text);
    found.textContent = hits === null ? "" : `${hits.size} found`;
  });
  const reset = make("button", { type: "button", click: () => chart.reset() }, "Show all");
  const left = timeline.left_out ? ` ${timeline.left_out} shorter events are left out.` : "";
  return make("div", { class: "timeline" }, make("h4", {}, timeline.title),
    make("div", { class: "controls" }, field.element, reset, found), chart.element,
    make("p", { class: "legend" }, ...kindShades("op", "range", "call", "device"), `${quantity(timeline.duration_ns, "ns")} in all.${left}`));
}
