// Duty: an object store that is compatible with S3, in memory, with conditional writes: for tests that say how it
// answers, and for measurements, in which a server that is slow itself would be what is measured. It checks no
// signatures, and has one set of objects whatever the bucket is called.

import { createHash, randomUUID } from "node:crypto";
import { createServer } from "node:http";

const HOST = "127.0.0.1";
const PAGE_OBJECTS = 1000;
const NOT_FOUND = 404;
const PRECONDITION_FAILED = 412;

/**
 * Starts one. `instead(method, key)` may answer the status of a request in place of the store's own, or
 * `{ status, after: true }` once the request has happened.
 */
export async function startObjectStore(instead = () => undefined) {
  const store = new ObjectStore();
  const server = createServer(async (request, response) => {
    const parts = [];
    for await (const part of request) parts.push(part);
    const { pathname, searchParams } = new URL(request.url, "http://store");
    const name = decodeURIComponent(pathname.slice(1));
    const slash = name.indexOf("/");
    const key = slash === -1 ? "" : name.slice(slash + 1);
    const { method, headers } = request;
    const fault = instead(method, key);
    if (typeof fault === "number") return response.writeHead(fault).end();
    const content = { headers, body: Buffer.concat(parts) };
    const { status = 200, body = "", more = {} } = store.answer(method, key, searchParams, content);
    if (fault !== undefined) return response.writeHead(fault.status).end();
    response.writeHead(status, { "content-length": Buffer.byteLength(body), ...more });
    response.end(method === "HEAD" ? undefined : body);
  });
  server.keepAliveTimeout = 60_000;
  await new Promise((resolve) => server.listen(0, HOST, resolve));
  const close = () => {
    server.closeAllConnections();
    server.close();
  };
  return { port: server.address().port, close };
}

class ObjectStore {
  #objects = new Map();
  #uploads = new Map();

  answer(method, key, query, { headers, body }) {
    if (method === "POST" && query.has("delete")) return this.#removeAll(body.toString());
    if (key === "") return method === "GET" ? this.#list(query) : {};
    const upload = this.#uploads.get(query.get("uploadId"));
    if (method === "POST" && upload === undefined) return this.#begin(key);
    if (method === "POST") return this.#complete(key, query.get("uploadId"), headers);
    if (method === "PUT" && upload !== undefined) {
      const number = Number(query.get("partNumber"));
      upload.set(number, body);
      return { more: { etag: `"${number}"` } };
    }
    if (method === "PUT") return this.#put(key, body, headers);
    if (method === "DELETE") {
      if (upload === undefined) this.#objects.delete(key);
      else this.#uploads.delete(query.get("uploadId"));
      return { status: 204 };
    }
    return this.#get(key, headers);
  }

  #put(key, body, headers) {
    const before = this.#objects.get(key);
    const expected = headers["if-match"];
    if (headers["if-none-match"] === "*" && before !== undefined)
      return failed(PRECONDITION_FAILED);
    if (expected !== undefined && before === undefined) return failed(NOT_FOUND, "NoSuchKey");
    if (expected !== undefined && before.etag !== expected) return failed(PRECONDITION_FAILED);
    const etag = `"${createHash("md5").update(body).digest("hex")}-${randomUUID().slice(0, 8)}"`;
    this.#objects.set(key, { body, etag, modified: new Date() });
    return { more: { etag } };
  }

  #get(key, headers) {
    const found = this.#objects.get(key);
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

  #begin(key) {
    const id = randomUUID();
    this.#uploads.set(id, new Map());
    return xml("InitiateMultipartUploadResult", `<Key>${key}</Key><UploadId>${id}</UploadId>`);
  }

  #complete(key, id, headers) {
    const parts = [...this.#uploads.get(id)].sort(([one], [other]) => one - other);
    this.#uploads.delete(id);
    const done = this.#put(key, Buffer.concat(parts.map(([, body]) => body)), headers);
    if (done.status !== undefined) return done;
    return xml("CompleteMultipartUploadResult", `<ETag>${done.more.etag}</ETag>`);
  }

  #removeAll(text) {
    const keys = [...text.matchAll(/<Key>.*?<\/Key>/g)].map(([key]) => key);
    for (const key of keys) this.#objects.delete(key.slice("<Key>".length, -"</Key>".length));
    return xml("DeleteResult", keys.map((key) => `<Deleted>${key}</Deleted>`).join(""));
  }

  #list(query) {
    const prefix = query.get("prefix") ?? "";
    const after = query.get("continuation-token") ?? query.get("start-after") ?? "";
    const delimiter = query.get("delimiter");
    const most = Number(query.get("max-keys") ?? PAGE_OBJECTS);
    const names = [...this.#objects.keys()].filter(
      (name) => name.startsWith(prefix) && name > after,
    );
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
      if (folder === undefined) content.push(this.#entry(name));
      else folders.add(folder);
    }
    const common = [...folders].map(
      (name) => `<CommonPrefixes><Prefix>${name}</Prefix></CommonPrefixes>`,
    );
    const next = isTruncated ? `<NextContinuationToken>${last}</NextContinuationToken>` : "";
    const head = `<Name>bucket</Name><Prefix>${prefix}</Prefix><IsTruncated>${isTruncated}</IsTruncated>`;
    return xml("ListBucketResult", head + next + content.join("") + common.join(""));
  }

  #entry(name) {
    const { body, etag, modified } = this.#objects.get(name);
    const fields = `<Key>${name}</Key><LastModified>${modified.toISOString()}</LastModified>`;
    return `<Contents>${fields}<ETag>${etag}</ETag><Size>${body.length}</Size></Contents>`;
  }
}

function xml(name, content) {
  const body = `<?xml version="1.0" encoding="UTF-8"?><${name}>${content}</${name}>`;
  return { body, more: { "content-type": "application/xml" } };
}

function failed(status, code = "PreconditionFailed") {
  return { ...xml("Error", `<Code>${code}</Code><Message>${code}</Message>`), status };
}
