// One card for each task: bars for classes, a gauge for a number, highlighted words for tags.

const SVG = "http://www.w3.org/2000/svg";
const ARC = Math.PI * 80; // length of the half circle

export function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children);
  return element;
}

function draw(tag, attributes, text) {
  const element = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  if (text !== undefined) element.textContent = text;
  return element;
}

export const percent = (p) => `${(100 * p).toFixed((p > 0.995 && p < 0.9995) || (p < 0.005 && p >= 0.0005) ? 1 : 0)} %`;
export const rounded = (score) => score.toFixed(2);
const end = (bound) => String(Number(bound.toFixed(2)));

function verdict(answer) {
  if (Array.isArray(answer.label)) return [answer.label.join(", ") || "none of them", ""];
  return [answer.label, percent(answer.score)];
}

function bars(answer) {
  const several = Array.isArray(answer.label);
  const chosen = new Set(several ? answer.label : [answer.label]);
  const list = make("dl", { class: "bars" });
  for (const [label, p] of Object.entries(answer.probabilities)) {
    const best = chosen.has(label) ? " best" : "";
    const bar = make("i");
    bar.style.width = `${100 * p}%`;
    list.append(
      make("dt", { class: best }, label),
      make("dd", { class: `track${best}${several ? " half" : ""}`, "aria-hidden": "true" }, bar),
      make("dd", { class: `number${best}` }, percent(p)),
    );
  }
  return list;
}

function gauge(answer, [low, high]) {
  const share = Math.min(1, Math.max(0, (answer.score - low) / (high - low)));
  const words = `${rounded(answer.score)}, on a scale from ${end(low)} to ${end(high)}`;
  const picture = draw("svg", { viewBox: "0 0 200 128", class: "gauge", role: "img", "aria-label": words });
  const arc = "M 20 100 A 80 80 0 0 1 180 100";
  picture.append(draw("path", { d: arc, class: "rest" }));
  if (share > 0.005) picture.append(draw("path", { d: arc, class: "value", "stroke-dasharray": `${share * ARC} ${2 * ARC}` }));
  picture.append(
    draw("text", { x: 100, y: 94, class: "score" }, rounded(answer.score)),
    draw("text", { x: 20, y: 124 }, end(low)),
    draw("text", { x: 180, y: 124 }, end(high)),
  );
  return picture;
}

const COLOURS = 6;

// A text with its spans marked. Offsets count code points, so that they are the same in every language.
export function highlighted(text, spans, types) {
  const letters = [...text];
  const box = make("p", { class: "tagged" });
  let at = 0;
  for (const span of spans) {
    const colour = types.indexOf(span.label) % COLOURS;
    const mark = make("mark", { class: `tag tag${Math.max(0, colour)}`, title: percent(span.score) }, letters.slice(span.start, span.end).join(""));
    mark.append(" ", make("small", {}, span.label));
    box.append(letters.slice(at, span.start).join(""), mark);
    at = span.end;
  }
  box.append(letters.slice(at).join(""));
  return box;
}

// The types in tags such as B-city.
const typesOf = (labels) => [...new Set(labels.map((label) => label.replace(/^[BIESLU]-/, "")))].filter((label) => label !== "O");

function side(answer, task, name, text) {
  const box = make("div", { class: "side" });
  if (name) box.append(make("small", {}, name));
  if (task.kind === "tags") {
    box.append(highlighted(text, answer.label, typesOf(task.labels)));
  } else if (!answer.probabilities) {
    box.append(gauge(answer, task.range ?? [-1, 1])); // a cosine similarity has no range of labels
  } else {
    const [label, p] = verdict(answer);
    box.append(make("p", { class: "verdict" }, label, " ", make("small", {}, p)), bars(answer));
  }
  return box;
}

const KINDS = {
  classification: "classes",
  ordinal: "ordered classes",
  multilabel: "any of several labels",
  regression: "a number",
  tags: "words",
  matches: "similarity",
};

// answers: one, or two if a task that reads one text has predicted both texts; texts: those that were predicted
export function card(task, answers, texts) {
  const box = make("article", { class: answers.length ? "card" : "card muted", "data-task": task.name });
  const what = `${KINDS[task.kind]} · ${task.texts === 1 ? "one text" : "two texts"}`;
  box.append(make("header", {}, make("h3", {}, task.name), make("span", { class: "kind" }, what)));
  if (!answers.length) {
    box.append(make("p", {}, "Reads two texts: enter a second one."));
    return box;
  }
  const names = answers.length > 1 ? ["Text", "Second text"] : [""];
  box.append(make("div", { class: "sides" }, ...answers.map((answer, i) => side(answer, task, names[i], texts[i]))));
  return box;
}
