// The main page: predictions for one text or a pair while the user types.

import { call } from "./api.js";
import { complain, openWithKey } from "./key.js";
import { card, make } from "./answers.js";
import { startBatch } from "./batch.js";

const EXAMPLES = [
  ["The second half drags, but the last ten minutes are worth the whole evening."],
  ["Nobody at the desk could help, and the room smelled of paint."],
  ["How do I keep basil alive in winter?", "What does a basil plant need in the cold months?"],
  ["A woman is slicing tomatoes.", "Somebody cuts vegetables in a kitchen."],
  ["The train to the coast was cancelled.", "My neighbour plays the cello."],
];
const WAIT = 350; // milliseconds without a keystroke before predictions are fetched

const EMPTY = "Answers appear here while you type.";

const at = (id) => document.getElementById(id);
const state = { tasks: [], running: null, timer: 0 };

async function open() {
  const list = await call("v1/tasks");
  state.tasks = list.data;
  at("model").textContent = list.model;
  document.title = `${list.model} · weft`;
  const count = list.data.length;
  at("about").textContent = `${count} ${count === 1 ? "task" : "tasks"} on one body: ${list.data.map((task) => task.name).join(", ")}.`;
  startBatch(list, complain);
  show({});
}

function show(answers, texts = []) {
  const tasks = Object.keys(answers).length ? state.tasks : [];
  at("answers").replaceChildren(...tasks.map((task) => card(task, answers[task.name] || [], texts)));
}

// Asks every task about the text or the pair; tasks that read one text also about the second text.
async function fetchAnswers(first, second, signal) {
  const singles = state.tasks.filter((task) => task.texts === 1).map((task) => task.name);
  const both = first && second;
  const requests = [];
  if (both && singles.length < state.tasks.length) requests.push(call("v1/predict", { text: first, text2: second }, signal));
  else if (singles.length) requests.push(call("v1/predict", { text: first || second, tasks: singles }, signal));
  if (both && singles.length) requests.push(call("v1/predict", { text: second, tasks: singles }, signal));
  const found = await Promise.all(requests);
  const answers = {};
  for (const { answers: own } of found)
    for (const [task, [answer]] of Object.entries(own)) (answers[task] ||= []).push(answer);
  return { answers, tokens: found.reduce((sum, one) => sum + one.usage.total_tokens, 0) };
}

async function ask() {
  clearTimeout(state.timer);
  const [first, second] = [at("first").value.trim(), at("second").value.trim()];
  if (state.running) state.running.abort();
  if (!first && !second) {
    at("status").textContent = EMPTY;
    show({});
    return;
  }
  const running = (state.running = new AbortController());
  const start = performance.now();
  at("answers").classList.add("stale");
  try {
    const { answers, tokens } = await fetchAnswers(first, second, running.signal);
    const took = performance.now() - start;
    show(answers, [first, second].filter(Boolean));
    at("status").textContent = tokens ? `Answered in ${took.toFixed(took < 10 ? 1 : 0)} ms · ${tokens} tokens` : "All tasks read two texts: enter both.";
    complain("");
  } catch (error) {
    if (error.name === "AbortError") return;
    complain(error.message);
    at("status").textContent = "No answer.";
  }
  if (state.running === running) at("answers").classList.remove("stale");
}

function soon() {
  clearTimeout(state.timer);
  state.timer = setTimeout(ask, WAIT);
}

function put(first, second) {
  at("first").value = first;
  at("second").value = second;
  ask();
}

function choose(tab) {
  for (const other of document.querySelectorAll("[role=tab]")) {
    const chosen = other === tab;
    other.setAttribute("aria-selected", String(chosen));
    other.tabIndex = chosen ? 0 : -1;
    at(other.getAttribute("aria-controls")).hidden = !chosen;
  }
  tab.focus();
}

for (const tab of document.querySelectorAll("[role=tab]")) {
  tab.addEventListener("click", () => choose(tab));
  tab.addEventListener("keydown", (event) => {
    if (event.key === "ArrowLeft" || event.key === "ArrowRight")
      choose([...document.querySelectorAll("[role=tab]")].find((other) => other !== tab));
  });
}
for (const [first, second = ""] of EXAMPLES) {
  const button = make("button", { type: "button" }, first);
  if (second) button.append(make("span", {}, second));
  button.addEventListener("click", () => put(first, second));
  at("examples").append(make("li", {}, button));
}
for (const id of ["first", "second"]) {
  at(id).addEventListener("input", soon);
  at(id).addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) ask();
  });
}
at("ask").addEventListener("submit", (event) => { event.preventDefault(); ask(); });
at("swap").addEventListener("click", () => put(at("second").value, at("first").value));
at("clear").addEventListener("click", () => { put("", ""); at("first").focus(); });
openWithKey(open);
