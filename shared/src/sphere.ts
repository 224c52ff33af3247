/**
 * Positions as points of the unit sphere, and distances as chords between them, without the platform's trigonometry:
 * its last bits differ between versions, but all replicas must order properties by distance in the same way. Additions,
 * multiplications and square roots are exact to the last bit everywhere.
 */

import { LIMITS } from './domain.ts'

const RADIANS = Math.PI / 180
const QUARTER = 90
/** Coefficients of the Taylor series, highest power first: for at most an eighth of a turn they are exact to 2^-53. */
const SINE = series(17, 1)
const COSINE = series(16, 0)
/** Of the inverse sine, for at most SMALL. */
const INVERSE_TERMS = 14
const SMALL = 0.2

function series(highest: number, lowest: number): readonly number[] {
  const terms: number[] = []
  for (let power = highest; power >= lowest; power -= 2) {
    let factorial = 1
    for (let n = 2; n <= power; n++) factorial *= n
    terms.push((((power - lowest) / 2) % 2 === 0 ? 1 : -1) / factorial)
  }
  return terms
}

const turn = { sine: 0, cosine: 0 }

/** Sine and cosine of an angle in degrees, into `turn`. */
function setTurn(degrees: number): void {
  const quarters = Math.round(degrees / QUARTER)
  // Exact: both numbers are close to each other, or the second is 0.
  const angle = (degrees - quarters * QUARTER) * RADIANS
  const square = angle * angle
  let sine = 0
  for (const term of SINE) sine = sine * square + term
  sine *= angle
  let cosine = 0
  for (const term of COSINE) cosine = cosine * square + term
  const quadrant = quarters & 3
  turn.sine = quadrant === 0 ? sine : quadrant === 1 ? cosine : quadrant === 2 ? -sine : -cosine
  turn.cosine = quadrant === 0 ? cosine : quadrant === 1 ? -sine : quadrant === 2 ? -cosine : sine
}

/** Writes x, y and z of a position in degrees. */
export function writeUnitVector(target: Float64Array, at: number, latitude: number, longitude: number): void {
  setTurn(latitude)
  const { sine, cosine } = turn
  setTurn(longitude)
  target[at] = cosine * turn.cosine
  target[at + 1] = cosine * turn.sine
  target[at + 2] = sine
}

/** Metres along a great circle between points whose chord has this square, in whole metres. */
export function metresOfChord(squared: number): number {
  // Halving the angle until the series converges fast.
  let sine = Math.min(1, Math.sqrt(squared) / 2)
  let times = 2
  while (sine > SMALL) {
    sine /= Math.sqrt(2 * (1 + Math.sqrt(1 - sine * sine)))
    times *= 2
  }
  const square = sine * sine
  let angle = 0
  let term = sine
  for (let n = 0; n < INVERSE_TERMS; n++) {
    angle += term / (2 * n + 1)
    term *= (square * (2 * n + 1)) / (2 * n + 2)
  }
  return Math.round(LIMITS.earthRadiusMetres * times * angle)
}
