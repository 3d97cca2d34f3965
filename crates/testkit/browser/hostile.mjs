// Opens pages with hostile texts and reports what a browser does with them: scripts, requests, and what the page consists of.
// The pages are answered without a content security policy, so that nothing but their own escaping protects them.
import { readFileSync } from "node:fs";
import { axeSource, job, withBrowser } from "./browser.mjs";

const ORIGIN = "http://page.invalid";
const OWN = new Set(["/style.css", "/live.js", "/icon.svg", "/favicon.ico"]);

// What axe complains about, in light colours and in dark ones.
async function axe(page) {
  await page.evaluate(axeSource);
  const found = [];
  for (const value of ["light", "dark"]) {
    await page.emulateMediaFeatures([{ name: "prefers-color-scheme", value }]);
    found.push(...await page.evaluate(async () => {
      const result = await axe.run(document, { resultTypes: ["violations"] });
      return result.violations.flatMap((rule) => rule.nodes.map((node) => `${rule.id}: ${node.html.slice(0, 160)}`));
    }));
  }
  return found;
}

await withBrowser(async (browser) => {
  const results = [];
  const page = await browser.newPage();
  let file = null;
  let current = null;
  await page.exposeFunction("reportExecution", () => { current.executed += 1; });
  await page.evaluateOnNewDocument(() => {
    for (const name of ["alert", "confirm", "prompt", "print"]) window[name] = () => window.reportExecution();
  });
  await page.setRequestInterception(true);
  page.on("request", async (request) => {
    const url = new URL(request.url());
    const isPage = url.origin === ORIGIN && url.pathname === "/" && request.isNavigationRequest() && request.frame() === page.mainFrame();
    if (isPage && !current.isAnswered) {
      current.isAnswered = true;
      await request.respond({ contentType: "text/html; charset=utf-8", body: readFileSync(file) });
    } else if (url.origin === ORIGIN && OWN.has(url.pathname)) {
      await request.respond({ contentType: "text/css", body: url.pathname === "/style.css" ? job.style : "" });
    } else if (url.protocol === "data:") {
      await request.continue();
    } else {
      current.requests.push(request.url());
      await request.abort();
    }
  });
  for (const path of job.files) {
    file = path;
    current = { executed: 0, requests: [], isAnswered: false };
    await page.goto(`${ORIGIN}/`, { waitUntil: "load" });
    // Handlers of elements that the mouse or the focus reaches.
    const skeleton = await page.evaluate(() => {
      const elements = [...document.querySelectorAll("*")];
      for (const element of elements.slice(0, 400)) {
        for (const kind of ["mouseover", "focus", "toggle", "load"]) element.dispatchEvent(new Event(kind));
      }
      // `selected` depends on the search.
      const describe = (element) => [element.tagName, ...element.getAttributeNames().filter((name) => name !== "selected").sort()].join(" ");
      return elements.map(describe).join("\n");
    });
    // The first pages are harmless; they are judged by axe instead.
    const violations = results.length < job.judged ? await axe(page) : [];
    results.push({ file: path, violations, executed: current.executed, requests: current.requests, skeleton });
  }
  return results;
});
