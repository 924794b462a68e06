import { defineConfig } from "vite";

export default defineConfig({
  // The folder that the server answers (crates/server/src/studio.rs). No database has a `~` in its name.
  base: "/~studio/",
  build: {
    outDir: "../dist/studio",
    emptyOutDir: true,
    assetsDir: "",
    // The policy of the page allows no inline files; the icon stays a file of its own.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    target: "es2022",
    reportCompressedSize: false,
  },
});
