// Objects, strings, maps, typed arrays and a worker thread: kept alive, changed and read again.
const crypto = require("crypto");
const { Worker, isMainThread, parentPort, workerData } = require("worker_threads");

const COUNT = 150000, BLOCKS = 24, WORDS = 262144;

function mix(x) {
  x = Math.imul(x ^ (x >>> 15), 0x2c1b3c6d);
  x = Math.imul(x ^ (x >>> 12), 0x297a2d39);
  return (x ^ (x >>> 15)) >>> 0;
}

if (!isMainThread) {
  const seen = new Uint32Array(workerData);
  let sum = 0;
  for (let i = 0; i < seen.length; i++) { seen[i] = mix(seen[i]); sum = (sum + seen[i]) >>> 0; }
  parentPort.postMessage(sum);
} else {
  const kept = new Map();
  for (let i = 0; i < COUNT; i++) kept.set("key" + i, { id: i, name: "n" + mix(i), parts: [i, i / 2, String(mix(i + 1))] });
  const blocks = [];
  for (let b = 0; b < BLOCKS; b++) {
    const block = new Float64Array(WORDS);
    for (let i = 0; i < WORDS; i++) block[i] = mix(b * WORDS + i) / 7;
    blocks.push(block);
  }
  for (let round = 0; round < 2; round++) {
    const digest = crypto.createHash("sha256");
    for (const block of blocks) digest.update(new Uint8Array(block.buffer));
    let sum = 0;
    for (const [key, value] of kept) sum = (sum + key.length + mix(value.id) + value.parts[2].length) >>> 0;
    console.log("round", round, digest.digest("hex"), sum);
    for (let i = 0; i < COUNT; i += 3) {
      kept.delete("key" + i);
      kept.set("key" + i, { id: i + round, name: "again" + i, parts: [1, 2, String(i)] });
    }
  }
  const text = JSON.stringify([...kept]);
  console.log("json", text.length, crypto.createHash("sha256").update(text).digest("hex"));
  const shared = new Uint32Array(new SharedArrayBuffer(16 << 20));
  for (let i = 0; i < shared.length; i++) shared[i] = i;
  new Worker(__filename, { workerData: shared.buffer }).on("message", (sum) => {
    let back = 0;
    for (const x of shared) back = (back + x) >>> 0;
    console.log("worker", sum, sum === back);
  });
}
