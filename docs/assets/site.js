// Makes what the theme adds to a page usable without a mouse and by screen readers: wide tables can
// be scrolled by keyboard, and the buttons beside each block of code have a name.
function complete() {
  for (const table of document.querySelectorAll(".md-typeset__scrollwrap:not([tabindex])")) {
    table.tabIndex = 0;
  }
  document.querySelectorAll(".md-code__nav:not([aria-label])").forEach((buttons) => {
    complete.named = (complete.named ?? 0) + 1;
    buttons.setAttribute("aria-label", `Code ${complete.named}`);
  });
}
new MutationObserver(complete).observe(document.body, { childList: true, subtree: true });
complete();
