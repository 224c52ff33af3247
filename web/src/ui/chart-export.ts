/** A chart as picture, values or query, loaded when one is copied. */
import { saveFile } from '../lib/save-file.ts'
import { copyText } from './copy-button.tsx'
import * as copy from './data-copy.ts'
import { toast } from './toast.tsx'

export type CopiedAs = 'png' | 'csv' | 'promql'

type Shown = {
  readonly title: string
  readonly unit: string
  readonly series: readonly { readonly label: string; readonly values: readonly (number | null)[] }[]
  readonly timeOf: (step: number) => string
  readonly format: (value: number) => string
}

export async function copyChart(
  as: CopiedAs,
  shown: Shown,
  figure: HTMLElement | null,
  promql: string | undefined,
): Promise<void> {
  const name = copy.timeChart.formats[as]
  if (as === 'png') return await copyPicture(shown, figure)
  const isCopied = await copyText(as === 'csv' ? csvOf(shown) : (promql ?? ''))
  toast(
    isCopied
      ? { message: copy.timeChart.copied(name), level: 'ok' }
      : { message: copy.timeChart.failed, level: 'warn' },
  )
}

/** One row per step, the oldest first. Cells that a spreadsheet would run as a formula are quoted. */
export function csvOf({ series, timeOf }: Pick<Shown, 'series' | 'timeOf'>): string {
  const steps = series[0]?.values.length ?? 0
  const rows = [['time', ...series.map(({ label }) => label)].map(cellOf).join()]
  for (let at = 0; at < steps; at++) {
    rows.push([timeOf(at), ...series.map(({ values }) => values[at] ?? '')].join())
  }
  return `${rows.join('\n')}\n`
}

function cellOf(text: string): string {
  const safe = /^[=+\-@\t\r]/.test(text) ? `'${text}` : text
  return /[",\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe
}

const MARGIN = 12
const LINE = 18

/** The drawn lines, with title and legend, on the background of the page. */
async function copyPicture({ title, unit, series, format }: Shown, figure: HTMLElement | null): Promise<void> {
  const drawn = figure?.querySelector('canvas')
  if (!figure || !drawn) return
  const scale = devicePixelRatio
  const colours = getComputedStyle(figure)
  const picture = document.createElement('canvas')
  picture.width = drawn.width + 2 * MARGIN * scale
  picture.height = drawn.height + (2 * MARGIN + (1 + series.length) * LINE) * scale
  const context = picture.getContext('2d')
  if (!context) return
  context.fillStyle = backgroundOf(figure)
  context.fillRect(0, 0, picture.width, picture.height)
  context.fillStyle = colours.color
  context.font = `600 ${13 * scale}px system-ui, sans-serif`
  context.fillText(unit === '' ? title : `${title}, ${unit}`, MARGIN * scale, (MARGIN + 12) * scale)
  context.drawImage(drawn, MARGIN * scale, (MARGIN + LINE) * scale)
  context.font = `${11 * scale}px system-ui, sans-serif`
  const swatches = figure.querySelectorAll('li svg')
  for (const [at, { label, values }] of series.entries()) {
    const y = (MARGIN + LINE) * scale + drawn.height + (at + 0.75) * LINE * scale
    const swatch = swatches[at]
    if (swatch) context.fillStyle = getComputedStyle(swatch).color
    context.fillRect(MARGIN * scale, y - 5 * scale, 18 * scale, 2 * scale)
    context.fillStyle = colours.color
    const last = values.findLast((value) => value !== null)
    context.fillText(`${label}  ${last === undefined || last === null ? '' : format(last)}`, (MARGIN + 26) * scale, y)
  }
  const blob = await new Promise<Blob | null>((resolve) => picture.toBlob(resolve, 'image/png'))
  if (!blob) return toast({ message: copy.timeChart.failed, level: 'warn' })
  if (await hasCopied(blob)) return toast({ message: copy.timeChart.copied(copy.timeChart.formats.png), level: 'ok' })
  saveFile(`${title.toLowerCase().replaceAll(/\W+/g, '-')}.png`, 'image/png', blob)
  toast({ message: copy.timeChart.saved(copy.timeChart.formats.png), level: 'info' })
}

async function hasCopied(blob: Blob): Promise<boolean> {
  // Over plain HTTP browsers have no clipboard for pictures.
  if (!navigator.clipboard || typeof ClipboardItem === 'undefined') return false
  try {
    await navigator.clipboard.write([new ClipboardItem({ 'image/png': blob })])
    return true
  } catch {
    // Refused by the browser or its user: it is downloaded instead.
    return false
  }
}

function backgroundOf(element: Element): string {
  for (let at: Element | null = element; at; at = at.parentElement) {
    const { backgroundColor } = getComputedStyle(at)
    if (backgroundColor !== 'rgba(0, 0, 0, 0)' && backgroundColor !== 'transparent') return backgroundColor
  }
  return 'white'
}
