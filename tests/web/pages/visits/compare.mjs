// Two versions of a name compared from the report of one, and two names from the home page.

export const name = "compare";
export const pages = (id) => [`/report?calibration=${id}&calibration=digits@2`];

export async function use(page, { address, id, key }) {
  const shown = {};
  const headers = { Authorization: `Bearer ${key}`, Prefer: "wait=30" };
  const at = `${address}calibrations`;
  const refit = { bins: 3, measures: ["margin"] };
  await page.request.post(`${at}/${id}/refit`, { headers, data: refit });
  const document = await (await page.request.get(`${at}/${id}/bins`, { headers })).json();
  await page.request.post(`${at}/import?name=moved`, { headers, data: document });

  await page.goto(`${address}report?calibration=${id}`);
  await page.getByRole("button", { name: "Compare with @1" }).click();
  await page.waitForURL(/calibration=.*calibration=/);
  shown.versions = await page.locator("section.card").allInnerTexts();

  await page.goto(address);
  for (const chosen of ["moved@1", "digits@2"]) await page.getByLabel(`Compare ${chosen}`).check();
  await page.getByRole("button", { name: "Compare selected" }).click();
  await page.waitForURL(/calibration=.*calibration=/);
  shown.names = await page.locator("section.card h2").allInnerTexts();
  return shown;
}
