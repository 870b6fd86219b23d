// Elements made one by one. Text gets in as text alone: nothing here, or anywhere else, parses markup.

const SVG_SPACE = "http://www.w3.org/2000/svg";
// What Python's str.isprintable() refuses: control, format, unassigned and separating characters.
const UNPRINTABLE = /[\p{C}\p{Zl}\p{Zp}]|(?! )\p{Zs}/gu;

const SHORT_ESCAPES = { "\n": "\\n", "\r": "\\r", "\t": "\\t" };

/** Text of a document as a reader may see it: what would be obeyed or not be seen is an escape, as on a terminal. */
function shown(text) {
  return String(text).replace(UNPRINTABLE, (char) => SHORT_ESCAPES[char] ?? escapeOf(char.codePointAt(0)));
}

function escapeOf(code) {
  const [letter, length] = code < 0x100 ? ["x", 2] : code < 0x10000 ? ["u", 4] : ["U", 8];
  return `\\${letter}${code.toString(16).padStart(length, "0")}`;
}

function filled(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") {
      element.addEventListener(name, value);
    } else if (value !== null && value !== undefined && value !== false) {
      element.setAttribute(name, value === true ? "" : value);
    }
  }
  for (const child of children.flat()) {
    if (child !== null && child !== undefined && child !== "") {
      element.append(child instanceof Node ? child : shown(child));
    }
  }
  return element;
}

/** An HTML element; an attribute that is a function listens to the event of that name. */
function make(tag, attributes = {}, ...children) {
  return filled(document.createElement(tag), attributes, children);
}

/** An SVG element. */
function draw(tag, attributes = {}, ...children) {
  return filled(document.createElementNS(SVG_SPACE, tag), attributes, children);
}

/** A name that a narrow column breaks after its underscores, dots, colons and slashes. */
function breakable(name) {
  return name.split(/(?<=[_.:/])(?![_.:/])/).flatMap((piece, at) => at ? [make("wbr"), piece] : [piece]);
}

/** A section under a heading; null where there is nothing to put in. */
function section(title, ...children) {
  return children.some((child) => child) ? make("section", {}, make("h3", {}, title), ...children) : null;
}

/** A verdict as the reports print it, in its colour. */
function badge(verdict, otherwise = "") {
  const tones = {
    error: "bad", regressed: "bad", missing: "bad",
    inconclusive: "warn", accepted: "warn", changed: "warn",
    improved: "good", new: "good", pass: "good",
  };
  return make("span", { class: `badge ${tones[verdict] ?? "plain"}` }, verdict ? verdict.toUpperCase() : otherwise);
}

/** A labelled field that calls back at each change of its text. */
function searchField(label, changed) {
  const input = make("input", { type: "search", autocomplete: "off", spellcheck: "false", input: () => changed(input.value) });
  const fill = (text) => {
    input.value = text;
    changed(text);
    input.focus();
  };
  return { element: make("label", { class: "field" }, make("span", {}, label), input), input, fill };
}

/** One of several values, as radio buttons under a common label. */
function choice(label, options, chosen, changed) {
  const name = `choice-${choice.made++}`;
  return make("fieldset", { class: "choice" }, make("legend", {}, label), options.map(([value, title]) =>
    make("label", {},
      make("input", { type: "radio", name, value, checked: value === chosen, change: () => changed(value) }), title)));
}
choice.made = 0;
