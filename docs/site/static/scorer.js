// How the search weighs its answers: Sphinx's weights, and of two names with the same last part the shorter one first.

var Scorer = { // eslint-disable-line no-var
  score: ([, title, anchor, , score]) => (anchor.startsWith("#flow") ? score - title.split(".").length / 10 : score),
  objNameMatch: 11,
  objPartialMatch: 6,
  objPrio: { 0: 15, 1: 5, 2: -5 },
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,
};
