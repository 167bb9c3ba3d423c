// Client of the server's API. Paths are relative, so that the page also works behind a proxy with a path prefix.

let key = "";
export const useKey = (value) => { key = value; };

export class Refused extends Error {
  constructor(status, message, retryAfter) {
    super(message);
    this.status = status;
    this.retryAfter = retryAfter;
  }
}

export async function call(path, body, signal) {
  const headers = key ? { Authorization: `Bearer ${key}` } : {};
  const options = { headers, signal };
  if (body !== undefined) {
    options.method = "POST";
    options.body = JSON.stringify(body);
    headers["Content-Type"] = "application/json";
  }
  let response;
  try {
    response = await fetch(path, options);
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Refused(0, "The server does not respond. Is it still running?");
  }
  const content = await response.json().catch(() => ({}));
  if (!response.ok) {
    const message = content.error ? content.error.message : `The server answered with status ${response.status}.`;
    throw new Refused(response.status, message, Number(response.headers.get("Retry-After")) || 1);
  }
  return content;
}
