// A calibrated ONNX file in ONNX Runtime Web: rows go in, answers like those of POST /predict
// come out. The same code runs in a page and under Node; `ort` is the onnxruntime-web module.

import { readMetadata } from "./metadata.mjs";
import { toTensors } from "./rows.mjs";

const OURS = /^(class|topk_class|topk_score|out_of_distribution|abstain(_.+)?|top\d+_(probability|lower|upper|uncertainty|bin))$/;

/**
 * Return a function from rows to answers, and what the file says of itself.
 *
 * `companions` are files with weights that the model refers to: `{path, data}` each.
 */
export async function openModel(ort, bytes, companions = []) {
  const metadata = readMetadata(bytes);
  if (!("howsure.calibration" in metadata)) {
    throw new Error("this ONNX file was not exported by Howsure: it holds no calibration");
  }
  const session = await ort.InferenceSession.create(bytes, {
    executionProviders: ["wasm"],
    externalData: companions,
  });
  const about = readAbout(metadata);
  // By name: the model's own outputs are still there, and one that holds maps cannot be read here.
  const names = session.outputNames.filter((name) => isOurs(name, about.prefix));
  const predict = async (rows) => {
    const outputs = await session.run(toTensors(ort, session, rows), names);
    return toAnswers(unprefixed(outputs, about.prefix), about);
  };
  return { about, predict };
}

function readAbout(metadata) {
  return {
    name: metadata["howsure.name"],
    version: metadata["howsure.version"],
    level: Number(metadata["howsure.level"]),
    prefix: metadata["howsure.prefix"] ?? "",
    classes: JSON.parse(metadata["howsure.classes"] ?? "null"),
    measures: JSON.parse(metadata["howsure.measures"] ?? "{}"),
  };
}

function isOurs(name, prefix) {
  return name.startsWith(prefix) && OURS.test(name.slice(prefix.length));
}

function unprefixed(outputs, prefix) {
  const entries = Object.entries(outputs);
  return Object.fromEntries(entries.map(([name, tensor]) => [name.slice(prefix.length), tensor]));
}

function toAnswers(outputs, about) {
  const answer = (_, row) => ({
    ...toClass(Number(outputs.class.data[row]), about),
    classes: toClasses(outputs, row, about),
    ...toEvents(outputs, row, about),
    ...toFlags(outputs, row),
  });
  return Array.from(outputs.class.data, answer);
}

function toClass(index, { classes }) {
  return classes?.[index] === undefined
    ? { class: index }
    : { class: index, label: classes[index] };
}

function toClasses({ topk_class, topk_score }, row, about) {
  const width = topk_class.dims[1];
  return Array.from({ length: width }, (_, column) => ({
    ...toClass(Number(topk_class.data[row * width + column]), about),
    score: topk_score.data[row * width + column],
  }));
}

function toEvents(outputs, row, { measures }) {
  const events = Object.keys(outputs).flatMap((name) => name.match(/^top\d+(?=_bin$)/) ?? []);
  const value = (name) => outputs[name].data[row];
  const answers = events.map((event) => ({
    probability: value(`${event}_probability`),
    interval: [value(`${event}_lower`), value(`${event}_upper`)],
    measure: measures[event.slice("top".length)],
    uncertainty: value(`${event}_uncertainty`),
    bin: Number(value(`${event}_bin`)),
  }));
  return Object.fromEntries(events.map((event, index) => [event, answers[index]]));
}

function toFlags(outputs, row) {
  const flag = (name) => Boolean(outputs[name].data[row]);
  const risks = Object.keys(outputs).filter((name) => name.startsWith("abstain_"));
  const abstain = risks.map((name) => [name.slice("abstain_".length), flag(name)]);
  return {
    ...("out_of_distribution" in outputs && { out_of_distribution: flag("out_of_distribution") }),
    ...(risks.length && { abstain: Object.fromEntries(abstain) }),
  };
}
