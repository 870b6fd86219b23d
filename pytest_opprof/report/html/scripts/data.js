// What the page carries: the index of all tests as JSON, and each test packed, until somebody opens it.

const index = JSON.parse(document.getElementById("index").textContent);

/** What is known of one test: unpacked when it is opened. */
async function unpacked(number) {
  const packed = atob(JSON.parse(document.getElementById(`packed-${number}`).textContent));
  const bytes = Uint8Array.from(packed, (char) => char.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  const test = await new Response(stream).json();
  for (const side of [test.base, test.head].filter((found) => found)) {
    Object.assign(side, { ops: rowsOf(side.ops), tree: rowsOf(side.tree) });
  }
  return test;
}

/** The rows that a document has, of the columns that packing.py made of them. */
function rowsOf({ length, columns }) {
  const rows = Array.from({ length }, () => ({}));
  for (const [name, column] of Object.entries(columns)) {
    rows.forEach((row, at) => {
      const value = cellOf(column, at);
      if (value !== null) {
        row[name] = value;
      }
    });
  }
  return rows;
}

function cellOf(column, at) {
  if (Array.isArray(column)) {
    return column[at];
  }
  if (column.words) {
    return column.words[column.at[at]];
  }
  return column.min[at] === null ? column.sum[at] : { sum: column.sum[at], min: column.min[at], max: column.max[at] };
}
