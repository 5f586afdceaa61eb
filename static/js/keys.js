// Keys over what links and buttons do anyway. Off in fields, off by the switch in their list (WCAG 2.1.4).
const dialog = document.getElementById("keys");
const control = dialog.querySelector("[data-keys-switch]");

function stored() {
  try {
    return localStorage.getItem("keys");
  } catch {
    return null;
  }
}

control.checked = stored() !== "off";
control.addEventListener("change", () => {
  try {
    localStorage.setItem("keys", control.checked ? "on" : "off");
  } catch {
    // the choice then lasts as long as the page
  }
});
document.querySelector("[data-keys-button]").addEventListener("click", () => dialog.showModal());

const turns = () => [...document.querySelectorAll("[data-turn]")];
const here = () => turns().find((turn) => turn.contains(document.activeElement)) ?? turns().find((turn) => turn.matches(":target, :has(:target)"));

function step(by) {
  const all = turns();
  const at = all.indexOf(here());
  const next = all[at < 0 ? (by > 0 ? 0 : all.length - 1) : Math.max(0, Math.min(all.length - 1, at + by))];
  next?.focus();
  next?.scrollIntoView({ block: "start" });
}

function prompts(within) {
  return [...within.querySelectorAll("[data-prompt] > .text > details")];
}

function toggle(all) {
  const open = all.some((details) => !details.open);
  for (const details of all) details.open = open;
}

function neighbour(rel) {
  document.querySelector(`nav[aria-label="Neighbouring hands"] a[rel="${rel}"]`)?.click();
}

const actions = {
  j: () => step(1),
  k: () => step(-1),
  o: () => here() && toggle(prompts(here())),
  O: () => toggle(prompts(document)),
  p: () => neighbour("prev"),
  n: () => neighbour("next"),
  c: () => here()?.querySelector("[data-copy-link]")?.click(),
  "/": () => document.querySelector("[data-search]")?.focus(),
  "?": () => dialog.showModal(),
};

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || dialog.open) return;
  if (event.target.closest("input, textarea, select, [contenteditable]")) return;
  if (!control.checked || !Object.hasOwn(actions, event.key)) return;
  event.preventDefault();
  actions[event.key]();
});

document.addEventListener("click", (event) => {
  if (event.target.closest("[data-open-prompts]")) toggle(prompts(document));
});
