// The page: reads files and shows a table of predictions.

import * as ort from "./node_modules/onnxruntime-web/dist/ort.wasm.bundle.min.mjs";

import { openModel } from "./calibrated_model.mjs";

const find = (selector) => document.querySelector(selector);

find("form").addEventListener("submit", async (event) => {
  event.preventDefault();
  say("Running …");
  try {
    const started = performance.now();
    const { about, predict } = await openChosenModel([...find("#model").files]);
    const answers = await predict(JSON.parse(await find("#rows").files[0].text()));
    show(about, answers);
    say(`${answers.length} rows in ${Math.round(performance.now() - started)} ms`);
  } catch (error) {
    say(error.message, { failed: true });
  }
});

async function openChosenModel(files) {
  const model = files.find((file) => file.name.endsWith(".onnx"));
  if (!model) throw new Error("none of the chosen files is an .onnx file");
  const companions = await Promise.all(
    files
      .filter((file) => file !== model)
      .map(async (file) => ({ path: file.name, data: await readBytes(file) })),
  );
  return openModel(ort, await readBytes(model), companions);
}

async function readBytes(file) {
  return new Uint8Array(await file.arrayBuffer());
}

function say(message, { failed = false } = {}) {
  find("#status").textContent = message;
  find("#status").classList.toggle("failed", failed);
  if (failed) showResults(false);
}

function show(about, answers) {
  const events = Object.keys(answers[0] ?? {}).filter((key) => /^top\d+$/.test(key));
  const level = `${100 * about.level} %`;
  find("caption").textContent = `${about.name}, version ${about.version}; intervals at ${level}`;
  const headings = ["row", "class", "softmax", ...events.map(eventHeading), "remarks"];
  find("thead").replaceChildren(tableRow("th", headings));
  find("tbody").replaceChildren(
    ...answers.map((answer, row) => tableRow("td", [row, ...cells(answer, events)])),
  );
  find("pre").textContent = JSON.stringify(answers);
  showResults(true);
}

function showResults(shown) {
  find("table").hidden = !shown;
  find("details").hidden = !shown;
}

function eventHeading(event) {
  const k = event.slice("top".length);
  return `probability of being ${k === "1" ? "right" : `among the first ${k}`}`;
}

function cells(answer, events) {
  if (answer.class < 0) return ["not finite", "", ...events.map(() => ""), remarks(answer)];
  const probabilities = events.map((event) => {
    const { probability, interval } = answer[event];
    return `${percent(probability)} (${interval.map(percent).join(" to ")})`;
  });
  const score = percent(answer.classes[0].score);
  return [answer.label ?? answer.class, score, ...probabilities, remarks(answer)];
}

function remarks({ out_of_distribution, abstain = {} }) {
  const risks = Object.keys(abstain).filter((risk) => abstain[risk]);
  return [
    ...(out_of_distribution ? ["unlike the calibration data"] : []),
    ...risks.map((risk) => `abstain at a risk of ${risk}`),
  ].join("; ");
}

function percent(share) {
  return `${(100 * share).toFixed(1)} %`;
}

function tableRow(tag, texts) {
  const row = document.createElement("tr");
  for (const text of texts) {
    const cell = document.createElement(tag);
    cell.textContent = text;
    row.append(cell);
  }
  return row;
}
