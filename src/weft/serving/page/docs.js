// Renders the server's OpenAPI description.

import { make } from "./answers.js";
import { call } from "./api.js";
import { openWithKey } from "./key.js";

let [all, tasks, model] = [{}, [], ""]; // of the description

const resolve = (schema) => (schema?.$ref ? all[schema.$ref.split("/").pop()] : schema || {});

function type(schema) {
  if (schema.anyOf) return [...new Set(schema.anyOf.map(type))].filter((one) => one !== "null").join(" or ");
  if (schema.enum) return schema.enum.join(" | ");
  if (schema.const) return `"${schema.const}"`;
  const own = resolve(schema);
  if (own.type === "array") return `list of ${type(own.items || {})}`;
  if (own.additionalProperties) return `by name: ${type(own.additionalProperties)}`;
  return own.type || "any";
}

// Table rows of the fields of a schema, nested objects included.
function rows(schema, before = "") {
  const own = resolve(schema);
  return Object.entries(own.properties || {}).flatMap(([name, field]) => {
    const optional = before || (own.required || []).includes(name) ? "" : make("small", {}, " optional");
    const line = make("tr", {}, make("td", {}, make("code", {}, before + name), optional));
    line.append(make("td", {}, type(field)), make("td", {}, field.description || ""));
    let [inner, path] = [resolve(field), `${before}${name}`];
    if (inner.additionalProperties) [inner, path] = [resolve(inner.additionalProperties), `${path}.TASK`];
    if (inner.type === "array") [inner, path] = [resolve(inner.items), `${path}[]`];
    return [line, ...rows(inner, `${path}.`)];
  });
}

function fields(schema, title) {
  const body = rows(schema);
  if (!body.length) return [];
  const head = make("tr", {}, ...[title, "type", ""].map((word) => make("th", { scope: "col" }, word)));
  return [make("div", { class: "scroll" }, make("table", {}, make("thead", {}, head), make("tbody", {}, ...body)))];
}

function example(path, content) {
  const named = path.replace("{task}", tasks[0]).replace("{name}", model);
  const url = new URL(named.slice(1), document.baseURI).href;
  if (!content) return make("pre", {}, `curl ${url}`);
  return make("pre", {}, `curl ${url} \\\n  -H 'Content-Type: application/json' \\\n  -d '${JSON.stringify(content.example)}'`);
}

openWithKey(async () => {
  const description = await call("openapi.json");
  all = description.components?.schemas || {};
  document.getElementById("title").textContent = description.info.title;
  document.getElementById("about").textContent = description.info.description;
  tasks = description.paths["/v1/predict/{task}"].post.parameters[0].schema.enum;
  model = description.info.title.replace(/^weft: /, "");
  for (const [path, methods] of Object.entries(description.paths))
    for (const [method, route] of Object.entries(methods)) {
      const sent = route.requestBody?.content["application/json"];
      const answer = route.responses["200"].content?.["application/json"]?.schema;
      const statuses = Object.entries(route.responses).filter(([status]) => status !== "200");
      const box = make("section", { class: "route" });
      box.append(make("h2", {}, make("span", { class: `method ${method}` }, method.toUpperCase()), make("code", {}, path)));
      box.append(make("p", {}, route.description || route.summary), ...(sent ? fields(sent.schema, "you send") : []));
      box.append(...(answer ? fields(answer, "you get") : []));
      if (statuses.length) {
        const words = statuses.map(([status, one]) => `${status}: ${one.description}`).join(" ");
        box.append(make("p", {}, make("small", {}, words)));
      }
      box.append(example(path, sent));
      document.getElementById("routes").append(box);
    }
});
