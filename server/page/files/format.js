// Formatting of numbers, sizes, durations and statistics.

const number = new Intl.NumberFormat('en', { maximumFractionDigits: 0 });

export const count = (n) => number.format(n);

// bytes formats a size like the command line does.
export function bytes(n) {
  if (!(n >= 1000)) return `${Math.round(n || 0)} B`;
  let v = n / 1000;
  let unit = 'kB';
  for (const u of ['MB', 'GB', 'TB']) {
    if (v < 999.5) break;
    v /= 1000;
    unit = u;
  }
  return `${v < 9.95 ? v.toFixed(1) : v.toFixed(0)} ${unit}`;
}

export function seconds(s) {
  if (s < 0.0995) return `${Math.round(s * 1000)} ms`;
  if (s < 9.95) return `${s.toFixed(1)} s`;
  if (s < 90) return `${Math.round(s)} s`;
  return `${Math.floor(s / 60)} min ${Math.round(s % 60)} s`;
}

export const rate = (n, s) => (s > 0 ? n / s : 0);

export const perSecond = (r) => `${r >= 99.5 ? count(r) : r.toFixed(1)} tok/s`;

export const percent = (part, of) => (of > 0 ? `${Math.round((100 * part) / of)}%` : '0%');

export const plural = (n, one, many = `${one}s`) => `${count(n)} ${n === 1 ? one : many}`;

// when formats how long ago a time was. Both arguments are in milliseconds.
export function when(time, now) {
  const past = (now - time) / 1000;
  if (!(past >= 0)) return '';
  for (const [unit, length] of [['year', 31557600], ['month', 2629800], ['day', 86400], ['hour', 3600], ['minute', 60]]) {
    if (past >= length) return `${plural(Math.floor(past / length), unit)} ago`;
  }
  return 'just now';
}

// until formats when a model will be unloaded.
export function until(time, now) {
  const left = (time - now) / 1000;
  if (left > 31557600) return 'stays loaded until its memory is needed';
  if (!(left > 0)) return '';
  return left < 90 ? `unloads in ${Math.ceil(left)} s` : `unloads in ${Math.round(left / 60)} min`;
}

// short removes the default tag from a model's name.
export const short = (name) => name.replace(/:latest$/, '');

// ranks formats which hosts have how much of a divided model, and what the first one exchanges with its neighbours.
export function ranks(usage) {
  if (!(usage?.ranks?.length > 0)) return '';
  const parts = [`${plural(usage.ranks.length, 'rank')}: ${usage.ranks.map((r) => `${r.host} ${bytes(r.weights)}`).join(', ')}`];
  if (usage.ring) parts.push(`sent ${bytes(usage.ring.sent)}`, `received ${bytes(usage.ring.received)}`);
  return parts.join('; ');
}

// describe formats the statistics of a response, the most important ones first.
export function describe(stats) {
  const parts = [];
  if (!stats) return parts;
  parts.push(plural(stats.tokens, 'token'));
  if (stats.seconds > 0 && stats.tokens > 1) parts.push(perSecond(rate(stats.tokens, stats.seconds)));
  if (stats.prompt_tokens > 0) {
    let prompt = `prompt ${count(stats.prompt_tokens)}`;
    if (stats.cached_tokens > 0) prompt += ` (${count(stats.cached_tokens)} cached)`;
    if (stats.prompt_seconds > 0) prompt += ` in ${seconds(stats.prompt_seconds)}`;
    parts.push(prompt);
  }
  if (stats.drafted > 0) {
    parts.push(`drafts: ${count(stats.accepted)} of ${count(stats.drafted)} accepted (${percent(stats.accepted, stats.drafted)})`);
    if (stats.accepted > 0 && stats.target_steps > 0) parts.push(`${(stats.tokens / stats.target_steps).toFixed(2)} tokens per step`);
  }
  return parts;
}
