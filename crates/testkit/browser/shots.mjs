// Takes a screenshot of a page and compares it with the stored one, within the browser.
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";

// A pixel differs if one of its colours is further away than this.
const FAR = 48;

// Returns the share of pixels that differ, in tenths of a percent; writes the file if the job says so.
export async function compareShot(page, shot, address) {
  await page.setViewport({ width: shot.width, height: shot.height });
  await page.emulateMediaFeatures([{ name: "prefers-color-scheme", value: shot.scheme }]);
  await page.goto(address);
  await page.evaluate(replaceTexts, shot.replace);
  await page.evaluate((from) => document.querySelector(from).scrollIntoView(), shot.from);
  const taken = Buffer.from(await page.screenshot({ type: "png" })).toString("base64");
  if (shot.update) {
    mkdirSync(dirname(shot.file), { recursive: true });
    writeFileSync(shot.file, Buffer.from(taken, "base64"));
  }
  if (!existsSync(shot.file)) return { permille: 1000, size: 0 };
  const stored = readFileSync(shot.file);
  await page.goto("about:blank");
  const permille = await page.evaluate(difference, taken, stored.toString("base64"), FAR);
  return { permille, size: stored.length };
}

// Replaces texts that differ from run to run: ids, times, digests and temporary directories.
function replaceTexts(pairs) {
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    let text = walker.currentNode.data;
    for (const [pattern, by] of pairs) text = text.replace(new RegExp(pattern, "g"), by);
    walker.currentNode.data = text;
  }
}

async function difference(taken, stored, far) {
  const pixels = async (base64) => {
    const bytes = Uint8Array.from(atob(base64), (character) => character.charCodeAt(0));
    const image = await createImageBitmap(new Blob([bytes], { type: "image/png" }));
    const canvas = new OffscreenCanvas(image.width, image.height);
    const context = canvas.getContext("2d");
    context.drawImage(image, 0, 0);
    return context.getImageData(0, 0, image.width, image.height);
  };
  const [one, other] = [await pixels(taken), await pixels(stored)];
  if (one.width !== other.width || one.height !== other.height) return 1000;
  let count = 0;
  for (let at = 0; at < one.data.length; at += 4) {
    const isFar = [0, 1, 2].some((colour) => Math.abs(one.data[at + colour] - other.data[at + colour]) > far);
    if (isFar) count += 1;
  }
  return Math.ceil((count * 1000) / (one.width * one.height));
}
