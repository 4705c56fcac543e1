// What an orchestrator does, with the client that @hey-api/openapi-ts makes.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import * as api from "./generated/hey_api/index.js";
import type { Pod } from "./generated/hey_api/index.js";
import { client } from "./generated/hey_api/client.gen.js";

type Json = Record<string, any>;

const { MOORAGE_URL, MOORAGE_TOKEN, CLUSTER } = process.env as Record<string, string>;
const manifests: Json = JSON.parse(readFileSync(process.argv[2], "utf-8"));
const cluster = CLUSTER;
const inCluster = { path: { cluster } };
const inShop = { path: { cluster, namespace: "shop" } };
const named = (name: string) => ({ path: { cluster, namespace: "shop", name } });

const headers = { authorization: `Bearer ${MOORAGE_TOKEN}` };
client.setConfig({ baseUrl: MOORAGE_URL, auth: () => MOORAGE_TOKEN });

/** What the server has, read without the generated client. */
async function stored(path: string): Promise<Json> {
  const answer = await fetch(`${MOORAGE_URL}/v1/clusters/${cluster}/${path}`, { headers });
  return (await answer.json()) as Json;
}

function pod(name: string, spec: Partial<Pod["spec"]> = {}): Pod {
  return {
    metadata: { name, namespace: "shop", labels: { app: name } },
    spec: { containers: [{ name: "web", image: "web:1", command: ["/bin/web"] }], ...spec },
  };
}

async function configure(): Promise<void> {
  const made = await api.putCluster({
    ...inCluster,
    body: { config: { hardPodAffinityWeight: 5 } },
  });
  assert.equal(made.data?.config.hardPodAffinityWeight, 5);
  const shown = await api.getCluster(inCluster);
  assert(shown.data);
  const again = await api.putCluster({ ...inCluster, body: shown.data });
  assert.equal(again.data?.revision, shown.data.revision);
}

async function apply(): Promise<void> {
  const written: api.ApplicableObject[] = [
    { kind: "Namespace", metadata: { name: "shop", finalizers: ["example.com/audit"] } },
    { kind: "PriorityClass", metadata: { name: "high" }, value: 1000 },
  ];
  const items = [...manifests.nodes, ...written, manifests.service];
  const answer = await api.applyObjects({
    ...inCluster,
    body: { apiVersion: "v1", kind: "List", items },
  });
  assert(typeof answer.data === "object");
  assert.equal(answer.data.created, 5);
}

async function place(): Promise<void> {
  const pods = [pod("web"), pod("lost", { nodeSelector: { zone: "nowhere" } })];
  const full = await api.placePods({ ...inCluster, body: { pods, explain: "Full" } });
  assert.deepEqual(full.data?.results.map((each) => each.outcome), ["Placed", "Unschedulable"]);
  const explanation = full.data.results[1].explanation;
  assert(explanation && "feasible" in explanation);
  assert.deepEqual(explanation.feasible, []);
  const dry = await api.placePods({
    ...inCluster,
    body: { pods: [pod("dry")], dryRun: true },
  });
  assert.equal(dry.data?.committed, false);
  const { metadata, spec } = pod("many");
  const many = await api.placePods({
    ...inCluster,
    body: { template: { metadata, spec }, replicas: 3, policy: "AllOrNothing" },
  });
  assert.equal(many.data?.results.length, 3);
  await api.putPod({
    ...named("bound"),
    body: pod("bound", { schedulingGates: [{ name: "wait" }] }),
  });
  const ungated = await api.patchPod({
    ...named("bound"),
    body: { spec: { schedulingGates: null } },
  });
  assert.equal(ungated.data?.spec.schedulingGates, undefined);
  const refs = await api.placePods({
    ...inCluster,
    body: { podRefs: [{ namespace: "shop", name: "bound" }] },
  });
  assert(["Placed", "AlreadyPlaced"].includes(refs.data?.results[0].outcome ?? ""));
  const absent = await api.bindPod({
    ...named("absent"),
    body: { apiVersion: "v1", kind: "Binding", target: { kind: "Node", name: "n2" } },
  });
  assert.equal(absent.error?.code, "NotFound");
}

