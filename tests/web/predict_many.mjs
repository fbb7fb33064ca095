// node predict_many.mjs jobs.json
// Runs several exported files in one process, which compiles ONNX Runtime's WebAssembly once. A job
// is the path of its rows and those of its model's files; each gives its answers, or its error.

import { readFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { basename } from "node:path";
import { argv } from "node:process";

const example = new URL("../../examples/browser/", import.meta.url);
const ort = createRequire(example)("onnxruntime-web");
const { openModel } = await import(new URL("calibrated_model.mjs", example));

async function answer([rowsPath, modelPath, ...companionPaths]) {
  const companions = await Promise.all(
    companionPaths.map(async (path) => ({ path: basename(path), data: await readFile(path) })),
  );
  const { predict } = await openModel(ort, await readFile(modelPath), companions);
  return predict(JSON.parse(await readFile(rowsPath, "utf-8")));
}

const results = [];
for (const job of JSON.parse(await readFile(argv[2], "utf-8"))) {
  results.push(await answer(job).catch((error) => ({ error: error.message })));
}
console.log(JSON.stringify(results));
