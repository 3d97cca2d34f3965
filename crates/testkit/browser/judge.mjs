// Judges the pages of a server in one browser: axe, keyboard, width, requests, Lighthouse and screenshots.
import { axeSource, job, load, withBrowser } from "./browser.mjs";
import { compareShot } from "./shots.mjs";

const NARROW = 360;
const LIGHTHOUSE = {
  extends: "lighthouse:default",
  settings: {
    onlyCategories: ["accessibility", "best-practices"],
    // The other methods wait five seconds for a page to become quiet.
    throttlingMethod: "simulate",
    pauseAfterFcpMs: 0,
    pauseAfterLoadMs: 0,
    networkQuietThresholdMs: 0,
    cpuQuietThresholdMs: 0,
    disableFullPageScreenshot: true,
    // It would remove the cookie of the session.
    disableStorageReset: true,
    skipAudits: job.skipAudits ?? [],
    formFactor: "desktop",
    screenEmulation: { disabled: true },
  },
};

// How long each part took, in milliseconds.
const times = {};

async function timed(part, work) {
  const start = performance.now();
  const result = await work();
  times[part] = Math.round((times[part] ?? 0) + performance.now() - start);
  return result;
}

await withBrowser(async (browser) => {
  const page = await browser.newPage();
  const seen = observe(page);
  await page.goto(job.enter);
  const pages = [];
  for (const { name, path } of job.pages) {
    pages.push({ name, ...(await timed("pages", () => judgePage(page, path, seen))) });
  }
  const shots = [];
  for (const shot of job.shots ?? []) {
    shots.push({ name: shot.name, ...(await timed("shots", () => takeShot(page, shot))) });
  }
  const policy = await timed("policy", () => tryToInject(page));
  const lighthouse = [];
  for (const { name, path } of job.lighthouse ?? []) {
    lighthouse.push({ name, ...(await timed("lighthouse", () => lighthouseOf(page, path))) });
  }
  const form = await submitForm(page);
  return { pages, shots, policy, form, lighthouse, times };
});

function address(path) {
  return new URL(path, job.enter).href;
}

// Chromium cannot always capture a page on a busy machine. The error is reported, and the second time counts.
async function takeShot(page, shot) {
  try {
    return await compareShot(page, shot, address(shot.path));
  } catch (error) {
    console.error(`screenshot ${shot.name}: ${error}`);
    return compareShot(page, shot, address(shot.path));
  }
}

// Collects what a page requests and complains about.
function observe(page) {
  const seen = { requests: [], errors: [] };
  page.on("request", (request) => seen.requests.push(request.url()));
  page.on("pageerror", (error) => seen.errors.push(String(error)));
  page.on("console", (message) => {
    if (message.type() === "error" || message.type() === "warn") seen.errors.push(message.text());
  });
  return seen;
}

async function judgePage(page, path, seen) {
  await page.setViewport({ width: 1280, height: 900 });
  await colours(page, "light");
  seen.requests.length = 0;
  seen.errors.length = 0;
  const answer = await page.goto(address(path));
  const isOwn = (url) => url === address(path) || new URL(url).origin === new URL(job.enter).origin;
  const elsewhere = seen.requests.filter((url) => !isOwn(url));
  const errors = [...seen.errors];
  const light = await axe(page);
  await colours(page, "dark");
  const dark = await axe(page);
  const dark_background = await page.evaluate(() => getComputedStyle(document.body).backgroundColor);
  await colours(page, "light");
  const light_background = await page.evaluate(() => getComputedStyle(document.body).backgroundColor);
  const unreached = await walkByKeyboard(page);
  await page.setViewport({ width: NARROW, height: 800 });
  const width = await page.evaluate(() => document.documentElement.scrollWidth);
  const narrow = await axe(page);
  return {
    // A file has no status.
    status: answer.url().startsWith("file:") ? 200 : answer.status(),
    title: await page.title(),
    has_different_colours: dark_background !== light_background,
    violations: [...light, ...dark, ...narrow],
    unreached,
    width,
    errors,
    elsewhere,
  };
}

function colours(page, scheme) {
  return page.emulateMediaFeatures([{ name: "prefers-color-scheme", value: scheme }]);
}

