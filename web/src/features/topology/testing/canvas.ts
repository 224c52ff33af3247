/** A canvas of happy-dom, which cannot draw, whose context writes down what is drawn on it. Each character is 6 wide. */

const TOKENS = [
  'ok',
  'info',
  'warn',
  'crit',
  'unk',
  'surface',
  'line',
  'line-strong',
  'text',
  'text-2',
  'focus',
  'accent',
]
const CHARACTER_WIDTH = 6

export type Written = { readonly canvas: HTMLCanvasElement; readonly lines: string[] }

/** In the document, with a colour for each token and the font Inter. */
export function writtenCanvas(): Written {
  const parent = document.createElement('div')
  for (const [at, token] of TOKENS.entries()) parent.style.setProperty(`--color-${token}`, `rgb(${at}, 0, 0)`)
  const canvas = document.createElement('canvas')
  canvas.style.font = '14px/20px Inter'
  parent.append(canvas)
  document.body.append(parent)
  const lines: string[] = []
  const context = writingContext(lines)
  canvas.getContext = (() => context) as unknown as HTMLCanvasElement['getContext']
  return { canvas, lines }
}

/** Path2D, which happy-dom lacks. */
export class WrittenPath {
  readonly text: string
  constructor(text: string) {
    this.text = text
  }
}

function writingContext(lines: string[]) {
  let path: string[] = []
  let dash: readonly number[] = []
  const nameOf = (colour: string) => TOKENS[Number(/\d+/.exec(colour)?.[0] ?? Number.NaN)]
  const stroked = () => `${nameOf(context.strokeStyle)} ${context.lineWidth}${dash.length > 0 ? ` [${dash}]` : ''}`
  const filled = () => nameOf(context.fillStyle)
  const writes =
    (name: string) =>
    (...args: readonly number[]) =>
      void lines.push([name, ...args].join(' '))
  const extends_ =
    (name: string) =>
    (...args: readonly number[]) =>
      void path.push([name, ...args.map((value) => Number(value.toFixed(3)))].join(' '))
  const context = {
    ...{ strokeStyle: '', fillStyle: '', lineWidth: 0, font: '', textBaseline: '', textAlign: 'start' },
    setTransform: writes('setTransform'),
    translate: writes('translate'),
    clearRect: writes('clearRect'),
    beginPath: () => {
      path = []
    },
    moveTo: extends_('moveTo'),
    bezierCurveTo: extends_('bezierCurveTo'),
    roundRect: extends_('roundRect'),
    arc: extends_('arc'),
    setLineDash: (pattern: readonly number[]) => {
      dash = pattern
    },
    stroke: (given?: WrittenPath) => void lines.push(`stroke ${stroked()}: ${given?.text ?? path.join(', ')}`),
    fill: () => void lines.push(`fill ${filled()}: ${path.join(', ')}`),
    strokeRect: (...box: readonly number[]) => void lines.push(`strokeRect ${stroked()}: ${box.join(' ')}`),
    fillRect: (...box: readonly number[]) => void lines.push(`fillRect ${filled()}: ${box.join(' ')}`),
    fillText: (text: string, x: number, y: number) =>
      void (text !== '' && lines.push(`text ${filled()} ${context.font} ${context.textAlign}: "${text}" ${x} ${y}`)),
    measureText: (text: string) => ({ width: CHARACTER_WIDTH * text.length }),
  }
  return context
}
