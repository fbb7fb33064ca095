// An upload by dropping files on the form's fields, watched to its end.

export const name = "upload";
export const pages = () => ["/"];

export async function use(page, { files, picture, look }) {
  const shown = {};
  shown.empty = await page.locator("main").innerText();
  await picture("empty");
  await look("empty");
  await page.setInputFiles("#calibration", files.set);
  await page.locator("#model").evaluate(async (input, dropped) => {
    const transfer = new DataTransfer();
    transfer.items.add(new File(["placeholder"], dropped));
    input.dispatchEvent(new DragEvent("drop", { dataTransfer: transfer, bubbles: true }));
  }, "dropped.onnx");
  shown.dropped = await page.locator("#model").evaluate((input) => input.files[0]?.name);
  await page.setInputFiles("#model", files.model);
  await page.fill("#name", "digits");
  await page.setInputFiles("#evaluation", files.evaluation);
  await page.fill("#preprocessing", "imagnet");
  const send = () => page.getByRole("button", { name: "Upload and calibrate" }).click();
  await send();
  shown.refused = await page.locator("#refusal").getByRole("alert").innerText();
  await look("refused");
  shown.kept = await page.locator("#model").evaluate((input) => input.files[0]?.name);
  await page.fill("#preprocessing", "");
  await send();
  await page.waitForURL(/made=/);
  shown.made = await page.locator("#made h2").innerText();
  shown.underWay = await page.locator("#jobs").innerText();
  await picture("under-way");
  await page.locator('tr[data-name="digits"] th a').waitFor();
  shown.row = await page.locator('tr[data-name="digits"]').innerText();
  return shown;
}
