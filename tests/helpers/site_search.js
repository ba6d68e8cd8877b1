// node site_search.js BUILD QUERY...: for each query, the page that the search of the built site shows first.
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
for (const query of queries) {
  const found = browser.Search._performSearch(...browser.Search._parseQuery(query));
  console.log(found.length ? found.at(-1)[0] : "nothing");
}
