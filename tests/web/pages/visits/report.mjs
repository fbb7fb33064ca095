// The report, from the home page; its bins sorted by a click, and printed.

export const name = "report";
export const pages = (id) => [`/report?calibration=${id}`];

export async function use(page, { address }) {
  const shown = {};
  await page.goto(address);
  await page.locator('tr[data-name="digits"] a').click();
  await page.waitForURL(/report/);
  shown.sentence = await page.locator(".sentence").first().innerText();
  const cells = () => page.locator("table.bins >> nth=0 >> tbody tr td:nth-child(5)").allInnerTexts();
  shown.bins = await cells();
  await page.locator("table.bins >> nth=0 >> th:nth-child(5) button").click();
  shown.sorted = await cells();
  shown.pdf = (await page.pdf({ format: "A4" })).length;
  return shown;
}
