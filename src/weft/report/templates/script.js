// Example browser: filter by task, search, sort. Texts are inserted as text, never as HTML.
(() => {
  const source = document.getElementById("data");
  if (!source) return;
  const { examples, labels } = JSON.parse(source.textContent);
  const PAGE = 24;
  const get = (id) => document.getElementById(id);
  const [byTask, byWord, byRight, byOrder] = ["by-task", "by-word", "by-right", "by-order"].map(get);
  let shown = PAGE;

  const make = (tag, text, css) => {
    const element = document.createElement(tag);
    if (text !== undefined) element.textContent = text;
    if (css) element.className = css;
    return element;
  };

  for (const task of new Set(examples.map((example) => example.task))) {
    const option = make("option", task);
    option.value = task;
    byTask.append(option);
  }
  for (const example of examples) {
    example.words = [...example.texts, example.true, ...example.answers].join("\n").toLowerCase();
  }

  const isRight = (example) => {
    const wanted = byRight ? byRight.value : "";
    if (wanted === "") return true;
    if (wanted === "none") return example.wrong.every(Boolean);
    return example.wrong.every((wrong, i) => wrong === (i !== Number(wanted)));
  };

  const fitting = () => {
    const word = byWord.value.trim().toLowerCase();
    const order = byOrder.value;
    return examples
      .filter((e) => (!byTask.value || e.task === byTask.value) && (!word || e.words.includes(word)) && isRight(e))
      .sort((a, b) => (order === "row" ? a.row - b.row : b[order] - a[order]));
  };

  const card = (example) => {
    const item = make("li");
    const texts = make("p", undefined, "texts");
    for (const text of example.texts) texts.append(make("span", text));
    const answer = make("p", undefined, "answer");
    const say = (name, value, css) => {
      const part = make("span", name + " ", css);
      part.append(make("b", value));
      answer.append(part);
    };
    answer.append(make("span", `${example.task}, row ${example.row}`));
    say("true", example.true);
    example.answers.forEach((value, i) =>
      say(labels.length > 1 ? labels[i] : "predicted", `${value} ${example.wrong[i] ? "✗" : "✓"}`, example.wrong[i] ? "wrong" : "right"));
    item.dataset.task = example.task;
    item.dataset.error = example.error;
    item.append(texts, answer);
    return item;
  };

  const draw = () => {
    const found = fitting();
    get("found").textContent = `${found.length.toLocaleString("en")} of ${examples.length.toLocaleString("en")} examples`;
    get("examples").replaceChildren(...found.slice(0, shown).map(card));
    get("more").hidden = found.length <= shown;
  };
  for (const control of [byTask, byWord, byRight, byOrder]) {
    for (const event of ["input", "change"]) {
      if (control) control.addEventListener(event, () => { shown = PAGE; draw(); });
    }
  }
  get("more").addEventListener("click", () => { shown += PAGE; draw(); });
  draw();
})();
addEventListener("beforeprint", () => document.querySelectorAll("details").forEach((one) => { one.open = true; }));
