// Copy buttons, and what the status line says about them and about loads that fail.
const status = document.getElementById("status");

// Whoever fills it (htmx too), the line goes after a while: it lies over the page.
let fading;
new MutationObserver(() => {
  clearTimeout(fading);
  if (status.textContent) fading = setTimeout(() => (status.textContent = ""), 8000);
}).observe(status, { childList: true, characterData: true, subtree: true });

function say(words) {
  status.textContent = "";
  requestAnimationFrame(() => (status.textContent = words)); // the same words again are announced again
}

function size(count) {
  if (count < 1000) return `${count} B`;
  return count < 1e6 ? `${(count / 1e3).toFixed(1)} KB` : `${(count / 1e6).toFixed(1)} MB`;
}

// The stored text, not the page's: a browser's page has no NUL, no CR and no direction marks.
async function storedText(url) {
  const answer = await fetch(url, { credentials: "same-origin" });
  if (!answer.ok || answer.redirected) throw new Error("This text could not be fetched.");
  if (!answer.headers.get("content-type").startsWith("text/plain"))
    throw new Error("This text is not valid UTF-8: use Raw to download its bytes.");
  const bytes = await answer.arrayBuffer();
  return [new TextDecoder("utf-8", { ignoreBOM: true, fatal: true }).decode(bytes), bytes.byteLength];
}

async function copy(button) {
  try {
    if (button.matches("[data-copy-raw]")) {
      const [text, count] = await storedText(button.parentElement.querySelector("a").href);
      await navigator.clipboard.writeText(text);
      say(`Copied ${size(count)}`);
    } else {
      const text = button.dataset.copyLink ? new URL(button.dataset.copyLink, location).href : button.dataset.copy;
      await navigator.clipboard.writeText(text);
      say(`Copied ${text}`);
    }
  } catch (error) {
    say(error.name === "Error" ? error.message : "The browser did not allow copying.");
  }
}

document.addEventListener("click", (event) => {
  const button = event.target.closest("[data-copy-raw], [data-copy], [data-copy-link]");
  if (!button) return;
  event.preventDefault();
  copy(button);
});

document.addEventListener("htmx:sendError", () => say("The server does not answer. What is shown may be old."));
document.addEventListener("htmx:timeout", () => say("The server took too long to answer."));
document.addEventListener("htmx:responseError", (event) =>
  say(`The server could not do this (${event.detail.xhr.status}).`),
);

// What takes a moment is said while it does.
document.addEventListener("htmx:beforeRequest", (event) => {
  if (event.target.dataset.busy) say(event.target.dataset.busy);
});

// A live part asks again by itself, unless its reader has paused it or looks elsewhere.
document.addEventListener("htmx:beforeRequest", (event) => {
  if (!event.target.matches("[data-live]")) return;
  if (document.hidden || document.querySelector("[data-pause]")?.checked) event.preventDefault();
});