async function axe(page) {
  await page.evaluate(axeSource);
  return page.evaluate(async () => {
    const result = await axe.run(document, { resultTypes: ["violations"] });
    return result.violations.flatMap((rule) => rule.nodes.map((node) => `${rule.id}: ${node.html.slice(0, 160)}`));
  });
}

// Presses Tab until the focus returns to the start. Returns what can be operated and was not reached, or shows no focus.
async function walkByKeyboard(page) {
  const expected = await page.evaluate(() => {
    document.activeElement?.blur();
    window.scrollTo(0, 0);
    const operated = [...document.querySelectorAll("a[href], button, input, select, textarea, summary, [tabindex='0']")];
    const visible = operated.filter((element) => !element.disabled && element.getClientRects().length > 0);
    visible.forEach((element, at) => { element.dataset.walk = String(at); });
    // A region that scrolls must be operated by keyboard, too.
    const scrolled = [...document.querySelectorAll("main *")].filter((element) => {
      const overflows = element.scrollWidth > element.clientWidth + 1 && getComputedStyle(element).overflowX === "auto";
      return overflows && element.tabIndex < 0;
    });
    return { names: visible.map((element) => element.outerHTML.slice(0, 120)), scrolled: scrolled.map((element) => element.outerHTML.slice(0, 120)) };
  });
  const reached = new Set();
  const hidden = [];
  for (let presses = 0; presses < expected.names.length + 4; presses += 1) {
    await page.keyboard.press("Tab");
    const now = await page.evaluate(() => {
      const element = document.activeElement;
      const style = getComputedStyle(element);
      const at = element.dataset?.walk;
      return { at, has_focus_ring: style.outlineStyle !== "none" || style.boxShadow !== "none" };
    });
    if (now.at === undefined) continue;
    if (!now.has_focus_ring) hidden.push(`no focus is visible: ${expected.names[Number(now.at)]}`);
    reached.add(Number(now.at));
  }
  const missed = expected.names.filter((_, at) => !reached.has(at));
  return [...missed, ...hidden, ...expected.scrolled];
}

// What the content security policy stops when a page does contain foreign markup.
async function tryToInject(page) {
  await page.goto(address(job.pages[0].path));
  const requests = [];
  page.on("request", (request) => requests.push(request));
  const executed = await page.evaluate(async () => {
    window.executed = 0;
    const script = document.createElement("script");
    script.textContent = "window.executed += 1";
    document.body.append(script);
    const image = document.createElement("div");
    image.innerHTML = "<img src='http://elsewhere.invalid/x' onerror='window.executed += 1'><iframe src='data:text/html,x'></iframe>";
    document.body.append(image);
    await fetch("http://elsewhere.invalid/y").catch(() => {});
    await new Promise((done) => { setTimeout(done, 200); });
    return window.executed;
  });
  const left = requests.filter((request) => request.failure()?.errorText !== "csp");
  const elsewhere = left.map((request) => request.url()).filter((url) => url.startsWith("http://elsewhere.invalid"));
  return { executed, elsewhere };
}

// Fills the last form of a page with the digits of its digest, as a person does, and sends it.
async function submitForm(page) {
  await page.goto(address(job.form));
  const digest = await page.evaluate(() => [...document.querySelectorAll("section")].find((section) => section.querySelector("button")?.textContent === "Land").querySelector("code").textContent);
  const input = await page.$("form[action$='/land'] input[name=digits]");
  await input.type(digest.slice(0, 12));
  const [answer] = await Promise.all([page.waitForNavigation(), page.keyboard.press("Enter")]);
  const heading = await page.evaluate(() => document.querySelector("h1").textContent);
  const text = await page.evaluate(() => document.querySelector("main").innerText);
  return { status: answer.status(), heading, text };
}

async function lighthouseOf(page, path) {
  const lighthouse = await load("lighthouse");
  const { lhr } = await lighthouse(address(path), { output: [] }, LIGHTHOUSE, page);
  const failed = Object.values(lhr.audits).filter((audit) => audit.score !== null && audit.score < 1);
  const score = (name) => Math.round((lhr.categories[name].score ?? 0) * 100);
  return { accessibility: score("accessibility"), best_practices: score("best-practices"), failed: failed.map((audit) => audit.id), error: lhr.runtimeError?.message ?? null };
}
