// node use_pages.mjs ADDRESS FOLDER model.onnx calibration.npz [KEY]
// Uses the pages as a person does, in the Chromium that $CHROMIUM names, and prints what they show.

import { mkdtemp, readFile, rm } from "node:fs/promises";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { argv, env } from "node:process";

import { chromium } from "playwright-core";

const [address, folder, model, set, key] = argv.slice(2);
const FLAGS = [
  "--headless",
  "--no-sandbox", // Chromium refuses to run as root with it; the pages are our own
  "--disable-gpu",
  "--disable-quic",
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
];
const profile = await mkdtemp(join(tmpdir(), "howsure-pages-"));
const complaints = [];
const shown = { complaints, overflows: [], violations: [] };
const AXE = await readFile(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

const open = async (options) => {
  const context = await chromium.launchPersistentContext(await mkdtemp(join(profile, "one-")), {
    executablePath: env.CHROMIUM,
    args: FLAGS,
    ...options,
  });
  const page = context.pages()[0];
  page.setDefaultTimeout(60_000);
  page.on("console", (message) => {
    if (["error", "warning"].includes(message.type())) complaints.push(message.text());
  });
  page.on("pageerror", (error) => complaints.push(error.message));
  page.on("request", (request) => {
    if (!request.url().startsWith(address)) complaints.push(request.url());
  });
  return { context, page };
};
const signIn = async (page) => {
  await page.goto(address);
  if (!key) return;
  await page.fill("#key", key);
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.waitForURL(address);
};
const look = async (page, name) => {
  await page.evaluate(`${AXE};0`);
  const found = await page.evaluate(() => globalThis.axe.run());
  for (const { id, impact, nodes } of found.violations) {
    shown.violations.push([name, id, impact, nodes[0].html]);
  }
};
const picture = (page, name) =>
  page.screenshot({ path: join(folder, `${name}.png`), fullPage: true });

try {
  const { context, page } = await open({ viewport: { width: 1280, height: 900 } });
  await signIn(page);
  shown.empty = await page.locator("main").innerText();
  await picture(page, "empty");
  await look(page, "empty");

  // By dropping files on the fields, then the button.
  await page.setInputFiles("#calibration", set);
  await page.locator("#model").evaluate(async (input, name) => {
    const files = new DataTransfer();
    files.items.add(new File(["placeholder"], name));
    input.dispatchEvent(new DragEvent("drop", { dataTransfer: files, bubbles: true }));
  }, "dropped.onnx");
  shown.dropped = await page.locator("#model").evaluate((input) => input.files[0]?.name);
  await page.setInputFiles("#model", model);
  await page.fill("#name", "digits");
  await page.getByRole("button", { name: "Upload and calibrate" }).click();
  await page.waitForURL(/made=/);
  shown.made = await page.locator("#made h2").innerText();
  shown.underWay = await page.locator("#jobs").innerText();
  await picture(page, "under-way");
  await page.locator('tr[data-name="digits"] a').waitFor();
  shown.row = await page.locator('tr[data-name="digits"]').innerText();
  await page.locator('tr[data-name="digits"] a').click();
  await page.waitForURL(/report/);
  shown.sentence = await page.locator(".sentence").first().innerText();
  const cells = () => page.locator("table.bins >> nth=0 >> tbody tr td:nth-child(5)").allInnerTexts();
  shown.bins = await cells();
  await page.locator("table.bins >> nth=0 >> th:nth-child(5) button").click();
  shown.sorted = await cells();
  await picture(page, "report");
  const report = page.url();
  shown.pdf = (await page.pdf({ format: "A4" })).length;
  await context.close();

  for (const width of [1280, 390]) {
    for (const colorScheme of ["light", "dark"]) {
      for (const javaScriptEnabled of width === 390 ? [false] : [true]) {
        const other = await open({ viewport: { width, height: 900 }, colorScheme, javaScriptEnabled });
        await other.page.goto(`${address}sign-in`);
        await picture(other.page, `sign-in-${width}-${colorScheme}`);
        if (javaScriptEnabled) await look(other.page, `sign-in, ${colorScheme}`);
        await signIn(other.page);
        await picture(other.page, `home-${width}-${colorScheme}`);
        await other.page.goto(report);
        await picture(other.page, `report-${width}-${colorScheme}`);
        if (!javaScriptEnabled) shown.withoutScripts = await other.page.locator(".sentence").first().innerText();
        else {
          await look(other.page, `report, ${colorScheme}`);
          await other.page.goto(address);
          await look(other.page, `home, ${colorScheme}`);
          const over = await other.page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
          if (over > 0) shown.overflows.push([width, colorScheme, over]);
        }
        await other.context.close();
      }
    }
  }
  console.log(JSON.stringify(shown));
} finally {
  await rm(profile, { recursive: true, force: true });
}
