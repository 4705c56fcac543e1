// What an orchestrator does with the wrapper for TypeScript, also while answers are lost.

import assert from "node:assert/strict";
import { Moorage, NoAnswerError, ProblemError, ok, type Schemas } from "./client/dist/index.js";

const { MOORAGE_URL, MOORAGE_TOKEN, CLUSTER } = process.env as Record<string, string>;
const cluster = CLUSTER;
const BASE = "/v1/clusters/{cluster}";
const PODS = `${BASE}/namespaces/{namespace}/pods` as const;
const inCluster = { path: { cluster } };
const inShop = { path: { cluster, namespace: "shop" } };

type Trouble = (request: Request) => Promise<Response>;
const troubles: Trouble[] = [];
const sent: Request[] = [];
const pauses: number[] = [];

/** Sends a request, or has what is to befall it befall it. */
async function send(request: Request): Promise<Response> {
  sent.push(request.clone());
  const trouble = troubles.shift();
  return trouble ? trouble(request) : fetch(request);
}

const moorage = new Moorage({
  url: MOORAGE_URL,
  token: MOORAGE_TOKEN,
  fetch: send,
  retries: { sleep: async (seconds) => void pauses.push(seconds) },
});

async function answerLost(request: Request): Promise<Response> {
  await (await fetch(request)).arrayBuffer();
  throw new TypeError("fetch failed");
}

const answering =
  (status: number, code: string, headers: Record<string, string> = {}): Trouble =>
  async () =>
    new Response(JSON.stringify({ type: `/errors/${code}`, code, title: code, status, detail: "so" }), {
      status,
      headers: { "content-type": "application/problem+json", ...headers },
    });

function pod(metadata: Partial<Schemas["Pod"]["metadata"]>): Schemas["Pod"] {
  return {
    metadata: { namespace: "shop", ...metadata } as Schemas["Pod"]["metadata"],
    spec: { containers: [{ name: "web", image: "web:1" }] },
  };
}

async function repeatedOnce(): Promise<void> {
  await ok(moorage.api.PUT(BASE, { params: inCluster, body: { config: { placePendingPods: false } } }));
  await ok(
    moorage.api.POST(`${BASE}/apply`, {
      params: inCluster,
      body: { apiVersion: "v1", kind: "List", items: [{ kind: "Namespace", metadata: { name: "shop" } }] },
    }),
  );
  sent.length = 0;
  troubles.push(answerLost);
  const made = await ok(moorage.api.POST(PODS, { params: inShop, body: pod({ generateName: "web-" }) }));
  const keys = sent.map((each) => each.headers.get("idempotency-key"));
  assert.equal(keys.length, 2);
  assert(keys[0]);
  assert.equal(keys[0], keys[1]);
  const names = [];
  for await (const each of moorage.list(PODS, inShop)) names.push(each.metadata.name);
  assert.deepEqual(names, [made.metadata.name]);
}

async function notRepeated(): Promise<void> {
  const path = { cluster, namespace: "shop", name: "web-1" };
  sent.length = 0;
  troubles.push(answerLost);
  const patch = moorage.api.PATCH(`${PODS}/{name}`, { params: { path }, body: { metadata: { labels: { a: "b" } } } });
  await assert.rejects(patch, NoAnswerError);
  troubles.push(answerLost);
  const header = { "If-None-Match": "*" };
  const created = moorage.api.PUT(`${PODS}/{name}`, { params: { path, header }, body: pod({ name: "web-1" }) });
  await assert.rejects(created, NoAnswerError);
  assert.equal(sent.length, 2);
}

async function leftAloneForAsLongAsAsked(): Promise<void> {
  pauses.length = 0;
  troubles.push(answering(429, "TooManyRequests", { "retry-after": "7" }), answering(503, "Overloaded"));
  await ok(moorage.api.GET(BASE, { params: inCluster }));
  assert.deepEqual(pauses, [7, 0.5]);
}

async function notAskedForAgainWhileABudgetBlocks(): Promise<void> {
  sent.length = pauses.length = 0;
  troubles.push(answering(429, "EvictionBlocked", { "retry-after": "5" }));
  const path = { cluster, namespace: "shop", name: "web-1" };
  const refused = ok(moorage.api.POST(`${PODS}/{name}/eviction`, { params: { path }, body: {} }));
  await assert.rejects(refused, (error) => error instanceof ProblemError && error.code === "EvictionBlocked");
  assert.deepEqual([sent.length, pauses], [1, []]);
}

async function typedProblem(): Promise<void> {
  const refused = ok(moorage.api.POST(`${BASE}/placements`, { params: inCluster, body: { pods: [pod({ name: "Bad Name" })] } }));
  await assert.rejects(refused, (error) => {
    assert(error instanceof ProblemError);
    assert.deepEqual([error.status, error.code], [422, "InvalidManifest"]);
    return error.errors.some((each) => each.field === "pods[0].metadata.name");
  });
}

async function pages(): Promise<void> {
  const found: number[] = [];
  for await (const page of moorage.pages(PODS, { ...inShop, query: { limit: 1 } })) found.push(page.items.length);
  assert.deepEqual(found, [1, 1]);
}

async function followed(): Promise<void> {
  const stop = new AbortController();
  const told: string[] = [];
  const options = { kind: "Pod", namespace: "shop", signal: stop.signal };
  for await (const each of moorage.follow(PODS, inShop, options)) {
    if (each.type === "BOOKMARK") continue;
    if (each.type === "LISTED") {
      told.push(`${each.items.length} listed`);
      if (told.length === 1) troubles.push(answering(410, "Compacted"));
      else await ok(moorage.api.POST(PODS, { params: inShop, body: pod({ name: "late" }) }));
      continue;
    }
    assert(each.kind === "Pod");
    told.push(`${each.object.metadata.name} ${each.type}`);
    stop.abort();
  }
  assert.deepEqual(told, ["2 listed", "2 listed", "late ADDED"]);
}

await repeatedOnce();
await notRepeated();
await leftAloneForAsLongAsAsked();
await notAskedForAgainWhileABudgetBlocks();
await typedProblem();
await pages();
await followed();
