// node predict.mjs model.onnx rows.json [model.onnx.data ...]
// Prints the calibrated answers for the rows as JSON, one row a line; NaN is written as null.

import { readFile } from "node:fs/promises";
import { basename } from "node:path";
import { argv } from "node:process";

import * as ort from "onnxruntime-web";

import { openModel } from "./calibrated_model.mjs";

const [modelPath, rowsPath, ...companionPaths] = argv.slice(2);
const companions = await Promise.all(
  companionPaths.map(async (path) => ({ path: basename(path), data: await readFile(path) })),
);
const { predict } = await openModel(ort, await readFile(modelPath), companions);
const answers = await predict(JSON.parse(await readFile(rowsPath, "utf-8")));
console.log(`[\n${answers.map((answer) => JSON.stringify(answer)).join(",\n")}\n]`);
