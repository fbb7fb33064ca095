// The operating point: a slider is moved and the numbers follow; one is put in force, and answers
// are held against it.

export const name = "operating_point";
export const pages = (id) => [`/pages/calibrations/${id}/operating-point?by=risk&risk=5`];

// Blank, and with more and more of it inked: what the model has never seen, and is less sure of.
const IMAGES = Array.from({ length: 24 }, (_, image) =>
  Array.from({ length: 64 }, (_, pixel) => ((pixel * (image + 3)) % 17) * (image / 23)),
);

export async function use(page, { address, key, id, look, picture }) {
  const shown = { seen: [], api: [] };
  const path = `calibrations/${id}/operating-points`;
  const headers = key ? { Authorization: `Bearer ${key}` } : {};
  const predictions = async () => {
    const data = { calibration: id, inputs: IMAGES };
    const answer = await page.request.post(`${address}predict`, { headers, data });
    return (await answer.json()).predictions.map(({ top1, abstain }) => [top1.uncertainty, abstain]);
  };
  const controls = () =>
    page.evaluate(() =>
      [...document.querySelectorAll(".control")].map((control) => ({
        name: control.querySelector("[type=number]").name,
        field: control.querySelector("[type=number]").value,
        slider: Number(control.querySelector("[type=range]").value),
        step: Number(control.querySelector("[type=range]").step),
        told: control.querySelector("[type=range]").getAttribute("aria-valuetext"),
        checked: control.querySelector("[type=radio]").checked,
      })),
    );
  const see = async () => {
    const section = page.locator("#outcome section");
    const source = await section.getAttribute("data-source");
    shown.seen.push({
      sentence: await page.locator("#outcome .sentence").innerText(),
      certificate: await page.locator("#outcome .certificate").innerText(),
      controls: await controls(),
      point: await page.locator("g.point").getAttribute("transform"),
      source,
    });
    shown.api.push(await (await page.request.get(new URL(source, address).href)).json());
  };
  // Until what is shown is of where the control is now.
  const settled = (field, value) =>
    page.waitForFunction(
      ([control, wanted]) =>
        document.querySelector("#outcome section").dataset.source.includes(`${control}=${wanted}&`),
      [field, value],
    );

  await page.goto(`${address}pages/calibrations/${id}/operating-point`);
  await page.getByRole("slider", { name: "share to accept" }).waitFor();
  await see();
  await page.getByRole("slider", { name: "share to accept" }).fill("97");
  await settled("coverage", "0.97");
  await see();
  // As with the keyboard.
  await page.getByRole("slider", { name: "share to accept" }).focus();
  for (let step = 0; step < 3; step += 1) await page.keyboard.press("ArrowLeft");
  await settled("coverage", "0.967");
  await see();
  await page.getByRole("slider", { name: "largest error rate" }).fill("0.2");
  await settled("max_risk", "0.002");
  shown.lacking = await page.locator("#outcome .certificate").innerText();
  await page.getByRole("slider", { name: "largest error rate" }).fill("6");
  await settled("max_risk", "0.06");
  await see();
  await page.fill("[name=unit]", "letters");
  await page.fill("#volume", "5000");
  await page.waitForFunction(() => document.querySelector("#outcome").innerText.includes("5,000 letters"));
  await see();
  await look("operating point, moved");

  const before = await predictions();
  const middle = before.map(([uncertainty]) => uncertainty).sort((a, b) => a - b)[12];
  shown.before = before;
  await page.locator("[name=threshold]").fill(String(middle));
  await settled("threshold", String(middle));
  await see();
  await page.locator("[name=risk]").fill("5");
  await settled("max_risk", "0.05");
  await page.fill("#save-author", "A. Reviewer");
  await page.fill("#save-reason", "to see");
  await page.getByRole("button", { name: "Activate" }).click();
  await page.locator("#in-force h2").waitFor();
  shown.inForce = await page.locator("#in-force").innerText();
  await page.emulateMedia({ media: "print" });
  shown.printed = await page.locator("main").innerText();
  await page.emulateMedia({ media: null });
  shown.history = (await (await page.request.get(`${address}${path}`)).json()).operating_points;
  shown.after = await predictions();
  await picture("operating-point-in-force");
  await look("operating point, in force");
  return shown;
}
