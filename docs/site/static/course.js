// The course's diagrams that one steps through. A page has <div class="steps"> with the data as JSON: see
// docs/checks/course_steps.py, which computes them from a run of the emulated device.
"use strict";

(() => {
    const make = (tag, attributes, ...children) => {
        const element = document.createElement(tag);
        for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
        element.append(...children);
        return element;
    };

    // The state of every cell at step `index`: what the steps up to it have changed.
    const stateAt = (data, index) => Object.assign({}, ...data.steps.slice(0, index + 1).map((step) => step.cells));

    const show = (place) => {
        const data = JSON.parse(place.querySelector("script").textContent);
        const last = data.steps.length - 1;
        const cells = {};
        const grid = make("div", { class: "steps-grid" });
        for (const row of data.rows) {
            const line = make("div", { class: "steps-row" });
            line.style.gridTemplateColumns = `repeat(${row.cells.length}, minmax(0, 1fr))`;
            for (const id of row.cells) line.append((cells[id] = make("div", { class: "steps-cell" })));
            grid.append(make("div", { class: "steps-label" }, row.label), line);
        }
        const text = make("p", { class: "steps-text", "aria-live": "polite" });
        const slider = make("input", { type: "range", min: "0", max: String(last), value: "0", "aria-label": "step" });
        const count = make("span", { class: "steps-count" });
        const button = (label, name, move) => {
            const made = make("button", { type: "button", "aria-label": name, title: name }, label);
            made.addEventListener("click", () => go(move(at)));
            return made;
        };
        let at = 0;
        const go = (to) => {
            at = Math.max(0, Math.min(last, to));
            const state = stateAt(data, at);
            const changed = data.steps[at].cells;
            for (const [id, cell] of Object.entries(cells)) {
                cell.className = `steps-cell steps-${state[id][0]}${id in changed && at > 0 ? " steps-new" : ""}`;
                cell.textContent = state[id][1];
                cell.dataset.cell = id;
            }
            text.textContent = data.steps[at].text;
            slider.value = String(at);
            count.textContent = `${at + 1} of ${last + 1}`;
            place.dataset.step = String(at);
        };
        slider.addEventListener("input", () => go(Number(slider.value)));
        place.tabIndex = 0;
        place.addEventListener("keydown", (event) => {
            const move = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
            if (move && event.target === place) {
                event.preventDefault();
                event.stopPropagation();  // the page's own keys lead to the next chapter
                go(at + move);
            }
        });
        // Under the cursor: the same text elsewhere in the diagram, for those that say so.
        if (data.links) {
            for (const [id, cell] of Object.entries(cells)) {
                const mark = (on) => [id, ...(data.links[id] || [])].forEach((other) =>
                    cells[other].classList.toggle("steps-linked", on));
                cell.addEventListener("pointerenter", () => {
                    mark(true);
                    if (data.notes && data.notes[id]) text.textContent = data.notes[id];
                });
                cell.addEventListener("pointerleave", () => {
                    mark(false);
                    text.textContent = data.steps[at].text;
                });
            }
        }
        place.append(make("p", { class: "steps-title" }, data.title),
            make("div", { class: "steps-bar" }, button("|\u25c0", "first step", () => 0),
                button("\u25c0", "step back", (n) => n - 1), button("\u25b6", "next step", (n) => n + 1),
                button("\u25b6|", "last step", () => last), slider, count), text, grid);
        go(0);
    };

    document.addEventListener("DOMContentLoaded", () => document.querySelectorAll("div.steps").forEach(show));
    // On paper all solutions are open.
    window.addEventListener("beforeprint", () => document.querySelectorAll("details").forEach((one) => { one.open = true; }));
})();
