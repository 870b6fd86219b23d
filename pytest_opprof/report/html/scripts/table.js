// A table that sorts by each of its columns and shows the rows that a filter lets through.

const MOST_ROWS = 500;
// By element, so that a table that was shown before lives no longer than its element.
const TABLES = new WeakMap();

window.addEventListener("beforeprint", () => {
  document.querySelectorAll(".rows").forEach((element) => TABLES.get(element).fill(Infinity));
});

/**
 * @param label What the table is, for those who cannot see it.
 * @param columns Each with title, cell(row) and value(row), by which it sorts; group: the title over it and its
 *   neighbours, of which isFirst is one; isName: a row's own heading; isLong: sentences; isNumber.
 * @param rows Anything; detail(row), where given, says what a row opens.
 */
class DataTable {
  constructor({ label, columns, rows, detail = null, most = MOST_ROWS }) {
    Object.assign(this, { label, columns, rows, detail, most });
    this.sorted = null;
    this.opened = new Set();
    this.made = new Map(); // each row's element, which sorting and filtering only move
    this.wanted = () => true;
    this.body = make("tbody");
    this.more = make("button", { type: "button", class: "more", click: () => this.showMore() });
    this.element = make("div", { class: "rows" },
      make("div", { class: "scroll", role: "region", "aria-label": label, tabindex: "0" },
        make("table", {}, this.head(), this.body)),
      this.more);
    TABLES.set(this.element, this);
    this.fill(most);
  }

  head() {
    const titles = make("tr", {}, this.columns.map((column) => this.heading(column)));
    if (!this.columns.some((column) => column.group)) {
      return make("thead", {}, titles);
    }
    const groups = [];
    for (const column of this.columns) {
      const last = groups.at(-1);
      if (last && column.group && last.title === column.group) {
        last.width += 1;
      } else {
        groups.push({ title: column.group, width: 1 });
      }
    }
    return make("thead", {}, make("tr", { class: "groups" }, groups.map(({ title, width }) =>
      title ? make("th", { scope: "colgroup", colspan: width }, title) : make("td", { colspan: width }))), titles);
  }

  heading(column) {
    const button = make("button", { type: "button", class: "sort", click: () => this.sort(column) }, column.title);
    if (column.group) {
      button.setAttribute("aria-label", `${column.group}, ${column.title}`);
    }
    column.heading = make("th", { scope: "col", class: this.classOf(column), "aria-sort": "none" }, button);
    return column.heading;
  }

  classOf(column) {
    const { isNumber, isName, isFirst, isLong } = column;
    return Object.entries({ number: isNumber, name: isName, first: isFirst, long: isLong })
      .filter(([, is]) => is).map(([name]) => name).join(" ");
  }

  /** Sort by a column, and the other way round when it is asked for again: numbers begin with the largest. */
  sort(column) {
    const isFalling = this.sorted?.column === column ? !this.sorted.isFalling : Boolean(column.isNumber);
    this.sorted = { column, isFalling };
    for (const other of this.columns) {
      const direction = isFalling ? "descending" : "ascending";
      other.heading.setAttribute("aria-sort", other === column ? direction : "none");
    }
    this.fill(this.most);
  }

  filter(wanted) {
    this.wanted = wanted;
    this.fill(this.most);
  }

  /** The rows that the filter lets through, in their order; what has no value comes last either way. */
  get found() {
    const rows = this.rows.filter(this.wanted);
    if (!this.sorted) {
      return rows;
    }
    const { column, isFalling } = this.sorted;
    const keyed = rows.map((row) => [column.value(row), row]);
    const order = (a, b) => (typeof a === "number" ? a - b : a.localeCompare(b, "en", { numeric: true }));
    keyed.sort(([a], [b]) => {
      if (a === null || b === null) {
        return (a === null) - (b === null);
      }
      return isFalling ? order(b, a) : order(a, b);
    });
    return keyed.map(([, row]) => row);
  }

  fill(count) {
    const found = this.found;
    this.filled = Math.min(count, found.length);
    this.body.replaceChildren(...found.slice(0, count).flatMap((row) => this.lines(row)));
    const left = found.length - this.filled;
    this.more.hidden = left === 0;
    this.more.textContent = `Show ${Math.min(left, this.most)} more of ${left}`;
    this.count = found.length;
  }

  showMore() {
    const first = this.filled;
    this.fill(this.filled + this.most);
    this.body.children[first]?.querySelector("a, button")?.focus();
  }

  lines(row) {
    if (!this.made.has(row)) {
      this.made.set(row, make("tr", {}, this.columns.map((column) => this.cell(column, row))));
    }
    const line = this.made.get(row);
    return this.opened.has(row) ? [line, this.detailLine(row)] : [line];
  }

  cell(column, row) {
    if (!column.isName) {
      return make("td", { class: this.classOf(column) }, column.cell(row));
    }
    const name = column.cell(row);
    if (!this.detail) {
      return make("th", { scope: "row", class: "name" }, name);
    }
    const button = make("button", {
      type: "button", class: "opens", "aria-expanded": String(this.opened.has(row)),
      click: () => this.toggle(row, button),
    }, name);
    return make("th", { scope: "row", class: "name" }, button);
  }

  toggle(row, button) {
    const line = button.closest("tr");
    if (this.opened.delete(row)) {
      line.nextElementSibling.remove();
    } else {
      this.opened.add(row);
      line.after(this.detailLine(row));
    }
    button.setAttribute("aria-expanded", String(this.opened.has(row)));
  }

  detailLine(row) {
    return make("tr", { class: "detail" }, make("td", { colspan: this.columns.length }, this.detail(row)));
  }
}
