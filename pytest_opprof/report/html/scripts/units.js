// Nanoseconds, bytes and counts for a reader: what units.py says in Python.

/** With so many decimals, rounded as Python rounds: what lies in the middle goes to the even digit. */
function decimals(value, digits) {
  const size = Math.abs(value);
  let text = size.toFixed(digits);
  if (Number.isInteger(size * 2 ** (digits + 1)) && !Number.isInteger(size * 2 ** digits)) {
    const last = Math.floor(size * 10 ** digits);
    text = ((last + (last % 2)) / 10 ** digits).toFixed(digits);
  }
  return value < 0 ? `-${text}` : text;
}

function oneDecimal(value) {
  return decimals(value, 1);
}

/** Three figures of a value that is 1 or more as it is shown. */
function threeFigures(value) {
  const digits = [2, 1].find((each) => Number(decimals(Math.abs(value), each)) < 10 ** (3 - each)) ?? 0;
  return decimals(value, digits);
}

function scaled(value, units, smallest) {
  for (const [name, scale] of units) {
    if (Number(oneDecimal(Math.abs(value) / scale)) >= 1) {
      return `${oneDecimal(value / scale)} ${name}`;
    }
  }
  return `${value.toFixed(0)} ${smallest}`;
}

const TIMES = [["s", 1e9], ["ms", 1e6], ["µs", 1e3]];
const SIZES = [["TiB", 1024 ** 4], ["GiB", 1024 ** 3], ["MiB", 1024 ** 2], ["KiB", 1024]];
const FLOPS = [["PFLOPs", 1e15], ["TFLOPs", 1e12], ["GFLOPs", 1e9], ["MFLOPs", 1e6], ["KFLOPs", 1e3]];

function count(value) {
  return Number.isInteger(value) ? String(value) : oneDecimal(value);
}

function flops(value) {
  for (const [name, scale] of FLOPS) {
    // 999,999 would round to "1000.00 KFLOPs": it is a million already.
    if (Number(decimals(Math.abs(value) / (scale / 1000), 2)) >= 1000) {
      return `${decimals(value / scale, 2)} ${name}`;
    }
  }
  return `${count(value)} FLOPs`;
}

/** A value of a unit: "12", "4.4 ms", "1.2 MiB". */
function quantity(value, unit) {
  switch (unit) {
    case "ns": return scaled(value, TIMES, "ns");
    case "bytes": return scaled(value, SIZES, "B");
    case "ppm": return `${oneDecimal((value * 100) / 1e6)} %`;
    case "thousandths": return oneDecimal(value / 1000);
    case "flops": return flops(value);
    default: return count(value);
  }
}

/** A difference with its sign. */
function difference(value, unit) {
  return (value > 0 ? "+" : "") + quantity(value, unit);
}

/** Nanoseconds in three figures, for a reader who compares two of them. */
function preciseTime(value) {
  for (const [name, scale] of TIMES) {
    if (Number((Math.abs(value) / scale).toPrecision(3)) >= 1) {
      return `${threeFigures(value / scale)} ${name}`;
    }
  }
  return `${value.toFixed(0)} ns`;
}

/** What a document has of a metric, as numbers; null where it has nothing of it. */
function samplesOf(found, steps) {
  if (found === null || found === undefined) {
    return null;
  }
  if (typeof found === "number") {
    return { low: found, high: found, mean: found, values: null, steps };
  }
  if (Array.isArray(found)) {
    const sum = found.reduce((all, value) => all + value, 0);
    return { low: Math.min(...found), high: Math.max(...found), mean: sum / (found.length || 1), values: found, steps };
  }
  return { low: found.min, high: found.max, mean: steps ? found.sum / steps : 0, values: null, steps };
}

/** A metric over the steps: "12", or "12 to 14" where they differ so much that it shows. */
function rangeText(samples, unit) {
  const [low, high] = [quantity(samples.low, unit), quantity(samples.high, unit)];
  return low === high ? low : `${low} to ${high}`;
}

/** How much a step has more now than before; 0 where the ranges overlap. Of times, by the fastest step. */
function riseOf(base, head, isTime) {
  const [before, now] = [base ?? { low: 0, high: 0 }, head ?? { low: 0, high: 0 }];
  if (isTime) {
    return now.low - before.low;
  }
  return now.low > before.high ? now.low - before.high : Math.min(now.high - before.low, 0);
}

/** What a metric is called; a time says that no gate holds it: it is another machine's, or another day's. */
function labelOf({ label, family }) {
  return family === "time" ? `${label}, not gated` : label;
}
