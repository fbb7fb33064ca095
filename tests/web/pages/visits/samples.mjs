// Samples worth a look, from the report; then the other list, and one of them tried.

export const name = "samples";
export const pages = (id) => [`/pages/calibrations/${id}/samples`];

export async function use(page, { address, id }) {
  const shown = {};
  await page.goto(new URL(`/report?calibration=${id}`, address).href);
  await page.getByRole("link", { name: "Samples" }).click();
  shown.first = await page.locator("ol.samples li").first().innerText();
  shown.count = await page.locator("ol.samples li").count();
  await page.getByRole("link", { name: "Surest errors, Top-1" }).click();
  shown.title = await page.locator("h2").first().innerText();
  const download = page.waitForEvent("download");
  await page.getByRole("link", { name: "CSV" }).click();
  shown.file = (await download).suggestedFilename();
  await page.getByRole("link", { name: "Try it" }).first().click();
  shown.tried = await page.locator(".answer").innerText();
  return shown;
}
