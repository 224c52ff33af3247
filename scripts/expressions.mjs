// Reads which metrics and labels an expression of Prometheus names, for tests. Whether it is valid, promtool says.

const TOKEN = /"(?:[^"\\]|\\.)*"|\[[^\]]*\]|\d[\w.]*|[A-Za-z_:][\w:]*|=~|!~|!=|==|>=|<=|[^\s\w]/g
const NAME = /^[A-Za-z_:]/
/** A list of labels in brackets may follow these. */
const WITH_LABELS = new Set(['by', 'without', 'on', 'ignoring', 'group_left', 'group_right'])
const OPERATORS = new Set(['and', 'or', 'unless', 'bool', 'offset'])

/**
 * @returns `metrics`, each with its matchers (label, operator, value) and the innermost function around it, '' for none;
 *   `labels` that results are grouped or joined by
 */
export function readExpression(expr) {
  const tokens = expr.match(TOKEN) ?? []
  const metrics = []
  const labels = []
  /** Functions that are open. */
  const inside = []
  for (let at = 0; at < tokens.length; at++) {
    const token = tokens[at]
    const next = tokens[at + 1]
    if (WITH_LABELS.has(token)) {
      if (next !== '(') continue
      const end = tokens.indexOf(')', at)
      labels.push(...tokens.slice(at + 2, end).filter((each) => each !== ','))
      at = end
    } else if (token === '(') inside.push('')
    else if (token === ')') inside.pop()
    else if (!NAME.test(token) || OPERATORS.has(token)) continue
    else if (next === '(') {
      inside.push(token)
      at++
    } else if (!isAggregation(tokens, at)) {
      const metric = { name: token, within: inside.at(-1) ?? '', matchers: [] }
      metrics.push(metric)
      if (next !== '{') continue
      const end = tokens.indexOf('}', at)
      const parts = tokens.slice(at + 2, end)
      for (let part = 0; part < parts.length; part += 4)
        metric.matchers.push([parts[part], parts[part + 1], JSON.parse(parts[part + 2])])
      at = end
    }
  }
  return { metrics, labels }
}

/** `sum by (…) (…)`: the function's bracket comes after its labels. */
function isAggregation(tokens, at) {
  return tokens[at + 1] === 'by' || tokens[at + 1] === 'without'
}

/** The base of a series of a histogram, and of anything else its name. */
export function baseOf(name, types) {
  const base = name.replace(/_(?:bucket|sum|count)$/, '')
  return types.get(name) === undefined && types.get(base) === 'histogram' ? base : name
}
