// Services out of a FileDescriptorSet: nothing is generated.

import { readFileSync } from "node:fs";
import { createFileRegistry, fromBinary } from "@bufbuild/protobuf";
import { FileDescriptorSetSchema } from "@bufbuild/protobuf/wkt";

/** The service of that full name. */
export function serviceOf(path, name) {
  const files = fromBinary(FileDescriptorSetSchema, readFileSync(path));
  const service = createFileRegistry(files).getService(name);
  if (!service) throw new Error(`there is no ${name} in ${path}`);
  return service;
}
