// The page: which campaign is shown, and in which colours.

import { h } from "./dom.js";
import { showCampaign } from "./campaign.js";
import { showList } from "./list.js";

const THEMES = ["auto", "light", "dark"];
const main = document.getElementById("main");
const toggle = document.getElementById("theme");
let leave = null;

function setTheme(name) {
  const theme = THEMES.includes(name) ? name : "auto";
  document.documentElement.dataset.theme = theme;
  toggle.textContent = `Theme: ${theme}`;
  toggle.dataset.theme = theme;
  localStorage.setItem("contextgap theme", theme);
}

toggle.addEventListener("click", () => setTheme(THEMES[(THEMES.indexOf(toggle.dataset.theme) + 1) % THEMES.length]));
setTheme(localStorage.getItem("contextgap theme"));

function wanted() {
  const [, found] = location.hash.match(/^#\/campaigns\/(.+)$/) || [];
  try {
    return found === undefined ? null : decodeURIComponent(found);
  } catch {
    return null;
  }
}

function route() {
  if (location.hash === "#main") return;
  leave?.abort();
  leave = new AbortController();
  const name = wanted();
  document.title = name === null ? "contextgap" : `${name} · contextgap`;
  main.replaceChildren();
  window.scrollTo(0, 0);
  const shown = name === null ? showList(main, leave.signal) : showCampaign(main, name, leave.signal);
  shown.catch((error) => {
    if (error.name !== "AbortError") main.replaceChildren(h("p", { class: "problem", role: "alert" }, error.message));
  });
}

document.querySelector(".skip").addEventListener("click", (event) => {
  event.preventDefault();
  main.focus();
});
window.addEventListener("hashchange", route);
route();
