/** What is selected, as the address has it: `node:node-7`, `pod:shop/web-0` or `workload:shop/App/web`. */
export function selection(text: string): [kind: string, name?: string] {
  const colon = text.indexOf(':');
  return colon < 0 ? [text] : [text.slice(0, colon), text.slice(colon + 1)];
}
