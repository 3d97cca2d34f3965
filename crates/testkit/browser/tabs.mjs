// Opens one page of a server in many tabs, and waits until each shows a change, also after the first tab was closed.
// A page that cannot be loaded, or shows no change, fails the job.
import { job, withBrowser } from "./browser.mjs";

const LONGEST = 60_000;

await withBrowser(async (browser) => {
  const tabs = [];
  for (let number = 0; number < job.tabs; number += 1) {
    const page = await browser.newPage();
    if (number === 0) await page.goto(job.enter);
    await page.goto(new URL(job.path, job.enter).href, { timeout: LONGEST });
    tabs.push(page);
  }
  await Promise.all(tabs.map(seesChange));
  await tabs[0].close();
  await Promise.all(tabs.slice(1).map(seesChange));
  return { tabs: tabs.length };
});

async function seesChange(page) {
  const was = await page.evaluate(() => document.querySelector("main").innerText);
  await page.waitForFunction((text) => document.querySelector("main").innerText !== text, { timeout: LONGEST, polling: 100 }, was);
}
