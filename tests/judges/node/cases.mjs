// Cases of a judge in Node: each says `ok NAME` or `not ok NAME: why`, the last line is `end`.

const CASE_MS = 20_000;

/** Run one case; it passes if it ends in time and throws nothing. */
export async function check(name, run) {
  let timer;
  const late = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Error(`it did not end within ${CASE_MS} ms`)), CASE_MS);
  });
  try {
    await Promise.race([run(), late]);
    console.log(`ok ${name}`);
  } catch (error) {
    console.log(`not ok ${name}: ${String(error?.stack ?? error).replaceAll("\n", " | ").slice(0, 900)}`);
  } finally {
    clearTimeout(timer);
  }
}

/** Throw unless both are the same as JSON. */
export function same(actual, wanted, what = "answer") {
  const [one, other] = [JSON.stringify(actual), JSON.stringify(wanted)];
  if (one !== other) throw new Error(`${what}: ${one} instead of ${other}`);
}

/** All is said. */
export function end() {
  console.log("end");
  process.exit(0);
}
