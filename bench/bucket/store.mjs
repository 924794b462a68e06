// An object store that is compatible with S3, in memory, with conditional writes: for measurements, in which a server
// that is slow itself would be what is measured. It checks no signatures. Tells its parent the port, and the
// requests so far whenever the parent sends a message.

import { createHash, randomUUID } from "node:crypto";
import { createServer } from "node:http";
import process from "node:process";

const HOST = "127.0.0.1";
const PAGE_OBJECTS = 1000;
const NOT_FOUND = 404;
const PRECONDITION_FAILED = 412;

const objects = new Map();
const uploads = new Map();
const counts = { PUT: 0, GET: 0, LIST: 0, DELETE: 0, POST: 0, HEAD: 0 };

const server = createServer(async (request, response) => {
  const parts = [];
  for await (const part of request) parts.push(part);
  const { pathname, searchParams } = new URL(request.url, "http://store");
  const name = decodeURIComponent(pathname.slice(1));
  const slash = name.indexOf("/");
  const key = slash === -1 ? "" : name.slice(slash + 1);
  const { method, headers } = request;
  counts[method === "GET" && key === "" ? "LIST" : method]++;
  const {
    status = 200,
    body = "",
    more = {},
  } = answer(method, key, searchParams, {
    headers,
    body: Buffer.concat(parts),
  });
  response.writeHead(status, { "content-length": Buffer.byteLength(body), ...more });
  response.end(method === "HEAD" ? undefined : body);
});
server.keepAliveTimeout = 60_000;
server.listen(0, HOST, () => process.send(server.address().port));
process.on("message", () => process.send({ ...counts }));
process.once("disconnect", () => process.exit());

function answer(method, key, query, { headers, body }) {
  if (method === "POST" && query.has("delete")) return removeAll(body.toString());
  if (key === "") return method === "GET" ? list(query) : {};
  const upload = uploads.get(query.get("uploadId"));
  if (method === "POST" && upload === undefined) return begin(key);
  if (method === "POST") return complete(key, query.get("uploadId"), headers);
  if (method === "PUT" && upload !== undefined) {
    const number = Number(query.get("partNumber"));
    upload.set(number, body);
    return { more: { etag: `"${number}"` } };
  }
  if (method === "PUT") return put(key, body, headers);
  if (method === "DELETE") {
    if (upload === undefined) objects.delete(key);
    else uploads.delete(query.get("uploadId"));
    return { status: 204 };
  }
  return get(key, headers);
}

function put(key, body, headers) {
  const before = objects.get(key);
  const expected = headers["if-match"];
  if (headers["if-none-match"] === "*" && before !== undefined) return failed(PRECONDITION_FAILED);
  if (expected !== undefined && before === undefined) return failed(NOT_FOUND, "NoSuchKey");
  if (expected !== undefined && before.etag !== expected) return failed(PRECONDITION_FAILED);
  const etag = `"${createHash("md5").update(body).digest("hex")}-${randomUUID().slice(0, 8)}"`;
  objects.set(key, { body, etag, modified: new Date() });
  return { more: { etag } };
}

function get(key, headers) {
  const found = objects.get(key);
  if (found === undefined) return failed(NOT_FOUND, "NoSuchKey");
  const more = { etag: found.etag, "last-modified": found.modified.toUTCString() };
  const range = /^bytes=(\d*)-(\d*)$/.exec(headers.range ?? "");
  if (range === null) return { body: found.body, more };
  const size = found.body.length;
  const [, first, last] = range;
  const begin = first === "" ? Math.max(0, size - Number(last)) : Number(first);
  const end = first === "" || last === "" ? size - 1 : Math.min(size - 1, Number(last));
  more["content-range"] = `bytes ${begin}-${end}/${size}`;
  return { status: 206, body: found.body.subarray(begin, end + 1), more };
}

function begin(key) {
  const id = randomUUID();
  uploads.set(id, new Map());
  return xml("InitiateMultipartUploadResult", `<Key>${key}</Key><UploadId>${id}</UploadId>`);
}

function complete(key, id, headers) {
  const parts = [...uploads.get(id)].sort(([one], [other]) => one - other);
  uploads.delete(id);
  const done = put(key, Buffer.concat(parts.map(([, body]) => body)), headers);
  if (done.status !== undefined) return done;
  return xml("CompleteMultipartUploadResult", `<ETag>${done.more.etag}</ETag>`);
}

function removeAll(text) {
  for (const [, key] of text.matchAll(/<Key>(.*?)<\/Key>/g)) objects.delete(key);
  return xml("DeleteResult", "");
}

function list(query) {
  const prefix = query.get("prefix") ?? "";
  const after = query.get("continuation-token") ?? query.get("start-after") ?? "";
  const delimiter = query.get("delimiter");
  const most = Number(query.get("max-keys") ?? PAGE_OBJECTS);
  const names = [...objects.keys()].filter((name) => name.startsWith(prefix) && name > after);
  names.sort();
  const folders = new Set();
  const content = [];
  let isTruncated = false;
  let last = "";
  for (const name of names) {
    const end = delimiter ? name.indexOf(delimiter, prefix.length) : -1;
    const folder = end === -1 ? undefined : name.slice(0, end + delimiter.length);
    if (folder !== undefined && folders.has(folder)) continue;
    if (content.length + folders.size === most) {
      isTruncated = true;
      break;
    }
    last = folder === undefined ? name : `${folder}\uffff`;
    if (folder === undefined) content.push(entry(name));
    else folders.add(folder);
  }
  const common = [...folders].map(
    (name) => `<CommonPrefixes><Prefix>${name}</Prefix></CommonPrefixes>`,
  );
  const next = isTruncated ? `<NextContinuationToken>${last}</NextContinuationToken>` : "";
  const head = `<Name>bucket</Name><Prefix>${prefix}</Prefix><IsTruncated>${isTruncated}</IsTruncated>`;
  return xml("ListBucketResult", head + next + content.join("") + common.join(""));
}

function entry(name) {
  const { body, etag, modified } = objects.get(name);
  const fields = `<Key>${name}</Key><LastModified>${modified.toISOString()}</LastModified>`;
  return `<Contents>${fields}<ETag>${etag}</ETag><Size>${body.length}</Size></Contents>`;
}

function xml(name, content) {
  const body = `<?xml version="1.0" encoding="UTF-8"?><${name}>${content}</${name}>`;
  return { body, more: { "content-type": "application/xml" } };
}

function failed(status, code = "PreconditionFailed") {
  return { ...xml("Error", `<Code>${code}</Code><Message>${code}</Message>`), status };
}
