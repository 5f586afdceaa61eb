// Colours and line wrap. Without this file the form has a button, and lines are wrapped.
const root = document.documentElement;

for (const form of document.querySelectorAll("[data-theme-form]")) {
  form.querySelector("select").addEventListener("change", async (event) => {
    const body = new FormData(form); // before the attribute changes, so that both say the same
    root.dataset.theme = event.target.value;
    await fetch(form.action, { method: "POST", body, redirect: "manual" });
  });
}

function stored(key) {
  try {
    return localStorage.getItem(key);
  } catch {
    return null; // storage is switched off: the default holds
  }
}

function store(key, value) {
  try {
    localStorage.setItem(key, value);
  } catch {
    // the choice then lasts as long as the page
  }
}

const wrap = document.querySelector("[data-wrap]");
if (wrap) {
  wrap.checked = stored("wrap") !== "off";
  root.classList.toggle("unwrapped", !wrap.checked);
  wrap.addEventListener("change", () => {
    root.classList.toggle("unwrapped", !wrap.checked);
    store("wrap", wrap.checked ? "on" : "off");
  });
}
