// The snippets of a calibration, one of them copied.

export const name = "integrate";
export const pages = (id) => [`/pages/calibrations/${id}/integrate`];

export async function use(page, { address, id }) {
  await page.goto(new URL(pages(id)[0], address).href);
  const command = page.locator(".command").filter({ has: page.locator('[data-snippet="curl"]') });
  const text = await command.locator("code").innerText();
  await page.context().grantPermissions(["clipboard-read", "clipboard-write"]);
  await command.getByRole("button", { name: "Copy" }).click();
  await command.getByRole("button", { name: "Copied" }).waitFor();
  return { text, copied: await page.evaluate(() => navigator.clipboard.readText()) };
}
