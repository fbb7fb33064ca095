// Runs a calibrated ONNX file in ONNX Runtime Web and returns predictions like POST /predict.
// The same code runs in a page and in Node; `ort` is the onnxruntime-web module.

import { readMetadata } from "./metadata.mjs";
import { toTensors } from "./rows.mjs";

const EVENT_OUTPUTS = ["probability", "lower", "upper", "uncertainty", "bin"];

/**
 * Return a function from rows to predictions, and the metadata of the file.
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
  // By name: the model's own outputs remain, and map outputs cannot be read here.
  const names = ourOutputs(about).filter((name) => session.outputNames.includes(name));
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
    prefix: metadata["howsure.prefix"],
    classes: JSON.parse(metadata["howsure.classes"]),
    measures: JSON.parse(metadata["howsure.measures"]),
    risks: Object.keys(JSON.parse(metadata["howsure.thresholds"]).abstain),
  };
}

function ourOutputs({ prefix, measures, risks }) {
  const names = [
    ...["class", "topk_class", "topk_score", "topk_probability", "out_of_distribution"],
    ...Object.keys(measures).flatMap((k) => EVENT_OUTPUTS.map((name) => `top${k}_${name}`)),
    ...risks.map((risk) => `abstain_${risk}`),
  ];
  return names.map((name) => prefix + name);
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
    ...toFlags(outputs, row, about),
  });
  return Array.from(outputs.class.data, answer);
}

function toClass(index, { classes }) {
  return index < 0 ? { class: index } : { class: index, label: classes[index] };
}

function toClasses({ topk_class, topk_score, topk_probability }, row, about) {
  const width = topk_class.dims[1];
  return Array.from({ length: width }, (_, column) => ({
    ...toClass(Number(topk_class.data[row * width + column]), about),
    score: topk_score.data[row * width + column],
    probability: topk_probability ? topk_probability.data[row * width + column] : null,
  }));
}

function toEvents(outputs, row, { measures }) {
  const toEvent = (k) => {
    const value = (name) => outputs[`top${k}_${name}`].data[row];
    return {
      probability: value("probability"),
      interval: [value("lower"), value("upper")],
      measure: measures[k],
      uncertainty: value("uncertainty"),
      bin: Number(value("bin")),
    };
  };
  return Object.fromEntries(Object.keys(measures).map((k) => [`top${k}`, toEvent(k)]));
}

function toFlags(outputs, row, { risks }) {
  const flag = (name) => Boolean(outputs[name].data[row]);
  const flags = {};
  if (outputs.out_of_distribution) flags.out_of_distribution = flag("out_of_distribution");
  const measured = risks.filter((risk) => outputs[`abstain_${risk}`]);
  if (measured.length) {
    flags.abstain = Object.fromEntries(measured.map((risk) => [risk, flag(`abstain_${risk}`)]));
  }
  return flags;
}
