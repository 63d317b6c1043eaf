// connect-web in Chromium, on a page of HQ's: node browser.mjs CHROMIUM DESCRIPTORS URL [AUTHORIZATION]

import { readFileSync } from "node:fs";
import { build } from "esbuild";
import { chromium } from "playwright-core";
import { check, end, same } from "./cases.mjs";

const [executablePath, descriptors, baseUrl, authorization] = process.argv.slice(2);
const { outputFiles } = await build({
  entryPoints: [new URL("./page.mjs", import.meta.url).pathname],
  bundle: true,
  format: "iife",
  write: false,
});
const browser = await chromium.launch({ executablePath, args: ["--no-sandbox"] });
try {
  const context = await browser.newContext({ ignoreHTTPSErrors: true });
  const page = await context.newPage();
  await page.goto(`${baseUrl}/livez`);
  await page.evaluate(outputFiles[0].text);
  const files = readFileSync(descriptors).toString("base64");
  const cases = await page.evaluate(([f, a]) => globalThis.prepare(f, a), [files, authorization]);
  for (const name of cases) await check(name, () => page.evaluate((n) => globalThis.run(n), name));
  await check("version of HTTP", async () => {
    const used = await page.evaluate(() => performance.getEntriesByType("resource").map((e) => e.nextHopProtocol));
    same([...new Set(used)], [baseUrl.startsWith("https") ? "h2" : "http/1.1"]);
  });
} finally {
  await browser.close();
}
end();
