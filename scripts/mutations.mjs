// The small edits of a mutation run (scripts/mutate.mjs), found in the syntax tree of a module.
import { parseSync } from 'oxc-parser'

const OPERATORS = {
  '<': '<=',
  '<=': '<',
  '>': '>=',
  '>=': '>',
  '===': '!==',
  '!==': '===',
  '+': '-',
  '-': '+',
  '*': '/',
  '/': '*',
  '%': '*',
  '&': '|',
  '|': '&',
  '<<': '>>>',
  '>>': '<<',
  '>>>': '<<',
  '&&': '||',
  '||': '&&',
  '+=': '-=',
  '-=': '+=',
  '++': '--',
  '--': '++',
}
/** Syntax that exists at run time, although it carries types. */
const TYPED_EXPRESSIONS = new Set(['TSAsExpression', 'TSSatisfiesExpression', 'TSNonNullExpression'])
/** Assertions state what cannot happen, so no test can reach them. */
const ASSERTION = /^(?:assert|assert[A-Z]\w*|unreachable)$/

/**
 * All edits of a module.
 *
 * @returns edits by position: `start` and `end` in the source, `before` and `after` as text, `line` and `column` from 1
 */
export function editsOf(file, source) {
  const { program, errors } = parseSync(file, source)
  if (errors.length > 0) throw new Error(`${file}: ${errors[0].message}`)
  const edits = []
  const lines = lineStarts(source)
  const add = (kind, { start, end }, after) => {
    const line = lines.findLastIndex((at) => at <= start)
    edits.push({
      kind,
      start,
      end,
      before: source.slice(start, end),
      after,
      line: line + 1,
      column: start - lines[line] + 1,
    })
  }
  const negate = (test) => add('condition', test, `!(${source.slice(test.start, test.end)})`)
  walk(program, (node, parent) => {
    switch (node.type) {
      case 'BinaryExpression':
      case 'LogicalExpression':
        if (!isText(node)) swap(node, node.left.end, node.right.start)
        break
      case 'AssignmentExpression':
        if (!isText(node.right)) swap(node, node.left.end, node.right.start)
        break
      case 'UpdateExpression':
        swap(node, node.prefix ? node.start : node.argument.end, node.prefix ? node.argument.start : node.end)
        break
      case 'Literal':
        if (typeof node.value === 'boolean') add('constant', node, String(!node.value))
        if (typeof node.value !== 'number' || (parent.key === node && !parent.computed)) break
        add('constant', node, String(node.value + 1))
        add('constant', node, node.value < 1 ? `(${node.value - 1})` : String(node.value - 1))
        break
      case 'IfStatement':
      case 'WhileStatement':
      case 'ConditionalExpression':
        negate(node.test)
        break
      case 'ExpressionStatement':
        if (!node.directive) add('statement', node, ';')
        break
      case 'ThrowStatement':
        add('statement', node, ';')
        break
      case 'ReturnStatement':
        if (node.argument && !isUndefined(node.argument) && !isFalse(node.argument))
          add('return', node.argument, 'undefined')
        break
      case 'ArrowFunctionExpression':
        if (node.body.type !== 'BlockStatement' && !isUndefined(node.body) && !isFalse(node.body))
          add('return', node.body, '(undefined)')
    }
  })
  return edits

  function swap({ operator }, from, to) {
    const start = from + source.slice(from, to).indexOf(operator)
    if (OPERATORS[operator]) add('operator', { start, end: start + operator.length }, OPERATORS[operator])
  }
}

/** The source with one edit. */
export function applyEdit(source, { start, end, after }) {
  return source.slice(0, start) + after + source.slice(end)
}

/** Draws `count` different items with a seed, in a random order. */
export function draw(items, count, seed) {
  const left = [...items]
  let state = seed >>> 0
  const below = (limit) => {
    // mulberry32
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return (((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32) * limit
  }
  const drawn = []
  while (drawn.length < count && left.length > 0) drawn.push(...left.splice(Math.floor(below(left.length)), 1))
  return drawn
}

/** Visits what runs: no types, no log messages, no assertions. */
function walk(node, visit, parent = undefined) {
  if (node.type.startsWith('TS') && !TYPED_EXPRESSIONS.has(node.type)) return
  if (node.type === 'ImportDeclaration' || isLogOrAssertion(node)) return
  visit(node, parent)
  for (const child of Object.values(node).flat()) {
    if (typeof child?.type === 'string' && typeof child.start === 'number') walk(child, visit, node)
  }
}

function isLogOrAssertion(node) {
  if (node.type === 'ExpressionStatement' || node.type === 'ChainExpression') return isLogOrAssertion(node.expression)
  if (node.type !== 'CallExpression') return false
  const { callee } = node
  if (callee.type === 'Identifier') return ASSERTION.test(callee.name)
  const object = callee.type === 'MemberExpression' ? callee.object : undefined
  return (object?.name ?? object?.property?.name) === 'log'
}

/** Whether an expression is certainly text: `+` joins it. */
function isText(node) {
  if (node.type === 'BinaryExpression') return node.operator === '+' && (isText(node.left) || isText(node.right))
  return node.type === 'TemplateLiteral' || (node.type === 'Literal' && typeof node.value === 'string')
}

function isUndefined(node) {
  return node.type === 'Identifier' && node.name === 'undefined'
}

/** To every condition undefined is the same; `true` in its place is an edit of its own. */
function isFalse(node) {
  return node.type === 'Literal' && node.value === false
}

function lineStarts(source) {
  return [0, ...[...source.matchAll(/\n/g)].map(({ index }) => index + 1)]
}
