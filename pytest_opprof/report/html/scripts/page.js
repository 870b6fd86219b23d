// What is shown: the list, or the test that the address names. The theme follows the system until it is chosen.

const THEMES = ["auto", "light", "dark"];

function startTheme() {
  const button = document.getElementById("theme");
  let chosen = 0;
  button.hidden = false;
  button.addEventListener("click", () => {
    chosen = (chosen + 1) % THEMES.length;
    document.documentElement.dataset.theme = THEMES[chosen];
    button.textContent = `Theme: ${THEMES[chosen]}`;
  });
}

class Page {
  constructor() {
    this.list = new TestList();
    this.place = document.getElementById("tests");
    this.title = document.title;
    this.opened = null;
    window.addEventListener("hashchange", () => this.show());
    this.show();
  }

  /** Which test the address names; null for the list. */
  get wanted() {
    const found = /^#test-(\d+)$/.exec(location.hash);
    return found && Number(found[1]) < index.tests.length ? Number(found[1]) : null;
  }

  async show() {
    const number = this.wanted;
    const before = this.opened;
    this.opened = number;
    if (number === null) {
      this.place.replaceChildren(this.list.element);
      document.title = this.title;
      if (before !== null) {
        this.list.element.querySelector(`[aria-label=Tests] a[href="#test-${before}"]`)?.focus();
      }
      return;
    }
    try {
      const test = await unpacked(number);
      if (this.wanted === number) {
        this.place.replaceChildren(this.ways(number), testView(test));
        document.title = `${shown(test.node_id)} - ${this.title}`;
        window.scrollTo(0, 0);
        document.getElementById("opened").focus();
      }
    } catch (error) {
      this.place.replaceChildren(this.ways(number), make("p", { role: "alert" },
        `This test cannot be shown: ${error.message}. The page needs a browser of 2024 or later, and the whole file.`));
    }
  }

  /** Back to the list, and to the tests beside this one in the order of the list. */
  ways(number) {
    const shownTests = this.list.table.found;
    const at = shownTests.findIndex((row) => row.number === number);
    const beside = [["Previous", at - 1], ["Next", at + 1]].map(([title, place]) => {
      const row = at < 0 ? undefined : shownTests[place];
      return row ? make("a", { href: `#test-${row.number}` }, title) : null;
    });
    return make("nav", { "aria-label": "Tests", class: "ways" }, make("a", { href: "#" }, "All tests"), beside);
  }
}

startTheme();
new Page();
