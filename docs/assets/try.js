// Makes a form of each operation of the API reference, which asks the server that shows the page.
const TOKEN = "moorage.token";
const SHOWN_MAX = 200_000;

/** An element with attributes and children. */
function make(name, attributes = {}, ...children) {
  const made = Object.assign(document.createElement(name), attributes);
  made.append(...children);
  return made;
}

/** A field with its label; the label is around it, so that it needs no id. */
function field(form, label, control) {
  form.append(make("label", {}, make("span", { textContent: label }), control));
  return control;
}

/** The fields of a form: one for each parameter, the body and the token. */
function fill(form, operation) {
  const values = operation.parameters.map((each) => [each, field(form, `${each.name} (${each.in})`,
    make("input", { value: each.example ?? "", required: each.required, spellcheck: false }))]);
  const medias = Object.keys(operation.bodies);
  const body = medias.length ? make("textarea", { rows: 10, spellcheck: false }) : null;
  const media = make("select", {}, ...medias.map((each) => make("option", { textContent: each })));
  const show = () => { body.value = operation.bodies[media.value]; };
  if (medias.length > 1) field(form, "Content type", media).addEventListener("change", show);
  if (body) {
    field(form, "Body", body);
    show();
  }
  const token = field(form, "Token, if the server asks for one", make("input",
    { type: "password", autocomplete: "off", value: sessionStorage.getItem(TOKEN) ?? "" }));
  return { values, media, body, token };
}

/** The URL and the options of the request that the fields describe. */
function request(operation, { values, media, body, token }) {
  let path = operation.path;
  const query = new URLSearchParams();
  const headers = {};
  for (const [{ name, in: place }, { value }] of values) {
    if (place === "path") path = path.replace(`{${name}}`, encodeURIComponent(value));
    else if (value && place === "query") query.append(name, value);
    else if (value) headers[name] = value;
  }
  if (body) headers["content-type"] = media.value;
  if (token.value) headers.authorization = `Bearer ${token.value}`;
  const url = query.size ? `${path}?${query}` : path;
  return [url, { method: operation.method, headers, body: body?.value, credentials: "omit" }];
}

/** Shows the text of an answer while it comes; documents in JSON are indented at their end. */
async function read(answer, output) {
  const reader = answer.body?.pipeThrough(new TextDecoderStream()).getReader();
  let text = "";
  for (let part = await reader?.read(); part && !part.done; part = await reader.read()) {
    text += part.value;
    output.textContent = text;
    if (text.length > SHOWN_MAX) return reader.cancel();
  }
  if (/json$/.test((answer.headers.get("content-type") ?? "").split(";")[0])) {
    output.textContent = JSON.stringify(JSON.parse(text), null, 2);
  }
}

function complete(place) {
  const operation = JSON.parse(place.dataset.operation);
  const form = make("form");
  const fields = fill(form, operation);
  const send = make("button", { textContent: "Send", className: "md-button" });
  const stop = make("button", { type: "button", textContent: "Stop", className: "md-button", hidden: true });
  const status = make("p");
  status.setAttribute("role", "status");
  const output = make("pre", { tabIndex: 0, hidden: true });
  output.setAttribute("role", "region");
  output.setAttribute("aria-label", `Answer of ${operation.method} ${operation.path}`);
  form.append(make("p", {}, send, " ", stop), status, output);
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    const ending = new AbortController();
    stop.onclick = () => ending.abort();
    [send.disabled, stop.hidden, output.hidden] = [true, false, true];
    status.textContent = "Asking …";
    try {
      const [url, options] = request(operation, fields);
      const answer = await fetch(url, { ...options, signal: ending.signal });
      status.textContent = `${answer.status} ${answer.statusText}`.trim();
      output.textContent = "";
      output.hidden = false;
      await read(answer, output);
    } catch (error) {
      if (!ending.signal.aborted) status.textContent = `There is no answer: ${error.message}`;
    }
    [send.disabled, stop.hidden] = [false, true];
  });
  place.append(make("details", {}, make("summary", { textContent: "Try it" }), form));
}

document.querySelectorAll(".try[data-operation]").forEach(complete);
