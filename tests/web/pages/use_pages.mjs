// node use_pages.mjs ADDRESS model.onnx calibration.npz KEY [FOLDER]
// Uses the pages as a person does, in the Chromium that $CHROMIUM names, and prints what they show.
// Pictures of them go into the folder.

import { readFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { argv, env } from "node:process";

import { chromium } from "playwright-core";

import * as compare from "./visits/compare.mjs";
import * as home from "./visits/home.mjs";
import * as integrate from "./visits/integrate.mjs";
import * as measures from "./visits/measures.mjs";
import * as operatingPoint from "./visits/operating_point.mjs";
import * as report from "./visits/report.mjs";
import * as samples from "./visits/samples.mjs";
import * as savedReport from "./visits/saved_report.mjs";
import * as trial from "./visits/try.mjs";
import * as upload from "./visits/upload.mjs";

// In this order: the first makes what the others are about, the last a newer version of it. Each
// exports `name`, `pages(id)`, the addresses to be looked at wide and narrow, light and dark, and
// `use(page, tools)`, whose answer tests/web/pages reads under its name.
const VISITS = [
  upload,
  report,
  operatingPoint,
  samples,
  trial,
  measures,
  integrate,
  savedReport,
  compare,
  home,
];

const [address, model, set, key, folder] = argv.slice(2);
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
const LOOKS = [
  { width: 1280, colorScheme: "light", javaScriptEnabled: true },
  { width: 1280, colorScheme: "dark", javaScriptEnabled: true },
  { width: 390, colorScheme: "light", javaScriptEnabled: false },
  { width: 390, colorScheme: "dark", javaScriptEnabled: false },
];
const AXE = await readFile(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
// What else there is to look at is the same in light and dark.
const OF_COLOURS = ["color-contrast", "link-in-text-block"];
const shown = { complaints: [], overflows: [], violations: [], texts: {}, bytes: {} };

const browser = await chromium.launch({ executablePath: env.CHROMIUM, args: FLAGS });
const open = async ({ width, ...options }) => {
  const context = await browser.newContext({ viewport: { width, height: 900 }, ...options });
  const page = await context.newPage();
  page.setDefaultTimeout(60_000);
  page.on("console", (message) => {
    // Browsers report an upload that is refused on purpose.
    if (message.location().url.includes("/pages/calibrate")) return;
    if (["error", "warning"].includes(message.type())) shown.complaints.push(message.text());
  });
  page.on("pageerror", (error) => shown.complaints.push(error.message));
  page.on("request", (request) => {
    const url = request.url();
    if (!url.startsWith(address) && !url.startsWith("data:")) shown.complaints.push(url);
  });
  return page;
};
const signIn = async (page) => {
  await page.goto(address);
  if (!key) return;
  await page.fill("#key", key);
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.waitForURL(address);
};
const look = async (page, name, rules) => {
  await page.evaluate(`${AXE};0`);
  const found = await page.evaluate((only) => globalThis.axe.run(only), { runOnly: rules });
  for (const { id, impact, nodes } of found.violations) {
    shown.violations.push([name, id, impact, nodes[0].html]);
  }
};
const picture = async (page, name) =>
  folder && page.screenshot({ path: join(folder, `${name}.png`), fullPage: true });

try {
  const page = await open({ width: 1280 });
  await signIn(page);
  const tools = {
    address,
    key,
    files: {
      model,
      set,
      evaluation: join(dirname(set), "evaluation.npz"),
      outputs: join(dirname(set), "calibration_logits.csv"),
    },
    headers: { ...(key && { Authorization: `Bearer ${key}` }), Prefer: "wait=60" },
    look: (name, of = page) => look(of, name),
    picture: (name, of = page) => picture(of, name),
  };
  for (const visit of VISITS) {
    shown[visit.name] = await visit.use(page, tools);
    // The page that shows what was uploaded says which it is.
    tools.id ??= new URL(page.url()).searchParams.get("made");
  }
  await page.context().close();

  // Without scripts and in dark there is nothing new but pictures.
  for (const options of folder ? LOOKS : LOOKS.slice(0, 3)) {
    const { width, colorScheme, javaScriptEnabled } = options;
    const other = await open(options);
    await other.goto(`${address}sign-in`);
    await picture(other, `sign-in-${width}-${colorScheme}`);
    if (javaScriptEnabled) await look(other, `sign-in, ${colorScheme}`);
    await signIn(other);
    for (const visit of VISITS) {
      for (const path of visit.pages(tools.id)) {
        const answer = await other.goto(new URL(path, address).href);
        const name = `${visit.name}-${width}-${colorScheme}`;
        shown.bytes[path] = (await answer.body()).length;
        await picture(other, name);
        const over = await other.evaluate(() => document.documentElement.scrollWidth - innerWidth);
        if (over > 0) shown.overflows.push([name, over]);
        if (javaScriptEnabled) {
          const rules = colorScheme === "dark" ? OF_COLOURS : undefined;
          await look(other, name, rules);
          if (rules) continue;
          await other.setViewportSize({ width: 390, height: 900 });
          await look(other, `${name}, narrow`);
          await other.setViewportSize({ width, height: 900 });
        } else shown.texts[path] = await other.locator("main").innerText();
      }
    }
    await other.context().close();
  }
  console.log(JSON.stringify(shown));
} finally {
  await browser.close();
}
