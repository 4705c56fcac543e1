/** Label selectors, as Kubernetes matches them. */
import type { Schemas } from '../api/client';

type Labels = Readonly<Record<string, string>>;

export function matches(selector: Schemas['LabelSelector'] | null | undefined, labels: Labels): boolean {
  if (!selector) return false;
  for (const [key, value] of Object.entries(selector.matchLabels ?? {})) if (labels[key] !== value) return false;
  return (selector.matchExpressions ?? []).every((each) => meets(each, labels));
}

function meets(requirement: Schemas['LabelSelectorRequirement'], labels: Labels): boolean {
  const value = labels[requirement.key];
  const values = requirement.values ?? [];
  switch (requirement.operator) {
    case 'In':
      return value !== undefined && values.includes(value);
    case 'NotIn':
      return value === undefined || !values.includes(value);
    case 'Exists':
      return value !== undefined;
    default:
      return value === undefined;
  }
}

export function selectorText(selector: Schemas['LabelSelector'] | null | undefined): string {
  const parts = Object.entries(selector?.matchLabels ?? {}).map(([key, value]) => `${key}=${value}`);
  for (const each of selector?.matchExpressions ?? []) {
    const values = each.values?.length ? ` (${each.values.join(', ')})` : '';
    parts.push(`${each.key} ${each.operator}${values}`);
  }
  return parts.join(', ') || 'all pods';
}
