// What Sphinx's search ranks by.  A scorer replaces Sphinx's own, so its numbers are repeated here as they are; pages
// that hold a little of everything (requests, changes, measurements, lists of models), and the functions of `extend`,
// come after all others.
var Scorer = {
  score: ([docname, , , , score]) =>
    Scorer.last.has(docname) || docname.startsWith(Scorer.extend) ? score - 1000 : score,
  extend: "_generated/api/extend.",
  last: new Set([
    "asked",
    "changelog",
    "contributing",
    "libraries",
    "models",
    "_generated/measurements",
    "_generated/measurements_cuda",
    "_generated/ops",
    "_generated/scores",
    "_generated/sparse_forms",
  ]),
  objNameMatch: 11,
  objPartialMatch: 6,
  objPrio: { 0: 15, 1: 5, 2: -5 },
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,
};
