// Shared by both pages: opens the page, or asks for an API key first.

import { useKey } from "./api.js";

const at = (id) => document.getElementById(id);

export function complain(message) {
  at("problem").textContent = message || "";
  at("problem").hidden = !message;
}

export async function openWithKey(open) {
  const attempt = async () => {
    try {
      await open();
      at("key-form").hidden = true;
      complain("");
    } catch (error) {
      at("key-form").hidden = error.status !== 401;
      if (error.status === 401) at("key").focus();
      complain(error.message);
    }
  };
  at("key-form").addEventListener("submit", (event) => {
    event.preventDefault();
    useKey(at("key").value.trim());
    attempt();
  });
  await attempt();
}
