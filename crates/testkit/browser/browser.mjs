// Starts Chromium and finds the packages that drive it. The first argument is the folder of the installed packages.
import { createRequire } from "node:module";
import { readFileSync } from "node:fs";
import { pathToFileURL } from "node:url";

const tools = process.argv[2];
const require = createRequire(`${tools}/package.json`);

// The job, which the test writes to standard input as one JSON document.
export const job = JSON.parse(readFileSync(0, "utf8"));
export const axeSource = readFileSync(require.resolve("axe-core/axe.min.js"), "utf8");

const puppeteer = await load("puppeteer-core");

export async function load(name) {
  const found = await import(pathToFileURL(require.resolve(name)).href);
  return found.default ?? found;
}

// Runs `work` with a browser, prints its result as one JSON document, and ends the browser in any case.
export async function withBrowser(work) {
  const browser = await puppeteer.launch({
    executablePath: job.chromium,
    pipe: true,
    // Chromium's own sandbox does not start as root. The pages are ours, on loopback.
    args: ["--no-sandbox", "--disable-dev-shm-usage", "--force-color-profile=srgb", "--font-render-hinting=none", "--hide-scrollbars"],
  });
  try {
    process.stdout.write(JSON.stringify(await work(browser)));
  } finally {
    await browser.close();
  }
}
