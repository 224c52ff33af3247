/** Equirectangular projection at the middle latitude, which keeps the shape of small areas. */

export type Place = { readonly id: string; readonly latitude: number; readonly longitude: number }
export type Point = { readonly id: string; readonly x: number; readonly y: number }
export type Size = { readonly width: number; readonly height: number }

const METRES_PER_DEGREE = 111_194.93
const MARGIN = 28

export type Projection = {
  readonly points: readonly Point[]
  readonly metresPerPixel: number
  /** Of longitude. */
  readonly degreesPerPixel: number
  place(x: number, y: number): { readonly latitude: number; readonly longitude: number }
}

export function project(places: readonly Place[], size: Size): Projection {
  const latitudes = places.map(({ latitude }) => latitude)
  const longitudes = unwrapped(places.map(({ longitude }) => longitude))
  const [south, north] = extent(latitudes)
  const [west, east] = extent(longitudes)
  const middle = { latitude: (south + north) / 2, longitude: (west + east) / 2 }
  // A degree of longitude has no length at the poles; the minimum keeps the plane from collapsing.
  const squeeze = Math.max(Math.cos((middle.latitude * Math.PI) / 180), 0.01)
  const wide = Math.max((east - west) * squeeze, 0.002)
  const high = Math.max(north - south, 0.002)
  const perDegree = Math.min((size.width - 2 * MARGIN) / wide, (size.height - 2 * MARGIN) / high)
  const points = places.map(({ id, latitude }, n) => ({
    id,
    x: size.width / 2 + ((longitudes[n] as number) - middle.longitude) * squeeze * perDegree,
    y: size.height / 2 - (latitude - middle.latitude) * perDegree,
  }))
  return {
    points,
    metresPerPixel: METRES_PER_DEGREE / perDegree,
    degreesPerPixel: 1 / (squeeze * perDegree),
    place: (x, y) => ({
      latitude: middle.latitude - (y - size.height / 2) / perDegree,
      longitude: wrapped(middle.longitude + (x - size.width / 2) / (squeeze * perDegree)),
    }),
  }
}

function extent(values: readonly number[]): readonly [number, number] {
  return values.length === 0
    ? [0, 0]
    : values.reduce(([least, most], value) => [Math.min(least, value), Math.max(most, value)], [Infinity, -Infinity])
}

/** Longitudes continue past 180° where places lie on both sides of the antimeridian. */
function unwrapped(longitudes: readonly number[]): number[] {
  const [west, east] = extent(longitudes)
  if (east - west <= 180) return [...longitudes]
  return longitudes.map((longitude) => (longitude < 0 ? longitude + 360 : longitude))
}

function wrapped(longitude: number): number {
  return longitude - 360 * Math.round(longitude / 360)
}

const DIRECTIONS = {
  ArrowLeft: [-1, 0],
  ArrowRight: [1, 0],
  ArrowUp: [0, -1],
  ArrowDown: [0, 1],
} as const
export type Arrow = keyof typeof DIRECTIONS

/** The nearest point in a direction, preferably within 45° of it. */
export function neighbourOf(points: readonly Point[], from: string, arrow: Arrow): string | undefined {
  const start = points.find(({ id }) => id === from)
  if (!start) return points[0]?.id
  const [dx, dy] = DIRECTIONS[arrow]
  let best: { readonly id: string; readonly cost: number } | undefined
  for (const { id, x, y } of points) {
    const ahead = (x - start.x) * dx + (y - start.y) * dy
    if (id === from || ahead <= 0) continue
    const aside = Math.abs((x - start.x) * dy - (y - start.y) * dx)
    const cost = ahead + aside * (aside > ahead ? 8 : 2)
    if (!best || cost < best.cost) best = { id, cost }
  }
  return best?.id
}

/** A round number of metres that fits into the given pixels. */
export function scaleBar(
  metresPerPixel: number,
  pixelsMax: number,
): { readonly pixels: number; readonly text: string } {
  const most = metresPerPixel * pixelsMax
  const power = 10 ** Math.floor(Math.log10(most))
  const metres = ([5, 2, 1].find((n) => n * power <= most) ?? 1) * power
  const text = metres >= 1_000 ? `${metres / 1_000} km` : `${metres} m`
  return { pixels: metres / metresPerPixel, text }
}

/** Groups points into hexagons, each by the nearest centre. */
export function hexagons(
  points: readonly Point[],
  radius: number,
): { readonly x: number; readonly y: number; readonly ids: readonly string[] }[] {
  const bins = new Map<string, { x: number; y: number; ids: string[] }>()
  const [stepX, stepY] = [radius * Math.sqrt(3), radius * 1.5]
  for (const { id, x, y } of points) {
    const near = [Math.floor(y / stepY), Math.floor(y / stepY) + 1].flatMap((row) => {
      const shift = row % 2 === 0 ? 0 : stepX / 2
      const column = Math.round((x - shift) / stepX)
      return [{ key: `${column} ${row}`, x: column * stepX + shift, y: row * stepY }]
    })
    const [a, b] = near as [(typeof near)[number], (typeof near)[number]]
    const middle = (a.x - x) ** 2 + (a.y - y) ** 2 <= (b.x - x) ** 2 + (b.y - y) ** 2 ? a : b
    const bin = bins.get(middle.key) ?? { x: middle.x, y: middle.y, ids: [] }
    bin.ids.push(id)
    bins.set(middle.key, bin)
  }
  return [...bins.values()]
}
