// Reads the metadata of a calibrated file. ONNX Runtime Web does not show it, so this module
// parses the bytes: an ONNX file is one protobuf message, ModelProto.

const METADATA_PROPS = 14; // the field of ModelProto that holds them, each a key (1) and a value (2)
const VARINT = 0;
const FIXED_64 = 1;
const BYTES = 2;
const FIXED_32 = 5;

/** Return the metadata of an ONNX file, as strings by key. */
export function readMetadata(bytes) {
  const decoder = new TextDecoder();
  const metadata = {};
  for (const [field, value] of fields(bytes)) {
    if (field !== METADATA_PROPS) continue;
    const entry = Object.fromEntries(fields(value));
    metadata[decoder.decode(entry[1])] = decoder.decode(entry[2]);
  }
  return metadata;
}

/** Yield number and bytes of every field of a message that has a length; skip the others. */
function* fields(bytes) {
  let at = 0;
  const varint = () => {
    let value = 0;
    let byte;
    let unit = 1;
    do {
      byte = bytes[at++];
      value += (byte & 127) * unit;
      unit *= 128;
    } while (byte > 127);
    return value;
  };
  while (at < bytes.length) {
    const tag = varint();
    const wire = tag % 8;
    if (wire === VARINT) varint();
    else if (wire === FIXED_64) at += 8;
    else if (wire === FIXED_32) at += 4;
    else if (wire === BYTES) {
      const length = varint();
      yield [Math.floor(tag / 8), bytes.subarray(at, at + length)];
      at += length;
    } else throw new Error("this is not an ONNX file");
  }
}
