// Boxes beside and under each other: what flame graphs are drawn with. A click or Enter makes a box
// as wide as the drawing; arrows go from box to box, and Escape shows everything again.

const NARROWEST = 0.0008; // of the drawing's width: below, nothing could be seen of a box
const WIDE_ENOUGH_FOR_TEXT = 0.02;
const WIDE_ENOUGH_TO_FIND = 0.1; // of the drawing's width

/**
 * @param boxes Each with begin and end (0 to 1), row, parent (an index, -1 for none), name, text, tone and
 *   words: what is said of it.
 */
class BoxChart {
  constructor({ label, boxes, rows }) {
    Object.assign(this, { boxes, rows });
    this.view = { begin: 0, end: 1 };
    this.hits = null;
    this.current = 0;
    this.info = make("p", { class: "boxinfo" });
    this.tree = make("div", {
      class: "boxes", role: "tree", "aria-label": label,
      keydown: (event) => this.pressed(event),
      click: (event) => this.zoom(this.at(event)),
      mouseover: (event) => this.tell(this.at(event)),
      mouseleave: () => this.tell(this.current),
      focusin: (event) => this.move(this.at(event)),
    });
    this.tree.style.height = `${rows * 21}px`;
    this.element = make("div", { class: "boxchart" }, this.tree, this.info);
    this.fill();
    this.tell(this.current);
  }

  at(event) {
    const box = event.target.closest("[data-box]");
    return box ? Number(box.dataset.box) : null;
  }

  isVisible(box) {
    const { begin, end } = this.view;
    return Math.min(box.end, end) - Math.max(box.begin, begin) >= NARROWEST * (end - begin);
  }

  fill() {
    const hasFocus = this.tree.contains(document.activeElement);
    if (this.boxes.length && !this.isVisible(this.boxes[this.current])) {
      this.current = this.boxes.findIndex((box) => this.isVisible(box));
    }
    this.elements = new Map();
    this.boxes.forEach((box, number) => {
      if (this.isVisible(box)) {
        this.elements.set(number, this.drawn(box, number));
      }
    });
    this.tree.replaceChildren(...this.elements.values());
    if (hasFocus) {
      this.elements.get(this.current)?.focus();
    }
  }

  drawn(box, number) {
    const { begin, end } = this.view;
    const left = (Math.max(box.begin, begin) - begin) / (end - begin);
    const width = (Math.min(box.end, end) - begin) / (end - begin) - left;
    const isHit = this.hits === null ? "" : this.hits.has(number) ? " hit" : " miss";
    const element = make("div", {
      class: `box ${box.tone}${isHit}`, role: "treeitem", "data-box": number,
      "aria-level": box.row + 1, "aria-label": shown(box.words), tabindex: number === this.current ? "0" : "-1",
    }, width >= WIDE_ENOUGH_FOR_TEXT ? box.text : "");
    element.style.left = `${left * 100}%`;
    element.style.width = `${width * 100}%`;
    element.style.top = `${box.row * 21}px`;
    return element;
  }

  tell(number) {
    const box = number === null ? null : this.boxes[number];
    if (box) {
      this.info.textContent = shown(box.words);
    }
  }

  move(number) {
    if (number === null) {
      return;
    }
    this.elements.get(this.current)?.setAttribute("tabindex", "-1");
    this.current = number;
    this.elements.get(number)?.setAttribute("tabindex", "0");
    this.tell(number);
  }

  zoom(number) {
    if (number !== null) {
      this.view = { begin: this.boxes[number].begin, end: this.boxes[number].end };
      this.current = number;
      this.fill();
      this.elements.get(number)?.focus();
    }
  }

  /** Go to a box in what is around it, or to the box alone if it would be too narrow there. */
  lead(number, around) {
    const width = (at) => this.boxes[at].end - this.boxes[at].begin;
    this.zoom(around !== undefined && width(number) >= WIDE_ENOUGH_TO_FIND * width(around) ? around : number);
    this.move(number);
    this.elements.get(number)?.focus();
  }

  reset() {
    this.view = { begin: 0, end: 1 };
    this.fill();
  }

  /** Mark the boxes whose name has the text in it; all are as they were without one. */
  search(text) {
    const wanted = text.toLowerCase();
    const found = this.boxes.flatMap((box, number) => (box.name.toLowerCase().includes(wanted) ? [number] : []));
    this.hits = wanted ? new Set(found) : null;
    this.fill();
    return this.hits;
  }

  pressed(event) {
    const { key } = event;
    if (key === "Escape") {
      this.reset();
    } else if (key === "Enter" || key === " ") {
      this.zoom(this.at(event));
    } else {
      const next = this.neighbour(this.boxes[this.current], key);
      if (next === undefined) {
        return;
      }
      this.elements.get(next)?.focus();
    }
    event.preventDefault();
  }

  /** The box that a key leads to: up and down along calls, left and right along a row. */
  neighbour(box, key) {
    const visible = [...this.elements.keys()];
    const row = visible.filter((number) => this.boxes[number].row === box.row).sort(
      (a, b) => this.boxes[a].begin - this.boxes[b].begin);
    const place = row.indexOf(this.current);
    switch (key) {
      case "ArrowUp": return this.elements.has(box.parent) ? box.parent : undefined;
      case "ArrowDown": return visible.find((number) => this.boxes[number].parent === this.current);
      case "ArrowRight": return row[place + 1];
      case "ArrowLeft": return row[place - 1];
      case "Home": return row[0];
      case "End": return row.at(-1);
      default: return undefined;
    }
  }
}
