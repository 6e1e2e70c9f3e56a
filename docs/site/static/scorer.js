// How the search orders what it finds: by Sphinx's own weights, but a declaration with exactly that name comes first.
var Scorer = {
    score: ([, title, , , score, , kind]) => {
        const query = (new URLSearchParams(window.location.search).get("q") || "").trim().toLowerCase();
        return kind === "object" && `::${title.toLowerCase()}`.endsWith(`::${query}`) ? score + 40 : score;
    },
    objNameMatch: 11,
    objPartialMatch: 6,
    objPrio: { 0: 15, 1: 5, 2: -5 },
    objPrioDefault: 0,
    title: 15,
    partialTitle: 7,
    term: 5,
    partialTerm: 2,
};
