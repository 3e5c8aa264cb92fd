import { defineConfig } from "vite";

/** One script without imports, which `headrace report` puts into its page. */
export default defineConfig({
  build: {
    outDir: "../src/headrace/report/static",
    emptyOutDir: true,
    lib: { entry: "src/report.ts", formats: ["iife"], name: "headraceReport", fileName: () => "report.js" },
  },
});
