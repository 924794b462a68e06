// The same declarations for `import`.
export * from "./index.js";
