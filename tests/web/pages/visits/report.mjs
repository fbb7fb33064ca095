// The report, from the home page: what is seen first, its tabs, its bins sorted by a click, and print.
// Then that of the same set with every label one too large.

import { readFile } from "node:fs/promises";

export const name = "report";
// Pictures show the last.
export const pages = (id) => [
  "/report?calibration=wrong-labels",
  `/pages/calibrations/${id}/shift`,
  `/report?calibration=${id}`,
];

const SIZES = [
  { width: 1280, height: 800 },
  { width: 390, height: 844 },
];

/** Return for each size where parts of the page end, in pixels. */
async function endsOf(page, selectors) {
  const found = [];
  for (const size of SIZES) {
    await page.setViewportSize(size);
    const boxes = selectors.map((one) => page.locator(one).first().boundingBox());
    const ends = (await Promise.all(boxes)).map(({ y, height }) => y + height);
    found.push({ ...size, ends });
  }
  await page.setViewportSize(SIZES[0]);
  return found;
}

export async function use(page, { address, files, headers, look }) {
  const shown = {};
  await page.goto(address);
  await page.locator('tr[data-name="digits"] th a').click();
  await page.waitForURL(/report/);
  shown.headline = await page.locator(".headline").innerText();
  shown.firstScreens = await endsOf(page, [".headline", ".next"]);

  const events = () =>
    Promise.all([1, 5].map((k) => page.locator(`section.event:has(#top-${k})`).isVisible()));
  shown.tabs = [await events()];
  await page.locator("#show-1").focus();
  await page.keyboard.press("ArrowRight");
  shown.tabs.push(await events());
  await look("report, second event");
  await page.emulateMedia({ media: "print" });
  shown.printed = await events();
  await page.emulateMedia({ media: "screen" });
  await page.locator("label[for=show-1]").click();

  const cells = () => page.locator("table.bins >> nth=0 >> tbody tr td:nth-child(5)").allInnerTexts();
  await page.locator("#bins-1").click();
  shown.bins = await cells();
  await page.locator("table.bins >> nth=0 >> th:nth-child(5) button").click();
  shown.sorted = await cells();
  shown.pdf = (await page.pdf({ format: "A4" })).length;

  const [heading, ...lines] = (await readFile(files.outputs, "utf8")).trim().split("\n");
  const moved = lines.map((line) => `${(Number(line[0]) + 1) % 10}${line.slice(1)}`);
  const calibration = {
    name: "c.csv",
    mimeType: "text/csv",
    buffer: Buffer.from([heading, ...moved].join("\n")),
  };
  for (const config of [{ name: "wrong-labels" }, { name: "strict", strict: true }]) {
    const multipart = { calibration, config: JSON.stringify(config) };
    await page.request.post(`${address}calibrate`, { headers, multipart });
  }
  await page.goto(`${address}report?calibration=wrong-labels`);
  shown.warned = (await page.locator("#findings").innerText()).trim();
  shown.firstScreens.push(...(await endsOf(page, [".headline", ".next", ".finding"])));
  await page.emulateMedia({ media: "print" });
  shown.onPaper = await page.locator(".finding p").evaluateAll((found) => found.map((p) => p.clientHeight));
  await page.emulateMedia({ media: "screen" });
  return shown;
}
