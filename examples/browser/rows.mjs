// Converts rows in JSON to the tensors of a session.

const ARRAYS = {
  float32: Float32Array,
  float64: Float64Array,
  float16: globalThis.Float16Array, // not in every runtime yet
  int64: BigInt64Array,
  int32: Int32Array,
  int16: Int16Array,
  int8: Int8Array,
  uint64: BigUint64Array,
  uint32: Uint32Array,
  uint16: Uint16Array,
  uint8: Uint8Array,
  bool: Uint8Array,
  string: Array,
};

/**
 * Return a tensor for each input, by name.
 *
 * `rows` is as in POST /predict: nested lists, or such lists by input name, either of
 * them also under the key `inputs`. In a float input, null stands for NaN.
 */
export function toTensors(ort, session, rows) {
  const given = rows.inputs ?? rows;
  const [first, ...others] = session.inputNames;
  if (Array.isArray(given) && others.length) {
    throw new Error(`the model has several inputs, so name them: ${session.inputNames.join(", ")}`);
  }
  const values = Array.isArray(given) ? { [first]: given } : given;
  const feeds = {};
  for (const { name, type } of session.inputMetadata) {
    if (!(name in values)) throw new Error(`there are no rows for the input "${name}"`);
    feeds[name] = toTensor(ort, name, type, values[name]);
  }
  return feeds;
}

function toTensor(ort, name, type, nested) {
  const array = ARRAYS[type];
  if (!array) throw new Error(`the input "${name}" is of type ${type}, which cannot be fed here`);
  const shape = shapeOf(nested);
  const values = nested.flat(shape.length - 1);
  const size = shape.reduce((product, length) => product * length, 1);
  if (values.length !== size || values.some(Array.isArray)) {
    throw new Error(`the rows of the input "${name}" differ in length`);
  }
  return new ort.Tensor(type, array.from(values, converter(type)), shape);
}

function shapeOf(nested) {
  return Array.isArray(nested) ? [nested.length, ...shapeOf(nested[0])] : [];
}

function converter(type) {
  if (type.endsWith("int64")) return BigInt;
  if (type.startsWith("float")) return (value) => (value === null ? NaN : value);
  return (value) => value;
}
