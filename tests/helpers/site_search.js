// node site_search.js BUILD QUERY...: a line of JSON with what the search of the built site ranks by, and a line for each
// query: the pages in the order in which they are shown, each with what of it was found (its title, its text, ...).
"use strict";
const fs = require("fs");
const path = require("path");
const vm = require("vm");

const [build, ...queries] = process.argv.slice(2);
const browser = {
  console,
  document: { getElementById: () => null, documentElement: { dataset: {} } },
  _: (text) => text,
  _ready: () => {}, // there is no page to wait for
  SPHINX_HIGHLIGHT_ENABLED: false,
};
browser.window = browser;
vm.createContext(browser);
for (const file of ["_static/language_data.js", "_static/searchtools.js"])
  vm.runInContext(fs.readFileSync(path.join(build, file), "utf8"), browser);
vm.runInContext("this.Search = Search", browser); // a constant is no property of the page
vm.runInContext(fs.readFileSync(path.join(build, "searchindex.js"), "utf8"), browser);
const { score, last, extend, ...numbers } = browser.Scorer;
console.log(JSON.stringify({ numbers, last: [...last], extend }));
for (const query of queries) {
  const found = browser.Search._performSearch(...browser.Search._parseQuery(query));
  console.log(JSON.stringify(found.map(([page, , , , , , kind]) => [page, kind]).reverse()));
}
