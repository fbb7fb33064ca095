// A sample drawn, and another one written.

export const name = "try";
// Every row of so small a set is kept.
export const pages = (id) => [`/pages/calibrations/${id}/try?row=0`];

export async function use(page, { address, id }) {
  const shown = {};
  await page.goto(new URL(`/pages/calibrations/${id}/try`, address).href);
  await page.getByRole("button", { name: "Draw one" }).click();
  shown.drawn = await page.locator(".sentence").innerText();
  await page.getByText("Request and answer, as JSON").click();
  shown.json = JSON.parse(await page.locator("#answer-json").innerText());
  await page.fill("#numbers", JSON.stringify(new Array(64).fill(0)));
  await page.getByRole("button", { name: "Predict" }).click();
  shown.written = await page.locator(".sentence").innerText();
  return shown;
}