async function queueAndWatch(): Promise<void> {
  const queued = await api.placePods({
    ...inCluster,
    body: { pods: [pod("late", { nodeSelector: { zone: "late" } })], onUnschedulable: "Queue" },
  });
  assert.equal(queued.data?.results[0].outcome, "Queued");
  await api.patchCluster({
    ...inCluster,
    body: { config: { evictionsPerMinute: 30 } },
  });
  const { status } = manifests.nodes[1];
  await api.putNode({
    path: { cluster, name: "n3" },
    body: { metadata: { name: "n3", labels: { zone: "late" } }, status },
  });
  const seen = await followed(queued.data.revision);
  assert(["Cluster", "Node", "Pod"].every((kind) => seen.has(kind)));
}

/** The kinds of all events until the waiting pod has a node. */
async function followed(sinceRevision: number): Promise<Set<string>> {
  // The document has the stream as text; this client decodes the data of each message.
  const stop = new AbortController();
  const { stream } = await api.watchChanges({
    ...inCluster,
    query: { sinceRevision },
    signal: stop.signal,
  });
  const kinds = new Set<string>();
  for await (const event of stream as AsyncIterable<unknown> as AsyncIterable<api.WatchEvent>) {
    kinds.add(event.kind);
    if (event.kind !== "Pod" || event.object.metadata.name !== "late") continue;
    if (event.object.spec.nodeName === "n3") {
      stop.abort();
      return kinds;
    }
  }
  throw new Error("The stream ended.");
}

async function conflict(): Promise<void> {
  const read = await api.getPod(named("web"));
  assert(read.data);
  const changed = { ...read.data, metadata: { ...read.data.metadata, labels: { app: "web", tier: "front" } } };
  await api.putPod({ ...named("web"), body: changed });
  const stale = await api.putPod({ ...named("web"), body: changed });
  assert.equal(stale.error?.code, "RevisionConflict");
  changed.metadata.resourceVersion = undefined;
  const unmatched = await api.putPod({
    ...named("web"),
    headers: { "If-Match": '"1"' },
    body: changed,
  });
  assert.equal(unmatched.error?.code, "PreconditionFailed");
}

async function pages(): Promise<void> {
  const names: string[] = [];
  let token: string | null | undefined;
  do {
    const page = await api.listNamespacedPods({
      ...inShop,
      query: { limit: 2, ...(token ? { continue: token } : {}) },
    });
    assert(page.data);
    names.push(...page.data.items.map((each) => each.metadata.name));
    token = page.data.metadata.continue;
  } while (token);
  assert.deepEqual(names, [...names].sort());
  assert.equal(names.length, 6);
}

async function typedProblem(): Promise<void> {
  const refused = await api.placePods({
    ...inCluster,
    body: { pods: [pod("Bad Name")] },
  });
  assert.equal(refused.error?.status, 422);
  assert(refused.error?.errors?.some((each) => each.field === "pods[0].metadata.name"));
}

async function nothingIsLost(): Promise<void> {
  const rich: Pod = manifests.rich;
  await api.placePods({ ...inCluster, body: { pods: [rich] } });
  await unchanged("namespaces/shop/pods/rich", async () => {
    const { data } = await api.getPod(named("rich"));
    assert(data);
    data.metadata.labels = { ...data.metadata.labels, changed: "yes" };
    return api.putPod({ ...named("rich"), body: data });
  });
  await unchanged("nodes/n1", async () => {
    const n1 = { path: { cluster, name: "n1" } };
    const { data } = await api.getNode(n1);
    assert(data);
    data.metadata.labels = { ...data.metadata.labels, changed: "yes" };
    return api.putNode({ ...n1, body: data });
  });
}

/** Change a label, and check that nothing else but the revision differs. */
async function unchanged(path: string, change: () => Promise<{ response?: Response }>): Promise<void> {
  const before = await stored(path);
  assert.equal((await change()).response?.status, 200);
  const after = await stored(path);
  before.metadata.labels.changed = "yes";
  delete before.metadata.resourceVersion;
  delete after.metadata.resourceVersion;
  assert.deepEqual(after, before);
}

await configure();
await apply();
await place();
await queueAndWatch();
await conflict();
await pages();
await typedProblem();
await nothingIsLost();
