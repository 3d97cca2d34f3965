// Replaces the content of the page when the run has a new event. Without script, the page is loaded again every two seconds.
//
// A browser opens six connections to a host. One page of all tabs and windows watches the ledger and tells the others.
"use strict";
(() => {
  const main = document.querySelector("main[data-live]");
  if (!main) return;
  const others = new BroadcastChannel("changes");
  const ended = new AbortController();
  let isLoading = false;
  let isStale = false;
  const replace = async () => {
    const answer = await fetch(location.href, { credentials: "same-origin" });
    if (!answer.ok) return;
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    const fresh = page.querySelector("main");
    if (!fresh) return;
    const opened = [...document.querySelectorAll("details")].map((details) => details.open);
    document.querySelector("main").replaceChildren(...fresh.childNodes);
    document.querySelectorAll("details").forEach((details, at) => { if (opened[at]) details.open = true; });
    if (!fresh.dataset.live) ended.abort();
  };
  const load = async () => {
    if (isLoading) { isStale = true; return; }
    isLoading = true;
    do {
      isStale = false;
      await replace().catch(() => {});
    } while (isStale);
    isLoading = false;
  };
  const watch = () => new Promise((release) => {
    const source = new EventSource(main.dataset.live);
    const changed = () => { others.postMessage("changed"); load(); };
    // What happened before the stream was open is not sent.
    source.addEventListener("open", changed);
    source.addEventListener("changed", changed);
    ended.signal.addEventListener("abort", () => { source.close(); release(); });
  });
  others.addEventListener("message", load);
  navigator.locks.request("changes", { signal: ended.signal }, watch).catch(() => {});
})();
