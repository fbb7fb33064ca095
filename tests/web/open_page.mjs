// node open_page.mjs jobs.json ADDRESS
// Uses the page as a person does, in the Chromium that $CHROMIUM names, and prints what it shows. A
// job is the path of its rows and those of its model's files.

import { readFile } from "node:fs/promises";
import { argv, env } from "node:process";

import { chromium } from "playwright-core";

const [jobs, address] = argv.slice(2);
const browser = await chromium.launch({
  executablePath: env.CHROMIUM,
  args: ["--no-sandbox"], // Chromium refuses to run as root with it; the page is our own
});

async function shownOf([rows, ...model]) {
  const page = await browser.newPage();
  const complaints = [];
  page.on("console", (message) => {
    if (["error", "warning"].includes(message.type())) complaints.push(message.text());
  });
  page.on("pageerror", (error) => complaints.push(error.message));
  page.on("request", (request) => {
    if (!request.url().startsWith(new URL(address).origin)) complaints.push(request.url());
  });
  await page.goto(address);
  await page.setInputFiles("#model", model);
  await page.setInputFiles("#rows", rows);
  await page.getByRole("button", { name: "Predict", exact: true }).click();
  await page.waitForFunction(() => /^(?!Running|$)/.test(document.querySelector("#status").innerText));
  const cells = (row) => row.locator("td").allInnerTexts();
  const shown = {
    status: await page.locator("#status").innerText(),
    caption: await page.locator("caption").textContent(),
    table: await Promise.all((await page.locator("tbody tr").all()).map(cells)),
    json: await page.locator("pre").textContent(),
    agent: await page.evaluate(() => navigator.userAgent),
    complaints,
  };
  await page.close();
  return shown;
}

try {
  const shown = [];
  for (const job of JSON.parse(await readFile(jobs, "utf-8"))) shown.push(await shownOf(job));
  console.log(JSON.stringify(shown));
} finally {
  await browser.close();
}
