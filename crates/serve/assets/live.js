// Replaces the content of the page when the run has a new event. Without it, the page is loaded again every two seconds.
"use strict";
(() => {
  const main = document.querySelector("main[data-live]");
  if (!main) return;
  const source = new EventSource(main.dataset.live);
  let isLoading = false;
  let isStale = false;
  const load = async () => {
    if (isLoading) { isStale = true; return; }
    isLoading = true;
    do {
      isStale = false;
      const answer = await fetch(location.href, { credentials: "same-origin" });
      if (!answer.ok) break;
      const page = new DOMParser().parseFromString(await answer.text(), "text/html");
      const fresh = page.querySelector("main");
      if (fresh) {
        const opened = [...document.querySelectorAll("details")].map((details) => details.open);
        document.querySelector("main").replaceChildren(...fresh.childNodes);
        document.querySelectorAll("details").forEach((details, at) => { if (opened[at]) details.open = true; });
        if (!fresh.dataset.live) source.close();
      }
    } while (isStale);
    isLoading = false;
  };
  source.addEventListener("changed", load);
})();
