/** Reads the metrics of a node: Prometheus text, version 0.0.4. */

export type Sample = { name: string; labels: Record<string, string>; value: number }

export function parseMetrics(text: string): Sample[] {
  const samples: Sample[] = []
  for (const line of text.split('\n')) {
    const found = /^([a-zA-Z_:][\w:]*)(?:\{(.*)\})? (\S+)/.exec(line)
    if (!found || line.startsWith('#')) continue
    const [, name = '', labelText = '', value] = found
    const labels: Record<string, string> = {}
    for (const [, label = '', text = ''] of labelText.matchAll(/(\w+)="((?:[^"\\]|\\.)*)"/g)) labels[label] = text
    samples.push({ name, labels, value: Number(value === '+Inf' ? 'Infinity' : value) })
  }
  return samples
}

/** The sum of a metric over all its labels that match; undefined when the node does not serve it. */
export function metric(
  samples: readonly Sample[],
  name: string,
  labels: Record<string, string> = {},
): number | undefined {
  const found = samples.filter(
    (sample) => sample.name === name && Object.entries(labels).every(([label, text]) => sample.labels[label] === text),
  )
  return found.length > 0 ? found.reduce((sum, { value }) => sum + value, 0) : undefined
}
