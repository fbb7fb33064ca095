// The home page with several names: sorted by a click, searched, and one of them deleted.

export const name = "home";
export const pages = () => [];

export async function use(page, { address }) {
  const shown = { deleted: "moved" };
  const names = () => page.locator("tr[data-name] th > a:not(.point), tr[data-name] th > bdi").allInnerTexts();
  await page.goto(address);
  shown.came = await names();
  shown.heights = await page
    .locator("tr[data-name]")
    .evaluateAll((rows) => rows.map((row) => Math.round(row.getBoundingClientRect().height)));
  shown.failure = await page.locator('tr[data-name="strict"]').innerText();
  await page.getByRole("button", { name: "Name" }).click();
  shown.rising = await names();
  await page.getByRole("link", { name: "Delete moved@1" }).click();
  await page.getByRole("button", { name: "Delete" }).click();
  await page.waitForURL(address);
  shown.left = await names();
  await page.getByLabel("Search names").fill("WRONG");
  await page.keyboard.press("Enter");
  await page.waitForURL(/q=WRONG/);
  shown.searched = await names();
  return shown;
}
