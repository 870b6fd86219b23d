// The flame graph of a test: who called whom, on one side, or on both with what became more and less.

const BIG_SHARE = 0.3;
const SOME_SHARE = 0.1;
// Times of another day differ by this much without a change of the code.
const NOISE_SHARE = 0.05;

/** How much more of it there is now, of the larger side: -1 (all gone) to 1 (all new). */
function shareOfChange(base, head) {
  const larger = Math.max(base, head);
  return larger ? (head - base) / larger : 0;
}

function toneOfChange(node, weight) {
  const share = shareOfChange(node.base[weight], node.head[weight]);
  const size = Math.abs(share);
  if (size < (weight === "time" ? NOISE_SHARE : 1e-9)) {
    return "same";
  }
  const strength = size >= BIG_SHARE ? 3 : size >= SOME_SHARE ? 2 : 1;
  return `${share > 0 ? "up" : "down"}${strength}`;
}

/** One of three shades for a name, so that neighbours can be told apart. */
function shadeOf(name) {
  let sum = 0;
  for (let at = 0; at < name.length; at += 1) {
    sum = (sum * 31 + name.charCodeAt(at)) % 9973;
  }
  return sum % 3;
}

function shade(tone) {
  return make("span", { class: `shade box ${tone}`, "aria-hidden": "true" });
}

/** Which colour is what. */
function kindShades(...kinds) {
  return kinds.flatMap((kind) => [shade(`${kind}0`), ` ${kind}  `]);
}

class FlameGraph {
  constructor(test) {
    this.nodes = joinedTree(test.base, test.head);
    this.kinds = new Map([...(test.base?.ops ?? []), ...(test.head?.ops ?? [])].map((op) => [op.name, op.kind]));
    this.isPair = Boolean(test.base?.tree.length && test.head?.tree.length);
    this.sides = this.isPair ? ["base", "head"] : [test.head?.tree.length ? "head" : "base"];
    const hasTimes = this.nodes.some((node) => node.base.time + node.head.time > 0);
    // Calls are the same on a noisy machine: what differs in them is what somebody changed.
    this.weight = hasTimes && !this.isPair ? "time" : "calls";
    this.hasTimes = hasTimes;
    this.found = make("span", { role: "status" });
    this.field = searchField("Find", () => this.search());
    this.place = make("div");
    this.legend = make("p", { class: "legend" });
    this.element = make("div", { class: "flame" }, this.controls(), this.place, this.legend);
    this.fill();
  }

  controls() {
    const shownSides = choice("Show", [["both", "difference"], ["base", "base"], ["head", "head"]], "both",
      (value) => { this.sides = value === "both" ? ["base", "head"] : [value]; this.fill(); });
    const widths = choice("Width", [["time", "self CPU time"], ["calls", "calls"]], this.weight,
      (value) => { this.weight = value; this.fill(); });
    const reset = make("button", { type: "button", click: () => this.chart.reset() }, "Show all");
    return make("div", { class: "controls" }, this.isPair ? shownSides : null, this.hasTimes ? widths : null,
      this.field.element, reset, this.found);
  }

  fill() {
    const places = placesOf(this.nodes, this.sides, this.weight);
    const numbers = [...places.keys()];
    const numberOf = new Map(numbers.map((node, number) => [node, number]));
    this.numberOf = numberOf;
    const boxes = numbers.map((number) => {
      const node = this.nodes[number];
      return { ...places.get(number), row: node.row, parent: numberOf.get(node.parent) ?? -1, name: node.name,
        text: this.textOf(node), tone: this.toneOf(node), words: this.wordsOf(node) };
    });
    const rows = boxes.reduce((most, box) => Math.max(most, box.row + 1), 0);
    this.chart = new BoxChart({ label: this.label(), boxes, rows });
    this.place.replaceChildren(this.chart.element);
    this.legend.replaceChildren(...this.legendParts());
    this.search();
  }

  /** Lead to the box of an op that its caller calls more often than before. */
  show({ op, caller: wanted }) {
    const rise = (node) => node.head.count - node.base.count;
    const found = [...this.numberOf.keys()].filter((at) => this.nodes[at].name === op).sort((a, b) =>
      (this.nodes[this.nodes[b].parent]?.name === wanted) - (this.nodes[this.nodes[a].parent]?.name === wanted)
      || rise(this.nodes[b]) - rise(this.nodes[a]));
    this.search(op);
    this.element.scrollIntoView();
    if (found.length) {
      const [box, caller] = [found[0], this.nodes[found[0]].parent].map((at) => this.numberOf.get(at));
      this.chart.lead(box, caller);
    }
  }

  label() {
    const what = this.sides.length === 2 ? "base against head" : this.sides[0];
    return `Call tree, ${what}: arrows move, Enter zooms, Escape shows all`;
  }

  get isDifference() {
    return this.sides.length === 2;
  }

  /** What stands in a box: without the namespace that most ops share; a sign for new and gone, beside the colour. */
  textOf(node) {
    const sign = !this.isDifference ? "" : !node.base.calls ? "+ " : !node.head.calls ? "− " : "";
    return sign + node.name.replace(/^aten::(?=.)/, "");
  }

  toneOf(node) {
    if (this.isDifference) {
      const isOneSided = !node.base.calls || !node.head.calls;
      return toneOfChange(node, this.weight) + (isOneSided ? " onesided" : "");
    }
    const kind = this.kinds.get(node.name) ?? "range";
    return `${kind === "op" ? "op" : kind === "call" ? "call" : "range"}${shadeOf(node.name)}`;
  }

  wordsOf(node) {
    const parts = [node.name];
    for (const [title, of, unit] of [["calls", "count", "count"], ["time", "time", "ns"], ["self", "selfTime", "ns"]]) {
      if (of !== "count" && !this.hasTimes) {
        continue;
      }
      const [base, head] = [node.base[of], node.head[of]];
      parts.push(!this.isDifference
        ? `${title} ${quantity(node[this.sides[0]][of], unit)}`
        : `${title} ${quantity(base, unit)} → ${quantity(head, unit)}` +
          (base === head ? "" : ` (${difference(head - base, unit)})`));
    }
    if (this.isDifference && (!node.base.calls || !node.head.calls)) {
      parts.push(node.base.calls ? "gone" : "new");
    }
    return parts.join(" · ");
  }

  legendParts() {
    if (!this.isDifference) {
      return [...kindShades("op", "range", "call"), "One step, on average. Each box is under its caller."];
    }
    const much = this.weight === "time" ? "; less than 5 % of time is not coloured" : "";
    return ["less ", ...["down3", "down2", "down1", "same", "up1", "up2", "up3"].map(shade),
      ` more than the base, in a step. + is new, − is gone${much}.`];
  }

  search(text = this.field.input.value) {
    this.field.input.value = text;
    const hits = this.chart.search(text);
    const outermost = hits === null ? [] : [...hits].filter((number) => !this.hasHitAround(number, hits));
    const share = outermost.reduce((sum, at) => sum + this.chart.boxes[at].end - this.chart.boxes[at].begin, 0);
    this.found.textContent = hits === null ? "" : `${hits.size} found, ${oneDecimal(share * 100)} % of the width`;
  }

  hasHitAround(number, hits) {
    for (let at = this.chart.boxes[number].parent; at >= 0; at = this.chart.boxes[at].parent) {
      if (hits.has(at)) {
        return true;
      }
    }
    return false;
  }
}
