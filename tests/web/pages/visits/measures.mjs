// The measures of a calibration, by the tab of its report; sorted by what they cost.

export const name = "measures";
export const pages = (id) => [`/pages/calibrations/${id}/measures`];

export async function use(page, { address, id }) {
  const shown = {};
  await page.goto(`${address}report?calibration=${id}`);
  await page.getByRole("link", { name: "Measures" }).click();
  await page.waitForURL(/measures/);
  shown.sentence = await page.locator(".sentence").first().innerText();
  const table = page.locator("table.scores >> nth=0");
  const groups = () =>
    table.locator("tbody").evaluateAll((bodies) =>
      bodies.map((body) => [...body.rows].map((row) => row.cells[0].innerText.split(/\s/)[0])),
    );
  shown.groups = await groups();
  await table.getByRole("button", { name: "Brier" }).click();
  shown.rising = await groups();
  shown.briers = await table
    .locator("tbody >> nth=1 >> tr td:nth-child(5) > .number")
    .evaluateAll((found) => found.map((number) => JSON.parse(number.dataset.value)));
  await table.getByRole("button", { name: "Brier" }).click();
  shown.falling = await groups();
  shown.pdf = (await page.pdf({ format: "A4" })).length;
  return shown;
}
