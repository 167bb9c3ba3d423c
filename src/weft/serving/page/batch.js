// Many rows: pasted or from a file, predicted in batches, downloaded as csv.

import { make, percent, rounded } from "./answers.js";
import { call } from "./api.js";
import { parse, write } from "./csv.js";

const PIECE = 32; // rows of a request
const AT_ONCE = 2; // requests in flight
const SHOWN = 200; // rows in the table; the file has all

const at = (id) => document.getElementById(id);
const batch = { tasks: [], limits: {}, file: null, header: [], rows: [], stopped: false, result: [] };
let complain = () => {};

export function startBatch(list, complainer) {
  Object.assign(batch, { tasks: list.data, limits: list.limits });
  complain = complainer;
}

function readFile(file) {
  if (!file) return;
  file.text().then((text) => {
    const rows = parse(text);
    if (rows.length < 2) return complain(`${file.name}: expected a header line with column names, followed by rows.`);
    complain("");
    batch.file = { name: file.name, header: rows[0].map((name) => name.trim()), rows: rows.slice(1) };
    at("lines").value = "";
    at("columns").hidden = false;
    at("found").textContent = `${file.name}: ${batch.file.rows.length.toLocaleString("en")} rows`;
    offerColumns(batch.file.header);
  });
}

function offerColumns(header) {
  const named = (...words) => header.findIndex((name) => words.includes(name.toLowerCase()));
  const first = Math.max(0, named("text", "text1", "sentence", "sentence1", "question1", "review", "message"));
  const second = named("text2", "sentence2", "question2");
  const options = () => header.map((name, i) => make("option", { value: i }, name || `column ${i + 1}`));
  at("column-first").replaceChildren(...options());
  at("column-second").replaceChildren(make("option", { value: -1 }, "none"), ...options());
  at("column-first").value = first;
  at("column-second").value = second;
}

// {header, rows, pairs: [text, second or null]}
function gather() {
  if (batch.file) {
    const [first, second] = [Number(at("column-first").value), Number(at("column-second").value)];
    const pairs = batch.file.rows.map((row) => [row[first] ?? "", second < 0 ? null : (row[second] ?? "")]);
    return { header: batch.file.header, rows: batch.file.rows, pairs };
  }
  const rows = at("lines").value.split(/\r?\n/).filter((line) => line.trim()).map((line) => line.split("\t"));
  const two = rows.some((row) => row.length > 1);
  const pairs = rows.map(([first, second]) => [first, two ? (second ?? "") : null]);
  return { header: two ? ["text", "text2"] : ["text"], rows: pairs.map((pair) => pair.filter((t) => t !== null)), pairs };
}

function refusal(pair) {
  for (const text of pair) {
    if (text === null) continue;
    if ([...text].length > batch.limits.max_chars) return `longer than ${batch.limits.max_chars} characters`;
    if (text.includes("\0") || !text.isWellFormed()) return "contains an invalid character";
  }
  return "";
}

async function answerPiece(numbers, pairs, two) {
  const body = { text: numbers.map((i) => pairs[i][0]) };
  if (two) body.text2 = numbers.map((i) => pairs[i][1]);
  for (;;) {
    try {
      const { answers } = await call("v1/predict", body);
      return numbers.map((_, k) => Object.fromEntries(Object.entries(answers).map(([task, own]) => [task, own[k]])));
    } catch (error) {
      if (error.status !== 429 || batch.stopped) throw error;
      await new Promise((resolve) => setTimeout(resolve, 1000 * error.retryAfter)); // the server is busy: retry
    }
  }
}

// Splits rows into requests, by the limits on rows and on bytes.
function cut(numbers, pairs) {
  const room = batch.limits.max_body / 8; // a character may take four bytes, or six when it is escaped
  const pieces = [];
  let piece = [];
  let size = 0;
  for (const i of numbers) {
    const own = pairs[i].reduce((sum, text) => sum + (text ?? "").length, 0);
    if (piece.length === Math.min(PIECE, batch.limits.max_texts) || (piece.length && size + own > room)) {
      pieces.push(piece);
      [piece, size] = [[], 0];
    }
    piece.push(i);
    size += own;
  }
  return piece.length ? [...pieces, piece] : pieces;
}

async function run() {
  const { header, rows, pairs } = gather();
  if (!pairs.length) return complain("There are no rows: paste lines, or choose a file.");
  complain("");
  const two = pairs[0][1] !== null;
  const found = pairs.map((pair) => ({ error: refusal(pair) }));
  const pieces = cut(pairs.map((_, i) => i).filter((i) => !found[i].error), pairs);
  batch.stopped = false;
  busy(true);
  const start = performance.now();
  let done = 0;
  const work = async () => {
    while (pieces.length && !batch.stopped) {
      const piece = pieces.shift();
      const answers = await answerPiece(piece, pairs, two);
      piece.forEach((i, k) => { found[i].answers = answers[k]; });
      done += piece.length;
      at("progress").value = done / pairs.length;
      at("batch-status").textContent = `${done.toLocaleString("en")} of ${pairs.length.toLocaleString("en")} rows`;
    }
  };
  try {
    await Promise.all(Array.from({ length: AT_ONCE }, work));
  } catch (error) {
    batch.stopped = true;
    complain(error.message);
  }
  const tasks = batch.tasks.filter((task) => task.texts === 1 || two);
  batch.result = table(header, rows, found, tasks);
  preview(pairs, found, tasks);
  busy(false);
  tell(done, found, performance.now() - start);
}

