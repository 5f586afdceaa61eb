// An attempt opens beside its run where there is room; where there is not, its link is a link.
const drawer = document.getElementById("drawer");
const narrow = matchMedia("(max-width: 899px)");
let opener = null;

document.addEventListener("htmx:beforeRequest", (event) => {
  if (event.detail.target !== drawer) return;
  if (narrow.matches) {
    event.preventDefault();
    location.assign(event.detail.elt.href);
  }
  opener = event.detail.elt.id;
});

document.addEventListener("htmx:afterSwap", (event) => {
  if (event.detail.target === drawer) drawer.focus();
});

drawer.addEventListener("click", (event) => {
  if (!event.target.closest("[data-close-drawer]")) return;
  event.preventDefault();
  drawer.replaceChildren();
  history.replaceState(null, "", drawer.dataset.run);
  document.getElementById(opener)?.focus(); // the live part may have drawn the row anew
});
