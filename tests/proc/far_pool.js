// The guide's allocator in JavaScript: it shares no line of code with the harness, and no language either.
const fs = require("fs");
const chunk = Buffer.alloc(1 << 16);
let held = "";

class Refused extends Error {
  constructor(code, message) {
    super(message);
    this.code = code;
  }
}

function say(message) {
  fs.writeSync(1, JSON.stringify(message) + "\n");
}

function hear() {
  while (!held.includes("\n")) {
    const count = fs.readSync(0, chunk);
    if (!count) process.exit(0); // nobody asks any more
    held += chunk.toString("utf8", 0, count);
  }
  const end = held.indexOf("\n");
  const line = held.slice(0, end);
  held = held.slice(end + 1);
  return JSON.parse(line);
}

function driver(call, given) {
  say({ call, ...given });
  const answer = hear();
  if ("error" in answer) throw new Refused(answer.error, answer.message);
  return answer.return;
}

class Pool {
  constructor({ device }) {
    this.device = device;
    this.live = new Map();
    this.owed = [];
  }

  allocate({ size }) {
    if (size <= 0) throw new Refused("INVALID_ARGUMENT", `${size} bytes; a size must be positive`);
    this.giveBack([]);
    const device = this.device;
    const granule = driver("granularity", { device }).recommended;
    const committed = Math.ceil(size / granule) * granule;
    const undo = [];
    let address;
    try {
      address = driver("reserve", { size: committed });
      undo.unshift(["address_free", { address, size: committed }]);
      const handle = driver("create", { size: committed, device });
      undo.unshift(["release", { handle }]);
      driver("map", { address, size: committed, handle });
      undo.unshift(["unmap", { address, size: committed }]);
      driver("set_access", { address, size: committed, rights: [[device, 3]] });
    } catch (error) {
      if (error instanceof Refused) this.giveBack(undo);
      throw error;
    }
    this.live.set(address, undo);
    return { address, size, committed };
  }

  deallocate({ block, stream }) {
    driver("stream_synchronize", { stream });
    const steps = this.live.get(block.address);
    this.live.delete(block.address);
    this.giveBack(steps);
    return null;
  }

  close() {
    driver("device_synchronize", { device: this.device });
    this.giveBack([...this.live.values()].flat());
    this.live.clear();
    return null;
  }

  giveBack(steps) {
    const all = [...this.owed, ...steps];
    this.owed = [];
    for (const [call, given] of all) {
      try {
        driver(call, given);
      } catch (error) {
        if (!(error instanceof Refused)) throw error;
        this.owed.push([call, given]); // tried again the next time
      }
    }
  }
}

const WHO = { name: "far-pool", version: "js", contracts: ["allocator"], capabilities: { grow: false, waits: ["deallocate"] } };
const pools = new Map();
for (;;) {
  const request = hear();
  try {
    if (request.do === "start") say({ return: WHO });
    else if (request.do === "open") {
      pools.set(request.allocator, new Pool(request));
      say({ return: null });
    } else say({ return: pools.get(request.allocator)[request.do](request) });
  } catch (error) {
    if (!(error instanceof Refused)) throw error;
    say({ refuse: error.code, message: error.message });
  }
}