function tell(done, found, took) {
  const skipped = found.filter((row) => row.error).length;
  const parts = [`${done.toLocaleString("en")} rows answered in ${(took / 1000).toFixed(1)} s`];
  if (skipped) parts.push(`${skipped} skipped, with the reason in the file`);
  if (batch.stopped) parts.push("stopped early");
  if (found.length > SHOWN) parts.push(`the first ${SHOWN} are shown, the file has all`);
  at("batch-status").textContent = parts.join(" · ");
}

function busy(is) {
  at("progress").hidden = at("stop").hidden = !is;
  at("progress").value = 0;
  at("download").hidden = is || !batch.result.length;
  at("batch").querySelector(".main").disabled = is;
}

const named = (label) => label.label ?? label; // a span, or one of several labels
const shown = (answer) => (Array.isArray(answer.label) ? answer.label.map(named).join(", ") : (answer.label ?? rounded(answer.score)));
const probable = (task) => task.labels && task.kind !== "tags"; // tags have no probability for each label of a row

// The columns of the file, then for each task its label, its score and the probability of every class.
function table(header, rows, found, tasks) {
  const columns = tasks.flatMap((task) => [
    task.name,
    ...(task.labels ? [`${task.name}_score`] : []),
    ...(probable(task) ? task.labels.map((label) => `${task.name}_p_${label}`) : []),
  ]);
  const cells = (task, answer) => {
    const width = !task.labels ? 1 : 2 + (probable(task) ? task.labels.length : 0);
    if (!answer) return Array(width).fill("");
    if (!task.labels) return [answer.score];
    if (!probable(task)) return [JSON.stringify(answer.label), answer.score];
    const label = Array.isArray(answer.label) ? answer.label.join("|") : answer.label;
    return [label, answer.score, ...task.labels.map((name) => answer.probabilities[name])];
  };
  const lines = rows.map((row, i) => [
    ...header.map((_, k) => row[k] ?? ""),
    ...tasks.flatMap((task) => cells(task, found[i].answers?.[task.name])),
    found[i].error,
  ]);
  return [[...header, ...columns, "error"], ...lines];
}

function preview(pairs, found, tasks) {
  const names = ["row", "text", ...(pairs[0][1] === null ? [] : ["second text"]), ...tasks.map((task) => task.name)];
  const head = make("tr", {}, ...names.map((name) => make("th", { scope: "col" }, name)));
  const body = make("tbody");
  pairs.slice(0, SHOWN).forEach((pair, i) => {
    const line = make("tr", {}, make("td", { class: "number" }, String(i + 1)));
    for (const text of pair) if (text !== null) line.append(make("td", { class: "text" }, text.length > 160 ? `${text.slice(0, 160)}…` : text));
    for (const task of tasks) {
      const answer = found[i].answers?.[task.name];
      const cell = make("td", {}, answer ? shown(answer) : found[i].error || "–");
      if (answer && task.labels && !Array.isArray(answer.label)) cell.append(" ", make("small", {}, percent(answer.score)));
      line.append(cell);
    }
    [...line.children].forEach((cell, k) => cell.setAttribute("data-label", names[k])); // for phones: rows become cards
    body.append(line);
  });
  at("table").replaceChildren(make("thead", {}, head), body);
  at("table-box").hidden = false;
}

function download() {
  const link = make("a", { download: batch.file ? batch.file.name.replace(/\.\w+$/, "") + "-answers.csv" : "answers.csv" });
  link.href = URL.createObjectURL(new Blob([write(batch.result)], { type: "text/csv" }));
  link.click();
  URL.revokeObjectURL(link.href);
}

at("batch").addEventListener("submit", (event) => { event.preventDefault(); run(); });
at("stop").addEventListener("click", () => { batch.stopped = true; });
at("download").addEventListener("click", download);
at("file").addEventListener("change", () => readFile(at("file").files[0]));
at("lines").addEventListener("input", () => {
  batch.file = null;
  at("columns").hidden = true;
  at("file").value = "";
});
for (const name of ["dragenter", "dragover"])
  at("drop").addEventListener(name, (event) => { event.preventDefault(); at("drop").classList.add("over"); });
for (const name of ["dragleave", "drop"]) at("drop").addEventListener(name, () => at("drop").classList.remove("over"));
at("drop").addEventListener("drop", (event) => { event.preventDefault(); readFile(event.dataTransfer.files[0]); });
