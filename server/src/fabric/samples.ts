/** Samples of a page of metrics in the Prometheus text format. Pure. */

export type Sample = { readonly labels: ReadonlyMap<string, string>; readonly value: number }

const LINE = /^([A-Za-z_:][\w:]*)(?:\{(.*)\})? ([^ ]+)(?: \d+)?$/
const LABEL = /([A-Za-z_]\w*)="((?:[^"\\]|\\.)*)"/g

/** The samples of the wanted metrics, by name. Other and unreadable lines are skipped. */
export function samplesOf(text: string, isWanted: (name: string) => boolean): ReadonlyMap<string, readonly Sample[]> {
  const found = new Map<string, Sample[]>()
  for (const line of text.split('\n')) {
    if (line === '' || line.startsWith('#')) continue
    const [, name = '', labels = '', number = ''] = LINE.exec(line) ?? []
    if (name === '' || !isWanted(name)) continue
    const value = Number(number)
    if (Number.isNaN(value)) continue
    const list = found.get(name) ?? []
    found.set(name, list)
    list.push({
      labels: new Map([...labels.matchAll(LABEL)].map(([, key = '', of = '']) => [key, unescaped(of)])),
      value,
    })
  }
  return found
}

function unescaped(text: string): string {
  return text.replaceAll(/\\(.)/g, (_, character: string) => (character === 'n' ? '\n' : character))
}

export function sumOf(
  samples: readonly Sample[] | undefined,
  labels: { readonly [name: string]: string } = {},
): number | undefined {
  const matching = samples?.filter((sample) =>
    Object.entries(labels).every(([name, value]) => sample.labels.get(name) === value),
  )
  return matching && matching.length > 0 ? matching.reduce((sum, { value }) => sum + value, 0) : undefined
}
