// Duty: a reporter of node:test that writes the path of each test file with a failure, a line each.

export default async function* failedFiles(source) {
  const written = new Set();
  for await (const { type, data } of source) {
    if (type !== "test:fail" || data.file === undefined || written.has(data.file)) continue;
    written.add(data.file);
    yield `${data.file}\n`;
  }
}
