// The report as a file: saved from its page, then opened from the disk without a network, in light
// and dark, narrow, and on paper.

import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

export const name = "saved_report";
export const pages = () => [];

export async function use(page, { address, id, look, picture }) {
  const folder = await mkdtemp(join(tmpdir(), "saved-"));
  await page.goto(new URL(`/report?calibration=${id}`, address).href);
  const saving = page.waitForEvent("download");
  await page.locator('a[download$=".html"]').click();
  const file = await saving;
  const path = join(folder, file.suggestedFilename());
  await file.saveAs(path);

  const shown = { name: file.suggestedFilename(), asked: [], complaints: [] };
  const opened = await page.context().newPage();
  opened.on("request", (request) => shown.asked.push(request.url()));
  opened.on("console", (message) => shown.complaints.push(message.text()));
  opened.on("pageerror", (error) => shown.complaints.push(error.message));
  await opened.context().setOffline(true);
  const url = pathToFileURL(path).href;
  await opened.goto(url);
  shown.asked = shown.asked.filter((found) => found !== url);
  shown.headline = await opened.locator(".headline").innerText();
  shown.drawn = await opened.locator("svg.chart").count();
  const ground = () => opened.evaluate(() => getComputedStyle(document.body).backgroundColor);
  shown.grounds = [];
  shown.overflows = [];
  for (const colorScheme of ["light", "dark"]) {
    await opened.emulateMedia({ colorScheme });
    shown.grounds.push(await ground());
    for (const width of [1280, 390]) {
      await opened.setViewportSize({ width, height: 900 });
      shown.overflows.push(
        await opened.evaluate(() => document.documentElement.scrollWidth - innerWidth),
      );
      await picture(`saved-report-${width}-${colorScheme}`, opened);
    }
    await look(`saved report, ${colorScheme}`, opened);
  }
  await opened.emulateMedia({ media: "print", colorScheme: "dark" });
  shown.paper = await ground();
  shown.hidden = await opened.locator("button:visible, .tabs:visible, nav:visible").count();
  shown.pdf = (await opened.pdf({ preferCSSPageSize: true })).length;
  await opened.context().setOffline(false);
  await opened.close();
  await rm(folder, { recursive: true });
  return shown;
}
