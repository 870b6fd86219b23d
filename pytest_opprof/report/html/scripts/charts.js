// Small drawings of numbers. Places along the width are shares of it, so that text keeps its size.

const LEFT = 8;
const WIDTH = 84; // per cent; the rest is margin, for text at the ends

function along(share) {
  return `${LEFT + share * WIDTH}%`;
}

function spanOf(values) {
  const [low, high] = [Math.min(...values), Math.max(...values)];
  return high > low ? { low, high } : { low: low - 1, high: high + 1 };
}

function marker(side, x, y) {
  return side === "base"
    ? draw("rect", { class: "base", x, y: y - 3, width: 6, height: 6, transform: "translate(-3 0)" })
    : draw("circle", { class: side, cx: x, cy: y, r: 3.2 });
}

function wordsOfSamples(side, samples, unit) {
  if (!samples) {
    return `${side}: nothing`;
  }
  const values = samples.values ? samples.values.map((value) => quantity(value, unit)).join(", ") : rangeText(samples, unit);
  return `${side}: ${values}`;
}

/** Each step's value, base and head over each other; a sentence where every step has the same. */
function stepChart(base, head, unit) {
  const sides = [["base", base], ["head", head]].filter(([, samples]) => samples);
  if (sides.every(([, samples]) => samples.low === samples.high)) {
    return make("span", { class: "quiet" }, "same in every step");
  }
  const height = 34;
  const { low, high } = spanOf(sides.flatMap(([, samples]) => [samples.low, samples.high]));
  const y = (value) => height - 6 - ((value - low) / (high - low)) * (height - 12);
  const marks = sides.flatMap(([side, samples]) => {
    if (!samples.values) {
      const x = side === "base" ? "35%" : "65%";
      return [draw("line", { class: side, x1: x, x2: x, y1: y(samples.low), y2: y(samples.high) })];
    }
    const last = Math.max(samples.values.length - 1, 1);
    return samples.values.map((value, step) => marker(side, along(step / last), y(value)));
  });
  const words = sides.map(([side, samples]) => wordsOfSamples(side, samples, unit)).join("; ");
  return draw("svg", { class: "steps", role: "img", height, "aria-label": `Steps: ${words}` }, draw("title", {}, words), marks);
}

/** The fastest step of each process of an A/B, one row of dots a side. */
function dotPlot(sides, label) {
  const { low, high } = spanOf(sides.flatMap(({ values }) => values));
  const rowHeight = 38;
  const height = sides.length * rowHeight + 26;
  const x = (value) => along((value - low) / (high - low));
  const marks = sides.flatMap(({ side, values, quartile, title }, row) => {
    const middle = row * rowHeight + 26;
    return [
      draw("text", { x: 0, y: middle - 15, class: "axis" }, title),
      ...values.map((value, number) => marker(side, x(value), middle + ((number * 7) % 9) - 4)),
      draw("line", { class: `quartile ${side}`, x1: x(quartile), x2: x(quartile), y1: middle - 9, y2: middle + 9 }),
    ];
  });
  const ticks = [0, 0.5, 1].flatMap((share) => {
    const anchor = share === 0 ? "start" : share === 1 ? "end" : "middle";
    return [
      draw("line", { class: "grid", x1: along(share), x2: along(share), y1: 0, y2: height - 16 }),
      draw("text", { class: "axis", x: along(share), y: height - 3, "text-anchor": anchor },
        preciseTime(low + share * (high - low))),
    ];
  });
  return draw("svg", { class: "dots", role: "img", height, "aria-label": label }, ticks, marks);
}

/** A metric over the runs of a history; a line at each run where it changed. */
function trendChart(trend) {
  const known = trend.points.flatMap((point, number) => (point.value === null ? [] : [{ ...point, number }]));
  if (!known.length) {
    return null;
  }
  const height = 96;
  const { low, high } = spanOf(known.map((point) => point.value));
  const last = Math.max(trend.points.length - 1, 1);
  const x = (point) => along(point.number / last);
  const y = (point) => height - 24 - ((point.value - low) / (high - low)) * (height - 38);
  const marks = known.flatMap((point, at) => {
    const before = known[at - 1];
    return [
      point.is_change ? draw("line", { class: "change", x1: x(point), x2: x(point), y1: 0, y2: height - 18 }) : null,
      before ? draw("line", { class: "trend", x1: x(before), x2: x(point), y1: y(before), y2: y(point) }) : null,
      draw("circle", { class: point.is_change ? "changed" : "head", cx: x(point), cy: y(point), r: point.is_change ? 4 : 2.5 },
        draw("title", {}, `${point.title}: ${quantity(point.value, trend.unit)}`)),
    ];
  });
  const ends = [known[0], known.at(-1)];
  const texts = ends.map((point, at) => draw("text", { class: "axis", x: at ? "100%" : 0, y: height - 4,
    "text-anchor": at ? "end" : "start" }, `${point.title}: ${quantity(point.value, trend.unit)}`));
  const changes = known.filter((point) => point.is_change).map((point) => `${quantity(point.value, trend.unit)} at ${point.title}`);
  const words = `${trend.label}: ${known.length} runs, ${changes.length ? `changed to ${changes.join(", ")}` : "no change"}`;
  return draw("svg", { class: "trends", role: "img", height, "aria-label": shown(words) }, marks, texts);
}
