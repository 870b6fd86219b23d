// Causes: the line that does more, its text, the ops below their callers, and what to type next.

/** A table of few rows; `long` are the columns that hold sentences. */
function plainTable(label, titles, rows, { numbers = [], long = [] } = {}) {
  const columns = titles.map((title, at) => ({
    title, isName: at === 0, isNumber: numbers.includes(title), isLong: long.includes(title),
    cell: (row) => row.cells[at], value: (row) => (row.values ? row.values[at] : String(row.cells[at])),
  }));
  return new DataTable({ label, columns, rows }).element;
}

/** An op as far in as it has callers above it; where there is a call tree, it leads to its box. */
function causeOp(row, show) {
  const words = breakable(row.name);
  const name = show && row.op
    ? make("button", { type: "button", class: "opens-box", title: "Show it in the call tree", click: () => show(row) }, words)
    : words;
  const element = make("span", { class: "indented" }, name);
  element.style.paddingLeft = `${row.depth * 1.5}em`;
  return element;
}

/** One line's share of a failure: where, its text, its ops, what to write instead. */
function blockView(block, { title = "h4", show = null } = {}) {
  const titles = ["op", "base", "head", "change", ...(block.rows.some((row) => row.words) ? ["note"] : [])];
  return make("div", { class: "cause" },
    make(title, { class: "code" }, block.title,
      block.is_edited ? make("span", { class: "edited" }, "changed in this branch") : null),
    block.text ? make("p", { class: "code source" }, block.text) : null,
    plainTable(`Ops of ${block.title}`, titles, block.rows.map((row) => ({
      cells: [causeOp(row, show), row.base, row.head, row.change, row.words],
      values: [row.name, row.before, row.now, row.rise, row.words],
    })), { numbers: ["base", "head", "change"] }),
    block.advice ? make("p", {}, block.advice) : null);
}

/** Where the regressions of a test come from. */
function causeSection({ causes }, show) {
  return section("Causes", ...causes.map((block) => blockView(block, { show })));
}

/** A command with a button that copies what is shown: a name may have characters that a terminal obeys. */
function commandLine(written) {
  const text = shown(written);
  const said = make("span", { role: "status", class: "quiet" });
  const command = make("span", { class: "code" }, text);
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(text);
      said.replaceChildren("copied");
    } catch { // a browser that does not let pages copy, or not those from a file
      getSelection().selectAllChildren(command);
      said.replaceChildren("selected: copy it from the keyboard");
    }
  };
  return make("p", { class: "command" },
    make("button", { type: "button", "aria-label": `Copy: ${text}`, click: copy }, "copy"), " ",
    command, " ", said);
}

/** What to type next. */
function commandSection({ commands }) {
  return section("Next", ...commands.map(commandLine));
}

/** Why tests fail, above the list of them: each cause once, with the first tests that have it; `showAll` has the list show all. */
function causeList(showAll) {
  if (!index.causes.length) {
    return null;
  }
  return make("section", {}, make("h2", {}, "Causes"), index.causes.map((cause) => make("section", { class: "common" },
    make("h3", {}, `Cause ${cause.number}`, cause.blocks.length ? null : make("span", {}, `: ${cause.words}`)),
    cause.blocks.map((block) => blockView(block)),
    make("ul", { class: "of-cause" }, cause.tests.map(({ number, name, total }) =>
      make("li", {}, make("a", { class: "code", href: `#test-${number}` }, name), total ? ` ${total}` : null)),
      cause.more ? make("li", {}, make("button", { type: "button", click: () => showAll(cause) }, `and ${cause.more} more`)) : null),
    cause.command ? commandLine(cause.command) : null)));
}
