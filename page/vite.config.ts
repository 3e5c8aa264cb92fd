import react from "@vitejs/plugin-react";
import { defineConfig } from "vite";

/** The page of `headrace ui`. Names without digests: the server forbids caching, and diffs stay small. */
export default defineConfig({
  plugins: [react()],
  base: "/",
  build: {
    outDir: "../src/headrace/ui/static",
    emptyOutDir: true,
    modulePreload: false,
    rollupOptions: {
      output: { entryFileNames: "assets/page.js", chunkFileNames: "assets/[name].js", assetFileNames: "assets/page[extname]" },
    },
  },
});
